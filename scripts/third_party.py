"""Writes the licences of all software that is linked into `dyno`, with their texts, as Markdown.

    cargo metadata --format-version 1 --filter-platform TARGET | python3 scripts/third_party.py >THIRD-PARTY.md

Reads the metadata from standard input and the texts from the sources of the crates. A part without a licence is an error.
"""

import json
import sys
from pathlib import Path

PROGRAM = "mongodyno"
TEXTS = ["LICEN[CS]E*", "COPYING*", "COPYRIGHT*", "NOTICE*", "UNLICENSE*"]

# Linked libraries that are not crates: name, version, licence, source location. The texts of libraries in libbpf-sys come with it.
OTHERS = [
    ("Rust standard library", "", "MIT OR Apache-2.0", "https://github.com/rust-lang/rust"),
    ("musl", "", "MIT", "https://musl.libc.org"),
    ("libbpf", "", "BSD-2-Clause (or LGPL-2.1-only)", "in the crate libbpf-sys"),
    ("libelf of elfutils", "", "LGPL-3.0-or-later OR GPL-2.0-or-later", "in the crate libbpf-sys"),
    ("zlib", "", "Zlib", "in the crate libbpf-sys"),
    ("zstd", "", "BSD-3-Clause", "in the crate zstd-sys"),
    ("QuickJS-ng", "", "MIT", "in the crate rquickjs-sys"),
    ("DejaVu Sans", "2.37", "Bitstream Vera, Arev", "https://dejavu-fonts.github.io"),
    ("uPlot", "", "MIT, Copyright (c) 2022 Leon Sorokin", "https://github.com/leeoniya/uPlot"),
]
# Folders with licence texts inside of crates.
INSIDE = {"libbpf-sys": ["libbpf", "elfutils", "zlib"], "zstd-sys": ["zstd"], "rquickjs-sys": ["quickjs"]}

HEAD = """# Third-party software in dyno

`dyno` itself is under MIT or Apache-2.0, at your choice. It contains the parts below, each under its own licence.

libelf is under the LGPL: you may replace it by another version. The sources of `dyno` and of libelf are public; `make dist`
compiles libelf from the crate libbpf-sys and links everything again.
"""


def linked(metadata):
    """The packages that are linked into the program, without the workspace's own."""
    packages = {package["id"]: package for package in metadata["packages"]}
    needs = {
        node["id"]: [need["pkg"] for need in node["deps"] if any(kind["kind"] is None for kind in need["dep_kinds"])]
        for node in metadata["resolve"]["nodes"]
    }
    [program] = [package["id"] for package in packages.values() if package["name"] == PROGRAM]
    seen, left = set(), [program]
    while left:
        package = left.pop()
        if package not in seen:
            seen.add(package)
            left += needs[package]
    found = [packages[package] for package in seen if packages[package]["source"] is not None]
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def texts_of(package):
    folder = Path(package["manifest_path"]).parent
    for place in [folder, *(folder / name for name in INSIDE.get(package["name"], []))]:
        for pattern in TEXTS:
            for file in sorted(place.glob(pattern)):
                if file.is_file():
                    yield file.read_text(errors="replace").strip()


def main():
    packages = linked(json.load(sys.stdin))
    nameless = [package["name"] for package in packages if not (package["license"] or package["license_file"])]
    if nameless or not packages:
        sys.exit(f"third_party: error: no licence is named by: {', '.join(nameless) or 'anything'}")
    print(HEAD)
    print("| Part | Version | Licence | Sources |\n|---|---|---|---|")
    for package in packages:
        licence = package["license"] or package["license_file"]
        print(f"| {package['name']} | {package['version']} | {licence} | {package['repository'] or ''} |")
    for row in OTHERS:
        print("| " + " | ".join(row) + " |")
    # Many crates have the same text.
    owners = {}
    for package in packages:
        for text in texts_of(package):
            owners.setdefault(" ".join(text.split()), (text, []))[1].append(package["name"])
    font = Path(__file__).parent.parent / "crates/pictures/fonts/LICENSE"
    owners[font.name] = (font.read_text().strip(), ["DejaVu Sans"])
    print("\n## Texts")
    for text, names in owners.values():
        print(f"\n### {', '.join(dict.fromkeys(names))}\n")
        print("\n".join("    " + line for line in text.splitlines()))


main()
