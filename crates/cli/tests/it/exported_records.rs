//! Exports and pictures of made-up records: runs and every kind of experiment.

use crate::common::runs::MadeUp;
use crate::common::{Bench, names, recorded};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use std::fs::{self, File};

/// A recorded experiment.
struct Recorded {
    name: &'static str,
    make: fn(&Bench, &str),
    /// Columns that some rows lack.
    optional: &'static [&'static str],
    /// Cells of the only row with values in these columns, by column.
    row: &'static [(&'static str, &'static str)],
    pictures: &'static [&'static str],
}

const RECORDED: [Recorded; 4] = [
    Recorded {
        name: "sweep",
        make: |bench, name| recorded::experiment(bench, name, "sweep"),
        optional: &["client.clients", "instance", "low"],
        row: &[
            ("run", "1"),
            ("client.clients", "4"),
            ("metric", "rate_per_s"),
            ("value", "22845.638811148354"),
            ("unit", "1/s"),
        ],
        pictures: &["01-rate-over-clients", "02-response-time-over-clients"],
    },
    Recorded {
        name: "ab",
        make: |bench, name| recorded::experiment(bench, name, "ab"),
        optional: &["side", "instance"],
        row: &[
            ("directory", "runs/001-a"),
            ("side", "A"),
            ("metric", "rate_per_s"),
            ("value", "3544.2140013969315"),
        ],
        pictures: &["01-b-against-a", "02-pair-by-pair-rate"],
    },
    Recorded {
        name: "index-build",
        make: recorded::index_build,
        optional: &["configuration", "remedy"],
        row: &[
            ("build", "after"),
            ("configuration", ""),
            ("remedy", "rewrite"),
            ("source", "server"),
            ("metric", "documents_count"),
            ("value", "60000"),
        ],
        pictures: &["01-reads-of-ycsb-usertable"],
    },
    Recorded {
        name: "messages",
        make: recorded::messages,
        optional: &["acknowledged_ns", "failed_ns", "received_ns"],
        row: &[
            ("cell", recorded::CELL),
            ("producer_driver", "wire"),
            ("n", "599"),
            ("send_ns", "599"),
            ("acknowledged_ns", "600"),
            ("failed_ns", ""),
            ("received_ns", "601"),
        ],
        pictures: &["01-latency-against-message-number"],
    },
];

/// Records that only test pictures: a run has another kind of table, and a suite has the table of a sweep.
const PICTURED: [Recorded; 2] = [
    Recorded {
        name: "run",
        make: |bench, name| MadeUp::new(1000).write(&bench.path(name)),
        optional: &[],
        row: &[],
        pictures: &["01-rate", "02-latency", "03-response-time-by-operation"],
    },
    Recorded {
        name: "suite",
        make: |bench, name| recorded::experiment(bench, name, "suite"),
        optional: &[],
        row: &[],
        pictures: &["01-rate", "02-mean-response-time"],
    },
];

/// A cell as CSV has it.
fn text(field: &Field) -> String {
    match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::Long(number) => number.to_string(),
        Field::Double(number) => number.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn parquet_export_of_every_experiment_matches_its_csv() {
    let bench = Bench::new();
    for recorded in &RECORDED {
        let name = recorded.name;
        (recorded.make)(&bench, name);
        let csv = bench.dyno(&["export", name, "--to", "csv"]).expect(0);
        let csv = csv.stdout;
        let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let head = lines.next().unwrap();
        let lines: Vec<Vec<&str>> = lines.collect();
        let is_wanted = |line: &&Vec<&str>| {
            recorded.row.iter().all(|(column, cell)| {
                let place = head.iter().position(|name| name == column);
                line[place.unwrap_or_else(|| panic!("{name}: {column}"))] == *cell
            })
        };
        let wanted = lines.iter().filter(is_wanted).count();
        assert_eq!(wanted, 1, "{name}: {csv}");
        let file = format!("{name}.parquet");
        let arguments = ["export", name, "--to", "parquet", "--output", &file];
        bench.dyno(&arguments).expect(0);
        let reader = SerializedFileReader::new(File::open(bench.path(&file)).unwrap()).unwrap();
        let schema = reader.metadata().file_metadata().schema().clone();
        for column in schema.get_fields() {
            let is_optional = recorded.optional.contains(&column.name());
            assert!(!is_optional || column.is_optional(), "{name}: {column:?}");
        }
        let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
        let rows: Vec<_> = rows.collect();
        assert_eq!(rows.len(), lines.len(), "{name}");
        for (row, line) in rows.iter().zip(&lines) {
            let cells = row.get_column_iter();
            let cells: Vec<(&str, String)> =
                cells.map(|(column, field)| (column.as_str(), text(field))).collect();
            let expected = head.iter().zip(line);
            let expected: Vec<(&str, String)> =
                expected.map(|(column, cell)| (*column, (*cell).to_owned())).collect();
            assert_eq!(cells, expected, "{name}");
        }
    }
}

#[test]
fn pictures_of_runs_and_of_every_experiment_are_files() {
    let bench = Bench::new();
    for recorded in RECORDED.iter().chain(&PICTURED) {
        let name = recorded.name;
        (recorded.make)(&bench, name);
        let folder = format!("{name}-pictures");
        let report = ["report", name, "--pictures", &folder];
        bench.dyno(&report).expect(0).says(&format!("`{folder}`"));
        let files = names(&bench.path(&folder));
        // Two files for each chart of the page.
        let page = ["report", name, "--format", "html"];
        let page = bench.dyno(&page).expect(0).stdout;
        let charts = page.matches("<figure").count();
        assert_eq!(files.len(), 2 * charts, "{name}: {files:?}");
        for picture in recorded.pictures {
            let read = |kind: &str| {
                let file = format!("{picture}.{kind}");
                assert!(files.contains(&file), "{name}, {file}: {files:?}");
                fs::read(bench.path(&folder).join(file)).unwrap()
            };
            assert!(read("png").starts_with(b"\x89PNG"), "{name}, {picture}");
            let svg = String::from_utf8(read("svg")).unwrap();
            assert!(svg.contains("<svg"), "{name}, {picture}: {svg}");
            assert!(svg.contains("</text>"), "{name}, {picture}: {svg}");
        }
    }
}
