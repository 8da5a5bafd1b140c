"""scripts/setup.sh for a new user, on fake machines that consist of a `PATH`: only linked or faked programs exist there. Nothing
is installed, and root is not needed.

    python3 -m unittest discover --quiet scripts/tests
"""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]

# Programs that setup.sh and the fakes expect on any machine.
BASICS = "bash cat chmod cp cut dirname env grep head mkdir paste rm sed sha256sum sh sort tail touch tr".split()

# Commands, headers and libraries, by Debian package.
PACKAGES = {
    "build-essential": ["cc", "make"],
    "pkg-config": ["pkg-config"],
    "clang": ["clang"],
    "clang-13": ["clang-13"],
    "libelf-dev": ["libelf.h"],
    "zlib1g-dev": ["zlib.h"],
    "python3": ["python3"],
    "python3-pip": ["pip-of-python"],
    "python3-venv": ["ensurepip-of-python"],
    "cmake": ["cmake"],
    "util-linux": ["flock"],
    "nodejs": ["node"],
    "npm": ["npm"],
    "chromium": ["chromium"],
    "default-jdk-headless": ["java", "javac"],
    "maven": ["mvn"],
    "procps": ["vmstat"],
    "fio": ["fio"],
    "mount": ["losetup"],
    "xfsprogs": ["mkfs.xfs"],
    "btrfs-progs": ["mkfs.btrfs"],
    "prometheus": ["prometheus", "promtool"],
    "prometheus-node-exporter": ["prometheus-node-exporter"],
    "redis-server": ["redis-server"],
    "openssh-client": ["ssh"],
    "openssh-server": ["sshd"],
    "faketime": ["faketime"],
    "iproute2": ["ip"],
    "ca-certificates": ["ca-certificates.crt"],
    "curl": ["curl"],
    "rustup": ["rustup"],
}
# Needed only if Rust is missing.
RUST = ["ca-certificates", "curl", "rustup"]
BUILD = ["build-essential", "clang", "libelf-dev", "pkg-config", "zlib1g-dev"]
MONGOD = ["python3", "python3-pip"]

# Fake commands that have to print something or fail.
SCRIPTS = {
    # Headers are files of the fake machine.
    "cc": 'read -r line; name=${line#*<}; [ -e "$MACHINE/${name%>}" ]',
    "python3": """case "$*" in
        "-m pip --version") [ -e "$MACHINE/pip-of-python" ] ;;
        "-c import ensurepip") [ -e "$MACHINE/ensurepip-of-python" ] ;;
        *) exit 1 ;;
        esac""",
    "clang": "echo Debian clang version 14.0.6",
    "clang-13": "echo Debian clang version 13.0.1-6",
    "node": "echo v20.1.0",
    "java": "echo openjdk 17.0.1",
    "npm": "mkdir -p node_modules && touch node_modules/.package-lock.json",
    "mvn": "mkdir -p .cache/mongo-java-server",
    "flock": "exit 0",
    # Delivers the installer of Rust.
    "curl": """echo "curl $*" >>"$MACHINE/log"
        [ ! -e "$MACHINE/no-network" ] || { echo "curl: (6) Could not resolve host" >&2; exit 6; }
        while [ $# -gt 1 ]; do [ "$1" != --output ] || file=$2; shift; done
        cat "$MACHINE/rustup-init" > "$file"
        """,
    "rustup": """echo "rustup $* (RUSTUP_HOME=$RUSTUP_HOME)" >>"$MACHINE/log"
        case "$*" in
        *"toolchain install 1.95.0 "*)
            bin=$RUSTUP_HOME/toolchains/1.95.0-x86_64-unknown-linux-gnu/bin
            mkdir -p "$bin" && cp "$MACHINE/new-cargo" "$bin/cargo" && cp "$MACHINE/new-rustc" "$bin/rustc"
            ;;
        *) exit 1 ;;
        esac""",
}

# Stands in for Rust's installer. It leaves a `rustup` in the folder that it is told.
RUSTUP_INIT = f"""#!/bin/sh
echo "rustup-init $*" >>"$MACHINE/log"
mkdir -p "$CARGO_HOME/bin" && cp "$MACHINE/packages/rustup/rustup" "$CARGO_HOME/bin/"
"""

