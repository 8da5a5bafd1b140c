//! Tables of any content, for all three renderers: cells with an interval below their value, and columns that a
//! narrow terminal may leave out.

use serde::Serialize;
use std::fmt::Display;

/// How a piece of text is set, such as a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// As it is.
    #[default]
    Plain,
    /// What the row is about; headings and headline numbers.
    Strong,
    /// Less important: labels and notes.
    Soft,
    /// A doubt.
    Doubt,
    /// Bad news.
    Alarm,
}

/// A cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cell {
    /// What stands in it.
    pub text: String,
    /// What stands below it, such as its interval.
    pub detail: Option<String>,
    /// How it is set.
    pub tone: Tone,
    /// Where it leads to, relative to the folder of the report.
    pub link: Option<String>,
}

impl Cell {
    /// Text in a tone.
    pub fn new(text: impl Display, tone: Tone) -> Cell {
        Cell {
            text: text.to_string(),
            tone,
            ..Cell::default()
        }
    }

    /// The value, or an empty cell if it is not known.
    pub fn known(value: Option<impl Display>) -> Cell {
        value.map_or_else(Cell::default, Cell::from)
    }

    /// The same with something below it.
    pub fn with_detail(self, detail: Option<String>) -> Cell {
        Cell { detail, ..self }
    }
}

impl<T: Display> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell::new(text, Tone::Plain)
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Column {
    /// Its title.
    pub title: String,
    /// Whether it is aligned to the right.
    pub is_number: bool,
    /// Columns of a lower rank are left out first where there is no room; 255 always stays.
    pub rank: u8,
    /// Numbers of the caveats that touch it.
    pub marks: Vec<usize>,
}

impl Column {
    /// A column of words, which always stays.
    pub fn text(title: impl Into<String>) -> Column {
        Column {
            title: title.into(),
            is_number: false,
            rank: u8::MAX,
            marks: Vec::new(),
        }
    }

    /// A column of numbers.
    pub fn number(title: impl Into<String>, rank: u8) -> Column {
        Column {
            is_number: true,
            rank,
            ..Column::text(title)
        }
    }

    /// The same with these caveats.
    pub fn marked(self, marks: &[usize]) -> Column {
        Column {
            marks: marks.to_vec(),
            ..self
        }
    }
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// What it shows, for those who cannot see where it stands.
    pub label: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, with a cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without the columns that are empty in every row.
    pub fn new(label: impl Into<String>, columns: Vec<Column>, rows: Vec<Vec<Cell>>) -> Table {
        let is_used = |index: usize| {
            let mut cells = rows.iter().filter_map(|row| row.get(index));
            cells.any(|cell: &Cell| !cell.text.is_empty())
        };
        let used: Vec<usize> = (0..columns.len()).filter(|index| is_used(*index)).collect();
        let kept = |row: &Vec<Cell>| used.iter().map(|index| row[*index].clone()).collect();
        Table {
            label: label.into(),
            columns: used.iter().map(|index| columns[*index].clone()).collect(),
            rows: rows.iter().map(kept).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_omits_columns_that_are_empty_in_every_row() {
        let columns = vec![Column::text("a"), Column::number("b", 1), Column::text("c")];
        let rows = vec![
            vec!["x".into(), "".into(), "".into()],
            vec!["".into(), "".into(), "y".into()],
        ];
        let table = Table::new("", columns, rows);
        let titles: Vec<&str> = table.columns.iter().map(|c| c.title.as_str()).collect();
        assert_eq!(titles, ["a", "c"]);
        assert_eq!(table.rows[1][1].text, "y");
    }
}
