"""The cases: each is one sentence of the contract."""

import array
import itertools
import json
import os
import socket
import subprocess
import tempfile
import time
import unittest

from . import checks
from .program import Program
from .server import Relay
from .wire import Client, Int32, Refused

MESSAGES = 200
MIB = 1 << 20
collections = itertools.count()


class Cases(unittest.TestCase):
    """One driver; `run`, `uri` and `change_streams` are set by the class made for it."""

    run_path = uri = None
    change_streams = False
    about = {}

    def setUp(self):
        if not self.about:
            self.about = self.version()
        self.collection = f"c{os.getpid()}x{next(collections)}"
        self.server = Client(self.uri)
        self.addCleanup(self.server.close)
        self.folder = tempfile.mkdtemp(prefix="conformance-")

    def tearDown(self):
        try:
            self.server.run("conformance", {"drop": self.collection})
        except Refused:
            pass

    def version(self):
        ran = subprocess.run([self.run_path, "version"], capture_output=True, text=True, timeout=60)
        if ran.returncode == 3:
            cause = ran.stderr.strip()
            if os.environ.get("DYNO_REQUIRE_DRIVERS") == "1":
                self.fail(f"{self.name} cannot run: {cause}")
            self.skipTest(f"{self.name}: {cause}")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        type(self).about = json.loads(ran.stdout)
        return self.about

    def capped(self, size=16 * MIB):
        self.server.capped("conformance", self.collection, size)

    def program(self, role, uri=None, **options):
        if role not in self.about["roles"]:
            self.skipTest(f"{self.name} has no {role}")
        options = {name.replace("_", "-"): value for name, value in options.items()}
        common = {"database": "conformance", "collection": self.collection, "messages": MESSAGES}
        made = Program(self.run_path, role, uri or self.uri, common | options, self.folder)
        self.addCleanup(made.close)
        return made

    def none(self, problems):
        self.assertFalse(problems, "\n".join(problems))

    def refused(self, program, code, *words):
        self.assertEqual(program.wait(), code, program.errors)
        lines = [line for line in program.errors if line.strip()]
        self.assertEqual(len(lines), 1, f"not one line on stderr: {lines}")
        for word in words:
            self.assertIn(word, lines[0])
        self.assertEqual(program.events, [], "nothing may be on stdout")

    # Programs

    def test_version_says_what_the_driver_is(self):
        about = self.about
        self.assertEqual(about["contract"], 1)
        for name in ("language", "driver", "driver_version", "runtime", "runtime_version"):
            self.assertTrue(about[name] and isinstance(about[name], str), name)
        self.assertIn("produce", about["roles"])
        self.assertLessEqual(set(about["in_flight"]), {"one", "bounded", "unbounded"})
        self.assertLessEqual(set(about["modes"]), {"tailable", "change-stream", "poll"})
        self.assertIsInstance(about["pool"], bool)

    def test_unknown_and_malformed_options_are_usage_errors(self):
        self.refused(self.program("produce", colour="red"), 2, "--colour")
        self.refused(self.program("produce", in_flight="many"), 2, "--in-flight")
        if "consume" in self.about["roles"]:
            self.refused(self.program("consume", mode="guess"), 2, "--mode")

    def test_unreachable_server_is_exit_4(self):
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        uri = f"mongodb://127.0.0.1:{port}/?serverSelectionTimeoutMS=300"
        for role in self.about["roles"]:
            self.refused(self.program(role, uri=uri), 4)

    # Producers

    def produce(self, uri=None, **options):
        """Runs a producer to its end; its stamps, after what holds for each."""
        self.capped()
        first = options.get("first", 0)
        program = self.program("produce", uri=uri, **options).ready().start()
        code = program.wait()
        end_ns = time.monotonic_ns()
        self.assertEqual(code, 0, program.errors)
        stamps, done = program.stamps(), program.done()
        self.none(checks.once_each([stamp[0] for stamp in stamps], range(first, first + MESSAGES)))
        self.none(checks.produced(stamps, program.start_ns, end_ns))
        failed = sum(stamp[3] < 0 for stamp in stamps)
        self.assertEqual((done["messages"], done["failed"]), (len(stamps) - failed, failed))
        # The scheduler may have delayed a write that nobody waits for.
        deadline = time.monotonic() + 5
        documents = self.stored()
        while len(documents) < len(stamps) - failed and time.monotonic() < deadline:
            time.sleep(0.05)
            documents = self.stored()
        one = options.get("in_flight", 1) == 1 and options.get("write_concern", 1) != 0
        producer, size = options.get("producer", 0), options.get("size", 0)
        self.none(checks.messages(documents, stamps, producer, size, one))
        return program, stamps

    def stored(self):
        return self.server.find("conformance", self.collection)

    def offers(self, what):
        if what not in self.about["in_flight"]:
            self.skipTest(f"{self.name} does not offer in-flight {what}")

    def test_closed_loop_of_one(self):
        self.offers("one")
        _, stamps = self.produce(producer=3, first=1000, size=100, in_flight=1)
        self.none(checks.in_flight(stamps, 1))
        self.assertTrue(all(intended == send for _, intended, send, _ in stamps))

    def test_closed_loop_of_eight(self):
        self.offers("bounded")
        _, stamps = self.produce(in_flight=8, write_concern="majority", journal="true", size=3)
        self.none(checks.in_flight(stamps, 8))
        self.assertTrue(all(intended == send for _, intended, send, _ in stamps))

    def test_closed_loop_without_bound(self):
        self.offers("unbounded")
        self.produce(in_flight="unbounded", producer=65535, pool=4)

    def test_no_acknowledgement_and_the_real_time_clock(self):
        self.capped()
        program = self.program("produce", clock="realtime", write_concern=0).ready().start(time.time_ns)
        self.assertEqual(program.wait(), 0, program.errors)
        # A clock that a runtime reads in two parts may be off by a little.
        slack_ns = 5_000_000
        stamps = program.stamps()
        self.none(checks.produced(stamps, program.start_ns, time.time_ns() + slack_ns))
        self.none(checks.once_each([stamp[0] for stamp in stamps], range(MESSAGES)))
        deadline = time.monotonic() + 5
        while len(self.stored()) < MESSAGES and time.monotonic() < deadline:
            time.sleep(0.05)
        self.none(checks.messages(self.stored(), stamps, 0, 0, False))

    def test_open_loop_keeps_the_schedule(self):
        schedule = array.array("Q", (k * 4_000_000 for k in range(MESSAGES)))
        path = os.path.join(self.folder, "schedule")
        with open(path, "wb") as file:
            schedule.tofile(file)
        most = 8 if "bounded" in self.about["in_flight"] else 1
        # Others use the machine, too: lateness is the best of some attempts, with longer and longer pauses in which it
        # may become quiet. Everything else holds each time.
        for pause_s in (0, 0, 1, 2, 4, 8):
            time.sleep(pause_s)
            program, stamps = self.produce(schedule=path, in_flight=most)
            self.none(checks.scheduled(stamps, schedule, program.start_ns, 0))
            self.none(checks.in_flight(stamps, most))
            # The first half is for runtimes that compile while they run: they have caught up by then.
            late = checks.late(sorted(stamps)[MESSAGES // 2 :], 10_000_000)
            if not late:
                return
            self.collection += "x"
        self.none(late)

    def test_end_of_input_before_the_start_sends_nothing(self):
        self.capped()
        program = self.program("produce").ready()
        program.end_of_input()
        self.assertEqual(program.wait(), 0, program.errors)
        self.assertEqual(self.stored(), [])

    def slow_schedule(self):
        path = os.path.join(self.folder, "schedule")
        with open(path, "wb") as file:
            array.array("Q", (k * 20_000_000 for k in range(MESSAGES))).tofile(file)
        return path

    def interrupted(self, interrupt, code):
        self.capped()
        program = self.program("produce", schedule=self.slow_schedule()).ready().start()
        time.sleep(0.5)
        interrupt(program)
        self.assertEqual(program.wait(), code, program.errors)
        stamps = program.stamps()
        self.assertLess(0, len(stamps))
        self.assertLess(len(stamps), MESSAGES)
        self.assertEqual(program.done()["messages"], len(stamps))
        self.none(checks.messages(self.stored(), stamps, 0, 0, True))

    def test_a_line_stop_ends_a_producer_in_order(self):
        self.interrupted(lambda program: program.say("stop"), 0)

    def test_a_signal_ends_a_producer_with_its_stamps(self):
        self.interrupted(Program.terminate, 130)

    def test_a_refused_insert_is_counted_and_the_next_is_sent(self):
        self.capped()
        self.server.insert("conformance", self.collection, [{"_id": 5}])
        program = self.program("produce").ready().start()
        self.assertEqual(program.wait(), 0, program.errors)
        stamps, done = program.stamps(), program.done()
        self.none(checks.once_each([stamp[0] for stamp in stamps], range(MESSAGES)))
        self.assertEqual([stamp[0] for stamp in stamps if stamp[3] < 0], [5])
        self.assertEqual((done["messages"], done["failed"]), (MESSAGES - 1, 1))
        failed = program.named("failed")
        self.assertEqual([(event["n"], event["code"]) for event in failed], [(5, 11000)])

    def test_inserts_use_no_more_connections_than_the_pool(self):
        if not self.about["pool"]:
            self.skipTest(f"{self.name} has no pool")
        relay = Relay(self.uri)
        self.addCleanup(relay.close)
        most = 8 if "bounded" in self.about["in_flight"] else 1
        self.produce(uri=relay.uri, pool=2, in_flight=most)
        self.assertLessEqual(1, len(relay.with_inserts))
        self.assertLessEqual(len(relay.with_inserts), 2)

    def test_a_producer_outlives_its_connections(self):
        self.capped()
        relay = Relay(self.uri)
        self.addCleanup(relay.close)
        schedule = array.array("Q", (k * 4_000_000 for k in range(MESSAGES)))
        path = os.path.join(self.folder, "schedule")
        with open(path, "wb") as file:
            schedule.tofile(file)
        program = self.program("produce", uri=relay.uri, schedule=path).ready().start()
        time.sleep(0.4)
        relay.cut()
        self.assertEqual(program.wait(), 0, program.errors)
        stamps, done = program.stamps(), program.done()
        self.none(checks.once_each([stamp[0] for stamp in stamps], range(MESSAGES)))
        failed = sum(stamp[3] < 0 for stamp in stamps)
        self.assertEqual((done["messages"], done["failed"]), (MESSAGES - failed, failed))
        self.assertLess(failed, MESSAGES // 2)

    # Consumers

    def offers_mode(self, mode):
        if "consume" not in self.about["roles"]:
            self.skipTest(f"{self.name} has no consume")
        if mode not in self.about["modes"]:
            self.skipTest(f"{self.name} does not offer mode {mode}")
        if mode == "change-stream" and not self.change_streams:
            self.skipTest("the server has no change streams")

    def send(self, producer, numbers, pad=b""):
        """Sends messages one by one; {(producer, n): send_ns}."""
        sent = {}
        for n in numbers:
            now = time.monotonic_ns()
            self.server.insert("conformance", self.collection, [self.message(producer, n, now, pad)])
            sent[producer, n] = now
        return sent

    @staticmethod
    def message(producer, n, now, pad=b""):
        message = {"_id": (producer << checks.PRODUCER_SHIFT) + n, "p": Int32(producer), "n": n}
        return message | {"i": now, "s": now, "pad": pad}

    def from_empty(self, mode, uri=None, between=lambda: None, **options):
        """Messages of two producers, some overtaken by the next: each comes once."""
        self.offers_mode(mode)
        self.capped()
        half = MESSAGES // 2
        program = self.program("consume", uri=uri, mode=mode, producers=2, await_ms=200, idle_s=20, **options)
        program.ready().start()
        time.sleep(0.2)
        sent = self.send(0, (n ^ 1 for n in range(half // 2)))
        sent |= self.send(7, range(half // 2, half))
        between()
        sent |= self.send(0, (n ^ 1 for n in range(half // 2, half)))
        sent |= self.send(7, range(half // 2))
        code = program.wait()
        self.assertEqual(code, 0, program.errors)
        self.none(checks.consumed(program.stamps(), sent, time.monotonic_ns()))
        self.assertEqual(program.done()["messages"], MESSAGES)
        return program

    def test_tailable_consumer_starts_on_an_empty_collection(self):
        program = self.from_empty("tailable")
        reasons = {event["reason"] for event in program.named("reopened")}
        self.assertLessEqual(reasons, {"empty"})

    def test_change_stream_consumer_starts_on_an_empty_collection(self):
        self.from_empty("change-stream")

    def test_poll_consumer_starts_on_an_empty_collection(self):
        self.from_empty("poll", batch_size=7)

    def outlives(self, mode):
        relay = Relay(self.uri)
        self.addCleanup(relay.close)

        def cut():
            # The consumer waits for the next message then, and is not about to open its cursor.
            time.sleep(0.4)
            relay.cut()

        program = self.from_empty(mode, uri=relay.uri, between=cut)
        if mode == "tailable":
            reopened = program.named("reopened")
            self.assertIn("connection", {event["reason"] for event in reopened}, reopened)
        self.assertEqual(program.done()["position_lost"], 0)

    def test_tailable_consumer_outlives_its_connection(self):
        self.outlives("tailable")

    def test_change_stream_consumer_outlives_its_connection(self):
        self.outlives("change-stream")

    def test_poll_consumer_outlives_its_connection(self):
        self.outlives("poll")

    def test_a_message_that_comes_again_is_skipped_and_counted(self):
        self.offers_mode("tailable")
        self.capped()
        program = self.program("consume", mode="tailable", producers=2, await_ms=100, idle_s=20).ready().start()
        sent = self.send(0, range(MESSAGES // 2)) | self.send(3, range(MESSAGES // 4))
        # The newest of a producer, and some that newer ones have followed, come to the end of the collection again.
        again = [(0, 0), (0, MESSAGES // 4), (0, MESSAGES // 2 - 1), (3, 1)]
        time.sleep(0.3)
        for producer, n in again:
            self.server.delete("conformance", self.collection, (producer << checks.PRODUCER_SHIFT) + n)
            self.server.insert("conformance", self.collection, [self.message(producer, n, sent[producer, n])])
        sent |= self.send(3, range(MESSAGES // 4, MESSAGES // 2))
        self.assertEqual(program.wait(), 0, program.errors)
        self.none(checks.consumed(program.stamps(), sent, time.monotonic_ns()))
        done = program.done()
        self.assertEqual((done["messages"], done["duplicates_skipped"]), (MESSAGES, len(again)))

    def late(self, mode):
        self.offers_mode(mode)
        self.capped()
        sent = self.send(0, range(MESSAGES // 2))
        program = self.program("consume", mode=mode, await_ms=200, batch_size=30, idle_s=20).ready().start()
        sent |= self.send(0, range(MESSAGES // 2, MESSAGES))
        self.assertEqual(program.wait(), 0, program.errors)
        stamps = program.stamps()
        self.none(checks.consumed(stamps, sent, time.monotonic_ns()))
        self.assertEqual([stamp[0] for stamp in stamps], list(range(MESSAGES)), "order of insertion")

    def test_tailable_consumer_joins_late(self):
        self.late("tailable")

    def test_poll_consumer_joins_late(self):
        self.late("poll")

    def test_idle_consumer_is_exit_5(self):
        self.offers_mode("tailable")
        self.capped()
        program = self.program("consume", mode="tailable", await_ms=100, idle_s=1).ready().start()
        sent = self.send(0, range(10))
        self.assertEqual(program.wait(), 5, program.errors)
        self.none(checks.consumed(program.stamps(), sent, time.monotonic_ns()))
        self.assertEqual(program.done()["messages"], 10)

    def ended(self, interrupt, code):
        self.offers_mode("tailable")
        self.capped()
        program = self.program("consume", mode="tailable", await_ms=200, idle_s=30).ready().start()
        sent = self.send(0, range(10))
        time.sleep(0.5)
        interrupt(program)
        self.assertEqual(program.wait(), code, program.errors)
        self.none(checks.consumed(program.stamps(), sent, time.monotonic_ns()))
        self.assertEqual(program.done()["messages"], 10)

    def test_a_line_stop_ends_a_consumer_in_order(self):
        self.ended(lambda program: program.say("stop"), 0)

    def test_a_signal_ends_a_consumer_with_its_stamps(self):
        self.ended(Program.terminate, 130)

    def test_a_slow_consumer_outlives_the_wrap_of_the_collection(self):
        self.offers_mode("tailable")
        self.capped(size=4096)
        sent = self.send(0, range(3), b"x" * 200)
        program = self.program(
            "consume", mode="tailable", await_ms=100, idle_s=1.5, delay_us=20_000, batch_size=2
        )
        program.ready().start()
        sent |= self.send(0, range(3, MESSAGES), b"x" * 200)
        self.assertEqual(program.wait(), 5, program.errors)
        stamps, done = program.stamps(), program.done()
        # What was overwritten is lost, but nothing else goes wrong, and the newest are all there.
        got = [stamp[0] for stamp in stamps]
        self.assertEqual(len(got), len(set(got)), "duplicates")
        self.assertLessEqual(set(range(MESSAGES - 5, MESSAGES)), set(got))
        self.assertLess(len(got), MESSAGES, "the collection did not wrap before the consumer")
        kept = {key: sent[key] for key in sent if key[1] in set(got)}
        self.none(checks.consumed(stamps, kept, time.monotonic_ns()))
        lost = [event for event in program.named("reopened") if event["reason"] == "position-lost"]
        self.assertGreaterEqual(done["position_lost"], 1)
        self.assertEqual(len(lost), done["position_lost"])
        self.assertEqual(done["messages"], len(got))
