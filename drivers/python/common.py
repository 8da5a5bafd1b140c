"""What both Python drivers share: options, clock, barrier, pacing, stamps, and what a consumer has seen."""

import array
import json
import os
import signal
import struct
import sys
import threading
import time

CONTRACT = 1
NO_BATCH = 0xFFFFFFFF
PRODUCER_SHIFT = 40
POSITION_LOST = 136
# Pings before `ready`, one after the other: each driver starts as warm as the others.
PINGS = 100
# Missing numbers that a filter names one by one; what is missing below them is asked for as a range.
NAMED = 4096
# Numbers in one block of the record of what came.
BLOCK = 256
FULL = (1 << BLOCK) - 1
# Failed inserts that are told one by one.
TOLD = 20
SPIN_NS = 50_000
SLICE_NS = 100_000_000
# After a request to stop, inserts in flight have this long to be answered.
GRACE_S = 2.0
EMPTY_PAUSE_S = 0.005
# A tailable cursor that is opened while inserts run may skip some of them (seen with the embedded server):
# so long after the opening what is missing is asked for.
CATCH_UP_NS = 100_000_000
# While a cursor is silent, what is missing is asked for so often.
ASK_EVERY_NS = 1_000_000_000
# So long after a query that found what the cursor lacks, a cursor that still brings nothing is blind.
BLIND_AFTER_NS = 100_000_000
BACK_OFF_FIRST_S, BACK_OFF_LAST_S = 0.01, 1.0


class Usage(Exception):
    """An option that is unknown or malformed."""


def whole(low, high):
    def parse(text):
        if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return int(text)

    return parse


def seconds(text):
    value = float(text)
    if not 0 < value < 1e9:
        raise ValueError("must be above 0")
    return value


def one_of(*words):
    def parse(text):
        if text not in words:
            raise ValueError("must be one of " + ", ".join(words))
        return text

    return parse


def in_flight(text):
    return None if text == "unbounded" else whole(1, 1_000_000)(text)


def concern(text):
    return text if text == "majority" else whole(0, 50)(text)


COMMON = {
    "database": (str, ...),
    "collection": (str, ...),
    "output": (str, ...),
    "messages": (whole(0, (1 << PRODUCER_SHIFT) - 1), ...),
    "pool": (whole(1, 100_000), 100),
    "clock": (one_of("monotonic", "realtime"), "monotonic"),
}
PRODUCE = COMMON | {
    "producer": (whole(0, 65535), 0),
    "first": (whole(0, (1 << PRODUCER_SHIFT) - 1), 0),
    "size": (whole(0, 16_000_000), 0),
    "in-flight": (in_flight, 1),
    "write-concern": (concern, 1),
    "journal": (one_of("true", "false"), None),
    "schedule": (str, None),
}
CONSUME = COMMON | {
    "mode": (one_of("tailable", "change-stream", "poll"), "tailable"),
    "producers": (whole(1, 65536), 1),
    "await-ms": (whole(1, 3_600_000), 1000),
    "batch-size": (whole(1, 1_000_000), None),
    "poll-ms": (whole(0, 3_600_000), 1),
    "idle-s": (seconds, 30.0),
    "delay-us": (whole(0, 1_000_000_000), 0),
}


def parse(arguments, known):
    """Options by name, dashes as underscores."""
    values = {name: default for name, (_, default) in known.items()}
    for at in range(0, len(arguments), 2):
        name = arguments[at].removeprefix("--")
        if not arguments[at].startswith("--") or name not in known:
            raise Usage(f"unknown option `{arguments[at]}`")
        if at + 1 == len(arguments):
            raise Usage(f"option `--{name}` needs a value")
        try:
            values[name] = known[name][0](arguments[at + 1])
        except ValueError as error:
            raise Usage(f"option `--{name}`: `{arguments[at + 1]}` {error}") from None
    for name, value in values.items():
        if value is ...:
            raise Usage(f"option `--{name}` is missing")
    options = type("Options", (), {name.replace("-", "_"): value for name, value in values.items()})
    options.uri = os.environ.get("DYNO_URI")
    if not options.uri:
        raise Usage("the environment variable DYNO_URI is missing")
    options.clock = time.monotonic_ns if options.clock == "monotonic" else time.time_ns
    return options


