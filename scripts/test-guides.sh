#!/usr/bin/env bash
# Runs the command blocks of the guides like a reader who copies and pastes them: the blocks of a guide run in order, in one shell, in
# a fresh clone of the commit, and without an installed server. `make build` runs once, in a separate clone, before the first guide:
# in the blocks, a fake `make` accepts only `make build`.
#
#   scripts/test-guides.sh [GUIDE...]    default: all of docs/guides
#
# DURATION (default: 1s) replaces the values of `--duration`, `--warmup` and `sleep`. DYNO names a built program; then nothing is
# built. A block that begins with ```sh is run. A block with special requirements names them, as in ```sh needs-a-cloud, and is only
# counted, unless they are met:
#
#   needs-root-and-loop-devices
#   needs-root-and-apt
#   needs-prometheus             Prometheus, promtool and node_exporter, and the ports that they and `dyno` take
#   needs-root-and-hosts         programs for hosts made of namespaces (root, sshd, iproute2), and node_exporter
#   needs-two-cpus               a process may use two CPUs
#
# A guide has to end the programs that it started.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
project=$PWD
export DURATION=${DURATION:-1s}
[[ $DURATION =~ ^[0-9]+(\.[0-9]+)?(ms|s|m|h)$ ]] || {
    echo "test-guides: error: DURATION must be a number with a unit, such as 1s, instead of \`$DURATION\`" >&2
    exit 2
}
# The system's `sleep` does not support milliseconds.
case $DURATION in *ms) SLEEP=$(awk "BEGIN { print ${DURATION%ms} / 1000 }") ;; *) SLEEP=$DURATION ;; esac
# Time limit of each guide, which ends a guide that waits forever.
LIMIT_S=${LIMIT_S:-1200}
program=${DYNO:-}
if [ -n "$program" ]; then
    [ -x "$program" ] || {
        echo "test-guides: error: there is no program \`$program\`" >&2
        exit 2
    }
    program=$(realpath -- "$program")
fi
[ $# -gt 0 ] || set -- docs/guides/*.md

scratch=$(mktemp -d)
# Only in the environment of programs that a guide starts.
mark=DYNO_GUIDE=$(basename "$scratch")
own_processes() { grep -lsF "$mark" /proc/[0-9]*/environ | cut -d / -f 3; }

end_own_processes() {
    local signal pid
    for signal in TERM KILL; do
        for pid in $(own_processes); do kill -s "$signal" "$pid" 2>/dev/null || true; done
        for _ in {1..50}; do
            [ -n "$(own_processes)" ] || return 0
            sleep 0.2
        done
    done
}

trap 'end_own_processes; rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# A clone of the commit, as a reader gets it. It shares the objects.
clone() { git clone --quiet --shared -- "$project" "$1"; }

# The output of `make build` in a clone. The files of cargo stay in `target/guides`, so that the next time only the project's crates
# are compiled. The folder is not `target` itself: cargo distinguishes source folders only by file times, and would confuse the
# crates of the clone with the crates of this folder.
build() {
    local sources=$scratch/sources
    clone "$sources"
    mkdir -p "$project/target/guides"
    ln -s "$project/target/guides" "$sources/target"
    make --no-print-directory -C "$sources" build
    program=$scratch/dyno
    cp "$sources/target/release/dyno" "$program"
}

if [ -n "$(git status --porcelain -- . ':!docs/guides')" ]; then
    echo "test-guides: warning: the clones do not include uncommitted changes, except in the text of the guides" >&2
fi
if [ -z "$program" ]; then build; fi

mkdir "$scratch/bin"
cat >"$scratch/bin/dyno" <<SHIM
#!/usr/bin/env bash
# Shortens the minutes that a guide measures.
previous= arguments=()
for argument; do
    case \$previous in --duration | --warmup) argument=$DURATION ;; esac
    case \$argument in --duration=* | --warmup=*) argument=\${argument%%=*}=$DURATION ;; esac
    arguments+=("\$argument")
    previous=\$argument
