"""scripts/test-guides.sh, the script of `make test-guides`, on guides of a few lines and a fake `dyno`.

    python3 -m unittest discover --quiet scripts/tests
"""

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]

DYNO = '#!/bin/sh\necho "$*${DYNO_URI:+ (DYNO_URI)}" >>"$PLACE/log"\n'


class GuidesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dyno-guides-")
        self.addCleanup(folder.cleanup)
        self.place = Path(folder.name)
        self.dyno = self.place / "dyno"
        self.dyno.write_text(DYNO)
        self.dyno.chmod(0o755)

    def run_guide(self, *lines, code=0, **variables):
        guide = self.place / "guide.md"
        guide.write_text("\n".join(lines) + "\n")
        environment = {**os.environ, "DYNO": str(self.dyno), "PLACE": str(self.place), "TMPDIR": str(self.place), **variables}
        command = [PROJECT / "scripts/test-guides.sh", guide]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        said = result.stdout + result.stderr
        self.assertEqual(result.returncode, code, said)
        self.assertEqual(list(self.place.glob("tmp.*")), [], "its folder is left")
        return said

    def log(self):
        return (self.place / "log").read_text().splitlines()

    def test_blocks_of_a_guide_share_a_shell_and_short_waits(self):
        said = self.run_guide(
            "```sh",
            "name=value",
            "dyno run a --duration 1h --warmup=10s --records 10",
            "```",
            "prints",
            "```",
            "false",
            "```",
            "```sh",
            'sleep 3600; dyno report "$name"',
            "```",
            DURATION="20ms",
            DYNO_URI="mongodb://elsewhere/",
        )
        self.assertEqual(self.log(), ["run a --duration 20ms --warmup=20ms --records 10", "report value"])
        self.assertIn("2 blocks ran, 0 were left out", said)

    def test_failing_command_is_named_by_its_line_and_ends_the_guide(self):
        for command in ["false", "false | cat", "(exit 3)", "echo $unset_variable", "no-such-program"]:
            with self.subTest(command):
                said = self.run_guide("# Guide", "```sh", "true", "```", "", "```sh", command, "dyno after", "```", code=1)
                self.assertIn("guide.md:7: a command failed", said)
                self.assertFalse((self.place / "log").exists())

    def test_a_command_that_does_not_end_is_ended(self):
        said = self.run_guide("```sh", "true", 'tail -f "$PLACE/dyno"', "```", code=1, LIMIT_S="1")
        self.assertIn("guide.md:2: a command failed, or took more than 1 s", said)

    def test_a_command_that_may_fail_does_not_end_the_guide(self):
        self.run_guide("```sh", "false || dyno one", "if false; then dyno two; fi", "```")
        self.assertEqual(self.log(), ["one"])

    def test_blocks_with_requirements_are_counted_by_requirement(self):
        said = self.run_guide("```sh needs-a-cloud", "false", "```", "```sh", "dyno one", "```")
        self.assertIn("guide.md:1: left out, needs a cloud", said)
        self.assertIn("1 blocks ran, 1 were left out: 1 needs a cloud\n", said)

    def test_blocks_that_need_loop_devices_run_as_root_with_them(self):
        can = os.geteuid() == 0 and os.path.exists("/dev/loop-control")
        said = self.run_guide("```sh", "dyno one", "```", "```sh needs-root-and-loop-devices", "dyno two", "```")
        self.assertEqual(self.log(), ["one", "two"] if can else ["one"])
        self.assertIn(f"{1 + can} blocks ran, {1 - can} were left out", said)

    def test_program_is_in_the_build_folder_and_only_build_is_made(self):
        block = ["```sh", "make build", 'export PATH="$PWD/target/release:$PATH"', "dyno run --duration 1h", "```"]
        where = '[ "$(command -v dyno)" = "$PWD/target/release/dyno" ]'
        self.run_guide(*block[:-1], where, "```", DURATION="1s")
        self.assertEqual(self.log(), ["run --duration 1s"])
        self.assertIn("guide.md:2: a command failed", self.run_guide("```sh", "make run", "```", code=1))

    def test_program_is_built_from_a_clone_by_default(self):
        # It does not touch the cargo folder of this project.
        build = 'git rev-parse HEAD && rm target && mkdir -p target/release && cp "$PLACE/dyno" target/release'
        self.stand_in("make", f'cd "$3"; [ "$4" = build ] && {build}')
        said = self.run_guide("```sh", "dyno one", "```", DYNO="", PATH=self.path())
        self.assertEqual(self.log(), ["one"])
        self.assertIn(self.head(), said)
        self.stand_in("make", "exit 1")
        self.run_guide("```sh", "dyno two", "```", DYNO="", PATH=self.path(), code=1)
        self.assertEqual(self.log(), ["one"])

    def test_each_guide_has_a_clone_of_the_commit(self):
        block = ['[ "$(git rev-parse HEAD)" = "$COMMIT" ]', "[ ! -e .cache ]", "ls workloads/a.toml"]
        self.run_guide("```sh", *block, "```", COMMIT=self.head())

    def head(self):
        command = ["git", "-C", PROJECT, "rev-parse", "HEAD"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def test_guides_do_not_see_servers_of_the_machine(self):
        self.run_guide("```sh", 'dyno "$DYNO_DATA_DIR"; [ ! -e "$DYNO_DATA_DIR" ]', "```", DYNO_DATA_DIR="/elsewhere")
        self.assertNotIn("/elsewhere", self.log())

    def test_blocks_that_need_root_and_apt_run_where_both_are(self):
        for name, user, can in [("apt-get", 0, True), ("apt-get", 1000, False)]:
            with self.subTest(user=user):
                self.stand_in(name, "exit 0")
                self.stand_in("id", f"echo {user}")
                (self.place / "log").unlink(missing_ok=True)
                said = self.run_guide("```sh", "dyno one", "```", "```sh needs-root-and-apt", "dyno two", "```", PATH=self.path())
                self.assertEqual(self.log(), ["one", "two"] if can else ["one"])
                self.assertEqual("guide.md:4: left out, needs root and apt" in said, not can)

    def test_blocks_that_need_hosts_run_as_root_with_their_programs(self):
        for name in ["ip", "sshd", "prometheus-node-exporter"]:
            self.stand_in(name, "exit 0")
        for user, can in [(0, True), (1000, False)]:
            with self.subTest(user=user):
                self.stand_in("id", f"echo {user}")
                (self.place / "log").unlink(missing_ok=True)
                said = self.run_guide("```sh", "dyno one", "```", "```sh needs-root-and-hosts", "dyno two", "```", PATH=self.path())
                self.assertEqual(self.log(), ["one", "two"] if can else ["one"])
                self.assertEqual("guide.md:4: left out, needs root and hosts" in said, not can)

    def test_blocks_that_need_prometheus_need_its_programs_and_ports(self):
        blocks = ["```sh", "dyno one", "```", "```sh needs-prometheus", "dyno two", "```"]
        programs = ["prometheus", "promtool", "prometheus-node-exporter"]
        tools = self.place / "tools"
        tools.mkdir()
        for name in os.listdir("/usr/bin"):
            if name not in programs:
                (tools / name).symlink_to(f"/usr/bin/{name}")
        self.assertIn("needs prometheus", self.run_guide(*blocks, PATH=str(tools)))
        for name in programs:
            self.stand_in(name, "exit 0")
        (self.place / "log").unlink()
        self.run_guide(*blocks, PATH=f"{self.place}:{tools}")
        ran = self.log()
        with socket.socket() as taken:
            # A port that another program uses counts as taken as well.
            with contextlib.suppress(OSError):
                taken.bind(("127.0.0.1", 9464))
                taken.listen()
                self.assertEqual(ran, ["one", "two"])
            self.assertIn("needs prometheus", self.run_guide(*blocks, PATH=f"{self.place}:{tools}"))

    def stand_in(self, name, command):
        program = self.place / name
        program.write_text(f"#!/bin/sh\n{command}\n")
        program.chmod(0o755)

    def path(self):
        return f"{self.place}:{os.environ['PATH']}"

    def test_blocks_that_need_two_cpus_run_if_a_process_may_use_two(self):
        for cpus, ran in [(1, ["one"]), (2, ["one", "two"]), (16, ["one", "two"])]:
            with self.subTest(cpus):
                self.stand_in("nproc", f"echo {cpus}")
                (self.place / "log").unlink(missing_ok=True)
                said = self.run_guide("```sh", "dyno one", "```", "```sh needs-two-cpus", "dyno two", "```", PATH=self.path())
                self.assertEqual(self.log(), ran)
                self.assertEqual("guide.md:4: left out, needs two cpus" in said, cpus == 1)

    def test_an_unknown_mark_is_an_error(self):
        for mark in ["```sh skip", "```sh needs-", "```sh needs a cloud"]:
            with self.subTest(mark):
                said = self.run_guide("```sh", "true", "```", mark, "false", "```", code=1)
                self.assertIn("guide.md:4: a block that is neither sh nor", said)

    def test_a_block_without_an_end_is_an_error(self):
        self.assertIn("it does not end", self.run_guide("```sh", "true", code=1))

    def test_guides_without_blocks_are_an_error(self):
        self.assertIn("no block ran", self.run_guide("```", "output", "```", "```sh needs-a-cloud", "true", "```", code=1))

    def test_processes_left_by_a_guide_are_an_error_and_are_ended(self):
        other = subprocess.Popen(["tail", "-f", "/dev/null"])
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        said = self.run_guide("```sh", 'setsid tail -f "$PLACE/dyno" >/dev/null &', "```", code=1)
        # It may not be `tail` yet.
        self.assertRegex(said, "it leaves processes: .*tail -f")
        self.assertEqual(self.left(), b"")
        self.assertIsNone(other.poll())

    def test_interrupt_ends_the_processes_of_a_guide_at_once(self):
        guide = self.place / "guide.md"
        guide.write_text('```sh\ntouch "$PLACE/begun"\ntail -f "$PLACE/dyno"\n```\n')
        environment = {**os.environ, "DYNO": str(self.dyno), "PLACE": str(self.place), "TMPDIR": str(self.place)}
        script = subprocess.Popen([PROJECT / "scripts/test-guides.sh", guide], env=environment, stdout=subprocess.PIPE)
        while not (self.place / "begun").exists():
            self.assertIsNone(script.poll())
        script.send_signal(signal.SIGINT)
        script.communicate(timeout=30)
        self.assertEqual(script.returncode, 130)
        self.assertEqual(self.left(), b"")
        self.assertEqual(list(self.place.glob("tmp.*")), [])

    def left(self):
        return subprocess.run(["pgrep", "-f", f"tail -f {self.place}/dyno"], capture_output=True, check=False).stdout

    def test_invalid_arguments_are_refused(self):
        self.assertIn("`long`", self.run_guide("```sh", "true", "```", code=2, DURATION="long"))
        self.assertIn("there is no program", self.run_guide("```sh", "true", "```", code=2, DYNO=str(self.place / "none")))


if __name__ == "__main__":
    unittest.main()
