#!/usr/bin/env bash
# What `make run` does once `dyno` is built: takes care that there is a server to start, and measures.
#
#   scripts/run.sh WORKLOAD SERVER [OPTIONS of `dyno run`]
#
# SERVER is as for `--server`. Where it is `auto` and no server is there, MongoDB is installed on x86-64, and the embedded server is
# built on other processors.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ $# -lt 2 ]; then
    echo "usage: scripts/run.sh WORKLOAD SERVER [OPTIONS]" >&2
    exit 2
fi
dyno=target/release/dyno
workload=$1 server=$2
shift 2

# Options that name a server, or nothing to start.
names_a_server() {
    local option
    for option in "$@"; do
        case $option in
        --uri | --uri=* | --mongod | --mongod=* | --server | --server=* | --embedded-server | --embedded-server=*) return 0 ;;
        esac
    done
    [ -n "${DYNO_URI:-}${DYNO_MONGOD:-}${DYNO_EMBEDDED_SERVER:-}" ]
}

if ! names_a_server "$@"; then
    case $server:$(uname -m) in
    embedded:*) scripts/setup.sh embedded ;;
    auto:x86_64) command -v mongod >/dev/null || "$dyno" server install >/dev/null ;;
    auto:*) command -v mongod >/dev/null || scripts/setup.sh embedded ;;
    esac
    set -- --server "$server" "$@"
fi
exec "$dyno" run "$workload" "$@"
