//! Rows of `series/*.csv`: a single definition generates header, writing and parsing, so that they cannot diverge.
//! Other modules read and write the files.

use crate::error::RecordError;
use crate::hlog;
use crate::interval::{IntervalRecord, OperationInterval, WindowCounts};
use crate::model::{Arrivals, Operations, OwnCounts, PhaseKind};
use hdrhistogram::Histogram;
use std::collections::BTreeSet;
use std::fmt::Write;

/// A value that does not need quoting in a CSV file.
pub(crate) trait Cell: Sized {
    fn put(&self, line: &mut String);
    fn parse(text: &str) -> Option<Self>;
}

macro_rules! number_cells {
    ($($number:ty),*) => {$(
        impl Cell for $number {
            fn put(&self, line: &mut String) {
                write!(line, "{self}").expect("writing to a string cannot fail");
            }
            fn parse(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        }
    )*};
}
number_cells!(u64, u128, f64);

impl Cell for String {
    fn put(&self, line: &mut String) {
        line.push_str(self);
    }
    fn parse(text: &str) -> Option<Self> {
        is_plain_name(&hlog::name_in_tag(text)).then(|| text.to_owned())
    }
}

impl Cell for PhaseKind {
    fn put(&self, line: &mut String) {
        line.push_str(self.as_str());
    }
    fn parse(text: &str) -> Option<Self> {
        PhaseKind::from_name(text)
    }
}

/// A row of a series file.
pub(crate) trait Row: Sized {
    /// Column names joined by commas, without the line end.
    const HEADER: &'static str;
    /// Appends the row and a line end.
    fn put(&self, text: &mut String);
    /// Parses a line without its end; an error names the invalid column.
    fn parse(line: &str) -> Result<Self, String>;
}

macro_rules! rows {
    ($($(#[$attribute:meta])* $name:ident {
        $first:ident: $first_kind:ty,
        $($field:ident: $kind:ty,)*
    })*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) struct $name {
            pub(crate) $first: $first_kind,
            $(pub(crate) $field: $kind,)*
        }

        impl Row for $name {
            const HEADER: &'static str = concat!(stringify!($first) $(, ",", stringify!($field))*);

            fn put(&self, text: &mut String) {
                self.$first.put(text);
                $(text.push(','); self.$field.put(text);)*
                text.push('\n');
            }

            fn parse(line: &str) -> Result<Self, String> {
                let mut cells = line.split(',');
                let row = $name {
                    $first: next_cell(&mut cells, stringify!($first))?,
                    $($field: next_cell(&mut cells, stringify!($field))?,)*
                };
                match cells.next() {
                    None => Ok(row),
                    Some(_) => Err("the row has too many columns".to_owned()),
                }
            }
        }
    )*};
}

rows! {
    /// One recording window: a row of `series/intervals.csv`.
    IntervalRow {
        phase: PhaseKind,
        index: u64,
        start_ns: u64,
        duration_ns: u64,
        succeeded: u64,
        failed: u64,
        busy_ns: u128,
        in_flight_ns: u128,
        arrivals_due: u64,
        arrivals_started: u64,
        arrivals_dropped: u64,
        arrivals_late: u64,
        reconnects: u64,
        cpu_user_ns: u64,
        cpu_system_ns: u64,
        max_rss_bytes: u64,
        operation_rows: u64,
        error_rows: u64,
        thinking_ns: u128,
        retries: u64,
        transaction_restarts: u64,
        commit_retries: u64,
        transaction_aborts: u64,
        reply_operations: u64,
    }

    /// A part of a recording window: a row of `series/sub_second.csv`.
    SubSecondRow {
        start_ns: u64,
        ended: u64,
        response_sum_ns: u64,
        failed: u64,
    }

    /// One operation in one recording window: a row of `series/operations.csv`.
    OperationRow {
        phase: PhaseKind,
        index: u64,
        start_ns: u64,
        duration_ns: u64,
        operation: String,
        count: u64,
        errors: u64,
        documents: u64,
        clamped: u64,
        response_sum_ns: u128,
        service_sum_ns: u128,
        start_delay_sum_ns: u128,
        response_p50_us: f64,
        response_p99_us: f64,
        response_p99_9_us: f64,
        response_max_us: f64,
        service_p50_us: f64,
        service_p99_us: f64,
        service_p99_9_us: f64,
        service_max_us: f64,
    }

    /// Failures of one kind of one operation in one recording window: a row of `series/errors.csv`.
    ErrorRow {
        phase: PhaseKind,
        index: u64,
        operation: String,
        kind: String,
        count: u64,
    }
}

