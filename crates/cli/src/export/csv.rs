//! Writes a table as RFC 4180 CSV, with line feeds.

use crate::export::table::{Cell, Column, Fill, Table};
use dyno_engine::files::write_error;
use dyno_engine::{Error, Kind, OrFault};
use dyno_report::text_cell;
use jiff::Timestamp;
use std::borrow::Cow;
use std::io::Write;

/// Writes a table.
pub(crate) fn write(
    columns: &[Column],
    fill: &Fill<'_>,
    output: &mut dyn Write,
) -> Result<(), Error> {
    let names: Vec<Cow<'_, str>> = columns.iter().map(|column| text_cell(&column.name)).collect();
    writeln!(output, "{}", names.join(",")).map_err(write_error)?;
    fill(&mut Lines { output, time: (i64::MIN, String::new()) })
}

struct Lines<'a> {
    output: &'a mut dyn Write,
    /// Cached, because many rows share their time.
    time: (i64, String),
}

impl Table for Lines<'_> {
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), Error> {
        for (place, cell) in cells.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            if let Cell::Time(time_us) = cell
                && self.time.0 != *time_us
            {
                self.time = (*time_us, time_text(*time_us)?);
            }
            match cell {
                Cell::Absent => write!(self.output, "{comma}"),
                Cell::Time(_) => write!(self.output, "{comma}{}", self.time.1),
                Cell::Seconds(seconds) => write!(self.output, "{comma}{seconds:.6}"),
                Cell::Number(number) => write!(self.output, "{comma}{number}"),
                Cell::Integer(number) => write!(self.output, "{comma}{number}"),
                Cell::Text(text) => write!(self.output, "{comma}{}", text_cell(text)),
            }
            .map_err(write_error)?;
        }
        writeln!(self.output).map_err(write_error)
    }
}

fn time_text(time_us: i64) -> Result<String, Error> {
    let time = Timestamp::from_microsecond(time_us)
        .or_fault(Kind::BadInput, || "cannot format the time of the run")?;
    Ok(time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::table;

    #[test]
    fn cells_are_written_by_their_kind() {
        let columns = [
            Column::new("time", table::Kind::Time),
            Column::new("at_s", table::Kind::Seconds),
            Column::optional("server.cache,x", table::Kind::Text),
            Column::optional("n", table::Kind::Integer),
            Column::new("value", table::Kind::Number),
        ];
        let mut output = Vec::new();
        let fill = |table: &mut dyn Table| {
            let (time, at_s) = (Cell::Time(1), Cell::Seconds(0.25));
            let (none, number) = (Cell::Absent, Cell::Number(0.1));
            table.row(&[time, at_s, none, none, number])?;
            let text = Cell::Text("a,b");
            table.row(&[time, at_s, text, Cell::Integer(-1), number])
        };
        write(&columns, &fill, &mut output).unwrap();
        assert_eq!(
            String::from_utf8(output).unwrap(),
            "time,at_s,\"server.cache,x\",n,value\n\
             1970-01-01T00:00:00.000001Z,0.250000,,,0.1\n\
             1970-01-01T00:00:00.000001Z,0.250000,\"a,b\",-1,0.1\n"
        );
    }
}
