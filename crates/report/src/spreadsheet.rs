//! Tables for spreadsheets: RFC 4180 with line feeds, numbers in the units that the head names.

use dyno_record::experiment::Figure;

/// The names of a figure and of the ends of its interval.
pub(crate) fn with_interval(name: String) -> [String; 3] {
    [name.clone(), format!("{name}_low"), format!("{name}_high")]
}

/// The value and the ends of its interval; empty cells for what is not known.
pub(crate) fn figure(figure: Option<&Figure>, decimals: usize) -> [String; 3] {
    let number =
        |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.decimals$}"));
    [
        number(figure.map(|figure| figure.value)),
        number(figure.and_then(|figure| figure.low)),
        number(figure.and_then(|figure| figure.high)),
    ]
}

/// A line of the table, with its end.
pub(crate) fn line(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
    cells.join(",") + "\n"
}

/// A cell, with quotes where it needs them.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
