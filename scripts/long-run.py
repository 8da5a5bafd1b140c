#!/usr/bin/env python3
"""Makes the record of a long run from the record of a short run, to time `dyno report` on it.

usage: scripts/long-run.py RUN WINDOWS FOLDER

The windows of the measure phase of RUN and the readings of its metrics are repeated, later and later, until there are WINDOWS of
them. Figures of `run.json` are left as they are, except the length of the phase."""

import csv
import json
import shutil
import sys
from pathlib import Path

PHASE = "measure"


def rows_of(path):
    with open(path, newline="") as file:
        header, *rows = csv.reader(file)
    return header, rows


def repeat(source, target, windows, at, number):
    """Copies a table and repeats its rows; `number` is the width of the repeated part, in rows and in time."""
    header, rows = rows_of(source)
    place = {name: header.index(name) for name in header}
    count, length = number
    with open(target, "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(header)
        out.writerows(row for row in rows if row[place["phase"]] != PHASE)
        for turn in range(-(-windows // count)):
            for row in rows:
                if row[place["phase"]] != PHASE:
                    continue
                index = int(row[place["index"]]) + turn * count
                if index >= windows:
                    continue
                row = list(row)
                row[place["index"]] = index
                if at in place:
                    row[place[at]] = int(row[place[at]]) + turn * length
                out.writerow(row)


def main():
    run, windows, folder = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    shutil.copytree(run, folder)
    for sums in folder.glob("SHA256SUMS"):
        sums.unlink()
    header, rows = rows_of(run / "series/intervals.csv")
    place = {name: header.index(name) for name in header}
    of_phase = [row for row in rows if row[place["phase"]] == PHASE]
    last = of_phase[-1]
    start_ns = int(of_phase[0][place["start_ns"]])
    length_ns = int(last[place["start_ns"]]) + int(last[place["duration_ns"]]) - start_ns
    number = (len(of_phase), length_ns)
    for name in ["intervals", "operations", "errors"]:
        repeat(run / f"series/{name}.csv", folder / f"series/{name}.csv", windows, "start_ns", number)

    lines = (run / "latency.hlog").read_text().splitlines(keepends=True)
    own = [line for line in lines if line.startswith(f"Tag={PHASE}.")]
    by_window = {}
    for line in own:
        by_window.setdefault(line.split(",", 2)[1], []).append(line)
    by_window = list(by_window.values())
    with open(folder / "latency.hlog", "w") as file:
        file.writelines(line for line in lines if line not in set(own))
        for window in range(windows):
            file.writelines(by_window[window % len(by_window)])

    # The longest table of each source: tables that began later have fewer rows to repeat.
    tables = [(path, *rows_of(path)) for path in (run / "metrics").glob("*.csv")]
    for path, _, _ in tables:
        (folder / "metrics" / path.name).unlink()
    for path, header, rows in tables:
        source = path.stem.split("~")[0]
        others = [len(other[2]) for other in tables if other[0].stem.split("~")[0] == source]
        if len(rows) < max(others):
            continue
        with open(folder / f"metrics/{source}.csv", "w", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(header)
            for turn in range(-(-windows // len(of_phase))):
                for row in rows:
                    out.writerow([float(row[0]) + turn * length_ns / 1e9, *row[1:]])

    document = json.loads((run / "run.json").read_text())
    for phase in document["phases"]:
        if phase["name"] == PHASE:
            phase["duration_s"] = length_ns / 1e9 * windows / len(of_phase)
    (folder / "run.json").write_text(json.dumps(document))


main()
