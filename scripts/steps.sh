# Functions for scripts that time their steps:
#
#   step NAME COMMAND ...   runs the command, and records its time; returns the command's status
#
# The outermost of these scripts prints the table when it ends.

if [ -z "${DYNO_STEPS:-}" ]; then
    DYNO_STEPS=$(mktemp)
    export DYNO_STEPS
    trap 'print_steps; rm -f "$DYNO_STEPS"' EXIT
fi

# Sets `cpu_s` to the CPU seconds of all processes that this shell has waited for. `times` must run in this shell: in a subshell it
# would count the subshell's processes.
read_cpu_s() {
    times >"$DYNO_STEPS.times"
    cpu_s=$(awk 'NR == 2 { gsub("s", ""); for (i = 1; i <= 2; i++) { split($i, t, "m"); sum += t[1] * 60 + t[2] }
        printf "%d", sum }' "$DYNO_STEPS.times")
    rm -f "$DYNO_STEPS.times"
}

step() {
    local name=$1 begun=$SECONDS cpu_s before status=0
    shift
    printf '\n== %s\n' "$name"
    read_cpu_s
    before=$cpu_s
    "$@" || status=$?
    read_cpu_s
    printf '%s\t%d\t%d\t%d\n' "$name" $((SECONDS - begun)) $((cpu_s - before)) $status >>"$DYNO_STEPS"
    return $status
}

print_steps() {
    awk -F '\t' '
        function clock(s) { return sprintf("%d:%02d", s / 60, s % 60) }
        BEGIN { printf "\n%-36s %8s %8s\n", "step", "time", "CPU" }
        { printf "%-36s %8s %8s%s\n", $1, clock($2), clock($3), $4 ? "  failed (" $4 ")" : ""; wall += $2; cpu += $3 }
        END { printf "%-36s %8s %8s\n", "all", clock(wall), clock(cpu) }' "$DYNO_STEPS"
}
