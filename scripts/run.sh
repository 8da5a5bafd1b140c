#!/usr/bin/env bash
# What `make run` does: builds `dyno`, takes care that there is a server to start, and measures.
#
#   scripts/run.sh WORKLOAD SERVER [OPTIONS of `dyno run`]
#
# SERVER is as for `--server`; options that name a server count more. Where it is `auto` and no `mongod` is there, MongoDB is
# installed on x86-64, and the embedded server is built on other processors.
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
    # They say which one `auto` is, and nothing of another.
    [ "$server" = auto ] && [ -n "${DYNO_URI:-}${DYNO_MONGOD:-}${DYNO_EMBEDDED_SERVER:-}" ]
}

# Whether `dyno` finds a server by these options.
finds_server() { "$dyno" run a "$@" --dry-run >/dev/null 2>&1; }

install_mongod() {
    local code=0
    ! finds_server --server mongod || return 0
    "$dyno" server install >/dev/null || code=$?
    [ $code -eq 0 ] || { [ "$server" = auto ] && finds_server; } || exit $code
}

# Packages are installed before the build: who has to type a password is not asked for it minutes later.
names=''
! names_a_server "$@" || names=yes
purpose=build
case $names:$server:$(uname -m) in
:embedded:*) purpose=embedded ;;
:auto:x86_64 | :mongod:x86_64) command -v mongod >/dev/null || purpose=run ;;
esac
scripts/setup.sh "$purpose"
make --no-print-directory build
if [ -z "$names" ]; then
    case $server:$(uname -m) in
    auto:x86_64 | mongod:x86_64) install_mongod ;;
    auto:*) finds_server || scripts/setup.sh embedded ;;
    esac
    set -- --server "$server" "$@"
fi
exec "$dyno" run "$workload" "$@"
