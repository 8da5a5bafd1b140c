//! Metrics that host, servers and exporters reported during a run: one file per source, one row per reading, with times
//! of the run.
//!
//! A row's values cover the time that ends at `at_s` and lasted `duration_s`: counters are already differences per
//! second or shares of the time, so that rows can be averaged. When a new metric appears, the source continues in a new
//! file with all columns so far; an empty cell means that the value was not reported.

use crate::append::AppendFile;
use crate::error::RecordError;
use crate::lines::Lines;
use crate::names::Metric;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The folder of the metrics in a run directory.
pub const FOLDER: &str = "metrics";

/// Maximum number of columns of a source: more than the largest machines need, but a limit for broken exporters.
pub const MOST_COLUMNS: usize = 16_384;

/// Maximum number of files of a source. Each late metric starts a new file with all column names.
pub const MOST_FILES: u64 = 64;

/// Name of a metric: `group.name` or `group.instance.name`, such as `memory.available_bytes` or `disk.vda.read_per_s`.
/// The instance may contain dots; the name ends in its unit. Copies share the text, so a source can create its names
/// once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MetricId(Arc<str>);

impl MetricId {
    /// Name of a metric without instances. Characters that would break the file become `_`.
    pub fn of(group: &str, name: &str) -> MetricId {
        MetricId(format!("{}.{}", plain(group), plain(name)).into())
    }

    /// Name of a metric of an instance.
    pub fn of_instance(group: &str, instance: &str, name: &str) -> MetricId {
        let (group, instance, name) = (plain(group), plain(instance), plain(name));
        MetricId(format!("{group}.{instance}.{name}").into())
    }

    /// Parses a name as [`Display`](fmt::Display) writes it; `None` without a group or a name.
    pub fn parse(text: &str) -> Option<MetricId> {
        let (group, rest) = text.split_once('.')?;
        let name = rest.rsplit('.').next()?;
        let is_plain = text.chars().all(is_plain_character);
        (is_plain && !group.is_empty() && !name.is_empty()).then(|| MetricId(text.into()))
    }

    /// The whole name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Group, such as `cpu`.
    pub fn group(&self) -> &str {
        self.0.split_once('.').map_or("", |(group, _)| group)
    }

    /// Instance; `None` for metrics without instances.
    pub fn instance(&self) -> Option<&str> {
        let (_, rest) = self.0.split_once('.')?;
        rest.rsplit_once('.').map(|(instance, _)| instance)
    }

    /// Last part of the name, with the unit.
    pub fn name(&self) -> &str {
        self.0.rsplit_once('.').map_or("", |(_, name)| name)
    }
}

impl fmt::Display for MetricId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Whether a character is allowed in a name and in the file.
fn is_plain_character(character: char) -> bool {
    !character.is_control() && !matches!(character, ',' | '"' | '\'' | '\u{2028}' | '\u{2029}')
}

/// Replaces forbidden characters of a part of a name; an empty part becomes `_`.
fn plain(text: &str) -> String {
    let replace = |character| {
        if is_plain_character(character) && character != ' ' { character } else { '_' }
    };
    match text {
        "" => "_".to_owned(),
        text => text.chars().map(replace).collect(),
    }
}

/// Values of a source at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Time of the reading, from the start of the run.
    pub at_s: f64,
    /// Time since the previous reading, which the values cover.
    pub duration_s: f64,
    /// Values; non-finite ones are dropped.
    pub values: Vec<(MetricId, f64)>,
}

/// Writes the metrics of one source.
pub struct MetricsWriter {
    /// Path prefix of the files, without number and extension.
    stem: PathBuf,
    files: u64,
    file: Option<AppendFile>,
    columns: Vec<MetricId>,
    places: HashMap<MetricId, usize>,
    per_row: u64,
    row: Row,
    sync_every: Option<Duration>,
    synced: Instant,
}

/// Readings that are averaged into one row.
#[derive(Default)]
struct Row {
    readings: u64,
    at_s: f64,
    duration_s: f64,
    /// For each column, the sum of value times duration, and the sum of these durations.
    sums: Vec<(f64, f64)>,
}

