"""Producer and consumer of `dyno tail` on PyMongo's asyncio interface: one thread, one event loop."""

import asyncio
import platform
import sys
import time

import bson
import pymongo
from pymongo import AsyncMongoClient, CursorType
from pymongo.errors import ConnectionFailure, PyMongoError
from pymongo.write_concern import WriteConcern

import common

# Sends of an unbounded producer after which the event loop runs.
YIELD_EVERY = 256
# Interval of the checks for a stop request.
LOOK_S = 0.1
# The event loop waits in whole milliseconds, rounded up, so it spins for this long before an intended start.
TIMER_NS = 2_000_000


def version():
    common.emit(
        contract=common.CONTRACT,
        language="python",
        driver="pymongo-asyncio",
        driver_version=pymongo.version,
        runtime=platform.python_implementation(),
        runtime_version=platform.python_version(),
        roles=["produce", "consume"],
        in_flight=["one", "bounded", "unbounded"],
        unbounded="driver",
        modes=["tailable", "change-stream", "poll"],
        pool=True,
    )


async def connect(options):
    client = AsyncMongoClient(options.uri, **common.client_options(options))
    for _ in range(common.PINGS):
        await client.admin.command("ping")
    return client[options.database][options.collection]


async def wait_until(control, clock, at_ns):
    """Like `Control.wait_until`, but keeps the event loop running."""
    while (left_ns := at_ns - clock()) > 0:
        if control.stopping:
            return False
        await asyncio.sleep(min(max(left_ns - TIMER_NS, 0), common.SLICE_NS) / 1e9)
    return not control.stopping


class Producer:
    def __init__(self, options):
        self.options = options
        self.schedule = common.load_schedule(options)
        self.pad = bson.Binary(common.padding(options.size))
        self.stamps = common.Stamps(options.output)
        self.control = common.Control()

    async def open(self):
        options = self.options
        journal = None if options.journal is None else options.journal == "true"
        concern = WriteConcern(w=options.write_concern, j=journal)
        self.collection = (await connect(options)).with_options(write_concern=concern)

    async def run(self):
        await asyncio.to_thread(self.control.ready)
        sending, stopped_s = asyncio.create_task(self._send_all()), None
        while not sending.done():
            await asyncio.wait([sending], timeout=LOOK_S)
            if self.control.stopping:
                stopped_s = stopped_s or time.monotonic()
                if time.monotonic() - stopped_s > common.GRACE_S:
                    break
        if sending.done():
            sending.result()
        common.emit(event="done", **self.stamps.close())
        return self.control.exit_code

    async def _send_all(self):
        options, control, clock = self.options, self.control, self.options.clock
        slots = asyncio.Semaphore(options.in_flight) if options.in_flight else None
        running = set()
        for index in range(options.messages):
            due_ns = control.start_ns + (self.schedule[index] if self.schedule else 0)
            if not await wait_until(control, clock, due_ns):
                break
            if slots:
                await slots.acquire()
            elif index % YIELD_EVERY == 0:
                await asyncio.sleep(0)
            if control.stopping:
                break
            send_ns = clock()
            intended_ns = due_ns if self.schedule else send_ns
            sending = self._send(options.first + index, intended_ns, send_ns, slots)
            if options.in_flight == 1:
                await sending
                continue
            task = asyncio.create_task(sending)
            running.add(task)
            task.add_done_callback(running.discard)
        if running:
            await asyncio.wait(running)

    async def _send(self, n, intended_ns, send_ns, slots):
        options = self.options
        message = {
            "_id": bson.Int64((options.producer << common.PRODUCER_SHIFT) + n),
            "p": options.producer,
            "n": bson.Int64(n),
            "i": bson.Int64(intended_ns),
            "s": bson.Int64(send_ns),
            "pad": self.pad,
        }
        error = None
        try:
            await self.collection.insert_one(message)
        except PyMongoError as raised:
            error = raised
        ended_ns = options.clock()
        if slots:
            slots.release()
        if self.stamps.produced(n, intended_ns, send_ns, ended_ns, error):
            common.emit(event="failed", n=n, code=getattr(error, "code", None), message=str(error))


class Tailable:
    had_documents = False

    async def open(self, collection, options, seen_filter):
        self.cursor = collection.find(
            seen_filter,
            cursor_type=CursorType.TAILABLE_AWAIT,
            batch_size=options.batch_size or 0,
        ).max_await_time_ms(options.await_ms)
        # The first read opens the cursor.
        self.first = await anext(self.cursor, None)

    async def try_next(self):
        first, self.first = self.first, None
        document = first or await anext(self.cursor, None)
        self.had_documents |= document is not None
        return document

    def alive(self):
        return self.cursor.alive

    async def close(self):
        await self.cursor.close()


class Poll:
    async def open(self, collection, options, seen_filter):
        self.cursor = collection.find(seen_filter, batch_size=options.batch_size or 0).sort("_id", 1)
        self.first = await anext(self.cursor, None)

    async def try_next(self):
        first, self.first = self.first, None
        return first or await anext(self.cursor, None)

    def alive(self):
        return False

    async def close(self):
        await self.cursor.close()


class ChangeStream:
    token = None

    async def open(self, collection, options, _):
        self.stream = await collection.watch(
            [{"$match": {"operationType": "insert"}}],
            max_await_time_ms=options.await_ms,
            batch_size=options.batch_size,
            resume_after=ChangeStream.token,
        )

    async def try_next(self):
        event = await self.stream.try_next()
        ChangeStream.token = self.stream.resume_token
        return event and event["fullDocument"]

    def alive(self):
        return self.stream.alive

    async def close(self):
        await self.stream.close()


