#!/usr/bin/env bash
# A virtual environment in .cache/python with the programs of scripts/python-requirements.txt (Ansible for the fleet, and
# validators of manifests) and, on x86-64, of scripts/cargo-tools.txt. Quick if it is complete. Prints the folder of the
# programs.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
requirements=scripts/python-requirements.txt
environment=$PWD/.cache/python
stamp=$environment/complete
cargo_tools=scripts/cargo-tools.txt
[ "$(uname -m)" = x86_64 ] || cargo_tools=/dev/null
wanted=$(cat "$requirements" "$cargo_tools" | sha256sum)

command -v python3 >/dev/null || {
    echo "python-tools: error: please install python3 and python3-venv" >&2
    exit 3
}
mkdir -p .cache
# Two installations at the same time would mix their files.
exec 9>.cache/python.lock
flock 9
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    echo "python-tools: installing $requirements into .cache/python" >&2
    rm -rf "$environment"
    python3 -m venv "$environment" || {
        echo "python-tools: error: please install python3-venv" >&2
        exit 3
    }
    "$environment/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes \
        --requirement "$requirements" >&2
    [ "$cargo_tools" = /dev/null ] ||
        "$environment/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes \
            --requirement "$cargo_tools" >&2
    "$environment/bin/pip" check --disable-pip-version-check >&2
    echo "$wanted" >"$stamp"
fi
echo "$environment/bin"