def client_options(options):
    """Arguments of the client that the connection string does not have."""
    arguments = {"maxPoolSize": options.pool, "appname": "dyno"}
    if "serverselectiontimeoutms" not in options.uri.lower():
        arguments["serverSelectionTimeoutMS"] = 5000
    return arguments


def load_schedule(options):
    """Intended starts in ns after the start instant, None for a closed loop."""
    if options.schedule is None:
        return None
    schedule = array.array("Q")
    try:
        with open(options.schedule, "rb") as file:
            schedule.frombytes(file.read())
    except (OSError, ValueError) as error:
        raise Usage(f"option `--schedule`: {error}") from None
    if len(schedule) < options.messages:
        raise Usage(f"option `--schedule`: {len(schedule)} entries for {options.messages} messages")
    return schedule


def padding(size):
    """The same bytes in every driver."""
    state, pad = 42, bytearray(size)
    for at in range(size):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        pad[at] = state >> 24
    return bytes(pad)


_emitting = threading.Lock()


def emit(**event):
    # A line is more than one write.
    with _emitting:
        print(json.dumps(event), flush=True)


def fail(code, text):
    print(" ".join(str(text).split()), file=sys.stderr, flush=True)
    sys.exit(code)


class Control:
    """The barrier on standard input, and every reason to stop."""

    def __init__(self):
        self.start_ns = None
        self.stopping = False
        self.exit_code = 0
        self.on_stop = None
        self._started = threading.Event()
        signal.signal(signal.SIGINT, self._signalled)
        signal.signal(signal.SIGTERM, self._signalled)

    def _signalled(self, *_):
        if self.start_ns is None:
            os._exit(130)
        self._stop(130)

    def _stop(self, code):
        self.exit_code = code
        self.stopping = True
        if self.on_stop:
            self.on_stop()

    def _read(self):
        for line in sys.stdin:
            words = line.split()
            if words[:1] == ["start"] and len(words) == 2 and self.start_ns is None:
                self.start_ns = int(words[1])
                self._started.set()
            elif words == ["stop"]:
                if self.start_ns is None:
                    os._exit(0)
                self._stop(0)
        # Without a start nothing is sent.
        if self.start_ns is None:
            os._exit(0)

    def ready(self):
        """Says that all is open, and waits for the start."""
        print("ready", flush=True)
        threading.Thread(target=self._read, daemon=True).start()
        self._started.wait()

    def wait_until(self, clock, at_ns):
        """False if the wait was ended by a request to stop."""
        while (left_ns := at_ns - clock()) > 0:
            if self.stopping:
                return False
            if left_ns > SPIN_NS:
                time.sleep(min(left_ns - SPIN_NS, SLICE_NS) / 1e9)
        return not self.stopping


class Stamps:
    """Records of 32 bytes; on disk at the latest after a second."""

    def __init__(self, path):
        try:
            self._file = open(path, "wb", buffering=1 << 16)
        except OSError as error:
            raise Usage(f"option `--output`: {error}") from None
        self._lock = threading.Lock()
        self._sent = self._failed = 0
        threading.Thread(target=self._flush_often, daemon=True).start()

    def _flush_often(self):
        while not self._file.closed:
            time.sleep(0.5)
            with self._lock:
                if not self._file.closed:
                    self._file.flush()

    def produced(self, n, intended_ns, send_ns, ended_ns, error):
        """Whether the error is one of those to tell."""
        record = struct.pack("<Qqqq", n, intended_ns, send_ns, -ended_ns if error else ended_ns)
        with self._lock:
            if self._file.closed:
                return False
            self._file.write(record)
            self._sent += error is None
            self._failed += error is not None
            return error is not None and self._failed <= TOLD

    def consumed(self, n, send_ns, received_ns, producer, batch=NO_BATCH):
        with self._lock:
            self._file.write(struct.pack("<QqqII", n, send_ns, received_ns, producer, batch))

    def close(self):
        """Acknowledged and failed inserts. Those that are answered later have no stamp and are not counted."""
        with self._lock:
            self._file.close()
            return {"messages": self._sent, "failed": self._failed}


