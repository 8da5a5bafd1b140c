"""Shared code of both Python drivers: options, clock, barrier, pacing, stamps, and received messages."""

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
# Pings before `ready`, one after the other, so that all drivers start equally warm.
PINGS = 100
# Largest number of missing messages that a filter lists one by one; lower ones are requested as a range.
NAMED = 4096
# Numbers in one block of the record of received messages.
BLOCK = 256
FULL = (1 << BLOCK) - 1
# Largest number of failed inserts with an event each.
MAX_REPORTED = 20
SPIN_NS = 50_000
SLICE_NS = 100_000_000
# Time for answers to inserts in flight after a stop request.
GRACE_S = 2.0
EMPTY_PAUSE_S = 0.005
# A tailable cursor opened during inserts may skip some of them (seen with the embedded server). Missing messages are
# requested this long after the opening.
CATCH_UP_NS = 100_000_000
# Interval of queries for missing messages while a cursor is silent.
ASK_EVERY_NS = 1_000_000_000
# A cursor is blind if it still returns nothing this long after a query found messages that it missed.
BLIND_AFTER_NS = 100_000_000
BACK_OFF_FIRST_S, BACK_OFF_LAST_S = 0.01, 1.0


class Usage(Exception):
    """An unknown or malformed option."""


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
    """Client arguments in addition to the connection string."""
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
    """Padding; the same bytes in every driver."""
    state, pad = 42, bytearray(size)
    for at in range(size):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        pad[at] = state >> 24
    return bytes(pad)


_emitting = threading.Lock()


def emit(**event):
    # Printing a line takes several writes.
    with _emitting:
        print(json.dumps(event), flush=True)


def fail(code, text):
    print(" ".join(str(text).split()), file=sys.stderr, flush=True)
    sys.exit(code)


class Control:
    """The barrier on standard input, and all stop requests."""

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
        # Without a start, nothing is sent.
        if self.start_ns is None:
            os._exit(0)

    def ready(self):
        """Reports readiness, and waits for the start."""
        print("ready", flush=True)
        threading.Thread(target=self._read, daemon=True).start()
        self._started.wait()

    def wait_until(self, clock, at_ns):
        """False if a stop request ended the wait."""
        while (left_ns := at_ns - clock()) > 0:
            if self.stopping:
                return False
            if left_ns > SPIN_NS:
                time.sleep(min(left_ns - SPIN_NS, SLICE_NS) / 1e9)
        return not self.stopping


class Stamps:
    """Stamps: records of 32 bytes, on disk after at most a second."""

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
        """Whether to report this error as an event."""
        record = struct.pack("<Qqqq", n, intended_ns, send_ns, -ended_ns if error else ended_ns)
        with self._lock:
            if self._file.closed:
                return False
            self._file.write(record)
            self._sent += error is None
            self._failed += error is not None
            return error is not None and self._failed <= MAX_REPORTED

    def consumed(self, n, send_ns, received_ns, producer, batch=NO_BATCH):
        with self._lock:
            self._file.write(struct.pack("<QqqII", n, send_ns, received_ns, producer, batch))

    def close(self):
        """Acknowledged and failed inserts. Later answers have no stamp and are not counted."""
        with self._lock:
            self._file.close()
            return {"messages": self._sent, "failed": self._failed}


class Sight:
    """Detects blind tailable cursors; see "Blind cursors" in drivers/README.md."""

    def __init__(self):
        self._asked_ns = 0

    def opened(self, now_ns):
        # Messages sent later cannot have been skipped.
        self._after_ns = now_ns + CATCH_UP_NS
        self.heard(0, now_ns)

    def heard(self, sent_ns, now_ns):
        """Records that the cursor returned a message."""
        self._heard_ns, self._after_ns = now_ns, max(self._after_ns, sent_ns)
        # Messages that queries found since then, the send time of the oldest, and when a conclusive one was found.
        self._found, self._missed_ns, self._suspect_ns = 0, None, None

    def asks(self, now_ns):
        """Whether it is time for a query while the cursor is silent."""
        if now_ns - self._asked_ns < ASK_EVERY_NS:
            return False
        self._asked_ns = now_ns
        return True

    def found(self, sent_ns, now_ns):
        """Records that a query found a message that the cursor did not return."""
        self._found += 1
        missed_ns = max(sent_ns, self._heard_ns)
        self._missed_ns = missed_ns if self._missed_ns is None else min(self._missed_ns, missed_ns)
        if self._suspect_ns is None and sent_ns > self._after_ns:
            self._suspect_ns = now_ns

    def is_blind(self, now_ns):
        """Whether the cursor, which returned nothing since the last query, is blind."""
        return self._suspect_ns is not None and now_ns - self._suspect_ns >= BLIND_AFTER_NS

    def lost(self, now_ns):
        """Reason for opening the cursor again."""
        blind_ns, message = now_ns - self._missed_ns, "the cursor did not return messages that queries found"
        return {"reason": "blind", "code": None, "message": message, "blind_ns": blind_ns, "found": self._found}


class Progress:
    """Received messages of one producer: one bit for each number, in blocks; empty blocks are omitted."""

    def __init__(self):
        self.newest = -1
        self._came = {}

    def mark(self, n):
        """False if it was received before."""
        block, bit = n // BLOCK, 1 << n % BLOCK
        came = self._came.get(block, 0)
        self._came[block] = came | bit
        self.newest = max(self.newest, n)
        return not came & bit

    def overtaken(self):
        """The newest overtaken messages, and the number below which there may be more."""
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
    """Received messages, and the filter for missing ones: inserts in flight overtake each other."""

    def __init__(self):
        self.count = 0
        self.duplicates = 0
        self._producers = {}
        # Messages that a query found before the cursor returned them.
        self._queried = set()

    def accept(self, producer, n, by_query=False):
        """Whether the message is new.

        A message that the cursor returns after a query found it, or that a query finds again, does not count as a duplicate.
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
        """Messages that queries found and no cursor returned."""
        return len(self._queried)

    def filter(self, newer=True):
        """Filter for all missing messages; without `newer`, only for overtaken ones."""
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
