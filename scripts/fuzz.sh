#!/usr/bin/env bash
# Fuzzes the parsers of external data with coverage guidance: libFuzzer, on the stable compiler.
#
#   scripts/fuzz.sh [SECONDS] [TARGET...]    default: all targets, 60 s each
#
# An input that breaks a target is kept in target/fuzz/TARGET. Inputs that reach new code are kept in target/fuzz/corpus;
# `KEEP=1` copies a minimal set with the same coverage into crates/fuzz/corpus, which the tests run.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${1:-60}
case $seconds in '' | *[!0-9]* | 0)
    echo "usage: scripts/fuzz.sh [SECONDS] [TARGET...]" >&2
    exit 2
    ;;
esac
shift || true
[ $# -gt 0 ] || set -- wire-reply bson scram run-directory hlog fleet-message exporter-text plan-file

# The compiler options of `cargo fuzz`, without the options that need a nightly compiler.
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions -Coverflow-checks"
triple=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS=$coverage scripts/cargo build --locked --release --quiet --package dyno-fuzz --features libfuzzer \
    --target "$triple" --target-dir target/fuzz/build
program=target/fuzz/build/$triple/release/dyno-fuzz

status=0
for name; do
    kept=crates/fuzz/corpus/$name
    found=target/fuzz/corpus/$name
    mkdir -p "$found" "target/fuzz/$name" "$kept"
    seeds=("$kept")
    [ "$name" != plan-file ] || seeds+=(workloads)
    export DYNO_FUZZ_TARGET=$name
    log=target/fuzz/$name/log
    if "$program" "$found" "${seeds[@]}" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=65536 \
        -artifact_prefix="target/fuzz/$name/" -print_final_stats=1 >"$log" 2>&1; then
        executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        covered=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
        printf '%-15s %12s executions in %s s, %s edges, nothing found\n' "$name" "$executions" "$seconds" "$covered"
        if [ "${KEEP:-0}" = 1 ]; then
            rm -rf "target/fuzz/merged" && mkdir -p target/fuzz/merged
            "$program" -merge=1 -max_len=4096 target/fuzz/merged "$kept" "$found" >>"$log" 2>&1
            # The smallest inputs first: the tests run each one, and people may read them.
            find target/fuzz/merged -type f -printf '%s %p\n' | sort -n | sed -n 1,60p | cut -d' ' -f2- |
                xargs -r -I{} cp -n {} "$kept/"
        fi
    else
        printf '%-15s broken; see %s\n' "$name" "$log"
        tail -n 20 "$log"
        status=1
    fi
done
exit $status