done
exec "$program" "\${arguments[@]}"
SHIM
printf '#!/bin/sh\nexec %s %s\n' "$(command -v sleep)" "$SLEEP" >"$scratch/bin/sleep"
printf '#!/bin/sh\n[ "$*" = build ]\n' >"$scratch/bin/make"
chmod +x "$scratch/bin"/*

# Whether a process listens on a port of this machine.
is_taken() { (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

has_prometheus() {
    local program port
    for program in prometheus promtool prometheus-node-exporter; do
        command -v "$program" >/dev/null || return 1
    done
    for port in 9090 9100 9464; do ! is_taken "$port" || return 1; done
}

has_hosts() {
    local program
    [ "$(id -u)" = 0 ] || return 1
    for program in sshd ip prometheus-node-exporter; do
        PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || return 1
    done
}

# Splits a guide into a file for each block. In the files to run, all lines outside of the block are empty, so that bash reports line
# numbers of the guide; the other files contain the line number and the requirement.
split() {
    local there=
    if [ "$(id -u)" = 0 ] && [ -e /dev/loop-control ]; then there+=' needs-root-and-loop-devices'; fi
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then there+=' needs-root-and-apt'; fi
    if has_prometheus; then there+=' needs-prometheus'; fi
    if has_hosts; then there+=' needs-root-and-hosts'; fi
    if [ "$(nproc)" -ge 2 ]; then there+=' needs-two-cpus'; fi
    awk -v folder="$2" -v there="$there" '
        BEGIN { split(there, names, " "); for (place in names) run["```sh " names[place]] }
        inside && /^```/ { inside = 0; close(file); next }
        inside { if (runs) { print >file }; next }
        /^```sh$/ || $0 in run {
            inside = runs = 1
            file = sprintf("%s/run-%03d.sh", folder, ++count)
            for (line = 1; line <= NR; line++) { print "" >file }
            next }
        /^```sh / {
            inside = 1; runs = 0
            file = sprintf("%s/needs-%03d", folder, ++count)
            what = substr($0, 7)
            if (what !~ /^needs-[a-z0-9-]+$/) { printf "%d\t-\t%s\n", NR, what >file; next }
            gsub("-", " ", what)
            printf "%d\t%s\n", NR, what >file
            next }
        /^```/ { inside = 1; runs = 0 }
        END { if (inside) { printf "%d\t-\tit does not end\n", NR >(folder "/needs-999") } }' "$1"
}

# Runs one guide in its folder. The last line of `at` is the line at which it stopped, if any.
run_blocks() {
    local folder=$1
    (
        cd "$folder/work"
        unset DYNO_URI DYNO_MONGOD DYNO_EMBEDDED_SERVER
        PATH=$scratch/bin:$PATH DYNO_STATE_DIR=$folder/state DYNO_DATA_DIR=$folder/data timeout --kill-after=10 "$LIMIT_S" env "$mark" AT="$folder/at" bash -c '
            set -Eeuo pipefail
            trap "echo \$LINENO >>\"\$AT\"" ERR
            for block; do
                grep -n -m 1 . "$block" | cut -d : -f 1 >"$AT"
                source "$block"
            done
            rm "$AT"' guide "$folder"/run-*.sh
    ) </dev/null >"$folder/log" 2>&1
}

ran=0 left_out=() status=0
wrong() {
    echo "test-guides: error: $1" >&2
    status=1
}

for guide; do
    [ -f "$guide" ] || {
        wrong "there is no guide \`$guide\`"
        continue
    }
    folder=$scratch/$(basename "$guide" .md)
    clone "$folder/work"
    mkdir -p "$folder/work/target/release"
    ln -s "$scratch/bin/dyno" "$folder/work/target/release/"
    split "$guide" "$folder"
    blocks=$(find "$folder" -maxdepth 1 -name 'run-*.sh' | wc -l)
    needs=$(find "$folder" -maxdepth 1 -name 'needs-*' | wc -l)
    ran=$((ran + blocks)) started=$SECONDS
    for file in "$folder"/needs-*; do
        [ -e "$file" ] || continue
        IFS=$'\t' read -r line what bad <"$file" || true
        left_out+=("$what")
        if [ -n "${bad:-}" ]; then wrong "$guide:$line: a block that is neither sh nor \`sh needs-…\`: $bad"; fi
        [ -n "${bad:-}" ] || echo "$guide:$line: left out, $what"
    done
    if [ "$blocks" -gt 0 ]; then
        # In the background, because bash does not handle signals while it waits for a command.
        run_blocks "$folder" &
        if ! wait $!; then
            wrong "$guide:$(tail -n 1 "$folder/at"): a command failed, or took more than $LIMIT_S s; the last lines of the guide's output:"
            tail -n 30 "$folder/log" >&2
        elif [ -n "$(own_processes)" ]; then
            wrong "$guide: it leaves processes: $(for pid in $(own_processes); do ps -o args= -p "$pid" | cut -c 1-80; done | paste -s -d ';')"
        fi
        end_own_processes
    fi
    printf '%s: %d blocks ran in %d s, %d were left out\n' "$guide" "$blocks" $((SECONDS - started)) "$needs"
done

# Counts by reason, such as `: 2 needs a cloud, 1 needs docker`.
reasons() {
    [ ${#left_out[@]} -gt 0 ] || return 0
    printf '%s\n' "${left_out[@]}" | sort | uniq -c | awk '{ count = $1; $1 = ""; printf "%s %d%s", (NR > 1 ? "," : ":"), count, $0 }'
}
printf '%d blocks ran, %d were left out%s\n' "$ran" "${#left_out[@]}" "$(reasons)"
[ "$ran" -gt 0 ] || wrong "no block ran"
exit $status