# Installs by creating the commands, and logs its arguments and environment.
APT_GET = """
{ echo "apt-get $*"; echo "environment RUNLEVEL=$RUNLEVEL SYSTEMD_OFFLINE=$SYSTEMD_OFFLINE"; } >>"$MACHINE/log"
case " $* " in
*" update "*)
    if [ -e "$MACHINE/lists-are-locked" ]; then
        rm "$MACHINE/lists-are-locked"
        echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt-get)" >&2
        exit 100
    fi
    exit 0
    ;;
esac
[ ! -e "$MACHINE/apt-fails" ] || { echo "E: Unable to locate package" >&2; exit 100; }
if [ -e "$MACHINE/apt-waits" ]; then
    touch "$MACHINE/apt-is-waiting"
    exec "$SLEEP" 60
fi
options=yes
for word in "$@"; do
    [ "$options" != yes ] || { [ "$word" != --no-install-recommends ] || options=no; continue; }
    for file in "$MACHINE/packages/$word"/*; do
        [ -e "$MACHINE/${file##*/}" ] || cp -p "$file" "$MACHINE/"
    done
done
"""


class Machine:
    """A folder that is the whole `PATH`, and a copy of the scripts in a project folder."""

    def __init__(self, folder, installed=(), rust="1.95.0", system="Linux", processor="x86_64", user=1000):
        self.path = folder / "machine"
        self.project = folder / "project"
        self.path.mkdir()
        # Copies, because writing to a link would write to the machine that runs the tests.
        for name in BASICS:
            shutil.copy(shutil.which(name), self.path / name)
        for package, names in PACKAGES.items():
            stored = self.path / "packages" / package
            stored.mkdir(parents=True)
            for name in names:
                write(stored / name, SCRIPTS.get(name, "exit 0"))
            if package in installed:
                for file in stored.iterdir():
                    shutil.copy2(file, self.path)
        self.fake("uname", f'[ "$1" = -m ] && echo {processor} || echo {system}')
        self.fake("id", f"echo {user}")
        self.fake("sleep", "exit 0")
        if rust is not None:
            self.fake("rustc", f'echo "rustc {rust} (0 2026-01-01)"')
            self.fake("cargo", f'echo "cargo $*" >>"$MACHINE/log"; {CARGO}')
        scripts = self.project / "scripts"
        scripts.mkdir(parents=True)
        text = (PROJECT / "scripts/setup.sh").read_text()
        # Searched places outside of `PATH`.
        for place, instead in [("PATH=$PATH:/usr/sbin:/sbin\n", ""), ("/etc/os-release", '"$MACHINE/os-release"')]:
            assert place in text
            text = text.replace(place, instead)
        write(scripts / "setup.sh", text.split("\n", 1)[1], "/usr/bin/env bash")
        shutil.copy2(PROJECT / "scripts/cargo", scripts)
        (self.path / "rustup-init").write_text(RUSTUP_INIT)
        self.fake("new-cargo", f'echo "new cargo $*" >>"$MACHINE/log"; {CARGO}')
        self.fake("new-rustc", 'echo "rustc 1.95.0 (0 2026-01-01)"')
        text = (PROJECT / "scripts/rust.sh").read_text()
        text, pins = re.subn(r"sha256=[0-9a-f]{64}", "sha256=" + hashlib.sha256(RUSTUP_INIT.encode()).hexdigest(), text)
        assert pins == 2
        write(scripts / "rust.sh", text.split("\n", 1)[1], "/usr/bin/env bash")
        shutil.copy2(PROJECT / "rust-toolchain.toml", self.project)
        write(scripts / "python-tools.sh", "exit 0")
        (self.project / "web").mkdir()
        (self.project / "web/package-lock.json").write_text("{}")
        java = self.project / "crates/testkit/mongo-java-server/src/main/java"
        java.mkdir(parents=True)
        (java / "Main.java").touch()
        (java.parents[2] / "pom.xml").touch()
        (java.parents[2] / "libraries.sha256").touch()
        write(scripts / "check-jars.sh", "exit 0")

    def fake(self, name, body):
        write(self.path / name, body)

    def touch(self, name):
        (self.path / name).touch()

    def apt(self):
        self.fake("apt-get", APT_GET)
        return self

    def sudo(self, body='exec "$@"'):
        self.fake("sudo", body)
        return self

    @property
    def log(self):
        file = self.path / "log"
        return file.read_text() if file.exists() else ""

    def environment(self, **more):
        return {"PATH": str(self.path), "MACHINE": str(self.path), "SLEEP": shutil.which("sleep"), "HOME": "/nonexistent", **more}

    def setup(self, *arguments, **environment):
        return subprocess.run(
            [self.project / "scripts/setup.sh", *arguments],
            env=self.environment(**environment),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
        )


