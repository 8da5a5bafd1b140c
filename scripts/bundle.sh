#!/usr/bin/env bash
# Bundles the charts of the HTML reports from web/ into crates/report/bundle/, which is committed, so that building `dyno` does not
# need Node.
#
#   scripts/bundle.sh           writes the bundle, after a change in web/
#   scripts/bundle.sh --check   fails if the committed bundle differs from the build of web/
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
BUNDLE=crates/report/bundle

fail() {
    echo "bundle: error: $2" >&2
    exit "$1"
}

case "$*" in
"" | --check) ;;
*)
    echo "usage: scripts/bundle.sh [--check]" >&2
    exit 2
    ;;
esac
# npm writes this file at the end of an installation.
[ web/node_modules/.package-lock.json -nt web/package-lock.json ] ||
    fail 3 "the npm packages of web/ are missing or old; install them: scripts/setup.sh test, or (cd web && npm ci)"

if [ "$*" = "" ]; then
    node web/build.mjs "$BUNDLE"
    exit
fi
mkdir -p target
built=$(mktemp -d target/bundle.XXXXXX)
trap 'rm -rf "$built"' EXIT
node web/build.mjs "$built"
# Compares both ways, because an extra file is a difference too.
if ! said=$(diff --brief --recursive "$BUNDLE" "$built"); then
    echo "$said" >&2
    fail 1 "$BUNDLE is not what web/ builds; run scripts/bundle.sh and commit the result"
fi
echo "bundle: $BUNDLE is what web/ builds"
