"""The cases; each tests one sentence of the contract."""

import array
import itertools
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from . import checks
from .program import WORKERS, Program
from .server import Relay
from .wire import Client, Int32, Refused

MESSAGES = 200
CUTS = 10
# Number of failed inserts that get an event each.
MAX_REPORTED = 20
# The longest pause before a cursor is opened again, with some time for the opening.
LONG_PAUSE_S = 0.9
# After this time without a message, a consumer queries for missing messages.
QUIET_MS = 100
# Ends a consumer that waits for one message too many; by then, its cursor has returned messages that a query found first.
ENDS_IDLE_S = 3
# Time-dependent checks are retried after increasing pauses, because other processes may load the machine.
PAUSES_S = (0, 0, 1, 2, 4, 8)
COREUTILS = ("basename", "cat", "cp", "dirname", "env", "ls", "mkdir", "readlink", "rm", "sha256sum", "uname")
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
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def tearDown(self):
        self.drop()

    def drop(self):
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
            self.skip(f"the driver cannot run: {cause}")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        type(self).about = json.loads(ran.stdout)
        return self.about

    def skip(self, cause):
        """Records a skip as the other tests do, once for each driver."""
        reported = vars(type(self)).get("reported", set())
        if cause not in reported and (log := os.environ.get("DYNO_SKIP_LOG")):
            with open(log, "a") as lines:
                lines.write(f"-\tconformance {self.name}: {self._testMethodName}\t{' '.join(cause.split())}\n")
        type(self).reported = reported | {cause}
        self.skipTest(f"{self.name}: {cause}")

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

    def test_a_missing_toolchain_or_build_is_exit_3(self):
        here = pathlib.Path(self.run_path).parent
        tools = os.path.join(self.folder, "tools")
        os.mkdir(tools)
        for tool in COREUTILS:
            os.symlink(shutil.which(tool), os.path.join(tools, tool))
        bare = {name: value for name, value in os.environ.items() if not name.startswith("DYNO_DRIVER_")}
        bare |= {"PATH": tools}
        # A built driver may not need its toolchain.
        ran = subprocess.run([self.run_path, "version"], capture_output=True, text=True, timeout=60, env=bare)
        if ran.returncode != 3:
            self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        # Without toolchain and build: the folders as in the sources.
        sources = os.path.join(self.folder, "drivers")
        shutil.copytree(here.parent, sources, ignore=shutil.ignore_patterns(".built", "node_modules", "__pycache__"))
        for program in (["run", "version"], ["run", "produce"], ["build"]):
            path = os.path.join(sources, here.name, program[0])
            if not os.path.exists(path):
                continue
            ran = subprocess.run([path, *program[1:]], capture_output=True, text=True, timeout=60, env=bare)
            self.assertEqual((ran.returncode, ran.stdout), (3, ""), f"{program}: {ran.stderr}")
            self.assertEqual(len(ran.stderr.splitlines()), 1, f"{program}: {ran.stderr}")

    def test_unreachable_server_is_exit_4(self):
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        uri = f"mongodb://127.0.0.1:{port}/?serverSelectionTimeoutMS=300"
        for role in self.about["roles"]:
            self.refused(self.program(role, uri=uri), 4)

    # Producers

    def relayed(self):
        relay = Relay(self.uri)
        self.addCleanup(relay.close)
        return relay

    def until(self, holds, what, seconds=20):
        deadline = time.monotonic() + seconds
        while not holds():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.01)

    def produce(self, held=None, **options):
        """Runs a producer to its end and checks each stamp; returns the stamps.

        `held` is (relay, connections, seconds): inserts are answered only after this many arrived over as many
        connections, and this long after that.
        """
        self.capped()
        first = options.get("first", 0)
        uri = None
        if held:
            relay, connections, seconds = held
            # Reveals a driver with a single limit for servers and connections.
            uri = relay.uri_with("serverSelectionTimeoutMS=1000")
        program = self.program("produce", uri=uri, **options).ready()
        if held:
            relay.hold()
        program.start()
        if held:
            self.until(lambda: len(relay.unanswered) >= connections, f"{connections} inserts in flight")
            time.sleep(seconds)
            self.assertEqual(len(relay.unanswered), connections)
            relay.release()
        code = program.wait()
        end_ns = time.monotonic_ns()
        self.assertEqual(code, 0, program.errors)
        stamps, done = program.stamps(), program.done()
        self.none(checks.once_each([stamp[0] for stamp in stamps], range(first, first + MESSAGES)))
        self.none(checks.produced(stamps, program.start_ns, end_ns))
        failed = sum(stamp[3] < 0 for stamp in stamps)
        self.assertEqual((done["messages"], done["failed"]), (len(stamps) - failed, failed))
        # The scheduler may have delayed a write without an acknowledgement.
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
        relay = self.relayed()
        options = {"write_concern": "majority", "journal": "true", "size": 3}
        _, stamps = self.produce(held=(relay, 8, 0.1), in_flight=8, **options)
        self.assertEqual(checks.most_in_flight(stamps), 8)
        self.assertTrue(all(intended == send for _, intended, send, _ in stamps))
        for insert in relay.inserts:
            self.assertEqual(checks.write_concern(insert), {"w": "majority", "j": True})
        processes = relay.pings / 100
        self.assertTrue(processes >= 1 and processes.is_integer(), f"{relay.pings} pings")

    def test_closed_loop_without_bound(self):
        self.offers("unbounded")
        relay = self.relayed()
        program, stamps = self.produce(held=(relay, 4, 1.2), in_flight="unbounded", producer=65535, pool=4)
        # No message is dropped, however long it waits for a connection.
        self.assertEqual(program.done()["failed"], 0, program.events[:3])
        if self.about["unbounded"] == "driver":
            self.assertGreater(checks.most_in_flight(stamps), 16)
        else:
            self.assertEqual(checks.most_in_flight(stamps), 4)
            self.assertEqual({intended for _, intended, _, _ in stamps}, {program.start_ns})

    def test_no_acknowledgement_and_the_real_time_clock(self):
        self.capped()
        program = self.program("produce", clock="realtime", write_concern=0).ready().start(time.time_ns)
        self.assertEqual(program.wait(), 0, program.errors)
        # A clock that a runtime reads in two parts may be slightly off.
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
        # Lateness is the best of several attempts. Everything else must hold each time.
        for pause_s in PAUSES_S:
            time.sleep(pause_s)
            program, stamps = self.produce(schedule=path, in_flight=most)
            self.none(checks.scheduled(stamps, schedule, program.start_ns, 0))
            self.none(checks.in_flight(stamps, most))
            # Skip the first half, in which runtimes with a JIT compiler catch up.
            late = checks.late(sorted(stamps)[MESSAGES // 2 :], 10_000_000)
            if not late:
                return
            self.collection += "x"
        self.none(late)

    def test_the_monitoring_mode_is_taken_without_a_word(self):
        if not self.about.get("monitors", True):
            self.skipTest(f"{self.name} does not monitor servers")
        # Java's drivers refuse heartbeats streamed by the embedded server. Others may request them all the same.
        is_java = self.about["language"] == "java"
        self.streamed("stream", until=is_java)
        polled = self.streamed("poll")
        if is_java:
            self.assertEqual(polled, 0)

    def streamed(self, mode, until=False):
        """Number of streamed heartbeats that a producer requests in this mode.

        A driver that does not know the mode must not print anything.
        """
        relay = self.relayed()
        self.capped()
        program = self.program("produce", uri=relay.uri_with(f"serverMonitoringMode={mode}")).ready()
        if until:
            self.until(lambda: relay.streamed, "no heartbeat is streamed, so this case proves nothing")
        program.start()
        self.assertEqual(program.wait(), 0, program.errors)
        self.assertEqual([line for line in program.errors if line.strip()], [])
        self.assertEqual(program.done()["failed"], 0)
        self.drop()
        return relay.streamed

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
        program.written(1)
        interrupt(program)
        self.assertEqual(program.wait(), code, program.errors)
        stamps = program.stamps()
        self.assertLess(len(stamps), MESSAGES)
        self.assertEqual(program.done()["messages"], len(stamps))
        self.none(checks.messages(self.stored(), stamps, 0, 0, True))

    def test_a_line_stop_ends_a_producer_in_order(self):
        self.interrupted(lambda program: program.say("stop"), 0)

    def test_a_signal_ends_a_producer_with_its_stamps(self):
        self.interrupted(Program.terminate, 130)

    def test_an_interrupt_ends_a_producer_with_its_stamps(self):
        self.interrupted(Program.interrupt, 130)

    def test_no_more_than_twenty_failed_inserts_are_reported(self):
        self.capped()
        taken = range(0, MESSAGES, 3)
        self.server.insert("conformance", self.collection, [{"_id": n} for n in taken])
        most = 8 if "bounded" in self.about["in_flight"] else 1
        program = self.program("produce", in_flight=most).ready().start()
        self.assertEqual(program.wait(), 0, program.errors)
        stamps, done = program.stamps(), program.done()
        self.assertEqual(sorted(stamp[0] for stamp in stamps if stamp[3] < 0), list(taken))
        self.assertEqual((done["messages"], done["failed"]), (MESSAGES - len(taken), len(taken)))
        reported = [event["n"] for event in program.named("failed")]
        self.assertEqual(len(reported), MAX_REPORTED)
        self.none(checks.once_each(reported, [n for n in taken if n in reported]))

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
        relay = self.relayed()
        most = 8 if "bounded" in self.about["in_flight"] else 1
        # The other inserts wait for a connection without a limit.
        program, _ = self.produce(held=(relay, min(most, 2), 1.2), pool=2, in_flight=most)
        self.assertEqual(program.done()["failed"], 0, program.events[:3])
        self.assertEqual(len(relay.with_inserts), min(most, 2))

    def test_a_producer_outlives_its_connections(self):
        self.capped()
        relay = self.relayed()
        messages = 3 * MESSAGES
        schedule = array.array("Q", (k * 4_000_000 for k in range(messages)))
        path = os.path.join(self.folder, "schedule")
        with open(path, "wb") as file:
            schedule.tofile(file)
        program = self.program("produce", uri=relay.uri, schedule=path, messages=messages).ready().start()
        program.written(1)
        # Cut at different times after a send: writing while a connection closes is hard for drivers.
        for cut in range(CUTS):
            relay.cut()
            before = len(relay.inserts)
            self.until(lambda: len(relay.inserts) > before or program.process.poll() is not None, "inserts go on")
            time.sleep(0.02 + 0.004 * cut / CUTS)
        self.assertEqual(program.wait(), 0, program.errors)
        stamps, done = program.stamps(), program.done()
        self.none(checks.once_each([stamp[0] for stamp in stamps], range(messages)))
        failed = sum(stamp[3] < 0 for stamp in stamps)
        self.assertEqual((done["messages"], done["failed"]), (messages - failed, failed))
        self.assertLess(failed, messages // 2)

    def stopped(self, in_flight, between):
        """Stops a producer with unanswered inserts; returns its stamps, and the seconds to its end."""
        self.capped(size=64 * MIB)
        relay = self.relayed()
        program = self.program("produce", uri=relay.uri, in_flight=in_flight, messages=1_000_000).ready().start()
        program.written(1)
        relay.hold()
        self.until(lambda: relay.unanswered, "an insert in flight")
        # Answered inserts must get their stamps first.
        time.sleep(0.2)
        stopped_ns = time.monotonic_ns()
        program.say("stop")
        between(relay)
        self.assertEqual(program.wait(), 0, program.errors)
        seconds = (time.monotonic_ns() - stopped_ns) / 1e9
        stamps, done = program.stamps(), program.done()
        failed = sum(stamp[3] < 0 for stamp in stamps)
        self.assertEqual((done["messages"], done["failed"]), (len(stamps) - failed, failed))
        return stamps, seconds, stopped_ns

    def test_inserts_in_flight_at_the_end_have_time_to_be_answered(self):
        def answer(relay):
            time.sleep(0.5)
            relay.release()

        stamps, _, stopped_ns = self.stopped(1, answer)
        self.assertEqual(sum(stamp[3] > stopped_ns for stamp in stamps), 1)
        documents = self.stored()
        self.assertEqual(len(documents), len(stamps))

    def test_a_silent_server_does_not_keep_a_producer_from_its_end(self):
        stamps, seconds, stopped_ns = self.stopped(1, lambda relay: None)
        self.assertGreater(seconds, 1.5)
        self.assertLess(seconds, 5)
        self.assertTrue(all(stamp[3] < stopped_ns for stamp in stamps), "an insert that was not answered has a stamp")

    def test_an_unbounded_producer_that_is_stopped_has_the_right_sum(self):
        self.offers("unbounded")
        self.capped()
        program = self.program("produce", in_flight="unbounded", messages=20_000).ready().start()
        program.written(1)
        program.say("stop")
        self.assertEqual(program.wait(), 0, program.errors)
        stamps, done = program.stamps(), program.done()
        self.assertEqual(len({stamp[0] for stamp in stamps}), len(stamps))
        failed = sum(stamp[3] < 0 for stamp in stamps)
        self.assertEqual((done["messages"], done["failed"]), (len(stamps) - failed, failed))

    def test_a_worker_that_is_killed_ends_the_producer(self):
        self.capped()
        program = self.program("produce", schedule=self.slow_schedule(), in_flight=8).ready()
        children = pathlib.Path(f"/proc/{program.process.pid}/task/{program.process.pid}/children").read_text().split()
        if not children:
            self.skipTest(f"{self.name} is one process")
        program.start().written(1)
        os.kill(int(children[0]), signal.SIGKILL)
        self.assertEqual(program.wait(), 1, program.errors)
        self.assertEqual(len([line for line in program.errors if line.strip()]), 1, program.errors)

    # Consumers

    def test_messages_may_be_overtaken_by_any_number_of_others(self):
        self.offers_mode("tailable")
        self.capped()
        relay = self.relayed()
        count = 10_000
        program = self.program("consume", uri=relay.uri, mode="tailable", messages=count, await_ms=200, idle_s=20)
        program.ready().start()
        sent = self.send_backwards(range(count // 2, count))
        # More messages are then missing than a filter lists.
        program.written(count // 2)
        relay.cut()
        sent |= self.send_backwards(range(count // 2))
        self.assertEqual(program.wait(), 0, program.errors)
        self.none(checks.consumed(program.stamps(), sent, time.monotonic_ns()))
        done = program.done()
        self.assertEqual((done["messages"], done["duplicates_skipped"]), (count, 0))

    def test_what_a_query_found_before_the_cursor_brought_it_is_no_duplicate(self):
        self.offers_mode("tailable")
        self.capped()
        sent = self.send(0, [10])
        program = self.program("consume", mode="tailable", messages=61, delay_us=5000, await_ms=200, idle_s=ENDS_IDLE_S)
        program.ready()
        # Messages sent now are late enough for a consumer to query for missing ones. It does so while 2 is still in its
        # batch, behind newer messages.
        time.sleep(0.15)
        now = time.monotonic_ns()
        numbers = [0, 1, *range(3, 10), *range(11, 59), 2, 59]
        self.server.insert("conformance", self.collection, [self.message(0, n, now) for n in numbers])
        sent |= {(0, n): now for n in numbers}
        program.start()
        self.assertEqual(program.wait(), 5, program.errors)
        stamps, done = program.stamps(), program.done()
        self.none(checks.consumed(stamps, sent, time.monotonic_ns()))
        self.assertLess([stamp[0] for stamp in stamps].index(2), 58, "no missing message was requested")
        self.assertEqual((done["caught_up"], done["duplicates_skipped"]), (0, 0))

    def send_backwards(self, numbers):
        now, numbers = time.monotonic_ns(), list(reversed(numbers))
        for at in range(0, len(numbers), 1000):
            messages = [self.message(0, n, now) for n in numbers[at : at + 1000]]
            self.server.insert("conformance", self.collection, messages)
        return {(0, n): now for n in numbers}

    def offers_mode(self, mode):
        if "consume" not in self.about["roles"]:
            self.skipTest(f"{self.name} has no consume")
        if mode not in self.about["modes"]:
            self.skipTest(f"{self.name} does not offer mode {mode}")
        if mode == "change-stream" and not self.change_streams:
            self.skip("the server has no change streams")

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

    def from_empty(self, mode, uri=None, between=lambda program: None, **options):
        """Messages of two producers, some overtaken by the next one; each must be received once."""
        self.offers_mode(mode)
        self.capped()
        half = MESSAGES // 2
        program = self.program("consume", uri=uri, mode=mode, producers=2, await_ms=200, idle_s=20, **options)
        program.ready().start()
        time.sleep(0.2)
        sent = self.send(0, (n ^ 1 for n in range(half // 2)))
        sent |= self.send(7, range(half // 2, half))
        between(program)
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
        # A mongod sometimes leaves a cursor blind that is opened while the first insert commits (docs/servers.md).
        build = self.server.run("admin", {"buildInfo": 1})
        is_embedded = any(name.startswith("secantus") for name in build)
        self.assertLessEqual(reasons, {"empty"} if is_embedded else {"empty", "blind"})

    def test_change_stream_consumer_starts_on_an_empty_collection(self):
        self.from_empty("change-stream")

    def test_poll_consumer_starts_on_an_empty_collection(self):
        self.from_empty("poll", batch_size=7)

    def outlives(self, mode):
        relay = self.relayed()

        def cut(program):
            # The consumer must be waiting for the next message, not opening its cursor or querying for missing messages,
            # which the driver may retry by itself.
            program.written(MESSAGES // 2)
            before = relay.get_mores
            if mode != "poll":
                self.until(lambda: relay.get_mores > before, "the consumer waits for the next message")
            relay.cut()

        program = self.from_empty(mode, uri=relay.uri, between=cut)
        if mode != "poll":
            self.assertIn(200, relay.awaits, "--await-ms does not reach the server")
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
        relay = self.relayed()
        program = self.program("consume", uri=relay.uri, mode="tailable", producers=2, await_ms=100, idle_s=20)
        program.ready().start()
        sent = self.send(0, range(10))
        program.written(10)
        # Messages now arrive by the cursor, because the query for missing ones is done.
        before = relay.get_mores
        self.until(lambda: relay.get_mores >= before + 3 * WORKERS, "the consumer waits for the next message")
        sent |= self.send(0, range(10, MESSAGES // 2)) | self.send(3, range(MESSAGES // 4))
        # Append a producer's newest message, and some older ones, to the collection again.
        again = [(0, 20), (0, MESSAGES // 4), (0, MESSAGES // 2 - 1), (3, 1)]
        program.written(3 * MESSAGES // 4)
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
        workers = program.done().get("workers", 1)
        for worker in range(workers):
            share = [stamp[0] for stamp in stamps if stamp[0] % workers == worker]
            self.assertEqual(share, list(range(worker, MESSAGES, workers)), "order of insertion")

    def test_tailable_consumer_joins_late(self):
        self.late("tailable")

    def test_poll_consumer_joins_late(self):
        self.late("poll")

    def test_idle_consumer_is_exit_5(self):
        self.offers_mode("tailable")
        self.capped()
        program = self.program("consume", mode="tailable", await_ms=100, idle_s=2).ready().start()
        sent = self.send(0, range(10))
        self.assertEqual(program.wait(), 5, program.errors)
        self.none(checks.consumed(program.stamps(), sent, time.monotonic_ns()))
        self.assertEqual(program.done()["messages"], 10)

    def ended(self, interrupt, code):
        self.offers_mode("tailable")
        self.capped()
        program = self.program("consume", mode="tailable", await_ms=200, idle_s=30).ready().start()
        sent = self.send(0, range(10))
        program.written(10)
        interrupt(program)
        self.assertEqual(program.wait(), code, program.errors)
        self.none(checks.consumed(program.stamps(), sent, time.monotonic_ns()))
        self.assertEqual(program.done()["messages"], 10)

    def test_a_line_stop_ends_a_consumer_in_order(self):
        self.ended(lambda program: program.say("stop"), 0)

    def test_a_signal_ends_a_consumer_with_its_stamps(self):
        self.ended(Program.terminate, 130)

    def test_an_interrupt_ends_a_consumer_with_its_stamps(self):
        self.ended(Program.interrupt, 130)

    def test_poll_mode_pauses_when_nothing_is_new(self):
        self.offers_mode("poll")
        self.capped()
        relay = self.relayed()
        sent = self.send(0, range(10))
        pause_s = 0.3
        options = {"poll_ms": round(1000 * pause_s), "idle_s": 2, "pool": 1}
        program = self.program("consume", uri=relay.uri, mode="poll", **options).ready().start()
        program.written(len(sent))
        started, before = time.monotonic(), len(relay.finds)
        self.assertEqual(program.wait(), 5, program.errors)
        finds, seconds = len(relay.finds) - before, time.monotonic() - started
        self.assertGreaterEqual(finds, 1)
        self.assertLessEqual(finds, seconds / pause_s + 1)

    def batches(self, mode):
        """Waiting messages arrive in replies of `--batch-size`, numbered if the driver reports replies."""
        self.offers_mode(mode)
        self.capped()
        size = 20
        relay = self.relayed()
        sent = self.send(0, range(3 * size))
        options = {"await_ms": 200, "batch_size": size, "messages": len(sent), "pool": 1}
        program = self.program("consume", uri=relay.uri, mode=mode, **options).ready().start()
        self.assertEqual(program.wait(), 0, program.errors)
        stamps = program.stamps()
        self.none(checks.consumed(stamps, sent, time.monotonic_ns()))
        self.assertGreaterEqual(relay.get_mores, 2, "--batch-size does not reach the server")
        batches = [stamp[4] for stamp in stamps]
        if set(batches) == {checks.NO_BATCH}:
            return
        # In order, and with full replies.
        self.assertEqual(batches, sorted(batches))
        self.assertEqual([batches.count(batch) for batch in sorted(set(batches))], [size] * 3)

    def test_tailable_consumer_numbers_the_replies(self):
        self.batches("tailable")

    def test_poll_consumer_numbers_the_replies(self):
        self.batches("poll")

    def test_a_consumer_backs_off_until_its_connections_hold(self):
        self.offers_mode("tailable")
        self.capped()
        relay = self.relayed()
        sent = self.send(0, range(10))
        options = {"await_ms": 200, "idle_s": 25, "messages": 20, "pool": 1}
        program = self.program("consume", uri=relay.uri, mode="tailable", **options).ready().start()
        program.written(10)
        relay.refuse_reading()
        broken = len(relay.finds)

        def longest_pause():
            finds = relay.finds[broken:]
            return max((later - earlier for earlier, later in itertools.pairwise(finds)), default=0)

        self.until(lambda: longest_pause() >= LONG_PAUSE_S, "no pause is as long as in the contract")
        relay.allow_reading()
        sent |= self.send(0, range(10, 20))
        self.assertEqual(program.wait(), 0, program.errors)
        self.none(checks.consumed(program.stamps(), sent, time.monotonic_ns()))
        self.assertIn("connection", {event["reason"] for event in program.named("reopened")})

    def test_a_slow_consumer_asks_for_what_a_cursor_skipped(self):
        self.offers_mode("tailable")
        # A busy machine can delay a consumer, and then the time of its query proves nothing.
        longest = []
        for pause_s in PAUSES_S:
            time.sleep(pause_s)
            longest.append(self.asked_by_a_slow_consumer())
            if longest[-1] < QUIET_MS:
                return
            self.drop()
        self.fail(f"each time the consumer was without a message for longer than {QUIET_MS} ms: {longest} ms")

    def asked_by_a_slow_consumer(self):
        """The longest time without a message in ms. Checks the time of the query only if that was short."""
        self.capped()
        # A server skips messages inserted while it opens a cursor; for a slow consumer, these are still far ahead.
        backlog, count, skipped = 30, 60, 25
        sent = self.send(0, range(backlog))
        relay = self.relayed()
        relay.skip(skipped)
        options = {"await_ms": 1000, "idle_s": ENDS_IDLE_S, "delay_us": 20_000, "batch_size": 2, "messages": count + 1}
        program = self.program("consume", uri=relay.uri, mode="tailable", **options).ready().start()
        for n in range(backlog, count):
            # Often enough for each process of a driver with several.
            time.sleep(0.03 / WORKERS)
            sent |= self.send(0, [n])
        self.assertEqual(program.wait(), 5, program.errors)
        stamps, done = program.stamps(), program.done()
        self.none(checks.consumed(stamps, sent, time.monotonic_ns()))
        self.assertEqual((done["messages"], done["caught_up"], done["duplicates_skipped"]), (count, 1, 1))
        received = {stamp[0]: stamp[2] for stamp in stamps}
        workers, longest_ns = done.get("workers", 1), 0
        for worker in range(workers):
            order = [program.start_ns, *(received[n] for n in range(worker, count, workers) if n != skipped)]
            longest_ns = max(longest_ns, *(later - earlier for earlier, later in itertools.pairwise(order)))
        longest_ms = longest_ns // 1_000_000
        if longest_ms >= QUIET_MS:
            return longest_ms
        self.assertLess(received[backlog - 1], received[skipped], "requested before the cursor could have returned it")
        self.assertLess(received[skipped], received[count - 1], "requested only after the last message")
        return longest_ms

    def test_the_last_message_of_a_producer_is_asked_for_when_nothing_more_comes(self):
        self.offers_mode("tailable")
        self.capped()
        sent = self.send(7, [499, 501])
        relay = self.relayed()
        relay.skip(501)
        options = {"await_ms": 200, "idle_s": ENDS_IDLE_S, "producers": 2, "messages": 8}
        program = self.program("consume", uri=relay.uri, mode="tailable", **options).ready().start()
        time.sleep(0.15)
        # These arrive so late that overtaken messages are requested; no message has overtaken 501.
        sent |= self.send(0, range(5))
        self.assertEqual(program.wait(), 5, program.errors)
        stamps, done = program.stamps(), program.done()
        self.none(checks.consumed(stamps, sent, time.monotonic_ns()))
        self.assertEqual((done["messages"], done["caught_up"], done["duplicates_skipped"]), (7, 1, 1))

    def blinded(self, cursors, **options):
        """A consumer with blind first cursors in each of its processes, its relay, and the messages sent before."""
        self.offers_mode("tailable")
        self.capped()
        sent = self.send(0, range(WORKERS))
        relay = self.relayed()
        relay.make_blind(cursors)
        options = {"mode": "tailable", "await_ms": 200, "idle_s": 20} | options
        program = self.program("consume", uri=relay.uri, **options).ready().start()
        return program, relay, sent

    def test_a_blind_cursor_is_opened_again(self):
        count = 100
        program, relay, sent = self.blinded(1, messages=count + WORKERS)
        before = relay.tailable_finds
        # Late enough not to count as skipped by the opening.
        time.sleep(2 * QUIET_MS / 1000)
        sent_ns = time.monotonic_ns()
        sent |= self.send(0, range(WORKERS, count // 2))
        self.until(lambda: relay.tailable_finds > before, "no cursor is opened again")
        sent |= self.send(0, range(count // 2, count + WORKERS))
        self.assertEqual(program.wait(), 0, program.errors)
        end_ns = time.monotonic_ns()
        self.none(checks.consumed(program.stamps(), sent, end_ns))
        done, events = program.done(), program.named("reopened")
        self.assertEqual([event["reason"] for event in events], ["blind"], events)
        (event,) = events
        self.assertTrue(program.start_ns < sent_ns < event["at_ns"] < end_ns, event)
        # Blind at the latest since the messages before the start, which were not received either.
        self.assertTrue(event["at_ns"] - sent_ns < event["blind_ns"] < end_ns - program.start_ns + 10**9, event)
        self.assertGreaterEqual(event["found"], 1)
        # Later messages arrive by the cursor.
        self.assertEqual((done["caught_up"], done["duplicates_skipped"]), (event["found"], 0))
        self.assertLess(done["caught_up"], count // 2 + WORKERS)
        self.assertEqual(done["reopened"], 1)

    def test_queries_go_on_as_long_as_messages_are_missing(self):
        count = 12
        program, relay, sent = self.blinded(1_000, messages=count)
        # Far enough apart to need a separate query each.
        for n in range(WORKERS, count):
            time.sleep(0.4)
            sent |= self.send(0, [n])
        self.assertEqual(program.wait(), 0, program.errors)
        self.none(checks.consumed(program.stamps(), sent, time.monotonic_ns()))
        done, events = program.done(), program.named("reopened")
        self.assertEqual({event["reason"] for event in events}, {"blind"}, events)
        self.assertEqual((done["messages"], done["caught_up"], done["duplicates_skipped"]), (count, count, 0))

    def test_a_silent_cursor_is_looked_after_once_a_second(self):
        self.offers_mode("tailable")
        self.capped()
        sent = self.send(0, range(WORKERS))
        relay = self.relayed()
        # The last message is far away, so that the early query does not find it.
        options = {"mode": "tailable", "await_ms": 50, "idle_s": 4, "messages": WORKERS + 1}
        program = self.program("consume", uri=relay.uri, **options).ready()
        before, started = len(relay.queries), time.monotonic()
        self.assertEqual(program.start().wait(), 5, program.errors)
        seconds, processes = time.monotonic() - started, program.done().get("workers", 1)
        self.none(checks.consumed(program.stamps(), sent, time.monotonic_ns()))
        queries = len(relay.queries) - before
        self.assertGreaterEqual(queries, 2 * processes)
        self.assertLessEqual(queries, processes * (seconds + 1))
        # A cursor without any message to return is not blind.
        self.assertEqual(program.named("reopened"), [])

    def test_a_slow_consumer_outlives_the_wrap_of_the_collection(self):
        self.offers_mode("tailable")
        self.capped(size=4096)
        sent = self.send(0, range(3), b"x" * 200)
        # Idle for longer than a busy machine may delay the sender.
        program = self.program(
            "consume", mode="tailable", await_ms=100, idle_s=3, delay_us=20_000, batch_size=2
        )
        program.ready().start()
        sent |= self.send(0, range(3, MESSAGES), b"x" * 200)
        self.assertEqual(program.wait(), 5, program.errors)
        stamps, done = program.stamps(), program.done()
        # Overwritten messages are lost, but nothing else fails, and all of the newest are received.
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
