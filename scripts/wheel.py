#!/usr/bin/env python3
"""Packs the unpacked tarball of `scripts/dist.sh` as a Python wheel, so that pip, pipx and uv install `dyno`.

    scripts/wheel.py FOLDER VERSION MACHINE OUT

The program is static, so one wheel is for systems with glibc and with musl. The same input and SOURCE_DATE_EPOCH give the same file.
"""

import base64
import hashlib
import os
import sys
import time
import zipfile
from pathlib import Path

# `uvx mongodyno` and `pipx run mongodyno` start a program with the name of the package. Installers replace the first line.
STARTER = '''#!python
import os
import sys

dyno = os.path.join(os.path.dirname(os.path.realpath(__file__)), "dyno")
os.execv(dyno, [dyno, *sys.argv[1:]])
'''

# `dyno server install` fetches a server with the pip of the environment in which `dyno` is installed.
METADATA = """Metadata-Version: 2.1
Name: mongodyno
Version: {version}
Summary: Load engine and performance laboratory for MongoDB
License: MIT OR Apache-2.0
Classifier: Environment :: Console
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: System :: Benchmark
Requires-Python: >=3.8
Requires-Dist: pip
Description-Content-Type: text/markdown

"""


def wheel(folder, version, machine, out):
    tags = [f"manylinux_2_17_{machine}", f"musllinux_1_1_{machine}"]
    name = f"mongodyno-{version}"
    info = f"{name}.dist-info"
    metadata = METADATA.format(version=version) + (folder / "README.md").read_text()
    about = "Wheel-Version: 1.0\nGenerator: scripts/wheel.py\nRoot-Is-Purelib: false\n"
    files = [
        (f"{name}.data/scripts/dyno", (folder / "dyno").read_bytes(), 0o755),
        (f"{name}.data/scripts/mongodyno", STARTER.encode(), 0o755),
        (f"{info}/METADATA", metadata.encode(), 0o644),
        (f"{info}/WHEEL", (about + "".join(f"Tag: py3-none-{tag}\n" for tag in tags)).encode(), 0o644),
    ]
    for licence in ["LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.md"]:
        files.append((f"{info}/licenses/{licence}", (folder / licence).read_bytes(), 0o644))
    record = "".join(f"{path},sha256={digest(content)},{len(content)}\n" for path, content, _ in files)
    files.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), 0o644))
    # Zip files begin in 1980.
    date = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800))[:6]
    with zipfile.ZipFile(out / f"{name}-py3-none-{'.'.join(tags)}.whl", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for path, content, mode in files:
            entry = zipfile.ZipInfo(path, date)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(entry, content)


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit("usage: scripts/wheel.py FOLDER VERSION MACHINE OUT")
    wheel(Path(sys.argv[1]), sys.argv[2], sys.argv[3], Path(sys.argv[4]))
