//! Tables for all three renderers: cells with an optional detail below the value, and columns that a narrow terminal may
//! leave out.

use serde::Serialize;
use std::fmt::Display;

/// How a piece of text is formatted, such as a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    #[default]
    Plain,
    /// Subjects of rows, headings and headline numbers.
    Strong,
    /// Less important text: labels and notes.
    Soft,
    /// A caveat.
    Doubt,
    /// Bad news.
    Alarm,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cell {
    pub text: String,
    /// Text below the value, such as its interval.
    pub detail: Option<String>,
    pub tone: Tone,
    /// Target of the link, relative to the report's folder.
    pub link: Option<String>,
}

impl Cell {
    /// Text with a tone.
    pub fn new(text: impl Display, tone: Tone) -> Cell {
        Cell { text: text.to_string(), tone, ..Cell::default() }
    }

    /// The value, or an empty cell if it is unknown.
    pub fn known(value: Option<impl Display>) -> Cell {
        value.map_or_else(Cell::default, Cell::from)
    }

    /// Adds a detail below the value.
    pub fn with_detail(self, detail: Option<String>) -> Cell {
        Cell { detail, ..self }
    }
}

impl<T: Display> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell::new(text, Tone::Plain)
    }
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Column {
    pub title: String,
    /// Numbers are aligned to the right.
    pub is_number: bool,
    /// Columns with a lower rank are left out first on a narrow terminal; 255 always stays.
    pub rank: u8,
    /// Numbers of the caveats that apply to the column.
    pub marks: Vec<usize>,
}

impl Column {
    /// A column of text, which always stays.
    pub fn text(title: impl Into<String>) -> Column {
        Column { title: title.into(), is_number: false, rank: u8::MAX, marks: Vec::new() }
    }

    /// A column of numbers.
    pub fn number(title: impl Into<String>, rank: u8) -> Column {
        Column { is_number: true, rank, ..Column::text(title) }
    }

    /// Adds caveats.
    pub fn marked(self, marks: &[usize]) -> Column {
        Column { marks: marks.to_vec(), ..self }
    }
}

/// A table under construction: each column with its title, its rank and its cell of a row.
#[derive(Debug)]
pub struct Columns<'r, R> {
    rows: &'r [R],
    columns: Vec<Column>,
    cells: Vec<Vec<Cell>>,
}

impl<'r, R> Columns<'r, R> {
    /// Adds a column of text, which always stays.
    pub fn text<C: Into<Cell>>(self, title: impl Into<String>, cell: impl Fn(&'r R) -> C) -> Self {
        self.with(Column::text(title), cell)
    }

    /// Adds a column of numbers.
    pub fn number<C: Into<Cell>>(
        self,
        title: impl Into<String>,
        rank: u8,
        cell: impl Fn(&'r R) -> C,
    ) -> Self {
        self.with(Column::number(title, rank), cell)
    }

    /// Adds a column.
    pub fn with<C: Into<Cell>>(self, column: Column, cell: impl Fn(&'r R) -> C) -> Self {
        self.several([column], |row| vec![cell(row).into()])
    }

    /// Adds columns, with as many cells.
    pub fn several(
        mut self,
        columns: impl IntoIterator<Item = Column>,
        cells: impl Fn(&'r R) -> Vec<Cell>,
    ) -> Self {
        self.columns.extend(columns);
        for (row, known) in self.rows.iter().zip(&mut self.cells) {
            known.extend(cells(row));
        }
        self
    }

    /// The table without the columns that are empty in every row.
    pub fn table(self, label: impl Into<String>) -> Table {
        Table::new(label, self.columns, self.cells)
    }

    /// The table; `None` without rows.
    pub fn known(self, label: impl Into<String>) -> Option<Table> {
        (!self.rows.is_empty()).then(|| self.table(label))
    }
}

/// A table with a label, columns and rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// Description for screen readers, which lack the visual context.
    pub label: String,
    pub columns: Vec<Column>,
    /// One cell per column in each row.
    pub rows: Vec<Vec<Cell>>,
    /// The row around which a screen without room for all shows the others; 0 for the first rows.
    #[serde(skip)]
    pub focus: usize,
}

impl Table {
    /// Begins a table with a row for each of these, still without columns.
    pub fn of<R>(rows: &[R]) -> Columns<'_, R> {
        let cells = rows.iter().map(|_| Vec::new()).collect();
        Columns { rows, columns: Vec::new(), cells }
    }

    /// The table with this row as the most important one.
    pub fn around(self, focus: usize) -> Table {
        Table { focus, ..self }
    }

    /// Keeps this many rows, around the most important one.
    pub(crate) fn keep(&mut self, rows: usize) {
        let spare = self.rows.len().saturating_sub(rows);
        let first = self.focus.saturating_sub(rows / 2).min(spare);
        self.rows.drain(..first);
        self.rows.truncate(rows);
    }

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
            focus: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_rows_are_around_the_focus() {
        let rows: Vec<Vec<Cell>> = (0..9).map(|number| vec![number.into()]).collect();
        let kept = |focus, count| {
            let mut table = Table::new("", vec![Column::text("a")], rows.clone()).around(focus);
            table.keep(count);
            table.rows.iter().map(|row| row[0].text.clone()).collect::<String>()
        };
        assert_eq!(kept(0, 3), "012");
        assert_eq!(kept(5, 3), "456");
        assert_eq!(kept(8, 4), "5678");
        assert_eq!(kept(4, 20), "012345678");
    }

    #[test]
    fn table_omits_columns_that_are_empty_in_every_row() {
        let columns = vec![Column::text("a"), Column::number("b", 1), Column::text("c")];
        let rows =
            vec![vec!["x".into(), "".into(), "".into()], vec!["".into(), "".into(), "y".into()]];
        let table = Table::new("", columns, rows);
        let titles: Vec<&str> = table.columns.iter().map(|c| c.title.as_str()).collect();
        assert_eq!(titles, ["a", "c"]);
        assert_eq!(table.rows[1][1].text, "y");
    }
}
