""".github/workflows: names that the files use exist, and the shell in them is valid. GitHub itself is not available here.

    python3 -m unittest discover --quiet scripts/tests
"""

import json
import re
import subprocess
import unittest
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
# Ansible's Python has a YAML parser.
PYTHON = PROJECT / ".cache/python/bin/python"
TO_JSON = "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)"


def workflows():
    for file in sorted((PROJECT / ".github/workflows").glob("*.yml")):
        command = [PYTHON, "-c", TO_JSON]
        result = subprocess.run(command, input=file.read_text(), capture_output=True, text=True, check=True)
        yield file, json.loads(result.stdout)


def scripts_of(workflow):
    for job in workflow["jobs"].values():
        yield from (step["run"] for step in job.get("steps", []) if "run" in step)


class WorkflowsTest(unittest.TestCase):
    def test_each_change_is_tested_and_each_tag_released(self):
        found = {file.name: workflow for file, workflow in workflows()}
        # YAML 1.1 reads the key `on` as true.
        self.assertIn("pull_request", found["test.yml"]["true"])
        self.assertIn(".ci/run", "".join(scripts_of(found["test.yml"])))
        self.assertEqual(found["release.yml"]["true"]["push"], {"tags": ["v*"]})
        jobs = found["release.yml"]["jobs"]
        for job in ["release", "pypi", "image"]:
            self.assertIn("test", jobs[job]["needs"])

    def test_scripts_are_valid_shell_and_call_what_exists(self):
        targets = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
        for file, workflow in workflows():
            for script in scripts_of(workflow):
                # GitHub replaces its expressions before the shell reads them.
                result = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True)
                self.assertEqual(result.stderr, "", f"{file.name}: {script}")
                for path in re.findall(r"(?<![\w/.-])((?:\.ci|scripts|deploy)/[\w./-]+)", script):
                    self.assertTrue((PROJECT / path).exists(), f"{file.name}: {path}")
                for target in re.findall(r"\bmake ([a-z-]+)", script):
                    self.assertIn(target, targets, file.name)

    def test_jobs_need_jobs_of_their_workflow(self):
        for file, workflow in workflows():
            for name, job in workflow["jobs"].items():
                needs = job.get("needs", [])
                for needed in [needs] if isinstance(needs, str) else needs:
                    self.assertIn(needed, workflow["jobs"], f"{file.name}: {name}")
                if "uses" in job:
                    self.assertTrue((PROJECT / job["uses"]).is_file(), f"{file.name}: {name}")


if __name__ == "__main__":
    unittest.main()
