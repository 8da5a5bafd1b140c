//! A table for other programs: the same rows as CSV or as a Parquet file.

use dyno_engine::Error;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Instants, in microseconds since 1970.
    Time,
    /// Numbers of seconds; CSV has microseconds of them.
    Seconds,
    Number,
    Integer,
    Text,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Whether cells may be absent.
    pub(crate) is_optional: bool,
}

impl Column {
    /// A column of which each row has a value.
    pub(crate) fn new(name: &str, kind: Kind) -> Self {
        Column {
            name: name.to_owned(),
            kind,
            is_optional: false,
        }
    }

    /// A column that rows may lack.
    pub(crate) fn optional(name: &str, kind: Kind) -> Self {
        Column {
            is_optional: true,
            ..Column::new(name, kind)
        }
    }
}

/// A cell of a row, of the kind of its column.
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

/// What rows are written to, one after the other, each with a cell for each column.
pub(crate) trait Table {
    /// Adds a row.
    ///
    /// # Errors
    /// It cannot be written.
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), Error>;
}

/// What fills a table.
pub(crate) type Fill<'a> = dyn Fn(&mut dyn Table) -> Result<(), Error> + 'a;

/// The unit of a metric, as the end of its name tells it; empty without one.
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
