#!/usr/bin/env bash
# One short run on a real server, from the command line to the report, as a user would do it, and one through the library.
#
#   scripts/smoke.sh DYNO FOLDER MONGOD
#
# leaves FOLDER/run (the run directory), FOLDER/result.json and FOLDER/report.html.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
dyno=$1
folder=$2
mongod=$3

rm -rf "$folder"
mkdir -p "$folder"
export DYNO_STATE_DIR=$folder/state
"$dyno" run a --mongod "$mongod" --records 5000 --warmup 500ms --duration 3s --out "$folder/run" --format json \
    >"$folder/result.json"
"$dyno" report "$folder/run" --format html --output "$folder/report.html"
PATH=$(dirname "$mongod"):$PATH "$(dirname "$dyno")/examples/one_run" "$folder/library-run"

node - "$folder" <<'CHECK'
const { readFileSync, readdirSync } = require("node:fs");
const folder = process.argv[2];
const fail = (message) => {
  console.error(`smoke: ${message}`);
  process.exit(1);
};
const result = JSON.parse(readFileSync(`${folder}/result.json`, "utf8"));
const measure = result.phases.find((phase) => phase.name === "measure");
if (!measure) fail("the result has no measure phase");
const operations = Object.values(measure.operations);
const count = operations.reduce((sum, operation) => sum + operation.count, 0);
if (!(count > 0 && measure.achieved_rate_per_s > 0)) fail("nothing was measured");
if (operations.some((operation) => operation.errors > 0)) fail("operations failed");
if (!readFileSync(`${folder}/report.html`, "utf8").includes("</html>")) fail("the report is not complete");
const left = readdirSync(`${folder}/run`).filter((name) => name.includes("data"));
if (left.length > 0) fail(`the run left ${left.join(", ")} behind`);
console.log(`smoke: ${count} operations at ${Math.round(measure.achieved_rate_per_s)}/s, no errors`);
CHECK
