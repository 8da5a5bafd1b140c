//! Text layout for fixed-width output: colours, wrapped paragraphs, and tables that leave out their least important columns
//! on narrow terminals. It is independent of the content.

use crate::page::table::{Cell, Table, Tone};
use dyno_record::visible::painted;

/// Formats text in a tone, or leaves it unchanged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Painter {
    /// Whether to mark colours, for [`coloured`](dyno_record::visible::coloured).
    pub(crate) colours: bool,
}

impl Painter {
    /// The text in the tone. Empty text stays empty.
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Strong => "1",
            Tone::Soft => "2",
            Tone::Doubt => "33",
            Tone::Alarm => "31",
        };
        if self.colours && !text.is_empty() { painted(code, text) } else { text.to_owned() }
    }
}

/// Width of a text in characters. Reports use no wide or combining characters of their own.
pub(crate) fn text_width(text: &str) -> usize {
    text.chars().count()
}

/// Words that stay with the word before them, so that a line break does not separate a number from its unit.
const UNITS: [&str; 10] = ["%", "s", "ms", "µs", "ns", "B", "KiB", "MiB", "GiB", "TiB"];

/// Words that stay with the word after them.
const SIGNS: [&str; 2] = ["±", "="];

/// The words of a text; a number with its unit is one word. A unit may end with a bracket or a comma.
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

/// Spaces between columns.
const GAP: usize = 2;

/// The lines of a table, without trailing spaces, in at most `width` characters if leaving out columns can achieve that.
/// Missing cells at the end of a row are empty, extra cells are ignored. Also returns the titles of left-out columns, which
/// the report lists.
pub(crate) fn lines(table: &Table, width: usize, painter: Painter) -> (Vec<String>, Vec<String>) {
    let columns = &table.columns;
    let widths: Vec<usize> = (0..columns.len()).map(|i| width_of(table, i)).collect();
    let mut shown: Vec<usize> = (0..columns.len()).filter(|&index| widths[index] > 0).collect();
    let mut left_out = Vec::new();
    let total = |shown: &[usize]| shown.iter().map(|&i| widths[i] + GAP).sum::<usize>();
    while total(&shown) > width + GAP {
        let removable = |index: &&usize| columns[**index].rank < u8::MAX;
        let rank = |index: &&usize| columns[**index].rank;
        let Some(&least) = shown.iter().filter(removable).min_by_key(rank) else {
            break;
        };
        shown.retain(|&index| index != least);
        left_out.push(columns[least].title.clone());
    }
    let titles = columns.iter().map(|column| Cell::new(&column.title, Tone::Soft)).collect();
    let lines = std::iter::once(&titles)
        .chain(&table.rows)
        .map(|cells| line(table, cells, &shown, &widths, painter))
        .collect();
    (lines, left_out)
}

/// Width of a column; 0 if all its cells are empty.
fn width_of(table: &Table, index: usize) -> usize {
    let cells = table.rows.iter().filter_map(|row| row.get(index));
    match cells.map(|cell| text_width(&cell.text)).max() {
        None | Some(0) => 0,
        Some(widest) => widest.max(text_width(&table.columns[index].title)),
    }
}

fn line(
    table: &Table,
    cells: &[Cell],
    shown: &[usize],
    widths: &[usize],
    painter: Painter,
) -> String {
    let empty = Cell::default();
    let mut line = String::new();
    let mut pending = 0;
    for (position, &index) in shown.iter().enumerate() {
        let cell = cells.get(index).unwrap_or(&empty);
        let padding = widths[index] - text_width(&cell.text);
        let (before, after) =
            if table.columns[index].is_number { (padding, 0) } else { (0, padding) };
        pending += before + if position == 0 { 0 } else { GAP };
        if !cell.text.is_empty() {
            line.push_str(&" ".repeat(pending));
            line.push_str(&painter.paint(cell.tone, &cell.text));
            pending = 0;
        }
        pending += after;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::table::Column;
    use dyno_record::visible::coloured;

    const PLAIN: Painter = Painter { colours: false };

    fn table() -> Table {
        Table {
            label: String::new(),
            columns: vec![
                Column::text("name"),
                Column::number("count", 9),
                Column::number("p95", 1),
                Column::number("p99", 5),
            ],
            rows: vec![
                vec!["read".into(), "1,000".into(), "5".into(), "9".into()],
                vec!["update_all".into(), "1".into()],
            ],
            focus: 0,
        }
    }

    #[test]
    fn numbers_are_aligned_to_the_right_and_words_to_the_left() {
        let (lines, left_out) = lines(&table(), 80, PLAIN);
        let expected =
            ["name        count  p95  p99", "read        1,000    5    9", "update_all      1"];
        assert_eq!(lines, expected);
        assert!(left_out.is_empty());
    }

    #[test]
    fn layout_omits_columns_without_content() {
        let table = Table {
            label: String::new(),
            columns: vec![Column::text("a"), Column::number("empty", 1)],
            rows: vec![vec!["x".into(), "".into()]],
            focus: 0,
        };
        assert_eq!(lines(&table, 80, PLAIN).0, ["a", "x"]);
    }

    #[test]
    fn layout_omits_least_important_columns_first_and_names_them() {
        let (wide, left_out) = lines(&table(), 22, PLAIN);
        assert_eq!(wide[0], "name        count  p99");
        assert_eq!(left_out, ["p95"]);
        let (narrow, left_out) = lines(&table(), 3, PLAIN);
        assert_eq!(narrow[0], "name");
        assert_eq!(left_out, ["p95", "p99", "count"]);
    }

    #[test]
    fn colours_do_not_change_the_alignment() {
        let columns = vec![Column::text("a"), Column::number("b", 1)];
        let rows = vec![vec![Cell::new("x", Tone::Strong), "1".into()]];
        let table = Table::new("", columns, rows);
        let (lines, _) = lines(&table, 80, Painter { colours: true });
        assert_eq!(coloured(&lines[1]), "\u{1b}[1mx\u{1b}[0m  1");
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
