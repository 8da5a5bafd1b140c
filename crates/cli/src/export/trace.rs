//! All calls of a trace as one table, with a row per call on a file.

use crate::export::table::{Cell, Column, Kind, Table};
use dyno_engine::{Error, Kind as Fault};
use dyno_record::io_trace::document::TraceMode;
use dyno_record::io_trace::reader::TraceReader;

/// The columns. Instants are relative to the zero of the trace.
pub(crate) fn columns() -> Vec<Column> {
    vec![
        Column::new("start_ns", Kind::Integer),
        Column::new("latency_ns", Kind::Integer),
        Column::new("operation", Kind::Text),
        Column::new("file", Kind::Text),
        Column::optional("offset_bytes", Kind::Integer),
        Column::new("requested_bytes", Kind::Integer),
        Column::optional("returned_bytes", Kind::Integer),
        Column::optional("errno", Kind::Integer),
        Column::optional("fetched_bytes", Kind::Integer),
        Column::new("process", Kind::Integer),
        Column::new("thread", Kind::Integer),
    ]
}

/// Writes all calls, roughly in the order of their ends.
pub(crate) fn fill(trace: &TraceReader, table: &mut dyn Table) -> Result<(), Error> {
    let document = trace.document();
    if document.mode == TraceMode::Aggregated {
        let text = "cannot export single calls: an aggregated trace holds only totals per file";
        return Err(Error::new(Fault::BadInput, text)
            .with_hint("get the totals with `dyno report TRACE --format json`"));
    }
    let signed = |number: u64| Cell::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    let known = |number: i64| Cell::from(Some(number).filter(|number| *number >= 0));
    for batch in trace.calls()? {
        for call in batch?.iter() {
            let file = document.files.get(call.file as usize);
            let error = Some(call.returned).filter(|returned| *returned < 0);
            table.row(&[
                Cell::Integer(call.start_ns),
                signed(call.latency_ns),
                Cell::Text(call.operation.as_str()),
                Cell::Text(file.map_or("", |file| &file.name)),
                known(call.offset),
                signed(call.requested),
                known(call.returned),
                error.map(i64::saturating_neg).into(),
                known(call.fetched),
                Cell::Integer(call.process.into()),
                Cell::Integer(call.thread.into()),
            ])?;
        }
    }
    Ok(())
}
