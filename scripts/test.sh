#!/usr/bin/env bash
# Runs the tests of the project with real servers, and ends with the skipped tests and the time of each step.
#
#   scripts/test.sh         what `.ci/run` runs
#   scripts/test.sh full    also the conformance cases of the slower drivers, and the guides
#
# MONGOD=PATH, MONGOS=PATH and PERCONA=PATH name servers to use instead of the one that `dyno server install` fetches.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
extent=${1:-usual}
case $extent in usual | full) ;; *)
    echo "usage: scripts/test.sh [full]" >&2
    exit 2
    ;;
esac
. scripts/steps.sh

# Their cases take as long as all other cases, and find the same faults as those of a closely related driver.
SLOW_DRIVERS=(cpp java-reactive node-cluster python-asyncio ruby)

dyno=target/debug/dyno
export DYNO_REQUIRE_SERVERS=1
DYNO_REQUIRE_TRACE=$(scripts/can-trace.sh)
export DYNO_REQUIRE_TRACE

find_servers() {
    local program=${MONGOD:-} installed
    if [ -z "$program" ]; then
        program=$("$dyno" server install) || {
            echo "test: error: the tests need a \`mongod\`; name one: make test MONGOD=PATH" >&2
            return 3
        }
    fi
    # `dyno` finds the libraries that it installed with a server; other programs that start the server need the path.
    program=$(realpath -- "$program") || return
    installed=$(dirname "$(dirname "$program")")
    if [ -f "$installed/origin.json" ] && [ -d "$installed/lib" ]; then
        printf '#!/bin/sh\nLD_LIBRARY_PATH=%q exec %q "$@"\n' "$installed/lib" "$program" >target/mongod &&
            chmod +x target/mongod && program=$PWD/target/mongod || return
    fi
    export DYNO_TEST_MONGOD=$program
    [ -z "${MONGOS:-}" ] || export DYNO_TEST_MONGOS=$(realpath -- "$MONGOS")
    [ -z "${PERCONA:-}" ] || export DYNO_TEST_PERCONA=$(realpath -- "$PERCONA")
    "$DYNO_TEST_MONGOD" --version | head -n 1
}

smoke() { scripts/smoke.sh "$dyno" target/smoke "$DYNO_TEST_MONGOD"; }

run_tests() {
    if scripts/cargo nextest --version >/dev/null 2>&1; then
        scripts/cargo nextest run --locked --workspace
    else
        scripts/cargo test --locked --workspace --no-fail-fast
    fi
}

check_drivers() {
    local drivers=() run name
    for run in drivers/*/run; do
        name=$(basename "$(dirname "$run")")
        [ "$extent" = usual ] && [[ " ${SLOW_DRIVERS[*]} " == *" $name "* ]] || drivers+=(--driver "$name")
    done
    (cd drivers && python3 -m unittest --quiet conformance.test_checks && python3 -m conformance "${drivers[@]}")
}

check_pages() {
    (
        cd web &&
            npm run --silent check &&
            npm test --silent -- ../target/smoke/report.html ../target/smoke/screenshots &&
            npm run --silent test-trace -- ../target/tmp/report ../target/smoke/screenshots
    )
}

# One way to trace system calls needs it, and many machines mount it only on request.
mount_tracefs() {
    [ "$DYNO_REQUIRE_TRACE" = 0 ] || mountpoint --quiet /sys/kernel/tracing ||
        mount -t tracefs tracefs /sys/kernel/tracing
}

mkdir -p target
mount_tracefs
# `.ci/run` already has a log with its own skips.
if [ -z "${DYNO_SKIP_LOG:-}" ]; then
    export DYNO_SKIP_LOG=$PWD/target/skips.txt
    : >"$DYNO_SKIP_LOG"
fi
export DYNO_DRIVERS_FOR=tests
step "setup" scripts/setup.sh test
step "tests of scripts" python3 -m unittest discover --quiet scripts/tests
step "build of bins and tests" scripts/cargo build --locked --workspace --bins --tests --examples
step "servers" find_servers
step "smoke run" smoke
step "build of drivers" scripts/drivers.sh
step "tests of the workspace" run_tests
step "examples in the documentation" scripts/cargo test --locked --doc --workspace
step "conformance of drivers" check_drivers
step "pages in a browser" check_pages
# Runs every command of the guides in ten minutes.
if [ "$extent" = full ]; then
    DYNO=$dyno step "guides" scripts/test-guides.sh
fi
step "skips" scripts/skips.sh "$DYNO_SKIP_LOG"
