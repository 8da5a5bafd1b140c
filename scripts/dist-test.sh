#!/usr/bin/env bash
# Installs the output of `scripts/dist.sh` into empty roots without a shell or a C library, and the wheel into an environment of
# Python. There `dyno` measures workload C against a server outside, by address and by name.
#
#   scripts/dist-test.sh
#
# The server is the `mongod` that DYNO_TEST_MONGOD names, otherwise the responder of `dyno`. Without root, the roots are made in a
# user namespace and the tracer is not tested.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
dist=$PWD/target/dist
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
name=mongodyno-$version-$(uname -m)-linux

fail() {
    echo "dist-test: error: $*" >&2
    exit 1
}

[ -f "$dist/$name.tar.gz" ] || {
    echo "dist-test: error: $dist/$name.tar.gz is missing; make dist builds it" >&2
    exit 3
}
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(unshare --map-root-user)
work=$(mktemp -d "${TMPDIR:-/tmp}/dyno-dist.XXXXXX")
server=''
finish() {
    [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

unpack() {
    (cd "$dist" && sha256sum --quiet --check SHA256SUMS)
    mkdir -p "$work"/{tarball,debian,files,debug}
    tar -C "$work/files" -xzf "$dist/$name.tar.gz"
    tar -C "$work/debug" -xzf "$dist/$name-debug.tar.gz"
    install -D "$work/files/$name/dyno" "$work/tarball/usr/bin/dyno"
    # A package database without other packages.
    mkdir -p "$work"/debian/var/lib/dpkg/{info,updates}
    touch "$work/debian/var/lib/dpkg/status"
    "${as_root[@]}" dpkg --root="$work/debian" --force-script-chrootless --install "$dist"/mongodyno_"$version"_*.deb >/dev/null
    python3 -m venv "$work/wheel" || fail "python3 cannot make an environment; the Debian package python3-venv has what it needs"
    "$work/wheel/bin/pip" install --quiet --disable-pip-version-check --no-index "$dist/mongodyno-$version"-py3-*.whl
}

check_contents() {
    local dyno=$work/files/$name/dyno file said
    for file in README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE THIRD-PARTY.md man/man1/dyno.1 man/man1/dyno-run.1 \
        completions/dyno.bash completions/_dyno completions/dyno.fish; do
        [ -s "$work/files/$name/$file" ] || fail "the tarball does not have $file"
    done
    for file in man/man1/dyno-run.1.gz doc/mongodyno/copyright doc/mongodyno/THIRD-PARTY.md.gz \
        bash-completion/completions/dyno zsh/vendor-completions/_dyno fish/vendor_completions.d/dyno.fish; do
        [ -s "$work/debian/usr/share/$file" ] || fail "the package does not have /usr/share/$file"
    done
    cmp -s "$dyno" "$work/debian/usr/bin/dyno" || fail "tarball and package hold different programs"
    cmp -s "$dyno" "$work/wheel/bin/dyno" || fail "tarball and wheel hold different programs"
    [ "$(stat --format=%s "$dyno")" -le 40000000 ] || fail "the program is larger than 40 MB"
    said=$(readelf --program-headers "$dyno")
    [[ $said != *INTERP* ]] || fail "the program needs a loader"
    said=$(readelf --sections "$work/debug/$name-debug/dyno.debug")
    [[ $said == *.debug_line* ]] || fail "the symbols have no lines"
    said=$("$dyno" --version)
    [[ $said =~ ^dyno\ $version\ \([0-9a-f]{7,40}\ [0-9]{4}-[0-9]{2}-[0-9]{2}\)$ ]] || fail "unexpected output of --version: $said"
    echo "dist-test: $said, $(stat --format=%s "$dyno") bytes"
}

# Sets `server` to the process and `port` to its port.
start_server() {
    local line
    if [ -n "${DYNO_TEST_MONGOD:-}" ]; then
        port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
        mkdir "$work/data"
        # The libraries of a server installed by `dyno` are next to it.
        LD_LIBRARY_PATH=$(dirname "$(dirname "$DYNO_TEST_MONGOD")")/lib "$DYNO_TEST_MONGOD" --dbpath "$work/data" --port "$port" --bind_ip 127.0.0.1 --wiredTigerCacheSizeGB 0.25 >"$work/server.log" &
        server=$!
        for _ in {1..600}; do
            if (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then return; fi
            kill -0 "$server" 2>/dev/null || break
            sleep 0.1
        done
        fail "the server does not listen: $(tail -n 1 "$work/server.log")"
    fi
    mkfifo "$work/input"
    touch "$work/address"
    # It ends when its input closes, which this script keeps open.
    "$work/files/$name/dyno" responder --documents 1000 <"$work/input" >>"$work/address" &
    server=$!
    exec 8>"$work/input"
    for _ in {1..600}; do
        read -r line <"$work/address" && break
        sleep 0.1
    done
    port=${line##*:}
    [ "$port" -gt 0 ] || fail "the responder does not listen"
}

# measure ROOT HOST RUN: workload C from inside of ROOT.
measure() {
    measure_by "$1" "$2" "/$3" "${as_root[@]}" chroot "$work/$1" /usr/bin/dyno
}

# measure_by ROOT HOST OUT COMMAND...
measure_by() {
    "${@:4}" --quiet run c --uri "mongodb://$2:$port/dist_$1" --records 1000 -p insertorder=ordered --warmup 500ms \
        --duration 2s --out "$3" --format json >"$work/result.json" || fail "workload C failed in the root of the $1"
    python3 - "$work/result.json" <<'CHECK' || fail "workload C was not measured in the root of the $1"
import json, sys
[measure] = [phase for phase in json.load(open(sys.argv[1]))["phases"] if phase["name"] == "measure"]
operations = measure["operations"].values()
assert sum(operation["count"] for operation in operations) > 0
assert all(operation["errors"] == 0 for operation in operations)
print(f"dist-test: {round(measure['achieved_rate_per_s'])}/s", end=" ")
CHECK
    echo "in the root of the $1, to $2"
}

# By the name that `uvx` and `pipx run` call.
try_wheel() {
    local left
    measure_by wheel 127.0.0.1 "$work/by-wheel" "$work/wheel/bin/mongodyno"
    "$work/wheel/bin/pip" --disable-pip-version-check uninstall --quiet --yes mongodyno
    left=$(find "$work/wheel" -iname '*dyno*')
    [ -z "$left" ] || fail "the wheel leaves files behind: $left"
}

try_tracer() {
    local dyno=$work/debian/usr/bin/dyno
    [ "$(scripts/can-trace.sh)" = 1 ] || {
        echo "dist-test: skipped: the tracer needs root and a kernel that describes its types"
        return
    }
    "$dyno" --quiet trace --out "$work/trace" -- cat README.md >"$work/trace.txt" || fail "the tracer does not start"
    grep -q README.md "$work/trace.txt" || fail "the tracer did not see the file that was read"
    echo "dist-test: the tracer sees what a program reads"
}

unpack
check_contents
start_server
for root in tarball debian; do
    measure "$root" 127.0.0.1 by-address
    mkdir -p "$work/$root/etc"
    printf '127.0.0.1 localhost database.example\n' >"$work/$root/etc/hosts"
    measure "$root" localhost by-localhost
    measure "$root" database.example by-name
done
try_wheel
try_tracer
