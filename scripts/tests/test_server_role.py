"""The role `server` of deploy/ansible on a host made of namespaces, through real SSH and Ansible: it installs a server by `dyno
server install`, starts it, and changes nothing in a second play. `dyno` and the server are fakes. Needs root.

    python3 -m unittest discover --quiet scripts/tests
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
PLAYBOOK = PROJECT / ".cache/python/bin/ansible-playbook"

# Installs an interpreter under the name of a server, as `server install` installs a `mongod`: the path is its standard output.
# Version 2 comes with a library of its own.
DYNO = f"""#!/bin/sh
set -eu
[ "$1 $2" = "server install" ]
shift 2
version=1
case "${{1:-}}" in --from) version=$(cat "$2") ;; ?*) version=$1 ;; esac
folder=$DYNO_DATA_DIR/servers/$version
if [ -e "$folder" ]; then
    echo "\\`mongod\\` $version was installed before" >&2
else
    mkdir -p "$folder/bin"
    cp -L {sys.executable} "$folder/bin/mongod"
    [ "$version" != 2 ] || mkdir "$folder/lib"
    echo "\\`mongod\\` $version is installed" >&2
fi
echo "$folder/bin/mongod"
"""

# The host does not have a network to install packages, so `node_exporter` is already there.
VARIABLES = """
dyno_program: {folder}/dyno
dyno_server_packages: []
dyno_server_arguments: [-m, http.server, --bind, '{{address}}', '{{port}}']
dyno_server_placement: [taskset, -c, '0']
"""


def why_not():
    if os.geteuid() != 0:
        return "no root"
    programs = [PLAYBOOK, "/usr/sbin/sshd", shutil.which("ip") or "/usr/sbin/ip"]
    programs += [shutil.which(name) or name for name in ("taskset", "prometheus-node-exporter")]
    missing = [str(program) for program in programs if not Path(program).exists()]
    return f"not here: {', '.join(missing)}" if missing else None


class DefaultProgramTest(unittest.TestCase):
    def test_roles_place_the_program_that_make_dist_writes(self):
        for role in ("client", "server"):
            defaults = (PROJECT / f"deploy/ansible/roles/{role}/defaults/main.yml").read_text()
            self.assertIn('dyno_program: "{{ playbook_dir }}/../../target/dyno"', defaults)
        self.assertIn('/dyno" target/dyno\n', (PROJECT / "scripts/dist.sh").read_text())


class ServerRoleTest(unittest.TestCase):
    def setUp(self):
        reason = why_not()
        if reason is not None:
            if "DYNO_SKIP_LOG" in os.environ:
                with open(os.environ["DYNO_SKIP_LOG"], "a", encoding="utf-8") as log:
                    log.write(f"{os.getpid()}\t{self.id()}\t{reason}\n")
            self.skipTest(reason)
        place = tempfile.TemporaryDirectory(prefix="dyno-role-")
        self.addCleanup(place.cleanup)
        self.folder = Path(place.name) / "hosts"
        self.addCleanup(self.namespaces, "down")
        self.namespaces("up", "server1")
        (self.folder / "dyno").write_text(DYNO)
        (self.folder / "variables.yml").write_text(VARIABLES.format(folder=self.folder))

    def namespaces(self, verb, *names):
        subprocess.run([PROJECT / "scripts/namespaces.sh", verb, self.folder, *names], check=True, capture_output=True)

    def on_host(self, command):
        result = subprocess.run(
            ["ssh", "-F", self.folder / "ssh_config", "server1", command], capture_output=True, text=True, check=False
        )
        return result.stdout.strip()

    def play(self, book="site.yml", *arguments, code=0):
        """Runs a playbook on the host. Returns the number of changed tasks, and Ansible's output."""
        ansible = PROJECT / "deploy/ansible"
        command = [PLAYBOOK, "-i", self.folder / "inventory.yml", "-e", f"@{self.folder}/variables.yml", book, *arguments]
        environment = {
            **os.environ,
            "ANSIBLE_CONFIG": str(ansible / "ansible.cfg"),
            "ANSIBLE_HOME": str(self.folder / "ansible"),
            "ANSIBLE_NOCOLOR": "1",
        }
        result = subprocess.run(command, cwd=ansible, env=environment, capture_output=True, text=True, check=False)
        said = result.stdout + result.stderr
        self.assertEqual(result.returncode, code, said)
        return int(re.search(r"^server1 .* changed=(\d+)", said, re.MULTILINE)[1]), said

    def program_that_runs(self):
        return self.on_host("readlink /proc/$(cat /var/lib/dyno/server/server.pid)/exe")

    # One host for all parts, because each play takes seconds.
    def test_a_server_is_installed_by_dyno_and_left_as_it_is(self):
        changed, said = self.play("site.yml", "--check")
        self.assertIn("would install MongoDB", said)
        self.assertEqual(self.on_host("ls -d /opt/dyno"), "")

        self.play()
        self.assertEqual(self.program_that_runs(), "/opt/dyno/servers/1/bin/mongod")
        self.assertEqual(self.on_host("ps -o user= -p $(cat /var/lib/dyno/server/server.pid)"), "dyno")
        changed, said = self.play()
        self.assertEqual(changed, 0, said)

        # Another version is refused while a server runs, and `stop.yml` still finds the running server.
        changed, said = self.play("site.yml", "-e", "dyno_server_version=2", code=2)
        self.assertIn("/opt/dyno/servers/1/bin/mongod runs; end it before another version", said)
        self.play("stop.yml")
        self.assertEqual(self.on_host("pgrep mongod"), "")
        self.play("site.yml", "-e", "dyno_server_version=2")
        self.assertEqual(self.program_that_runs(), "/opt/dyno/servers/2/bin/mongod")
        variables = self.on_host("tr '\\0' '\\n' </proc/$(cat /var/lib/dyno/server/server.pid)/environ")
        self.assertIn("LD_LIBRARY_PATH=/opt/dyno/servers/2/lib", variables.splitlines())

        # An archive on the controller.
        self.play("stop.yml")
        archive = self.folder / "archive.tgz"
        archive.write_text("3")
        self.play("site.yml", "-e", f"dyno_server_archive={archive}")
        self.assertEqual(self.program_that_runs(), "/opt/dyno/servers/3/bin/mongod")
        changed, said = self.play("site.yml", "-e", f"dyno_server_archive={archive}")
        self.assertEqual(changed, 0, said)

        # An existing program, which needs no installation.
        self.play("stop.yml")
        self.on_host(f"rm -r /opt/dyno && mkdir /opt/own && cp -L {sys.executable} /opt/own/server")
        self.play("site.yml", "-e", "dyno_server_install=false", "-e", "dyno_server_program=/opt/own/server")
        self.assertEqual(self.program_that_runs(), "/opt/own/server")
        self.assertEqual(self.on_host("ls -d /opt/dyno"), "")


if __name__ == "__main__":
    unittest.main()
