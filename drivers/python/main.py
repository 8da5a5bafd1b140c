"""Producer and consumer of `dyno tail` on PyMongo: threads, each with one insert in flight."""

import itertools
import platform
import sys
import threading
import time

import bson
import pymongo
from pymongo import CursorType, MongoClient
from pymongo.errors import ConnectionFailure, PyMongoError
from pymongo.write_concern import WriteConcern

import common


def version():
    common.emit(
        contract=common.CONTRACT,
        language="python",
        driver="pymongo",
        driver_version=pymongo.version,
        runtime=platform.python_implementation(),
        runtime_version=platform.python_version(),
        roles=["produce", "consume"],
        in_flight=["one", "bounded", "unbounded"],
        unbounded="program",
        modes=["tailable", "change-stream", "poll"],
        pool=True,
    )


def connect(options):
    client = MongoClient(options.uri, **common.client_options(options))
    for _ in range(common.PINGS):
        client.admin.command("ping")
    return client[options.database][options.collection]


class Producer:
    def __init__(self, options):
        self.options = options
        self.schedule = common.load_schedule(options)
        self.pad = bson.Binary(common.padding(options.size))
        self.stamps = common.Stamps(options.output)
        self.control = common.Control()
        self.next = itertools.count()
        journal = None if options.journal is None else options.journal == "true"
        concern = WriteConcern(w=options.write_concern, j=journal)
        self.collection = connect(options).with_options(write_concern=concern)

    def run(self):
        options, control = self.options, self.control
        control.ready()
        # A blocking driver has one insert in flight per thread. If unbounded, due messages wait for a thread here, in
        # front of the pool.
        threads = options.in_flight or options.pool
        lanes = [
            threading.Thread(target=self._lane, daemon=True)
            for _ in range(min(threads, max(1, options.messages)))
        ]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            while lane.is_alive() and not control.stopping:
                lane.join(0.1)
        deadline = time.monotonic() + common.GRACE_S
        for lane in lanes:
            lane.join(max(0.0, deadline - time.monotonic()))
        common.emit(event="done", **self.stamps.close())
        return control.exit_code

    def _lane(self):
        options, control, clock = self.options, self.control, self.options.clock
        while (index := next(self.next)) < options.messages:
            due_ns = control.start_ns + (self.schedule[index] if self.schedule else 0)
            if not control.wait_until(clock, due_ns):
                return
            send_ns = clock()
            closed = self.schedule is None and options.in_flight is not None
            self._send(options.first + index, send_ns if closed else due_ns, send_ns)

    def _send(self, n, intended_ns, send_ns):
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
            self.collection.insert_one(message)
        except PyMongoError as raised:
            error = raised
        ended_ns = options.clock()
        if self.stamps.produced(n, intended_ns, send_ns, ended_ns, error):
            common.emit(event="failed", n=n, code=getattr(error, "code", None), message=str(error))


class Tailable:
    had_documents = False

    def __init__(self, collection, options, seen_filter):
        self.cursor = collection.find(
            seen_filter,
            cursor_type=CursorType.TAILABLE_AWAIT,
            batch_size=options.batch_size or 0,
        ).max_await_time_ms(options.await_ms)
        # The first read opens the cursor.
        self.first = next(self.cursor, None)

    def try_next(self):
        first, self.first = self.first, None
        document = first or next(self.cursor, None)
        self.had_documents |= document is not None
        return document

    def alive(self):
        return self.cursor.alive

    def close(self):
        self.cursor.close()


class Poll:
    def __init__(self, collection, options, seen_filter):
        self.cursor = collection.find(seen_filter, batch_size=options.batch_size or 0).sort("_id", 1)
        self.first = next(self.cursor, None)

    def try_next(self):
        first, self.first = self.first, None
        return first or next(self.cursor, None)

    def alive(self):
        return False

    def close(self):
        self.cursor.close()


