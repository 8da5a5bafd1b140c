"""Separates code from tests in the Rust sources of this workspace, and maps modules to files. `scripts/count-lines` and
`scripts/circles` use it.

It is not a parser: it blanks comments and strings, and counts braces. This is exact for sources formatted by rustfmt, except
for code that macros generate.
"""

import re
from bisect import bisect_right
from pathlib import Path

# A comment, a string or a character; `'a` in `&'a str` does not match.
_OPAQUE = re.compile(
    r"""(?P<line>//[^\n]*)
    |(?P<block>/\*)
    |(?<![A-Za-z0-9_])[bc]?r(?P<hashes>\#*)"
    |(?P<string>"(?:\\.|[^"\\])*")
    |(?P<char>'(?:\\(?:x[0-9a-fA-F]{2}|u\{[0-9a-fA-F_]+\}|.)|[^\\'\n])')""",
    re.VERBOSE | re.DOTALL,
)
_BLOCK_EDGE = re.compile(r"/\*|\*/")
_TEST_ONLY = re.compile(r"#\[cfg\((?:test|all\([^\]]*\btest\b[^\]]*\))\)\]")
_ATTRIBUTE = re.compile(r"\s*#\[")
_MODULE = re.compile(r"\bmod\s+(?:r#)?(\w+)\s*([;{])")
_PATH = re.compile(r"#\[path\s*=\s*\"")
# These end with a semicolon, even if they contain braces.
_STATEMENT = re.compile(r"(?:pub(?:\([^)]*\))?\s+)?(?:use|static|const(?!\s+(?:unsafe\s+)?fn))\b")

_CLOSING = {"(": ")", "[": "]", "{": "}"}


def _blank(text):
    return "".join("\n" if character == "\n" else " " for character in text)


def _masked(text):
    """The text without comments, and the text without comments and string contents; both have the length of the text."""
    without_comments, structure, at = [], [], 0
    while found := _OPAQUE.search(text, at):
        begin, end = found.span()
        for kept in (without_comments, structure):
            kept.append(text[at:begin])
        if found["block"]:
            depth = 1
            while depth and (edge := _BLOCK_EDGE.search(text, end)):
                depth += 1 if edge[0] == "/*" else -1
                end = edge.end()
        elif found["hashes"] is not None:
            close = text.find('"' + found["hashes"], end)
            end = len(text) if close < 0 else close + 1 + len(found["hashes"])
        opaque = text[begin:end]
        comment = found["line"] is not None or found["block"] is not None
        without_comments.append(_blank(opaque) if comment else opaque)
        structure.append(_blank(opaque) if comment else '"' + _blank(opaque[1:-1]) + '"')
        at = end
    for kept in (without_comments, structure):
        kept.append(text[at:])
    return "".join(without_comments), "".join(structure)


def end_of_block(structure, begin):
    """The offset after the bracket that closes the bracket at `begin`."""
    depth = 0
    for at in range(begin, len(structure)):
        if structure[at] in "([{":
            depth += 1
        elif structure[at] in ")]}":
            depth -= 1
            if depth == 0:
                return at + 1
    return len(structure)


def end_of_item(structure, begin):
    """The offset after the item, statement or function that begins at `begin`."""
    statement = _STATEMENT.match(structure, begin)
    at = begin
    while at < len(structure):
        character = structure[at]
        if character == ";":
            return at + 1
        if character in _CLOSING:
            at = end_of_block(structure, at)
            if character == "{" and not statement:
                return at
        else:
            at += 1
    return at


