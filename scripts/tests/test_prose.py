"""What scripts/prose finds in files that are made up, and what it leaves alone.

    python3 -m unittest discover --quiet scripts/tests
"""

import importlib.machinery
import importlib.util
import sys
import tempfile
import unittest
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "scripts"))
loader = importlib.machinery.SourceFileLoader("prose", str(PROJECT / "scripts/prose"))
prose = importlib.util.module_from_spec(importlib.util.spec_from_loader("prose", loader))
loader.exec_module(prose)


class ProseTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dyno-prose-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def lines(self, name, text):
        _, places, wrong = prose.read(self.file(name, text))
        return [place.line for place in places], [place.text for place in wrong]

    def test_comments_and_long_strings_of_rust_are_read(self):
        text = '//! What is read.\nlet told = 1;\nlet s = "a run has not the figure of the goal";\nlet s = "has not";\n'
        self.assertEqual(self.lines("a.rs", text)[0], [1, 3])

    def test_code_in_markdown_is_left_alone(self):
        text = "it `tells` you\n```\nin place of\n```\nin place of\n"
        self.assertEqual(self.lines("a.md", text)[0], [5])

    def test_usual_english_is_no_place(self):
        text = "It has not been read. It is no longer there. The value of the key has not changed. What follows is short.\n"
        self.assertEqual(self.lines("a.md", text)[0], [])

    def test_long_names_of_tests_are_wrong_in_any_number(self):
        name = "x" * 61
        text = f"#[test]\nfn {name}() {{}}\nfn {name}y() {{}}\n#[test]\n#[ignore]\nfn {name[1:]}() {{}}\n"
        self.assertEqual(self.lines("a.rs", text)[1], [name])

    def test_public_items_need_a_doc_comment_and_fields_do_not(self):
        text = (
            "/// It is.\n#[derive(\n    Clone,\n)]\npub struct Documented {\n    pub field: u8,\n}\n"
            "#[derive(Clone)]\npub struct Bare;\npub(crate) fn inner() {}\n#[cfg(test)]\nmod tests {\n    pub fn test() {}\n}\n"
        )
        source = prose.rust_sources.Source(self.file("a.rs", text))
        self.assertEqual([place.text for place in prose.undocumented(source)], ["Bare"])


if __name__ == "__main__":
    unittest.main()
