//! Tables for other programs, with the same rows as CSV or Parquet.

use dyno_engine::Error;

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Instants, in microseconds since 1970.
    Time,
    /// Seconds; CSV rounds them to microseconds.
    Seconds,
    Number,
    Integer,
    Text,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Whether cells may be absent.
    pub(crate) is_optional: bool,
}

impl Column {
    /// A column with a value in every row.
    pub(crate) fn new(name: &str, kind: Kind) -> Self {
        Column { name: name.to_owned(), kind, is_optional: false }
    }

    /// A column that may have absent cells.
    pub(crate) fn optional(name: &str, kind: Kind) -> Self {
        Column { is_optional: true, ..Column::new(name, kind) }
    }
}

/// A cell of a row, with the type of its column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    Absent,
    Time(i64),
    Seconds(f64),
    Number(f64),
    Integer(i64),
    Text(&'a str),
}

impl<'a> From<Option<&'a str>> for Cell<'a> {
    fn from(text: Option<&'a str>) -> Self {
        text.map_or(Cell::Absent, Cell::Text)
    }
}

impl From<Option<f64>> for Cell<'_> {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Cell::Absent, Cell::Number)
    }
}

impl From<Option<i64>> for Cell<'_> {
    fn from(number: Option<i64>) -> Self {
        number.map_or(Cell::Absent, Cell::Integer)
    }
}

/// Writer of rows with one cell per column.
pub(crate) trait Table {
    /// Adds a row.
    ///
    /// # Errors
    /// The row cannot be written.
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), Error>;
}

/// Function that fills a table.
pub(crate) type Fill<'a> = dyn Fn(&mut dyn Table) -> Result<(), Error> + 'a;

/// Suffixes of metrics: their unit, and the suffix and the factor in the base units of Prometheus. The first match counts.
pub(crate) const UNITS: [(&str, &str, &str, f64); 16] = [
    ("_bytes_per_s", "bytes/s", "_bytes_per_second", 1.0),
    ("_per_s", "1/s", "_per_second", 1.0),
    ("_bytes", "bytes", "_bytes", 1.0),
    ("_ratio", "ratio", "_ratio", 1.0),
    ("_percent", "percent", "_ratio", 1e-2),
    ("_count", "count", "", 1.0),
    ("_us", "us", "_seconds", 1e-6),
    ("_ms", "ms", "_seconds", 1e-3),
    ("_ns", "ns", "_seconds", 1e-9),
    ("_s", "s", "_seconds", 1.0),
    ("_hz", "hz", "_hertz", 1.0),
    ("_joules", "joules", "_joules", 1.0),
    // In the currency of the plan.
    ("price_per_million", "price", "price_per_million", 1.0),
    ("_celsius", "celsius", "_celsius", 1.0),
    (".celsius", "celsius", ".celsius", 1.0),
    ("average_1m", "count", "average_1m", 1.0),
];

/// The unit of a metric by the suffix of its name; empty if unknown.
pub(crate) fn unit(metric: &str) -> &'static str {
    let fitting = UNITS.iter().find(|(end, ..)| metric.ends_with(end));
    fitting.map_or("", |(_, unit, ..)| unit)
}
