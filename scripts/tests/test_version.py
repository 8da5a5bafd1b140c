"""Commit that the build script of `dyno` records, for each kind of sources.

    python3 -m unittest discover --quiet scripts/tests
"""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
COMMITTED = "2026-03-04T05:06:07Z"


class VersionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="dyno-version-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.script = cls.folder / "build-script"
        subprocess.run(["rustc", "--edition", "2024", "-o", cls.script, PROJECT / "crates/cli/build.rs"], check=True)
        cls.repository = cls.folder / "repository"
        own = cls.repository / "crates/cli"
        own.mkdir(parents=True)
        for name in ["build.rs", "commit.txt"]:
            (own / name).write_bytes((PROJECT / "crates/cli" / name).read_bytes())
        (cls.repository / ".gitattributes").write_bytes((PROJECT / ".gitattributes").read_bytes())
        cls.git("init", "--quiet")
        cls.git("add", ".")
        cls.git("commit", "--quiet", "--message", "all")
        cls.commit = cls.git("log", "-1", "--format=%h").strip()

    @classmethod
    def git(cls, *arguments):
        person = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a"}
        dates = {"GIT_AUTHOR_DATE": COMMITTED, "GIT_COMMITTER_DATE": COMMITTED}
        command = ["git", "-C", cls.repository, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **person, **dates}).stdout

    def build(self, sources, profile="release"):
        """The version, and the files that trigger the script again."""
        variables = {"PROFILE": profile, "CARGO_MANIFEST_DIR": str(sources / "crates/cli"), "CARGO_PKG_VERSION": "7.8.9"}
        # As if the temporary folder were outside of any repository.
        variables["GIT_CEILING_DIRECTORIES"] = str(self.folder)
        said = subprocess.run([self.script], check=True, capture_output=True, text=True, env={**os.environ, **variables}).stdout
        version = re.search("^cargo:rustc-env=DYNO_VERSION=(.*)$", said, re.MULTILINE)[1]
        return version, re.findall("^cargo:rerun-if-changed=(/.*)$", said, re.MULTILINE)

    def assert_commit(self, version):
        self.assertEqual(version, f"7.8.9 ({self.commit} 2026-03-04)")

    def test_a_repository_names_its_commit_and_is_watched(self):
        version, watched = self.build(self.repository)
        self.assert_commit(version)
        [log] = watched
        before = Path(log).read_bytes()
        self.git("commit", "--quiet", "--allow-empty", "--message", "another")
        self.assertNotEqual(Path(log).read_bytes(), before)
        self.git("reset", "--quiet", "--hard", "HEAD~1")

    def test_a_worktree_names_its_commit_and_watches_its_own_log(self):
        worktree = self.folder / "worktree"
        self.git("worktree", "add", "--quiet", "--detach", str(worktree))
        version, watched = self.build(worktree)
        self.assert_commit(version)
        [log] = watched
        self.assertIn("/worktrees/worktree/logs/HEAD", log)

    def test_an_archive_names_its_commit_without_git(self):
        unpacked = self.folder / "unpacked"
        unpacked.mkdir()
        archive = self.folder / "archive.tar"
        self.git("archive", "--output", str(archive), "HEAD")
        subprocess.run(["tar", "-C", unpacked, "-xf", archive], check=True)
        version, watched = self.build(unpacked)
        self.assert_commit(version)
        self.assertEqual(watched, [])

    def test_sources_without_a_repository_only_have_a_version(self):
        bare = self.folder / "bare"
        (bare / "crates/cli").mkdir(parents=True)
        self.assertEqual(self.build(bare), ("7.8.9", []))

    def test_a_foreign_repository_is_ignored(self):
        inside = self.repository / "vendored"
        (inside / "crates/cli").mkdir(parents=True)
        (inside / "crates/cli/build.rs").touch()
        self.assertEqual(self.build(inside), ("7.8.9", []))

    def test_builds_for_tests_do_not_depend_on_commits(self):
        self.assertEqual(self.build(self.repository, "debug"), ("7.8.9", []))


if __name__ == "__main__":
    unittest.main()
