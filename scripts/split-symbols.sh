#!/usr/bin/env bash
# Moves the symbols and line tables of a program into a separate file. Debuggers, profilers and our own backtraces find it next to
# the program, or in /usr/lib/debug.
#
#   scripts/split-symbols.sh BUILT PROGRAM SYMBOLS
#
# BUILT may be PROGRAM. Does nothing if BUILT has no line tables, thus after an earlier call.
set -euo pipefail

if [ $# -ne 3 ]; then
    echo "usage: scripts/split-symbols.sh BUILT PROGRAM SYMBOLS" >&2
    exit 2
fi
built=$1 program=$2 symbols=$3
sections=$(readelf --sections --wide "$built")
[[ $sections == *.debug_line* ]] || exit 0
# Another process may be running the old file, and cargo's own file is linked to it: both keep their content.
trap 'rm -f "$program.new"' EXIT
objcopy --only-keep-debug "$built" "$symbols"
objcopy --strip-all --add-gnu-debuglink="$symbols" "$built" "$program.new"
mv -f "$program.new" "$program"