class ChangeStream:
    token = None

    def __init__(self, collection, options, _):
        self.stream = collection.watch(
            [{"$match": {"operationType": "insert"}}],
            max_await_time_ms=options.await_ms,
            batch_size=options.batch_size,
            resume_after=ChangeStream.token,
        )

    def try_next(self):
        event = self.stream.try_next()
        ChangeStream.token = self.stream.resume_token
        return event and event["fullDocument"]

    def alive(self):
        return self.stream.alive

    def close(self):
        self.stream.close()


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
        self.collection = connect(options)
        self.source = None
        self._open(None)

    def _open(self, lost):
        # After a lost position, read from the oldest message on.
        everything = lost is not None and lost.get("reason") == "position-lost"
        seen_filter = {} if everything else self.seen.filter()
        self.source = SOURCES[self.options.mode](self.collection, self.options, seen_filter)
        self.opened += 1
        now_ns = self.options.clock()
        self.sight.opened(now_ns)
        self.catch_up_ns = now_ns + common.CATCH_UP_NS if self.is_tailable else None

    def run(self):
        options, control = self.options, self.control
        control.ready()
        self.last_ns = control.start_ns
        lost, idle, polls = None, False, options.mode == "poll"
        while self.seen.count < options.messages and not control.stopping:
            document = None
            try:
                if self.source is None:
                    self._open(lost)
                    if not polls and lost and not lost.pop("reported", False):
                        common.emit(event="reopened", at_ns=options.clock(), **lost)
                elif self.is_tailable and idle and self.sight.asks(options.clock()):
                    self._catch_up(newer=True)
                elif self.catch_up_ns and self.last_sent_ns > self.catch_up_ns:
                    self.catch_up_ns = None
                    self._catch_up(newer=False)
                document = self.source.try_next()
                if document is None and not self.source.alive():
                    lost = self._ended(lost)
                elif document is None and self.is_tailable and self.sight.is_blind(options.clock()):
                    self._close()
                    lost = self.sight.lost(options.clock())
            except PyMongoError as error:
                lost = self._broken(error)
            idle = document is None
            if not idle:
                self._receive(document)
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

    def _catch_up(self, newer):
        """Queries for missing messages: overtaken ones once, early for each cursor, and all while it is silent."""
        for document in self.collection.find(self.seen.filter(newer)):
            self._receive(document, by_query=True)

    def _receive(self, document, by_query=False):
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
                time.sleep(self.options.delay_us / 1e6)
        self.back_off_s = common.BACK_OFF_FIRST_S

    def _ended(self, lost):
        """The cursor is dead without an error: everything was read, or a tailable cursor found no message.

        PyMongo ends a tailable cursor without an error when the server reports CappedPositionLost.
        """
        had_documents = getattr(self.source, "had_documents", False)
        self._close()
        if self.options.mode == "poll":
            time.sleep(self.options.poll_ms / 1000)
            return None
        if had_documents:
            self.position_lost += 1
            return {"reason": "position-lost", "code": None, "message": "the driver ended the cursor"}
        self.empty += 1
        time.sleep(common.EMPTY_PAUSE_S)
        reported = lost is not None and lost["reason"] == "empty"
        return {"reason": "empty", "code": None, "message": "the cursor died without finding a message", "reported": reported}

    def _broken(self, error):
        self._close()
        code, reason = getattr(error, "code", None), "other"
        if code == common.POSITION_LOST:
            reason = "position-lost"
            self.position_lost += 1
        elif isinstance(error, ConnectionFailure):
            reason = "connection"
        if reason != "position-lost":
            time.sleep(self.back_off_s)
            self.back_off_s = min(2 * self.back_off_s, common.BACK_OFF_LAST_S)
        return {"reason": reason, "code": code, "message": str(error)}

    def _close(self):
        source, self.source = self.source, None
        try:
            if source:
                source.close()
        except PyMongoError:
            pass


def main(arguments):
    role = arguments[0] if arguments else None
    if role == "version":
        return version()
    roles = {"produce": (Producer, common.PRODUCE), "consume": (Consumer, common.CONSUME)}
    if role not in roles:
        common.fail(2, f"`{role}` is not one of version, produce, consume")
    program, known = roles[role]
    try:
        running = program(common.parse(arguments[1:], known))
    except common.Usage as error:
        common.fail(2, error)
    except PyMongoError as error:
        common.fail(4, f"cannot use the server: {error}")
    sys.exit(running.run())


if __name__ == "__main__":
    main(sys.argv[1:])