fn next_cell<'a, T: Cell>(
    cells: &mut impl Iterator<Item = &'a str>,
    column: &str,
) -> Result<T, String> {
    let text = cells.next().ok_or_else(|| format!("column `{column}` is missing"))?;
    T::parse(text).ok_or_else(|| format!("`{text}` is not a value of column `{column}`"))
}

/// Whether a name needs no quoting in a CSV cell and in a tag of the interval log.
fn is_plain_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'-');
    !name.is_empty() && name.bytes().all(plain)
}

/// Rejects the kind of an error that would break the files.
fn check_error_kind(name: &str) -> Result<String, RecordError> {
    let problem = "may only contain `A-Z a-z 0-9 _ : -`";
    let error = |name| RecordError::Name { what: "error kind", name, problem };
    if is_plain_name(name) { Ok(name.to_owned()) } else { Err(error(name.to_owned())) }
}

/// Rejects the name of an operation that would break the files. It may have spaces, which its tag replaces.
fn check_operation(name: &str) -> Result<String, RecordError> {
    let problem = "may only contain `A-Z a-z 0-9 _ : -` and spaces";
    let error = |name| RecordError::Name { what: "operation", name, problem };
    let is_fit = is_plain_name(&hlog::name_in_tag(name));
    if is_fit { Ok(name.to_owned()) } else { Err(error(name.to_owned())) }
}

/// Rejects operations whose names would break the files, or whose histograms would have the same tags: other tools
/// would add them up.
pub(crate) fn check_operations(operations: &Operations) -> Result<(), RecordError> {
    let mut tags = BTreeSet::new();
    for operation in operations.iter() {
        let name = check_operation(&operation.name)?;
        if !tags.insert(hlog::name_in_tag(&name)) {
            let problem = "has the tag of another operation in `latency.hlog`";
            return Err(RecordError::Name { what: "operation", name, problem });
        }
    }
    Ok(())
}

impl IntervalRow {
    /// Row with the scalar fields of a window.
    pub(crate) fn new(interval: &IntervalRecord) -> IntervalRow {
        let counts = &interval.counts;
        IntervalRow {
            phase: interval.phase,
            index: interval.index,
            start_ns: interval.start_ns,
            duration_ns: interval.duration_ns,
            succeeded: counts.succeeded,
            failed: counts.failed,
            busy_ns: counts.busy_ns,
            in_flight_ns: counts.in_flight_ns,
            thinking_ns: counts.thinking_ns,
            arrivals_due: counts.arrivals.due,
            arrivals_started: counts.arrivals.started,
            arrivals_dropped: counts.arrivals.dropped,
            arrivals_late: counts.arrivals.late,
            reconnects: counts.reconnects,
            retries: counts.retries,
            transaction_restarts: counts.own.transaction_restarts,
            commit_retries: counts.own.commit_retries,
            transaction_aborts: counts.own.transaction_aborts,
            reply_operations: counts.own.reply_operations,
            cpu_user_ns: counts.cpu_user_ns,
            cpu_system_ns: counts.cpu_system_ns,
            max_rss_bytes: counts.max_rss_bytes,
            operation_rows: interval.operations.len() as u64,
            error_rows: interval.errors.len() as u64,
        }
    }

    /// Totals of the window.
    pub(crate) fn counts(&self) -> WindowCounts {
        WindowCounts {
            succeeded: self.succeeded,
            failed: self.failed,
            busy_ns: self.busy_ns,
            in_flight_ns: self.in_flight_ns,
            thinking_ns: self.thinking_ns,
            arrivals: Arrivals {
                due: self.arrivals_due,
                started: self.arrivals_started,
                dropped: self.arrivals_dropped,
                late: self.arrivals_late,
            },
            reconnects: self.reconnects,
            retries: self.retries,
            own: OwnCounts {
                transaction_restarts: self.transaction_restarts,
                commit_retries: self.commit_retries,
                transaction_aborts: self.transaction_aborts,
                reply_operations: self.reply_operations,
            },
            cpu_user_ns: self.cpu_user_ns,
            cpu_system_ns: self.cpu_system_ns,
            max_rss_bytes: self.max_rss_bytes,
        }
    }
}