# `cargo install` creates the embedded server.
CARGO = """
case "$1" in
install)
    [ ! -e "$MACHINE/cargo-fails" ] || exit 101
    mkdir -p .cache/secantus/bin
    printf '#!/bin/sh\\necho secantusd-rs 0.5.3-beta.196\\n' >.cache/secantus/bin/secantusd-rs
    chmod 755 .cache/secantus/bin/secantusd-rs
    ;;
*) echo "cargo 1.95.0" ;;
esac
"""


def write(file, body, interpreter="/bin/sh"):
    file.write_text(f"#!{interpreter}\n{body}\n")
    file.chmod(0o755)


class SetupTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dyno-setup-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def machine(self, **options):
        return Machine(self.folder, **options)

    def assert_refused(self, result, *texts):
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertEqual(result.stderr.count("error: "), 1, result.stderr)
        for text in texts:
            self.assertIn(text, result.stderr)

    def assert_untouched(self, machine):
        self.assertNotIn("apt-get", machine.log)

    def test_another_system_gets_one_error_before_anything_else(self):
        for system, text in [("Darwin", "Linux only, not on macOS"), ("FreeBSD", "Linux only, not on FreeBSD")]:
            with self.subTest(system), tempfile.TemporaryDirectory() as folder:
                machine = Machine(Path(folder), system=system, rust=None).apt().sudo()
                result = machine.setup()
                self.assert_refused(result, text)
                self.assertEqual(result.stderr.count("\n"), 1)
                self.assert_untouched(machine)

    def test_another_processor_is_refused_with_alternatives(self):
        machine = self.machine(processor="riscv64").apt().sudo()
        self.assert_refused(machine.setup(), "not for `riscv64`", "hint: ", "--no-default-features")
        self.assert_untouched(machine)

    def assert_has_own_rust(self, machine, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("new cargo --version\n", machine.log)
        for line in [line for line in machine.log.splitlines() if "toolchain install" in line]:
            self.assertIn(f"(RUSTUP_HOME={machine.project}/.cache/rust/rustup)", line)
        # The next set-up installs nothing.
        log = machine.log
        self.assertEqual(machine.setup("build").returncode, 0)
        self.assertNotRegex(machine.log[len(log) :], "curl|rustup|apt-get")

    def test_missing_rust_is_installed_into_the_project_folder(self):
        machine = self.machine(rust=None, installed=[*BUILD, "curl"])
        home = self.folder / "home"
        home.mkdir()
        result = machine.setup("build", HOME=str(home))
        # What is fetched is said before.
        self.assertRegex(result.stderr, "(?s)fetching Rust's installer: https://static.rust-lang.org/.*installing Rust 1.95.0")
        self.assertIn("rustup-init -y --quiet --no-modify-path --profile minimal --default-toolchain none\n", machine.log)
        self.assert_has_own_rust(machine, result)
        self.assertEqual(list(home.iterdir()), [])
        self.assertFalse((machine.project / ".cache/rust/rustup-init").exists())

    def test_an_old_rust_is_left_alone_and_another_is_installed(self):
        machine = self.machine(rust="1.63.0", installed=[*BUILD, "curl"])
        self.assert_has_own_rust(machine, machine.setup("build"))
        self.assertEqual(machine.log.count("\ncargo "), 0)

    def test_installer_with_a_wrong_checksum_is_not_run(self):
        machine = self.machine(rust=None, installed=[*BUILD, "curl"])
        (machine.path / "rustup-init").write_text(RUSTUP_INIT + "exit 0\n")
        self.assert_refused(machine.setup("build"), "SHA-256", "hint: ")
        self.assertNotIn("rustup-init -y", machine.log)
        self.assertFalse((machine.project / ".cache/rust/rustup-init").exists())

    def test_rust_that_cannot_be_fetched_is_one_error(self):
        machine = self.machine(rust=None, installed=[*BUILD, "curl"])
        machine.touch("no-network")
        self.assert_refused(machine.setup("build"), "cannot fetch Rust's installer", "hint: ", "rustup toolchain install 1.95.0")

    def test_existing_rustup_installs_into_the_project_folder(self):
        machine = self.machine(rust=None, installed=[*BUILD, "rustup"])
        self.assert_has_own_rust(machine, machine.setup("build"))
        self.assertNotIn("curl", machine.log)

    def test_package_of_rustup_precedes_the_installer(self):
        machine = self.machine(rust=None, user=0, installed=BUILD).apt()
        machine.fake("apt-cache", '[ "$*" != "policy rustup" ] || echo "  Candidate: 1.26.0-5"')
        result = machine.setup("build")
        self.assertIn("installing Debian packages: rustup\n", result.stderr)
        self.assertNotIn("curl", machine.log)
        self.assert_has_own_rust(machine, result)

    def test_package_of_rustup_does_not_replace_an_old_cargo(self):
        machine = self.machine(rust="1.63.0", user=0, installed=BUILD).apt()
        machine.fake("apt-cache", "echo '  Candidate: 1.26.0-5'")
        result = machine.setup("build")
        self.assertIn("installing Debian packages: ca-certificates curl\n", result.stderr)
        self.assert_has_own_rust(machine, result)

    def test_rustup_that_only_other_packages_name_is_not_installed(self):
        machine = self.machine(rust=None, user=0, installed=[*BUILD, "curl"]).apt()
        machine.fake("apt-cache", "echo '  Candidate: (none)'")
        self.assert_has_own_rust(machine, machine.setup("build"))
        self.assert_untouched(machine)

    def test_fetching_can_be_forbidden(self):
        machine = self.machine(rust=None, installed=[*BUILD, "curl"])
        self.assert_refused(machine.setup("build", DYNO_NO_FETCH="1"), "Rust 1.95.0 is not installed", "scripts/rust.sh")
        self.assertNotIn("curl", machine.log)

    def test_complete_machine_needs_neither_root_nor_sudo_nor_apt(self):
        machine = self.machine(installed=BUILD + MONGOD)
        for purpose in [[], ["run"], ["build"]]:
            result = machine.setup(*purpose)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("the first build takes about", result.stderr)
        dyno = machine.project / "target/release/dyno"
        dyno.parent.mkdir(parents=True)
        write(dyno, "exit 0")
        self.assertEqual(machine.setup().stderr, "")

    def test_build_and_run_need_neither_node_nor_embedded_server(self):
        machine = self.machine().apt().sudo()
        result = machine.setup()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"installing Debian packages: {' '.join(sorted(BUILD + MONGOD))}\n", result.stderr)
        self.assertNotIn("cargo install", machine.log)
        self.assertFalse((machine.project / ".cache").exists())

    def test_building_alone_does_not_need_the_server(self):
        machine = self.machine(installed=BUILD)
        self.assertEqual(machine.setup("build").returncode, 0)
        self.assert_refused(machine.setup(), "python3 python3-pip", "make build, then `--uri`")

    def test_only_x86_64_gets_a_server_by_pip(self):
        machine = self.machine(installed=BUILD, processor="aarch64")
        self.assertEqual(machine.setup().returncode, 0)

    def test_without_ebpf_neither_clang_nor_libraries_are_needed(self):
        machine = self.machine(installed=["build-essential"])
        self.assert_refused(machine.setup("build"), "clang libelf-dev pkg-config zlib1g-dev", "make build EBPF=0")
        self.assertEqual(machine.setup("build", EBPF="0").returncode, 0)

    def test_a_user_without_sudo_gets_the_command_for_root(self):
        machine = self.machine(installed=["build-essential"]).apt()
        self.assert_refused(machine.setup("build"), "there is no sudo", "hint: as root: apt-get update && apt-get install")
        self.assert_untouched(machine)

    def test_sudo_without_rights_is_one_error_with_an_alternative(self):
        machine = self.machine().apt().sudo("echo 'sudo: a terminal is required to read the password' >&2; exit 1")
        result = machine.setup("build")
        self.assert_refused(result, "sudo: a terminal is required", "cannot install the Debian packages", "hint: as root:")
        self.assertEqual(result.stderr.count("a terminal is required"), 1)

    def test_root_needs_no_sudo(self):
        machine = self.machine(user=0).apt()
        self.assertEqual(machine.setup("build").returncode, 0)

    def test_a_system_without_apt_gets_the_package_names(self):
        machine = self.machine(installed=["build-essential", "pkg-config"]).sudo()
        self.assert_refused(machine.setup("build"), "by their Debian names: clang libelf-dev zlib1g-dev", "EBPF=0")

    def test_setup_waits_for_the_locks_of_apt(self):
        machine = self.machine(user=0).apt()
        machine.touch("lists-are-locked")
        result = machine.setup("build")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("waiting until another program leaves apt", result.stderr)
        self.assertEqual(machine.log.count(" update\n"), 2)
        self.assertIn("-o DPkg::Lock::Timeout=300 install", machine.log)

    def test_failing_apt_ends_with_3(self):
        machine = self.machine(user=0).apt()
        machine.touch("apt-fails")
        self.assert_refused(machine.setup("build"), "E: Unable to locate package", "cannot install", "EBPF=0")

    def test_an_old_node_stops_the_tests_only(self):
        machine = self.machine(user=0).apt()
        write(machine.path / "packages/nodejs/node", "echo v12.22.9")
        self.assertEqual(machine.setup().returncode, 0)
        self.assert_refused(
            machine.setup("test"), "too old or still missing after the installation: nodejs", "nodesource", "nvm"
        )

    def test_debian_11_gets_the_newer_of_its_compilers(self):
        machine = self.machine(user=0, installed=["build-essential", "clang", "pkg-config", "libelf-dev", "zlib1g-dev"]).apt()
        machine.fake("clang", "echo Debian clang version 11.0.1-2")
        (machine.path / "os-release").write_text("VERSION_CODENAME=bullseye\n")
        result = machine.setup("build")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("installing Debian packages: clang-13\n", result.stderr)

    def test_an_old_clang_elsewhere_names_the_build_without_it(self):
        machine = self.machine(user=0).apt()
        write(machine.path / "packages/clang/clang", "echo clang version 10.0.0-4ubuntu1")
        self.assert_refused(machine.setup("build"), "installation: clang\n", "clang 12 or later", "EBPF=0")

    def test_the_build_searches_for_the_same_clang(self):
        self.assertIn("const OLDEST_CLANG: u32 = 12;\n", (PROJECT / "crates/trace/build.rs").read_text())
        self.assertIn("-lt 12 ]", (PROJECT / "scripts/setup.sh").read_text())

    def test_an_old_java_names_a_newer_one(self):
        machine = self.machine(user=0).apt()
        write(machine.path / "packages/default-jdk-headless/java", "echo openjdk 11.0.1")
        self.assert_refused(machine.setup("test"), "installation: default-jdk-headless", "openjdk-17-jdk-headless")

    def test_the_tests_get_everything(self):
        machine = self.machine(user=0).apt()
        result = machine.setup("test")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"installing Debian packages: {' '.join(sorted(set(PACKAGES) - {'clang-13', *RUST}))}\n", result.stderr)
        for made in [".cache/secantus/bin/secantusd-rs", "web/node_modules", ".cache/mongo-java-server/complete"]:
            self.assertTrue((machine.project / made).exists(), made)
        # A second time does nothing.
        self.assertEqual(machine.setup("test").stderr, "")

    def test_the_embedded_server_is_built_on_request(self):
        machine = self.machine(user=0, installed=BUILD).apt()
        result = machine.setup("embedded")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("installing Debian packages: cmake util-linux\n", result.stderr)
        self.assertIn("cargo install", machine.log)

    def test_failed_build_of_the_embedded_server_is_an_error(self):
        machine = self.machine(user=0, installed=BUILD + ["cmake", "util-linux"])
        machine.touch("cargo-fails")
        self.assert_refused(machine.setup("embedded"), "cannot build the embedded server", "`dyno server install`")

    def test_services_are_not_started_now_or_later(self):
        machine = self.machine(user=0).apt()
        self.assertEqual(machine.setup("test").returncode, 0)
        for line in [line for line in machine.log.splitlines() if line.startswith("environment")]:
            self.assertEqual(line, "environment RUNLEVEL=1 SYSTEMD_OFFLINE=1")
        for unit in ["prometheus", "prometheus-node-exporter", "redis-server", "ssh"]:
            self.assertIn(f"disable {unit}.service", machine.log)
        self.assertIn("disable ssh.socket", machine.log)

    def test_a_set_up_that_is_killed_leaves_nothing_behind(self):
        machine = self.machine(user=0).apt()
        machine.touch("apt-waits")
        before = system_state()
        process = subprocess.Popen(
            [machine.project / "scripts/setup.sh", "test"],
            env=machine.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + 60
        while not (machine.path / "apt-is-waiting").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.assertTrue((machine.path / "apt-is-waiting").exists())
        self.assertEqual(system_state(), before)
        self.assertFalse((machine.project / ".cache").exists())

    def test_unknown_argument_is_refused(self):
        for arguments in [["tests"], ["test", "run"]]:
            with self.subTest(arguments), tempfile.TemporaryDirectory() as folder:
                result = Machine(Path(folder)).setup(*arguments)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertIn("usage: ", result.stderr)


def system_state():
    """Files on the machine that decide whether packages may start services."""
    policy = Path("/usr/sbin/policy-rc.d")
    masks = Path("/run/systemd/system")
    return (
        policy.stat().st_mtime_ns if policy.exists() else None,
        sorted(masks.iterdir()) if masks.is_dir() else None,
    )


if __name__ == "__main__":
    unittest.main()
