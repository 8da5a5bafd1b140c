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

/// The unit of a metric by the suffix of its name; empty if unknown.
pub(crate) fn unit(metric: &str) -> &'static str {
    const UNITS: [(&str, &str); 16] = [
        ("_bytes_per_s", "bytes/s"),
        ("_per_s", "1/s"),
        ("_bytes", "bytes"),
        ("_ratio", "ratio"),
        ("_percent", "percent"),
        ("_count", "count"),
        ("_us", "us"),
        ("_ms", "ms"),
        ("_ns", "ns"),
        ("_s", "s"),
        ("_hz", "hz"),
        ("_joules", "joules"),
        // In the currency of the plan.
        ("price_per_million", "price"),
        ("_celsius", "celsius"),
        (".celsius", "celsius"),
        ("average_1m", "count"),
    ];
    let fitting = UNITS.iter().find(|(end, _)| metric.ends_with(end));
    fitting.map_or("", |(_, unit)| unit)
}
