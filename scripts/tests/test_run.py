"""scripts/run.sh, the script of `make run`, in a project of fakes: which server it prepares, in which order, and how `dyno` is
started in the end.

    python3 -m unittest discover --quiet scripts/tests
"""

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]

# Logs its arguments. Its dry run prints the kind of server in the file `chosen`, if it exists, and its installation ends with the
# code in `install-code`.
DYNO = """
echo "dyno $*${DYNO_URI:+ (DYNO_URI)}" >>"$PLACE/log"
case "$*" in
"server install")
    [ ! -e "$PLACE/install-code" ] || exit "$(cat "$PLACE/install-code")"
    echo mongod >"$PLACE/chosen"
    ;;
*--dry-run)
    [ -e "$PLACE/chosen" ] || exit 3
    printf '[data]\\nkind = "other"\\n[server]\\nkind = "%s"\\n[client]\\nkind = "other"\\n' "$(cat "$PLACE/chosen")"
    ;;
esac
"""


def write(file, body):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dyno-run-")
        self.addCleanup(folder.cleanup)
        self.place = Path(folder.name)
        self.bin = self.place / "bin"
        self.bin.mkdir()
        for name in ["bash", "cat", "dirname", "sed"]:
            (self.bin / name).symlink_to(shutil.which(name))
        self.project = self.place / "project"
        write(self.project / "scripts/setup.sh", 'echo "setup $*" >>"$PLACE/log"')
        shutil.copy2(PROJECT / "scripts/run.sh", self.project / "scripts")
        write(self.project / "target/release/dyno", DYNO)
        write(self.bin / "make", 'echo "make ${*#--no-print-directory }" >>"$PLACE/log"')
        self.machine("x86_64")

    def machine(self, processor):
        write(self.bin / "uname", f"echo {processor}")

    def has(self, file, text=""):
        (self.place / file).write_text(text)

    def run_script(self, *arguments, code=0, **variables):
        environment = {"PATH": str(self.bin), "PLACE": str(self.place), "HOME": str(self.place / "home"), **variables}
        command = [shutil.which("bash"), self.project / "scripts/run.sh", *arguments]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
        self.assertEqual(result.returncode, code, result.stderr)
        log = self.place / "log"
        return log.read_text().splitlines() if log.exists() else []

    def test_workload_and_server_are_passed_to_dyno(self):
        self.assertEqual(self.run_script("a", code=2), [])

    def test_a_machine_without_a_server_gets_mongodb(self):
        self.assertEqual(
            self.run_script("a", "auto", "--duration", "5s"),
            [
                "setup run",
                "make build",
                "dyno run a --duration 5s --dry-run",
                "dyno server install",
                "dyno run a --duration 5s",
            ],
        )

    def test_a_mongod_on_the_path_is_used(self):
        write(self.bin / "mongod", "exit 0")
        self.assertEqual(self.run_script("a", "auto"), ["setup build", "make build", "dyno run a"])

    def test_an_installed_mongod_is_used(self):
        write(self.place / "data/servers/6.0.5/bin/mongod", "exit 0")
        log = self.run_script("a", "mongod", DYNO_DATA_DIR=str(self.place / "data"))
        self.assertEqual(log, ["setup build", "make build", "dyno run a --server mongod"])

    def test_an_option_that_names_a_server_installs_none(self):
        for option in ["--uri=mongodb://h/", "--mongod=m", "--server=mongod", "--set=server.uri=mongodb://h/"]:
            with self.subTest(option):
                (self.place / "log").unlink(missing_ok=True)
                self.assertEqual(
                    self.run_script("a", "auto", option), ["setup build", "make build", f"dyno run a {option}"]
                )

    def test_a_variable_that_names_a_server_installs_none(self):
        log = self.run_script("a", "auto", DYNO_URI="mongodb://h/")
        self.assertEqual(log, ["setup build", "make build", "dyno run a (DYNO_URI)"])

    def test_server_to_start_overrides_a_running_server(self):
        log = self.run_script("a", "embedded", DYNO_URI="mongodb://h/")
        self.assertEqual(log, ["setup embedded", "make build", "dyno run a --server embedded"])

    def test_a_plan_that_names_a_server_installs_none(self):
        self.has("chosen", "uri")
        log = self.run_script("plan.toml", "auto")
        self.assertNotIn("dyno server install", log)
        self.assertEqual(log[-1], "dyno run plan.toml")

    def test_built_embedded_server_replaces_an_unavailable_mongodb(self):
        self.has("install-code", "3")
        self.has("chosen", "embedded")
        log = self.run_script("a", "auto")
        self.assertIn("dyno server install", log)
        self.assertEqual(log[-1], "dyno run a")

    def test_installation_prints_why_no_server_is_available(self):
        self.has("install-code", "3")
        self.assertEqual(self.run_script("a", "auto", code=3)[-1], "dyno run a --dry-run")
        self.has("chosen", "embedded")
        self.assertEqual(self.run_script("a", "mongod", code=3)[-1], "dyno server install")

    def test_other_processors_build_a_missing_embedded_server(self):
        self.machine("aarch64")
        log = self.run_script("a", "auto")
        self.assertEqual(log, ["setup build", "make build", "dyno run a --dry-run", "setup embedded", "dyno run a"])
        self.has("chosen", "mongod")
        self.assertNotIn("setup embedded", self.run_script("a", "auto")[len(log) :])


if __name__ == "__main__":
    unittest.main()
