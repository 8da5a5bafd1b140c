#!/usr/bin/env bash
# The pictures of README.md and docs/index-build.md, from new measurements. Takes half an hour on a quiet machine.
#
#   scripts/images.sh DYNO MONGOD [FOLDER]
#
# measures into FOLDER (default: target/images) and writes docs/images/{run,sweep,index-build,soak}.png. Measurements that are
# in FOLDER already are used again. It writes no picture of a sweep whose intervals are wider than ± 15 %: measure it again when
# the machine is quiet.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# -ge 2 ] || { echo "usage: scripts/images.sh DYNO MONGOD [FOLDER]" >&2; exit 2; }
dyno=$(realpath "$1")
mongod=$(realpath "$2")
folder=${3:-target/images}
mkdir -p "$folder"
export DYNO_STATE_DIR=$folder/state

measure() {
    local name=$1
    shift
    [ -d "$folder/$name" ] || "$dyno" "$@" --mongod "$mongod" --out "$folder/$name"
    "$dyno" report "$folder/$name" --format html --force --output "$folder/$name.html"
}

# Two busy loops from second 55 to second 90, as README.md says.
disturb() {
    sleep 62
    for _ in 1 2; do timeout 35 sh -c 'while :; do :; done' & done
    wait || true
}

measure run run a --warmup 10s --duration 2m
measure sweep sweep a --clients 1,2,4,8,16,32 --warmup 10s --duration 2m
measure index-build index-build churned --remedy rewrite --records 20k
[ -d "$folder/soak" ] || disturb &
measure soak soak a --rate 4k --warmup 5s --duration 100s
wait

"$dyno" report "$folder/sweep" --format json >"$folder/sweep.json"
pictures=('run=#plot-latency' 'index-build=.density' 'soak=#plot-latency')
if node - "$folder/sweep.json" <<'CHECK'; then
const { levels } = JSON.parse(require("node:fs").readFileSync(process.argv[2], "utf8")).answer;
for (const { clients, rate_per_s: { value, low, high } } of levels) {
  const width = low && high ? Math.max(value - low, high - value) / value : null;
  const interval = width === null ? "no interval" : `interval ± ${(100 * width).toFixed(1)} %`;
  console.log(`images: ${clients} clients: ${Math.round(value)}/s, ${interval}`);
  if (width === null || width > 0.15) process.exitCode = 1;
}
CHECK
    pictures+=('sweep=#plot-rate-over-clients')
else
    echo "images: error: the sweep's intervals are too wide; remove $folder/sweep and measure it again on a quiet machine" >&2
    code=1
fi
for picture in "${pictures[@]}"; do
    name=${picture%%=*}
    node web/picture.mjs "$folder/$name.html" "${picture#*=}" "docs/images/$name.png"
done
exit "${code:-0}"
