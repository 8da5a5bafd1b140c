"""The contract's rules about stamps and messages as pure functions; each returns violations as texts."""

import statistics
from collections import Counter

from .wire import BINARY, INT32, INT64, decode

PRODUCER_SHIFT = 40
# Batch number of a driver that does not report the server's replies.
NO_BATCH = 0xFFFFFFFF


def padding(size):
    state, pad = 42, bytearray()
    for _ in range(size):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        pad.append(state >> 24)
    return bytes(pad)


def once_each(got, expected):
    """Every expected number occurs exactly once, and no other."""
    counts = Counter(got)
    problems = [f"{n} is missing" for n in sorted(set(expected) - set(counts))[:5]]
    problems += [f"{n} was not asked for" for n in sorted(set(counts) - set(expected))[:5]]
    return problems + [f"{n} is there {count} times" for n, count in counts.items() if count > 1][:5]


def produced(stamps, start_ns, end_ns):
    """A producer's instants are in order, and within the run by this process's clock."""
    problems = []
    for n, intended, send, acknowledged in stamps:
        if not start_ns <= intended <= send <= abs(acknowledged) <= end_ns:
            problems.append(
                f"{n}: start {start_ns} <= intended {intended} <= send {send} "
                f"<= acknowledged {acknowledged} <= end {end_ns} does not hold"
            )
    return problems[:5]


def in_flight(stamps, limit):
    """At most `limit` inserts are unanswered at any instant."""
    most = most_in_flight(stamps)
    return [f"{most} inserts in flight, {limit} allowed"] if most > limit else []


def most_in_flight(stamps):
    changes = [(send, 1) for _, _, send, _ in stamps]
    changes += [(abs(acknowledged), -1) for _, _, _, acknowledged in stamps]
    now = most = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


def write_concern(insert):
    """The write concern of a command on the wire."""
    at = insert.find(b"\x03writeConcern\0")
    return decode(insert[at + 14 :]) if at >= 0 else None


def scheduled(stamps, schedule, start_ns, first):
    """Intended starts in the stamps match the schedule."""
    return [
        f"{n}: intended {intended - start_ns} ns after the start, the schedule says {schedule[n - first]}"
        for n, intended, _, _ in stamps
        if intended - start_ns != schedule[n - first]
    ][:5]


def late(stamps, limit_ns):
    """The median message is sent soon after its intended start (`produced` checks that none is sent before)."""
    median = statistics.median(send - intended for _, intended, send, _ in stamps)
    each = [round((send - intended) / 1e6) for _, intended, send, _ in sorted(stamps)][::10]
    wrong = [f"the median message is sent {median / 1e6:.1f} ms late (every tenth, in ms: {each})"]
    return wrong if median >= limit_ns else []


def messages(documents, stamps, producer, size, in_order):
    """The documents in the database match the acknowledged stamps, field by field."""
    expected = {n: (intended, send) for n, intended, send, acknowledged in stamps if acknowledged > 0}
    problems, seen, pad = [], [], padding(size)
    kinds_expected = {"_id": INT64, "p": INT32, "n": INT64, "i": INT64, "s": INT64, "pad": BINARY}
    for raw in documents:
        kinds = {}
        document = decode(raw, kinds)
        if kinds != kinds_expected or list(kinds) != list(kinds_expected):
            problems.append(f"fields and types are {kinds}, not {kinds_expected}")
            break
        n = document["n"]
        seen.append(n)
        if document["_id"] != (producer << PRODUCER_SHIFT) + n or document["p"] != producer:
            problems.append(f"{n}: _id {document['_id']} or producer {document['p']} is wrong")
        if n in expected and (document["i"], document["s"]) != expected[n]:
            problems.append(f"{n}: intended and send differ from its stamp")
        if document["pad"] != pad:
            problems.append(f"{n}: the padding differs from the contract")
    problems += once_each(seen, expected)
    if in_order and seen != sorted(seen):
        problems.append("messages are out of order with one insert in flight")
    return problems[:5]


def consumed(stamps, sent, end_ns):
    """`sent` is {(producer, n): send_ns}. Each was received once, after it was sent."""
    problems = once_each([(producer, n) for n, _, _, producer, _ in stamps], sent)
    for n, send, received, producer, _ in stamps:
        if (producer, n) in sent and send != sent[producer, n]:
            problems.append(f"{producer}/{n}: the send instant differs from the message")
        if not send <= received <= end_ns:
            problems.append(f"{producer}/{n}: send {send} <= received {received} <= end {end_ns} does not hold")
    return problems[:5]
