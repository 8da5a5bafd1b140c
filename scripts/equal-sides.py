#!/usr/bin/env python3
"""Counts how often `dyno ab` and `dyno compare` say that two equal sides differ.

    scripts/equal-sides.py URI [COUNT]    default: 20 comparisons of each kind

Each side is the same plan on the same server. DYNO names the program (default: dyno), DURATION the length of a run (default: 2s).
A right answer is "cannot tell" or "no difference"; the deciding figure may differ in one of twenty by chance, and so may the
others together.
"""

import collections
import os
import subprocess
import sys
import tempfile

DYNO = os.environ.get("DYNO", "dyno")
DURATION = os.environ.get("DURATION", "2s")


def dyno(*arguments):
    """The standard output of a command that may end with any answer."""
    done = subprocess.run([DYNO, *arguments], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 5, 6):
        sys.exit(f"dyno {' '.join(arguments)}: {done.returncode}\n{done.stderr}")
    return done.stdout


def answer(page):
    """The first paragraph of a page, what it says, and whether it names another figure."""
    text = " ".join(page.split("\n\n")[0].split())
    first = text.split("Certain:")[0].lower()
    words = ("cannot tell", "no difference", "cannot be compared")
    said = next((word for word in words if word in first), "differs")
    return text, said, "Certain:" in text


def main():
    uri = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    said = collections.defaultdict(collections.Counter)

    def note(kind, page):
        text, word, others = answer(page)
        said[kind][word] += 1
        said[kind]["another figure differs"] += others
        print(f"{kind}: {text}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        plan = ["--uri", uri, "--records", "1k", "--warmup", "500ms", "--duration", DURATION]
        for number in range(count):
            pairs = ["--min-pairs", "3", "--max-pairs", "5", "--full", "--out", f"{folder}/ab-{number}"]
            note("ab", dyno("ab", "a", *plan, *pairs))
        for number in range(count + 1):
            dyno("run", "a", *plan, "--out", f"{folder}/single/{number}")
            dyno("run", "a", *plan, "--repeat", "3", "--out", f"{folder}/repeated-{number}")
        for number in range(count):
            other = number + 1
            note("compare, runs with others beside them", dyno("compare", f"{folder}/single/{number}", f"{folder}/single/{other}"))
            repeated = [f"{folder}/repeated-{side}" for side in (number, other)]
            note("compare, three runs of each", dyno("compare", *repeated))
    for kind, counts in said.items():
        print(f"{kind}: {dict(counts)}")


main()