SOURCES = {"tailable": Tailable, "poll": Poll, "change-stream": ChangeStream}


class Consumer:
    def __init__(self, options):
        self.options = options
        self.is_tailable = options.mode == "tailable"
        self.stamps = common.Stamps(options.output)
        self.control = common.Control()
        self.seen = common.Seen()
        self.sight = common.Sight()
        self.opened = self.position_lost = self.empty = self.last_sent_ns = 0
        self.back_off_s = common.BACK_OFF_FIRST_S
        self.source = None

    async def open(self):
        self.collection = await connect(self.options)
        await self._open(None)

    async def _open(self, lost):
        # After a lost position, read from the oldest message on.
        everything = lost is not None and lost.get("reason") == "position-lost"
        source = SOURCES[self.options.mode]()
        await source.open(self.collection, self.options, {} if everything else self.seen.filter())
        self.source = source
        self.opened += 1
        now_ns = self.options.clock()
        self.sight.opened(now_ns)
        self.catch_up_ns = now_ns + common.CATCH_UP_NS if self.is_tailable else None

    async def run(self):
        options, control = self.options, self.control
        await asyncio.to_thread(control.ready)
        self.last_ns = control.start_ns
        lost, idle, polls = None, False, options.mode == "poll"
        while self.seen.count < options.messages and not control.stopping:
            document = None
            try:
                if self.source is None:
                    await self._open(lost)
                    if not polls and lost and not lost.pop("reported", False):
                        common.emit(event="reopened", at_ns=options.clock(), **lost)
                elif self.is_tailable and idle and self.sight.asks(options.clock()):
                    await self._catch_up(newer=True)
                elif self.catch_up_ns and self.last_sent_ns > self.catch_up_ns:
                    self.catch_up_ns = None
                    await self._catch_up(newer=False)
                document = await self.source.try_next()
                if document is None and not self.source.alive():
                    lost = await self._ended(lost)
                elif document is None and self.is_tailable and self.sight.is_blind(options.clock()):
                    await self._close()
                    lost = self.sight.lost(options.clock())
            except PyMongoError as error:
                lost = await self._broken(error)
            idle = document is None
            if not idle:
                await self._receive(document)
                lost = None
            elif options.clock() - self.last_ns > options.idle_s * 1e9:
                control.exit_code = 5
                break
        self.stamps.close()
        common.emit(
            event="done",
            messages=self.seen.count,
            failed=0,
            reopened=0 if polls else self.opened - 1,
            reopened_empty=self.empty,
            position_lost=self.position_lost,
            caught_up=self.seen.caught_up(),
            duplicates_skipped=self.seen.duplicates,
        )
        return control.exit_code

    async def _catch_up(self, newer):
        """Queries for missing messages: overtaken ones once, early for each cursor, and all while it is silent."""
        async for document in self.collection.find(self.seen.filter(newer)):
            await self._receive(document, by_query=True)

    async def _receive(self, document, by_query=False):
        received_ns = self.last_ns = self.options.clock()
        self.last_sent_ns = min(document["s"], received_ns)
        is_new = self.seen.accept(document["p"], document["n"], by_query)
        if not by_query:
            self.sight.heard(self.last_sent_ns, received_ns)
        elif is_new:
            self.sight.found(self.last_sent_ns, received_ns)
        if is_new:
            self.stamps.consumed(document["n"], document["s"], received_ns, document["p"])
            if self.options.delay_us:
                await asyncio.sleep(self.options.delay_us / 1e6)
        self.back_off_s = common.BACK_OFF_FIRST_S

    async def _ended(self, lost):
        """The cursor is dead without an error: everything was read, or a tailable cursor found no message.

        PyMongo ends a tailable cursor without an error when the server reports CappedPositionLost.
        """
        had_documents = getattr(self.source, "had_documents", False)
        await self._close()
        if self.options.mode == "poll":
            await asyncio.sleep(self.options.poll_ms / 1000)
            return None
        if had_documents:
            self.position_lost += 1
            return {"reason": "position-lost", "code": None, "message": "the driver ended the cursor"}
        self.empty += 1
        await asyncio.sleep(common.EMPTY_PAUSE_S)
        reported = lost is not None and lost["reason"] == "empty"
        return {"reason": "empty", "code": None, "message": "the cursor died without finding a message", "reported": reported}

    async def _broken(self, error):
        await self._close()
        code, reason = getattr(error, "code", None), "other"
        if code == common.POSITION_LOST:
            reason = "position-lost"
            self.position_lost += 1
        elif isinstance(error, ConnectionFailure):
            reason = "connection"
        if reason != "position-lost":
            await asyncio.sleep(self.back_off_s)
            self.back_off_s = min(2 * self.back_off_s, common.BACK_OFF_LAST_S)
        return {"reason": reason, "code": code, "message": str(error)}

    async def _close(self):
        source, self.source = self.source, None
        try:
            if source:
                await source.close()
        except PyMongoError:
            pass


async def run(program, options):
    try:
        running = program(options)
        await running.open()
    except PyMongoError as error:
        common.fail(4, f"cannot use the server: {error}")
    return await running.run()


def main(arguments):
    role = arguments[0] if arguments else None
    if role == "version":
        return version()
    roles = {"produce": (Producer, common.PRODUCE), "consume": (Consumer, common.CONSUME)}
    if role not in roles:
        common.fail(2, f"`{role}` is not one of version, produce, consume")
    program, known = roles[role]
    try:
        code = asyncio.run(run(program, common.parse(arguments[1:], known)))
    except common.Usage as error:
        common.fail(2, error)
    sys.exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
