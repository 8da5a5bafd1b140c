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

# Only those that count for this kind of server.
variable_names_one() {
    case $server in
    auto) [ -n "${DYNO_URI:-}${DYNO_MONGOD:-}${DYNO_EMBEDDED_SERVER:-}" ] ;;
    mongod) [ -n "${DYNO_MONGOD:-}" ] ;;
    embedded) [ -n "${DYNO_EMBEDDED_SERVER:-}" ] ;;
    esac
}

# Where nobody names one. Before the build nothing can be asked of `dyno`.
has_mongod() { command -v mongod >/dev/null || compgen -G "$servers/*/bin/mongod" >/dev/null; }

# The kind of server that would be started, or nothing where there is none.
chosen() { "$dyno" run "$workload" "$@" --dry-run 2>/dev/null | sed -n '/^\[server\]/,/^\[/s/^kind = "\(.*\)"$/\1/p'; }

# The embedded server may take its place if it is there already.
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
# Packages are installed before the build: who has to type a password is not asked for it minutes later.
purpose=build
case $wanted:$machine in
embedded:*) purpose=embedded ;;
auto:x86_64 | mongod:x86_64) has_mongod || purpose=run ;;
esac
scripts/setup.sh "$purpose"
make --no-print-directory build
# A plan may name a server, too.
case $purpose:$wanted:$machine in
run:*) case $(chosen "$@") in mongod | uri) ;; *) install_mongod "$@" ;; esac ;;
*:auto:x86_64) ;;
*:auto:*) [ -n "$(chosen "$@")" ] || scripts/setup.sh embedded ;;
esac
if [ "$server" != auto ]; then
    # It says which server runs already, and one is to be started.
    unset DYNO_URI
    set -- --server "$server" "$@"
fi
exec "$dyno" run "$workload" "$@"
