//! The long table as CSV in the form of RFC 4180, with line feeds.

use crate::export::rows::{Row, each};
use dyno_engine::files::write_error;
use dyno_engine::{Error, Kind, OrFault};
use dyno_record::reader::Run;
use jiff::Timestamp;
use std::borrow::Cow;
use std::io::Write;

/// Writes the table.
pub(crate) fn write(run: &Run, output: &mut dyn Write) -> Result<(), Error> {
    let head = "time,at_s,duration_s,phase,source,metric,instance,value,unit";
    writeln!(output, "{head}").map_err(write_error)?;
    // Many rows share their time.
    let mut time = (i64::MIN, String::new());
    each(run, &mut |row| {
        if time.0 != row.time_us {
            time = (row.time_us, time_text(row.time_us)?);
        }
        write_row(output, &time.1, row)
    })
}

fn write_row(output: &mut dyn Write, time: &str, row: &Row<'_>) -> Result<(), Error> {
    let phase = row.phase.map_or("", |phase| phase.as_str());
    let (source, metric) = (quoted(row.source), quoted(row.metric));
    let instance = quoted(row.instance.unwrap_or_default());
    writeln!(
        output,
        "{time},{:.6},{:.6},{phase},{source},{metric},{instance},{},{}",
        row.at_s,
        row.duration_s,
        row.value,
        row.unit()
    )
    .map_err(write_error)
}

/// A cell, with quotes where it needs them.
fn quoted(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(text)
    }
}

fn time_text(time_us: i64) -> Result<String, Error> {
    let time = Timestamp::from_microsecond(time_us).or_fault(
        Kind::BadInput,
        || "the run is at no time that can be written",
    )?;
    Ok(time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_would_break_a_row_is_quoted() {
        assert_eq!(quoted("read"), "read");
        assert_eq!(quoted("a,b \"c\""), "\"a,b \"\"c\"\"\"");
    }
}
