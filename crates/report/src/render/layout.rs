//! Text layout for fixed-width output: colours, wrapped paragraphs, and tables that leave out
//! their least important columns where there is no room. It knows nothing of runs.

use std::borrow::Cow;

/// How a piece of text is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Style {
    /// As it is.
    #[default]
    Plain,
    /// Headings and headline numbers.
    Bold,
    /// Labels and units.
    Dim,
    /// Caveats.
    Caution,
    /// Failures and serious caveats.
    Alarm,
}

/// Sets text in a style, or leaves it alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Painter {
    /// Whether to write colour codes.
    pub(crate) colours: bool,
}

impl Painter {
    /// The text in the style. Empty text stays empty.
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Plain => return text.to_owned(),
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Caution => "33",
            Style::Alarm => "31",
        };
        if self.colours && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Characters that a text takes on a line. Reports use no wide or combining characters of their own.
pub(crate) fn text_width(text: &str) -> usize {
    text.chars().count()
}

/// Words that stay with the one before them: a number without its unit says little.
const UNITS: [&str; 10] = ["%", "s", "ms", "µs", "ns", "B", "KiB", "MiB", "GiB", "TiB"];

/// Words that stay with the one after them.
const SIGNS: [&str; 2] = ["±", "="];

/// The words of a text; a number with its unit is one. A unit may have a bracket or a comma at its end.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_open = false;
    for word in text.split_whitespace() {
        let unit = word.trim_end_matches([',', '.', ';', ':', ')']);
        let ends_in_digit = |last: &String| last.ends_with(|c: char| c.is_ascii_digit());
        let is_unit = UNITS.contains(&unit) && words.last().is_some_and(ends_in_digit);
        match words.last_mut() {
            Some(last) if is_unit || is_open => *last = format!("{last} {word}"),
            _ => words.push(word.to_owned()),
        }
        is_open = SIGNS.contains(&word);
    }
    words
}

/// Breaks text at spaces into lines of at most `width` characters. The first line begins with
/// `first` spaces, later ones with `rest`. A word longer than a line stays whole.
pub(crate) fn wrap(text: &str, width: usize, first: usize, rest: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = " ".repeat(first);
    let mut has_word = false;
    for word in words(text) {
        if has_word && text_width(&line) + 1 + text_width(&word) > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(rest)));
            has_word = false;
        }
        if has_word {
            line.push(' ');
        }
        line.push_str(&word);
        has_word = true;
    }
    if has_word {
        lines.push(line);
    }
    lines
}

/// A cell of a [`Table`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// Text in a style.
    pub(crate) fn new(text: impl Into<String>, style: Style) -> Self {
        let text = text.into();
        Cell { text, style }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell::new(text, Style::Plain)
    }
}

/// A column of a [`Table`].
#[derive(Clone, Debug)]
pub(crate) struct Column {
    title: Cow<'static, str>,
    right: bool,
    /// Columns with a lower rank are left out first; rank 255 always stays.
    rank: u8,
}

impl Column {
    /// A column of words.
    pub(crate) fn text(title: impl Into<Cow<'static, str>>) -> Self {
        Column {
            title: title.into(),
            right: false,
            rank: u8::MAX,
        }
    }

    /// A column of numbers.
    pub(crate) fn number(title: impl Into<Cow<'static, str>>, rank: u8) -> Self {
        Column {
            title: title.into(),
            right: true,
            rank,
        }
    }
}

/// A table of text.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

/// Spaces between columns.
const GAP: usize = 2;

