#!/usr/bin/env bash
# Prints the number and the names of skipped tests, which tests log themselves (DYNO_SKIP_LOG=FILE). Fails if a skip is not in
# scripts/skips-allowed.txt, or if there are more skips of a kind than it allows.
set -euo pipefail

if [ $# -ne 1 ]; then
    echo "usage: scripts/skips.sh FILE" >&2
    exit 2
fi
allowed=$(dirname "${BASH_SOURCE[0]}")/skips-allowed.txt
if [ ! -s "$1" ]; then
    echo "no test was skipped"
    exit 0
fi
awk -F'\t' '
    FNR == NR {
        if ($0 !~ /^#/ && NF == 3) { most[$2] = $1 }
        next
    }
    {
        kind = ""
        for (beginning in most) {
            if (index($3, beginning) == 1) { kind = beginning }
        }
        count[kind]++
        lines[FNR] = sprintf("  %s: %s%s", $2, $3, kind == "" ? " [NOT ALLOWED]" : "")
    }
    END {
        printf "%d tests were skipped\n", FNR
        for (line = 1; line <= FNR; line++) { print lines[line] }
        wrong = count[""] > 0
        for (kind in most) {
            if (most[kind] != "any" && count[kind] > most[kind]) {
                printf "  %d skips because %s: at most %d are allowed\n", count[kind], kind, most[kind]
                wrong = 1
            }
        }
        exit wrong
    }
' "$allowed" "$1"
