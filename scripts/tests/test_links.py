"""Links between the project's documents lead to existing files and headings.

    python3 -m unittest discover --quiet scripts/tests
"""

import re
import subprocess
import unittest
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def text_of(document):
    """The text without code blocks, which have neither links nor headings."""
    return re.sub(r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(document):
    """Anchors that GitHub derives from headings, and anchors that the document defines."""
    text = text_of(document)
    found = set(re.findall(r'<a id="([^"]+)"', text))
    for heading in re.findall(r"^#+ +(.+)$", text, flags=re.MULTILINE):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        number = 0
        while (numbered := f"{anchor}-{number}" if number else anchor) in found:
            number += 1
        found.add(numbered)
    return found


def broken(document, target):
    """The reason why a link is broken, or None."""
    path, _, anchor = target.partition("#")
    file = (document.parent / path).resolve() if path else document
    if not file.exists():
        return f"{path} is not there"
    if anchor and file.suffix == ".md" and anchor not in anchors(file):
        return f"{path or 'it'} has no heading `{anchor}`"
    return None


class LinksTest(unittest.TestCase):
    def test_all_links_are_valid(self):
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=PROJECT, capture_output=True, text=True, check=True
        )
        count = 0
        for name in listed.stdout.splitlines():
            document = PROJECT / name
            if not document.exists():
                continue
            for target in re.findall(r"\]\(([^)\s]+)\)", text_of(document)):
                if re.match(r"[a-z]+:", target):
                    continue
                count += 1
                with self.subTest(document=name, link=target):
                    self.assertIsNone(broken(document, target))
        self.assertGreater(count, 100)

    def test_a_wrong_link_is_found(self):
        readme = PROJECT / "README.md"
        self.assertIsNotNone(broken(readme, "docs/no-such-file.md"))
        self.assertIsNotNone(broken(readme, "docs/fleet.md#no-such-heading"))
        self.assertIsNone(broken(readme, "docs/fleet.md#ansible"))


if __name__ == "__main__":
    unittest.main()
