"""Results of scripts/circles and scripts/count-lines on made-up crates.

    python3 -m unittest discover --quiet scripts/tests
"""

import subprocess
import tempfile
import unittest
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


class MadeUpCrate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dyno-sources-")
        self.addCleanup(folder.cleanup)
        self.checkout = Path(folder.name)
        self.write({"Cargo.toml": "[package]"})

    def write(self, files):
        for name, text in files.items():
            file = self.checkout / "crates/made" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    def run_script(self, name, *options):
        command = [PROJECT / "scripts" / name, *options, self.checkout]
        return subprocess.run(command, capture_output=True, text=True, check=False)


class CirclesTest(MadeUpCrate):
    def assert_circle(self, *files):
        done = self.run_script("circles")
        self.assertEqual((done.returncode, done.stderr), (1, ""), done.stdout)
        self.assertIn(f"made: {len(files)} files use each other in a circle; at most 3 may", done.stdout)
        named = [line.strip() for line in done.stdout.splitlines() if line.startswith("  src/")]
        self.assertEqual(named, sorted(f"src/{file}.rs" for file in files))
        return done.stdout

    def assert_none_too_large(self, says):
        done = self.run_script("circles")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, f"circles: {says}\n", ""))

    def test_four_files_fail_and_the_circle_is_shown(self):
        self.write({
            "src/lib.rs": "mod a;\nmod b;\nmod c;\nmod d;\nmod apart;\n",
            "src/a.rs": "\nuse crate::b::B;\npub struct A(B);\n",
            "src/b.rs": "use super::c;\npub struct B(c::C);\n",
            "src/c.rs": "pub struct C;\nfn f() {\n    crate::d::g(1);\n}\n",
            "src/d.rs": "use crate::{\n    apart,\n    a::A as First,\n};\npub fn g(_: u8) -> First { apart::h() }\n",
            "src/apart.rs": "pub fn h() {}\n",
        })
        said = self.assert_circle("a", "b", "c", "d")
        self.assertIn("src/a.rs:2 uses src/b.rs (crate::b::B)", said)
        self.assertIn("src/b.rs:1 uses src/c.rs (super::c)", said)
        self.assertIn("src/c.rs:3 uses src/d.rs (crate::d::g)", said)
        self.assertIn("src/d.rs:1 uses src/a.rs (crate::a::A)", said)

    def test_three_files_pass(self):
        self.write({
            "src/lib.rs": "mod a;\nmod b;\nmod c;\n",
            "src/a.rs": "use crate::b::B;\n",
            "src/b.rs": "use crate::c::C;\n",
            "src/c.rs": "use crate::a::A;\n",
        })
        self.assert_none_too_large("the largest has 3 files")

    def test_a_list_of_children_does_not_use_them(self):
        self.write({
            "src/main.rs": "mod a;\nmod b;\nmod c;\nconst N: u8 = 1;\n",
            "src/a.rs": "use crate::N;\n",
            "src/b.rs": "use crate::N;\n",
            "src/c.rs": "use crate::N;\n",
        })
        self.assert_none_too_large("none")

    def test_a_parent_that_calls_its_children_uses_them(self):
        self.write({
            "src/lib.rs": "mod parent;\n",
            "src/parent/mod.rs": "mod a;\nmod b;\nmod c;\nconst N: u8 = 1;\nfn f() { a::f(); b::f(); self::c::f() }\n",
            "src/parent/a.rs": "use super::N;\n",
            "src/parent/b.rs": "use super::N;\n",
            "src/parent/c.rs": "fn f() { super::N }\n",
        })
        self.assert_circle("parent/mod", "parent/a", "parent/b", "parent/c")

    def test_re_exported_names_lead_to_their_file(self):
        children = {
            "src/all/a.rs": "pub struct A(crate::B);\n",
            "src/all/b.rs": "use super::C;\npub struct B(C);\n",
            "src/all/c.rs": "use crate::all::D;\npub enum C { One(D) }\n",
        }
        self.write({
            "src/lib.rs": "mod all;\npub use all::{A, B};\n",
            "src/all.rs": "mod a;\nmod b;\nmod c;\nmod d;\npub use a::A;\npub(crate) use b::*;\npub use c::C;\npub use d::D;\n",
            "src/all/d.rs": "pub type D = u8;\n",
            **children,
        })
        self.assert_none_too_large("none")
        self.write({"src/all/d.rs": "pub type D = crate::A;\n"})
        self.assert_circle("all/a", "all/b", "all/c", "all/d")

    def test_modules_inside_of_a_file_and_named_files_are_found(self):
        self.write({
            "src/lib.rs": "mod outer {\n    pub mod a;\n    use super::b;\n}\n"
            "#[path = \"odd/name.rs\"]\nmod b;\nmod c;\nfn f() {}\n",
            "src/outer/a.rs": "use super::super::c;\n",
            "src/odd/name.rs": "use crate::outer::a;\n",
            "src/c.rs": "use crate::f;\n",
        })
        self.assert_circle("lib", "outer/a", "odd/name", "c")

    def test_tests_comments_strings_and_visibility_do_not_count(self):
        self.write({
            "src/lib.rs": "mod a;\nmod b;\nmod c;\nmod d;\n#[cfg(test)]\nmod testing;\n",
            "src/a.rs": "use crate::b::B;\n",
            "src/b.rs": "use crate::c::C;\n",
            "src/c.rs": "use crate::d::D;\n",
            "src/d.rs": "//! [`crate::a::A`]\n/* /* nested */ use crate::a::A; */\npub(in crate::a) struct D;\n"
            "const S: &str = \"\\\" crate::a::A\";\nconst R: &str = r#\"use \" crate::a::A;\"#;\nconst Q: char = '\"';\n"
            "#[cfg(test)]\n#[allow(unused)]\nfn only_here() -> [u8; 2] { crate::a::A }\n"
            "#[cfg(test)]\nuse crate::a::{A, B};\n"
            "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n",
            "src/testing.rs": "use crate::a::A;\n",
        })
        self.assert_none_too_large("none")


class CountLinesTest(MadeUpCrate):
    def test_lines_of_code_outside_tests_are_counted(self):
        self.write({
            "src/lib.rs": "//! About.\n\nmod a; // one\n\n/* two\n   lines */\nfn f() {\n    g(\"// in a string\");\n}\n"
            "#[cfg(test)]\nmod tests {\n    fn t() {}\n}\n#[cfg(test)]\nmod testing;\n",
            "src/a.rs": "const TEXT: &str = \"one\n\n// three\";\n",
            "src/testing.rs": "fn h() {}\n",
            "tests/it.rs": "fn h() {}\n",
            "benches/b.rs": "fn h() {}\n",
        })
        done = self.run_script("count-lines")
        rows = [line.split() for line in done.stdout.splitlines()]
        self.assertEqual(rows, [["crate", "files", "lines"], ["made", "2", "6"], ["all", "2", "6"]])

    def test_long_files_and_functions_are_listed(self):
        body = "".join(f"    g({line});\n    // why\n" for line in range(79))
        shorter = body.replace("g(0);", "")
        rest = "const N: u8 = 1;\n" * 440
        self.write({"src/lib.rs": f"fn long() {{\n{body}}}\nfn short() {{\n{shorter}}}\n{rest}"})
        said = self.run_script("count-lines", "--long").stdout
        self.assertTrue(said.endswith(
            "\nfiles over 600 lines\n   601  crates/made/src/lib.rs\n"
            "\nfunctions over 80 lines\n    81  crates/made/src/lib.rs:1 long\n"), said)


if __name__ == "__main__":
    unittest.main()
