#!/usr/bin/env bash
# Script of `make run`: builds `dyno`, makes sure that there is a server to start, and measures.
#
#   scripts/run.sh WORKLOAD SERVER [OPTIONS of `dyno run`]
#
# SERVER is as for `--server`; options that name a server take precedence. If it is `auto` and there is no `mongod`, MongoDB is
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
servers=${DYNO_DATA_DIR:-${XDG_DATA_HOME:-${HOME:-}/.local/share}/mongodyno}/servers

option_names_one() {
    local option
    for option in "$@"; do
        case $option in
        --uri | --uri=* | --mongod | --mongod=* | --server | --server=* | --embedded-server | --embedded-server=*) return 0 ;;
        *server.kind=* | *server.mongod=* | *server.uri=*) return 0 ;;
        esac
    done
    return 1
}

# Only variables that apply to this kind of server.
variable_names_one() {
    case $server in
    auto) [ -n "${DYNO_URI:-}${DYNO_MONGOD:-}${DYNO_EMBEDDED_SERVER:-}" ] ;;
    mongod) [ -n "${DYNO_MONGOD:-}" ] ;;
    embedded) [ -n "${DYNO_EMBEDDED_SERVER:-}" ] ;;
    esac
}

# If no server is named. `dyno` cannot be queried before it is built.
has_mongod() { command -v mongod >/dev/null || compgen -G "$servers/*/bin/mongod" >/dev/null; }

# The kind of server that would be started, or nothing.
chosen() { "$dyno" run "$workload" "$@" --dry-run 2>/dev/null | sed -n '/^\[server\]/,/^\[/s/^kind = "\(.*\)"$/\1/p'; }

# The embedded server can replace it if it is already installed.
install_mongod() {
    local code=0
    "$dyno" server install >/dev/null || code=$?
    [ $code -eq 0 ] || { [ "$server" = auto ] && [ -n "$(chosen "$@")" ]; } || exit $code
}

if option_names_one "$@"; then
    scripts/setup.sh build
    make --no-print-directory build
    exec "$dyno" run "$workload" "$@"
fi
machine=$(uname -m)
wanted=$server
! variable_names_one || wanted=named
# Packages are installed before the build, so that a password prompt does not come minutes later.
purpose=build
case $wanted:$machine in
embedded:*) purpose=embedded ;;
auto:x86_64 | mongod:x86_64) has_mongod || purpose=run ;;
esac
scripts/setup.sh "$purpose"
make --no-print-directory build
# A plan can also name a server.
case $purpose:$wanted:$machine in
run:*) case $(chosen "$@") in mongod | uri) ;; *) install_mongod "$@" ;; esac ;;
*:auto:x86_64) ;;
*:auto:*) [ -n "$(chosen "$@")" ] || scripts/setup.sh embedded ;;
esac
if [ "$server" != auto ]; then
    # The variable names a running server, but a server has to be started.
    unset DYNO_URI
    set -- --server "$server" "$@"
fi
exec "$dyno" run "$workload" "$@"