class Sight:
    """Whether a tailable cursor that is silent is blind: "Blind cursors" in drivers/README.md."""

    def __init__(self):
        self._asked_ns = 0

    def opened(self, now_ns):
        # What was sent later cannot have been skipped.
        self._after_ns = now_ns + CATCH_UP_NS
        self.heard(0, now_ns)

    def heard(self, sent_ns, now_ns):
        """The cursor has brought a message."""
        self._heard_ns, self._after_ns = now_ns, max(self._after_ns, sent_ns)
        # Messages that queries found since then, the start of the oldest, and when one was found that proves something.
        self._found, self._missed_ns, self._suspect_ns = 0, None, None

    def asks(self, now_ns):
        """Whether it is time for a query; the cursor is silent."""
        if now_ns - self._asked_ns < ASK_EVERY_NS:
            return False
        self._asked_ns = now_ns
        return True

    def found(self, sent_ns, now_ns):
        """A query found a message that the cursor has not brought."""
        self._found += 1
        missed_ns = max(sent_ns, self._heard_ns)
        self._missed_ns = missed_ns if self._missed_ns is None else min(self._missed_ns, missed_ns)
        if self._suspect_ns is None and sent_ns > self._after_ns:
            self._suspect_ns = now_ns

    def is_blind(self, now_ns):
        """The cursor, asked after the last query, has answered with nothing."""
        return self._suspect_ns is not None and now_ns - self._suspect_ns >= BLIND_AFTER_NS

    def lost(self, now_ns):
        """Why the cursor is opened again."""
        blind_ns, message = now_ns - self._missed_ns, "the cursor did not bring what queries found"
        return {"reason": "blind", "code": None, "message": message, "blind_ns": blind_ns, "found": self._found}


class Progress:
    """What came of one producer: one bit for each number, in blocks; a block of which nothing came is not there."""

    def __init__(self):
        self.newest = -1
        self._came = {}

    def mark(self, n):
        """False if it came before."""
        block, bit = n // BLOCK, 1 << n % BLOCK
        came = self._came.get(block, 0)
        self._came[block] = came | bit
        self.newest = max(self.newest, n)
        return not came & bit

    def overtaken(self):
        """The newest of those that were overtaken, and the number below which there may be more."""
        missing, upper = [], self.newest
        while upper >= 0:
            first = upper - upper % BLOCK
            came = self._came.get(upper // BLOCK, 0)
            if came != FULL:
                missing += (n for n in range(upper, first - 1, -1) if not came >> n - first & 1)
                if len(missing) >= NAMED:
                    return missing[:NAMED], missing[NAMED - 1]
            upper = first - 1
        return missing, 0


class Seen:
    """Which messages came, and the filter for those that did not: inserts in flight overtake each other."""

    def __init__(self):
        self.count = 0
        self.duplicates = 0
        self._producers = {}
        # What a query found before the cursor brought it.
        self._queried = set()

    def accept(self, producer, n, by_query=False):
        """Whether the message is new.

        What the cursor brings after a query found it is no duplicate, and what a query finds again is none either.
        """
        if producer not in self._producers:
            self._producers[producer] = Progress()
        if self._producers[producer].mark(n):
            if by_query:
                self._queried.add((producer, n))
            self.count += 1
            return True
        if (producer, n) in self._queried:
            if not by_query:
                self._queried.remove((producer, n))
        elif not by_query:
            self.duplicates += 1
        return False

    def caught_up(self):
        """What queries found and no cursor brought."""
        return len(self._queried)

    def filter(self, newer=True):
        """Everything but what came; without `newer` only what was overtaken."""
        if not self._producers:
            return {}
        clauses, overtaken, above = [], [], None
        for producer, progress in sorted(self._producers.items()):
            first = producer << PRODUCER_SHIFT
            if newer and first > 0:
                clauses.append({"_id": {"$lt": first} | ({} if above is None else {"$gt": above})})
            above = first + progress.newest
            missing, below = progress.overtaken()
            overtaken += (first + n for n in missing)
            if below > 0:
                clauses.append({"_id": {"$gte": first, "$lt": first + below}})
        if newer:
            clauses.append({"_id": {"$gt": above}})
        clauses.append({"_id": {"$in": overtaken}})
        return {"$or": clauses}