impl MetricsWriter {
    /// Creates a writer for a source of the run in `run_directory`; every `readings_per_row` readings are averaged over
    /// time into one row. The first reading creates the file.
    pub fn new(run_directory: &Path, source: &str, readings_per_row: u64) -> MetricsWriter {
        MetricsWriter {
            stem: run_directory.join(FOLDER).join(plain(source).replace('/', "_")),
            files: 0,
            file: None,
            columns: Vec::new(),
            places: HashMap::new(),
            per_row: readings_per_row.max(1),
            row: Row::default(),
            sync_every: None,
            synced: Instant::now(),
        }
    }

    /// Makes the writer sync its file at this interval, so that the metrics survive a machine crash.
    pub fn syncing(self, every: Option<Duration>) -> MetricsWriter {
        MetricsWriter { sync_every: every, ..self }
    }

    /// Records a reading. If writing fails, the reading is lost, but later ones can be tried. Columns beyond
    /// [`MOST_COLUMNS`] are dropped, and so are columns that would need more than [`MOST_FILES`] files.
    pub fn record(&mut self, reading: &Reading) -> Result<(), RecordError> {
        let is_new = |id: &MetricId| !self.places.contains_key(id);
        let mut added: Vec<MetricId> = Vec::new();
        for (id, value) in &reading.values {
            let has_room =
                self.columns.len() + added.len() < MOST_COLUMNS && self.files < MOST_FILES;
            if value.is_finite() && is_new(id) && has_room && !added.contains(id) {
                added.push(id.clone());
            }
        }
        if !added.is_empty() {
            self.flush()?;
            for id in added {
                self.places.insert(id.clone(), self.columns.len());
                self.columns.push(id);
            }
            self.file = None;
        }
        self.row.add(reading, &self.places, self.columns.len());
        if self.row.readings >= self.per_row {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes an incomplete row, if any.
    pub fn finish(mut self) -> Result<(), RecordError> {
        self.flush()?;
        match &mut self.file {
            Some(file) => file.sync(),
            None => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), RecordError> {
        let row = std::mem::take(&mut self.row);
        if row.readings == 0 || self.columns.is_empty() {
            return Ok(());
        }
        if self.file.is_none() {
            self.file = Some(self.next_file()?);
        }
        let file = self.file.as_mut().expect("it was created above");
        file.check_whole()?;
        let written = file.append(row.to_line().as_bytes());
        match written {
            Ok(()) => file.commit(),
            Err(_) => file.roll_back(),
        }
        written?;
        if self.sync_every.is_some_and(|every| self.synced.elapsed() >= every) {
            self.synced = Instant::now();
            return file.sync();
        }
        Ok(())
    }

    fn next_file(&mut self) -> Result<AppendFile, RecordError> {
        if let Some(folder) = self.stem.parent() {
            fs::create_dir_all(folder).map_err(RecordError::create(folder))?;
        }
        let mut header = "at_s,duration_s".to_owned();
        for id in &self.columns {
            header.push(',');
            header.push_str(&id.0);
        }
        header.push('\n');
        let mut file = AppendFile::create(&file_path(&self.stem, self.files + 1))?;
        self.files += 1;
        file.append(header.as_bytes())?;
        file.commit();
        Ok(file)
    }
}

impl Row {
    fn add(&mut self, reading: &Reading, places: &HashMap<MetricId, usize>, columns: usize) {
        self.readings += 1;
        self.at_s = reading.at_s;
        self.duration_s += reading.duration_s;
        self.sums.resize(columns, (0.0, 0.0));
        // A first reading covers no time, but its gauges count.
        let weight = reading.duration_s.max(1e-9);
        for (id, value) in &reading.values {
            if let Some(&place) = places.get(id)
                && value.is_finite()
            {
                let (sum, total) = &mut self.sums[place];
                *sum += value * weight;
                *total += weight;
            }
        }
    }

    fn to_line(&self) -> String {
        let mut line = format!("{:.6},{:.6}", self.at_s, self.duration_s);
        for (sum, total) in &self.sums {
            line.push(',');
            if *total > 0.0 {
                put_short(&mut line, sum / total);
            }
        }
        line.push('\n');
        line
    }
}

/// Writes six significant digits, which is enough for all these values.
fn put_short(line: &mut String, value: f64) {
    if value == 0.0 {
        line.push('0');
        return;
    }
    let magnitude = value.abs().log10().floor() as i32;
    let written = match magnitude {
        -5..=5 => {
            let decimals = (5 - magnitude) as usize;
            let text = format!("{value:.decimals$}");
            if text.contains('.') {
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            } else {
                text
            }
        }
        6..=7 => format!("{value:.0}"),
        _ => format!("{value:.5e}"),
    };
    write!(line, "{written}").expect("writing to a string cannot fail");
}

fn file_path(stem: &Path, number: u64) -> PathBuf {
    let name = stem.file_name().unwrap_or_default().to_string_lossy();
    stem.with_file_name(match number {
        1 => format!("{name}.csv"),
        number => format!("{name}~{number}.csv"),
    })
}

/// All values of a source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricTable {
    pub source: String,
    /// Times of the rows, from the start of the run, ascending.
    pub at_s: Vec<f64>,
    /// Length of the time that each row covers.
    pub duration_s: Vec<f64>,
    /// Values by metric, one per row; NaN if not reported.
    pub columns: BTreeMap<MetricId, Vec<f64>>,
}

impl MetricTable {
    /// Values of a metric, one per row.
    pub fn column(&self, id: &MetricId) -> Option<&[f64]> {
        self.columns.get(id).map(Vec::as_slice)
    }

    /// Values of a metric for each of its instances.
    pub fn columns_of(&self, metric: Metric) -> impl Iterator<Item = (&MetricId, &[f64])> {
        let columns = self.columns.iter().filter(move |(id, _)| metric.is(id));
        columns.map(|(id, values)| (id, values.as_slice()))
    }

    /// Distinct instances of a group, in order.
    pub fn instances(&self, group: &str) -> Vec<&str> {
        let of_group = self.columns.keys().filter(|id| id.group() == group);
        let mut instances: Vec<&str> = of_group.filter_map(MetricId::instance).collect();
        instances.sort_unstable();
        instances.dedup();
        instances
    }
}

/// Reads the metrics of a run, by source, with notes about truncated rows. The list is empty for a run without metrics.
/// An invalid row is an error.
pub fn read(run_directory: &Path) -> Result<(Vec<MetricTable>, Vec<String>), RecordError> {
    let folder = run_directory.join(FOLDER);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Default::default()),
        other => other.map_err(RecordError::read(&folder))?,
    };
    let mut files: BTreeMap<String, Vec<(u64, PathBuf)>> = BTreeMap::new();
    for entry in entries {
        let path = entry.map_err(RecordError::read(&folder))?.path();
        if path.extension().is_none_or(|ending| ending != "csv") {
            continue;
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let numbered = stem
            .rsplit_once('~')
            .and_then(|(source, number)| Some((source.to_owned(), number.parse::<u64>().ok()?)));
        let (source, number) = numbered.unwrap_or_else(|| (stem.into_owned(), 1));
        files.entry(source).or_default().push((number, path));
    }
    let mut notes = Vec::new();
    let mut tables = Vec::new();
    for (source, mut parts) in files {
        parts.sort_unstable();
        let mut table = MetricTable { source, ..MetricTable::default() };
        for (_, path) in parts {
            read_file(&path, &mut table, &mut notes)?;
        }
        tables.push(table);
    }
    Ok((tables, notes))
}

fn read_file(
    path: &Path,
    table: &mut MetricTable,
    notes: &mut Vec<String>,
) -> Result<(), RecordError> {
    let mut lines = Lines::open(path)?;
    let Some(header) = lines.next_line()? else {
        return Ok(());
    };
    let ids = columns_of(header);
    let ids = ids.ok_or_else(|| lines.corrupt("not the header of a metrics table"))?;
    let known = table.at_s.len();
    for id in &ids {
        table.columns.entry(id.clone()).or_insert_with(|| vec![f64::NAN; known]);
    }
    let mut columns: Vec<Vec<f64>> = vec![Vec::new(); ids.len()];
    while let Some(line) = lines.next_line()? {
        let row = row_of(line, ids.len());
        let Some((at_s, duration_s, values)) = row else {
            return Err(lines.corrupt("the row does not match the header"));
        };
        if table.at_s.last().is_some_and(|last| *last > at_s) {
            return Err(lines.corrupt("time goes backwards"));
        }
        table.at_s.push(at_s);
        table.duration_s.push(duration_s);
        for (column, value) in columns.iter_mut().zip(values) {
            column.push(value);
        }
    }
    if lines.is_torn() {
        notes.push(format!("the last row of `{}` was cut off", path.display()));
    }
    for (id, values) in ids.iter().zip(columns) {
        if let Some(column) = table.columns.get_mut(id) {
            column.extend(values);
        }
    }
    let rows = table.at_s.len();
    for column in table.columns.values_mut() {
        column.resize(rows, f64::NAN);
    }
    Ok(())
}

fn columns_of(header: &str) -> Option<Vec<MetricId>> {
    let mut cells = header.split(',');
    let is_table = cells.next() == Some("at_s") && cells.next() == Some("duration_s");
    let ids: Option<Vec<MetricId>> = cells.map(MetricId::parse).collect();
    ids.filter(|_| is_table)
}

fn row_of(line: &str, columns: usize) -> Option<(f64, f64, Vec<f64>)> {
    let mut cells = line.split(',');
    let at_s: f64 = cells.next()?.parse().ok()?;
    let duration_s: f64 = cells.next()?.parse().ok()?;
    let values: Option<Vec<f64>> = cells
        .map(|cell| match cell {
            "" => Some(f64::NAN),
            cell => cell.parse().ok(),
        })
        .collect();
    let values = values.filter(|values| values.len() == columns)?;
    (at_s.is_finite() && duration_s >= 0.0).then_some((at_s, duration_s, values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reading(at_s: f64, values: &[(&str, f64)]) -> Reading {
        let id = |text: &str| MetricId::parse(text).expect("the name is valid");
        Reading {
            at_s,
            duration_s: 1.0,
            values: values.iter().map(|(text, value)| (id(text), *value)).collect(),
        }
    }

    fn column(table: &MetricTable, id: &str) -> Vec<f64> {
        let id = MetricId::parse(id).expect("the name is valid");
        table.column(&id).expect("it was written").to_vec()
    }

    #[test]
    fn changing_metrics_create_a_bounded_number_of_files() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut writer = MetricsWriter::new(folder.path(), "odd", 1);
        for number in 0..200 {
            let name = format!("pod.p{number}.count");
            let values = [("a.x", 1.0), (name.as_str(), 1.0)];
            writer
                .record(&reading(f64::from(number), &values))
                .expect("the reading can be written");
        }
        writer.finish().expect("the row can be written");
        let (tables, _) = read(folder.path()).expect("they can be read");
        assert_eq!(tables[0].at_s.len(), 200);
        assert_eq!(tables[0].columns.len() as u64, MOST_FILES + 1);
        assert_eq!(column(&tables[0], "a.x"), vec![1.0; 200]);
    }

    #[test]
    fn a_name_has_its_parts() {
        let id = MetricId::of_instance("network", "eth0.100", "received_bytes_per_s");
        assert_eq!(id.to_string(), "network.eth0.100.received_bytes_per_s");
        assert_eq!(id.group(), "network");
        assert_eq!(id.instance(), Some("eth0.100"));
        assert_eq!(id.name(), "received_bytes_per_s");
        let id = MetricId::of("memory", "available_bytes");
        assert_eq!((id.instance(), id.name()), (None, "available_bytes"));
        assert_eq!(MetricId::of_instance("a", "b, c\n", "d").instance(), Some("b__c_"));
        for wrong in ["", "x", ".x", "x.", "a.b,c"] {
            assert_eq!(MetricId::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn readings_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = MetricsWriter::new(folder.path(), "host", 1);
        writer.record(&reading(1.0, &[("cpu.0.user_ratio", 0.25)])).unwrap();
        writer.record(&reading(2.0, &[])).unwrap();
        // A disk that appears late, and a non-finite value.
        let late = [("cpu.0.user_ratio", 0.5), ("disk.a.read_per_s", 123_456_000.0)];
        writer.record(&reading(3.0, &late)).unwrap();
        writer.record(&reading(4.0, &[("disk.a.read_per_s", f64::NAN)])).unwrap();
        writer.finish().unwrap();
        let (tables, notes) = read(folder.path()).unwrap();
        assert_eq!(notes, [""; 0]);
        assert_eq!(tables.len(), 1);
        let table = &tables[0];
        assert_eq!(table.source, "host");
        assert_eq!(table.at_s, [1.0, 2.0, 3.0, 4.0]);
        let cpu = column(table, "cpu.0.user_ratio");
        assert_eq!((cpu[0], cpu[2]), (0.25, 0.5));
        assert!(cpu[1].is_nan() && cpu[3].is_nan());
        let disk = column(table, "disk.a.read_per_s");
        assert!(disk[0].is_nan() && disk[1].is_nan() && disk[3].is_nan());
        assert_eq!(disk[2], 123_456_000.0);
        assert_eq!(table.instances("disk"), ["a"]);
    }

    #[test]
    fn rows_of_several_readings_hold_their_mean_over_time() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = MetricsWriter::new(folder.path(), "host", 2);
        let mut long = reading(4.0, &[("a.x_per_s", 40.0)]);
        long.duration_s = 3.0;
        writer.record(&reading(1.0, &[("a.x_per_s", 20.0), ("a.y_per_s", 1.0)])).unwrap();
        writer.record(&long).unwrap();
        writer.record(&reading(5.0, &[("a.x_per_s", 7.0)])).unwrap();
        writer.finish().unwrap();
        let (tables, _) = read(folder.path()).unwrap();
        assert_eq!(tables[0].at_s, [4.0, 5.0]);
        assert_eq!(tables[0].duration_s, [4.0, 1.0]);
        assert_eq!(column(&tables[0], "a.x_per_s"), [35.0, 7.0]);
        // A value that only one of the two readings has is its own mean.
        assert_eq!(column(&tables[0], "a.y_per_s")[0], 1.0);
    }

    #[test]
    fn a_truncated_row_is_skipped_with_a_note() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = MetricsWriter::new(folder.path(), "host", 1);
        writer.record(&reading(1.0, &[("a.x", 1.0), ("a.y", 2.0)])).unwrap();
        writer.finish().unwrap();
        let path = folder.path().join(FOLDER).join("host.csv");
        let mut text = fs::read_to_string(&path).unwrap();
        text.push_str("2.0,1.0,5");
        fs::write(&path, &text).unwrap();
        let (tables, notes) = read(folder.path()).unwrap();
        assert_eq!(tables[0].at_s, [1.0]);
        assert!(notes[0].contains("cut off"), "{notes:?}");
        fs::write(&path, text + "\n").unwrap();
        let error = read(folder.path()).unwrap_err();
        assert!(error.to_string().contains("line 3"), "{error}");
    }

    #[test]
    fn missing_metrics_are_empty_and_excess_columns_dropped() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), Default::default());
        let mut writer = MetricsWriter::new(folder.path(), "exporter", 1);
        let values = (0..MOST_COLUMNS + 5).map(|n| (MetricId::of("a", &format!("n{n}")), 1.0));
        let many = Reading { at_s: 1.0, duration_s: 1.0, values: values.collect() };
        writer.record(&many).unwrap();
        writer.record(&many).unwrap();
        writer.finish().unwrap();
        let (tables, _) = read(folder.path()).unwrap();
        assert_eq!((tables[0].columns.len(), tables[0].at_s.len()), (MOST_COLUMNS, 2));
    }

    proptest! {
        #[test]
        fn a_value_keeps_six_digits(value in prop::num::f64::NORMAL) {
            let mut text = String::new();
            put_short(&mut text, value);
            let back: f64 = text.parse().unwrap();
            prop_assert!((back - value).abs() <= value.abs() * 1e-5, "{value} {text}");
        }
    }
}
