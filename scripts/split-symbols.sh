#!/usr/bin/env bash
# Takes the symbols and lines out of a program. Debuggers, profilers and our own backtraces find them in the file that is left
# beside it, or in /usr/lib/debug.
#
#   scripts/split-symbols.sh BUILT PROGRAM SYMBOLS
#
# BUILT may be PROGRAM. Does nothing when BUILT has no lines, thus when it was done before.
set -euo pipefail

if [ $# -ne 3 ]; then
    echo "usage: scripts/split-symbols.sh BUILT PROGRAM SYMBOLS" >&2
    exit 2
fi
built=$1 program=$2 symbols=$3
sections=$(readelf --sections --wide "$built")
[[ $sections == *.debug_line* ]] || exit 0
# Another process may run the old one, and cargo's own file is linked to it: both keep theirs.
trap 'rm -f "$program.new"' EXIT
objcopy --only-keep-debug "$built" "$symbols"
objcopy --strip-all --add-gnu-debuglink="$symbols" "$built" "$program.new"
mv -f "$program.new" "$program"