class Source:
    """One file. `code` is the text without comments and tests, `structure` the same without string contents; offsets in them
    are offsets in the file."""

    def __init__(self, path):
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.code, self.structure = _masked(self.text)
        self._begins = [0] + [found.end() for found in re.finditer("\n", self.text)]
        for begin, end in self._tests():
            blank = _blank(self.text[begin:end])
            self.code = self.code[:begin] + blank + self.code[end:]
            self.structure = self.structure[:begin] + blank + self.structure[end:]

    def _tests(self):
        end = 0
        for found in _TEST_ONLY.finditer(self.structure):
            if found.start() < end:
                continue
            end = found.end()
            while attribute := _ATTRIBUTE.match(self.structure, end):
                end = end_of_block(self.structure, attribute.end() - 1)
            end += len(self.structure[end:]) - len(self.structure[end:].lstrip())
            end = end_of_item(self.structure, end)
            yield found.start(), end

    def line(self, at):
        """The line number of an offset, from 1."""
        return bisect_right(self._begins, at)

    def lines_of_code(self, begin=0, end=None):
        """Lines other than blank lines, comments and tests."""
        return sum(1 for line in self.code[begin:end].splitlines() if line.strip())

    def functions(self):
        """Name, line and lines of code of each function that has a body."""
        for found in re.finditer(r"\bfn\s+(\w+)", self.structure):
            end = end_of_item(self.structure, found.start())
            if self.structure[end - 1] == "}":
                yield found[1], self.line(found.start()), self.lines_of_code(found.start(), end)


class Module:
    """A module: its path from the root of the crate, its file, and the part of the file that is its own."""

    def __init__(self, path, source, begin, end):
        self.path = path
        self.source = source
        self.begin = begin
        self.end = end
        # The ranges of modules inside of this module.
        self.inner = []

    def own(self):
        """The module's structure, with inner modules blanked; offsets are offsets in the file."""
        structure = self.source.structure
        own = _blank(structure[: self.begin]) + structure[self.begin : self.end]
        for begin, end in self.inner:
            own = own[:begin] + _blank(own[begin:end]) + own[end:]
        return own


def crates(project):
    """The crates of the workspace, including drivers: name of the folder, and its path."""
    found = {}
    for manifest in sorted(Path(project).glob("crates/*/Cargo.toml")) + sorted(Path(project).glob("drivers/*/Cargo.toml")):
        folder = manifest.parent
        found[folder.relative_to(project).as_posix().removeprefix("crates/")] = folder
    return found


def roots(crate):
    """The root files of rustc, without tests, benchmarks and examples."""
    source = crate / "src"
    return [root for root in [source / "lib.rs", source / "main.rs", *sorted(source.glob("bin/*.rs"))] if root.is_file()]


def modules(root):
    """All modules outside tests that belong to a root, by their path; the root's own is ()."""
    found = {}
    _add_file(found, (), root, root.parent)
    return found


def _add_file(found, path, file, folder):
    source = Source(file)
    _add_module(found, Module(path, source, 0, len(source.structure)), folder, file.parent)


def _add_module(found, module, folder, folder_of_paths):
    found[module.path] = module
    source, end = module.source, 0
    for declared in _MODULE.finditer(source.structure, module.begin, module.end):
        if declared.start() < end:
            continue
        name = declared[1]
        path = (*module.path, name)
        if declared[2] == "{":
            end = end_of_block(source.structure, declared.end() - 1)
            module.inner.append((declared.start(), end))
            _add_module(found, Module(path, source, declared.end(), end - 1), folder / name, folder / name)
        elif file := _named_file(source, declared.start(), folder_of_paths):
            _add_file(found, path, file, file.parent)
        elif (file := folder / f"{name}.rs").is_file():
            _add_file(found, path, file, folder / name)
        elif (file := folder / name / "mod.rs").is_file():
            _add_file(found, path, file, file.parent)
        else:
            raise FileNotFoundError(f"{source.path}:{source.line(declared.start())}: no file for `mod {name};`")


def _named_file(source, at, folder):
    """The path in `#[path = "…"]` in front of a declaration, if any."""
    before = source.code[:at]
    attributes = before[max(before.rfind(";"), before.rfind("}")) + 1 :]
    named = list(_PATH.finditer(attributes))
    return folder / attributes[named[-1].end() :].split('"')[0] if named else None
