"""scripts/drivers.sh with a driver of three versions.

    python3 -m unittest discover --quiet scripts/tests
"""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]

AT_VERSION = """#!/bin/sh
cd "$(dirname "$0")"
case $1 in
6.8 | 6.8.*) echo "$1" >lock ;;
*) echo "a warning" >&2; echo "there is no version $1" >&2; exit 1 ;;
esac
"""


class VersionsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dyno-drivers-")
        self.addCleanup(folder.cleanup)
        self.drivers = Path(folder.name) / "drivers"
        scripts = Path(folder.name) / "scripts"
        scripts.mkdir()
        self.script = shutil.copy(PROJECT / "scripts/drivers.sh", scripts)
        self.write("node/run", "#!/bin/sh\n")
        self.write("node/at-version", AT_VERSION)
        self.write("node/build", "#!/bin/sh\ncp \"$(dirname \"$0\")/lock\" \"$(dirname \"$0\")/built\"\n")
        self.write("node/lock", "7.9\n")
        self.write("node/node_modules/old", "")
        self.write("ruby/run", "#!/bin/sh\n")

    def write(self, name, text):
        path = self.drivers / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def build(self, *names, code=0):
        environment = {**os.environ, "DYNO_NO_APT": "1"}
        result = subprocess.run([self.script, *names], env=environment, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def test_version_is_built_in_its_own_folder(self):
        self.assertEqual(self.build("node@6.8", "node@6.8.1", "node").splitlines(), ["node@6.8: built", "node@6.8.1: built", "node: built"])
        for name, lock in [("node@6.8", "6.8"), ("node@6.8.1", "6.8.1"), ("node", "7.9")]:
            self.assertEqual((self.drivers / name / "built").read_text().strip(), lock)
        self.assertFalse((self.drivers / "node@6.8/node_modules").exists())
        # It exists: nothing is locked again.
        self.write("node@6.8/lock", "kept\n")
        self.build("node@6.8")
        self.assertEqual((self.drivers / "node@6.8/built").read_text(), "kept\n")

    def test_unavailable_version_is_one_line_and_leaves_nothing(self):
        before = sorted(self.drivers.iterdir())
        self.assertEqual(self.build("node@9.9", code=1), "node@9.9: failed (there is no version 9.9)\n")
        self.assertIn("drivers/ruby has no other versions; these have: node", self.build("ruby@2", code=2))
        self.assertIn("is no version", self.build("node@../x", code=2))
        self.assertEqual(sorted(self.drivers.iterdir()), before)


if __name__ == "__main__":
    unittest.main()