impl Table {
    /// A table without rows.
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        Table {
            columns,
            rows: Vec::new(),
        }
    }

    /// Adds a row; missing cells at its end are empty, cells without a column are left out.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The lines, without trailing spaces, in at most `width` characters if leaving out columns
    /// can achieve that. The titles of left-out columns are returned too: leaving out is told.
    pub(crate) fn lines(&self, width: usize, painter: Painter) -> (Vec<String>, Vec<String>) {
        let widths: Vec<usize> = (0..self.columns.len()).map(|i| self.width_of(i)).collect();
        let mut shown: Vec<usize> = (0..self.columns.len())
            .filter(|&index| widths[index] > 0)
            .collect();
        let mut left_out = Vec::new();
        let total = |shown: &[usize]| shown.iter().map(|&i| widths[i] + GAP).sum::<usize>();
        while total(&shown) > width + GAP {
            let removable = |index: &&usize| self.columns[**index].rank < u8::MAX;
            let rank = |index: &&usize| self.columns[**index].rank;
            let Some(&least) = shown.iter().filter(removable).min_by_key(rank) else {
                break;
            };
            shown.retain(|&index| index != least);
            left_out.push(self.columns[least].title.to_string());
        }
        let titles = self
            .columns
            .iter()
            .map(|column| Cell::new(column.title.as_ref(), Style::Dim))
            .collect();
        let lines = std::iter::once(&titles)
            .chain(&self.rows)
            .map(|cells| self.line(cells, &shown, &widths, painter))
            .collect();
        (lines, left_out)
    }

    /// Width of a column; 0 when no row has anything in it.
    fn width_of(&self, index: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(index));
        match cells.map(|cell| text_width(&cell.text)).max() {
            None | Some(0) => 0,
            Some(widest) => widest.max(text_width(&self.columns[index].title)),
        }
    }

    fn line(&self, cells: &[Cell], shown: &[usize], widths: &[usize], painter: Painter) -> String {
        let empty = Cell::default();
        let mut line = String::new();
        let mut pending = 0;
        for (position, &index) in shown.iter().enumerate() {
            let cell = cells.get(index).unwrap_or(&empty);
            let padding = widths[index] - text_width(&cell.text);
            let (before, after) = if self.columns[index].right {
                (padding, 0)
            } else {
                (0, padding)
            };
            pending += before + if position == 0 { 0 } else { GAP };
            if !cell.text.is_empty() {
                line.push_str(&" ".repeat(pending));
                line.push_str(&painter.paint(cell.style, &cell.text));
                pending = 0;
            }
            pending += after;
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Painter = Painter { colours: false };

    fn table() -> Table {
        let mut table = Table::new(vec![
            Column::text("name"),
            Column::number("count", 9),
            Column::number("p95", 1),
            Column::number("p99", 5),
        ]);
        table.row(vec!["read".into(), "1,000".into(), "5".into(), "9".into()]);
        table.row(vec!["update_all".into(), "1".into()]);
        table
    }

    #[test]
    fn numbers_are_aligned_to_the_right_and_words_to_the_left() {
        let (lines, left_out) = table().lines(80, PLAIN);
        let expected = [
            "name        count  p95  p99",
            "read        1,000    5    9",
            "update_all      1",
        ];
        assert_eq!(lines, expected);
        assert!(left_out.is_empty());
    }

    #[test]
    fn a_column_without_content_is_not_shown() {
        let mut table = Table::new(vec![Column::text("a"), Column::number("empty", 1)]);
        table.row(vec!["x".into(), "".into()]);
        assert_eq!(table.lines(80, PLAIN).0, ["a", "x"]);
    }

    #[test]
    fn the_least_important_columns_are_left_out_first_and_named() {
        let (lines, left_out) = table().lines(22, PLAIN);
        assert_eq!(lines[0], "name        count  p99");
        assert_eq!(left_out, ["p95"]);
        let (lines, left_out) = table().lines(3, PLAIN);
        assert_eq!(lines[0], "name");
        assert_eq!(left_out, ["p95", "p99", "count"]);
    }

    #[test]
    fn colours_do_not_change_the_alignment() {
        let mut table = Table::new(vec![Column::text("a"), Column::number("b", 1)]);
        table.row(vec![Cell::new("x", Style::Bold), "1".into()]);
        let (lines, _) = table.lines(80, Painter { colours: true });
        assert_eq!(lines[1], "\u{1b}[1mx\u{1b}[0m  1");
    }

    #[test]
    fn paragraphs_are_broken_at_spaces_and_indented() {
        let lines = wrap("[1] one two three four", 13, 1, 4);
        assert_eq!(lines, [" [1] one two", "    three", "    four"]);
        assert_eq!(wrap("indivisible", 4, 0, 2), ["indivisible"]);
        let lines = wrap("about ± 13 %, or 5 s", 10, 0, 0);
        assert_eq!(lines, ["about", "± 13 %, or", "5 s"]);
        assert!(wrap("  ", 4, 2, 2).is_empty());
    }
}
