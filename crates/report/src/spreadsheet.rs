//! Tables for spreadsheets: RFC 4180 with line feeds; the header names the units.

use dyno_record::experiment::Figure;
use dyno_record::visible::visible;
use std::borrow::Cow;

/// Column names of a figure and the ends of its interval.
pub(crate) fn with_interval(name: String) -> [String; 3] {
    [name.clone(), format!("{name}_low"), format!("{name}_high")]
}

/// The value and the ends of its interval; unknown values are empty.
pub(crate) fn figure(figure: Option<&Figure>, decimals: usize) -> [String; 3] {
    let number =
        |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.decimals$}"));
    [
        number(figure.map(|figure| figure.value)),
        number(figure.and_then(|figure| figure.low)),
        number(figure.and_then(|figure| figure.high)),
    ]
}

/// A line of the table, with its line end.
pub(crate) fn line(cells: &[String]) -> String {
    let cells: Vec<Cow<'_, str>> = cells
        .iter()
        .map(|cell| match cell.parse::<f64>() {
            Ok(_) => Cow::Borrowed(cell.as_str()),
            Err(_) => text_cell(cell),
        })
        .collect();
    cells.join(",") + "\n"
}

/// A text as a cell: quoted if needed, without control characters, and with a leading `'` if a spreadsheet would read it as
/// a formula.
pub fn text_cell(text: &str) -> Cow<'_, str> {
    let shown = visible(text);
    let is_formula = shown.starts_with(['=', '+', '-', '@', '\t', '\n']);
    if !is_formula && !shown.contains([',', '"', '\n']) {
        return shown;
    }
    let mark = if is_formula { "'" } else { "" };
    Cow::Owned(format!("\"{mark}{}\"", shown.replace('"', "\"\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cell_is_never_a_formula_or_a_control_character() {
        for (text, cell) in [
            ("read", "read"),
            ("a,b \"c\"", "\"a,b \"\"c\"\"\""),
            ("=cmd|' /C calc'!A0", "\"'=cmd|' /C calc'!A0\""),
            ("+1", "\"'+1\""),
            ("-x", "\"'-x\""),
            ("@sum", "\"'@sum\""),
            ("\t=1", "\"'\t=1\""),
            ("\x1b[8mx\r", "\\u{1b}[8mx\\r"),
            ("a=b", "a=b"),
        ] {
            assert_eq!(text_cell(text), cell);
        }
    }

    #[test]
    fn numbers_of_a_line_stay_numbers() {
        let cells = ["-1.5", "", "=x"].map(str::to_owned);
        assert_eq!(line(&cells), "-1.5,,\"'=x\"\n");
    }
}