impl OperationRow {
    /// Row of one operation in a window.
    pub(crate) fn new(
        interval: &IntervalRecord,
        operation: &OperationInterval,
    ) -> Result<OperationRow, RecordError> {
        let response = &operation.response;
        let service = &operation.service;
        Ok(OperationRow {
            phase: interval.phase,
            index: interval.index,
            start_ns: interval.start_ns,
            duration_ns: interval.duration_ns,
            operation: check_operation(&operation.name)?,
            count: response.len(),
            errors: operation.errors,
            documents: operation.documents,
            clamped: operation.clamped,
            response_sum_ns: operation.response_sum_ns,
            service_sum_ns: operation.service_sum_ns,
            start_delay_sum_ns: operation.start_delay_sum_ns,
            response_p50_us: quantile_us(response, 0.5),
            response_p99_us: quantile_us(response, 0.99),
            response_p99_9_us: quantile_us(response, 0.999),
            response_max_us: quantile_us(response, 1.0),
            service_p50_us: quantile_us(service, 0.5),
            service_p99_us: quantile_us(service, 0.99),
            service_p99_9_us: quantile_us(service, 0.999),
            service_max_us: quantile_us(service, 1.0),
        })
    }
}

impl ErrorRow {
    /// Rows of all failures in a window.
    pub(crate) fn all(interval: &IntervalRecord) -> Result<Vec<ErrorRow>, RecordError> {
        let row = |error: &crate::interval::ErrorCount| {
            Ok(ErrorRow {
                phase: interval.phase,
                index: interval.index,
                operation: check_operation(&error.operation)?,
                kind: check_error_kind(&error.kind)?,
                count: error.count,
            })
        };
        interval.errors.iter().map(row).collect()
    }
}

fn quantile_us(histogram: &Histogram<u64>, quantile: f64) -> f64 {
    if histogram.is_empty() {
        return 0.0;
    }
    histogram.value_at_quantile(quantile) as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Effect, Operation};

    fn row() -> ErrorRow {
        ErrorRow {
            phase: PhaseKind::Measure,
            index: 7,
            operation: "read".to_owned(),
            kind: "server_11000".to_owned(),
            count: 3,
        }
    }

    #[test]
    fn a_row_is_read_back_as_it_was_written() {
        let mut text = String::new();
        row().put(&mut text);
        assert_eq!(text, "measure,7,read,server_11000,3\n");
        assert_eq!(ErrorRow::parse(text.trim_end()), Ok(row()));
        assert_eq!(ErrorRow::HEADER, "phase,index,operation,kind,count");
    }

    #[test]
    fn a_wrong_cell_is_named_with_its_column() {
        assert_eq!(
            ErrorRow::parse("measure,x,read,timeout,3"),
            Err("`x` is not a value of column `index`".to_owned())
        );
        assert_eq!(ErrorRow::parse("measure,7,read"), Err("column `kind` is missing".to_owned()));
        assert_eq!(
            ErrorRow::parse("measure,7,read,timeout,3,4"),
            Err("the row has too many columns".to_owned())
        );
        assert_eq!(
            ErrorRow::parse("cooldown,7,read,timeout,3"),
            Err("`cooldown` is not a value of column `phase`".to_owned())
        );
    }

    #[test]
    fn names_that_would_break_a_file_are_refused() {
        for name in ["", "a,b", "a b", "a\nb", "a.b", "\"a\"", "é"] {
            assert!(check_error_kind(name).is_err(), "{name:?}");
        }
        assert!(check_error_kind("server_11000").is_ok());
        for name in ["", "orders, paid", "a\nb", "a.b", "\"a\"", "é"] {
            assert!(check_operation(name).is_err(), "{name:?}");
        }
        let all = |names: [&str; 2]| {
            let operations = names.map(|name| Operation::new(name, Effect::Read));
            check_operations(&operations.to_vec().into()).map_err(|error| error.to_string())
        };
        assert_eq!(all(["orders of a customer", "all"]), Ok(()));
        let same = "operation `pay_now` has the tag of another operation in `latency.hlog`";
        assert_eq!(all(["pay now", "pay_now"]), Err(same.to_owned()));
    }
}
