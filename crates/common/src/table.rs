//! Tables of text for people.

use std::fmt;

use comfy_table::{CellAlignment, ContentArrangement, presets};

use crate::text::printable;

/// Rows under a head, as wide as the longest cell of each column; what steers a terminal is escaped in every cell.
pub struct Table(comfy_table::Table);

impl Table {
    /// A table with this head. A column whose title begins with `>` is aligned right.
    #[must_use]
    pub fn new<'a>(head: impl IntoIterator<Item = &'a str>) -> Table {
        let mut table = comfy_table::Table::new();
        let head: Vec<&str> = head.into_iter().collect();
        table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(head.iter().map(|title| title.trim_start_matches('>')));
        for (column, title) in table.column_iter_mut().zip(&head) {
            column.set_padding((0, 2));
            if title.starts_with('>') {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        Table(table)
    }

    /// Adds a row.
    pub fn row<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.0.add_row(cells.into_iter().map(|cell| printable(cell.as_ref()).into_owned()));
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, line) in self.0.lines().enumerate() {
            let end = if at > 0 { "\n" } else { "" };
            write!(f, "{end}{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_is_in_them() {
        let mut table = Table::new(["actor", ">events", "gaps"]);
        table.row(["wörker", "6", "2, 4-5"]);
        table.row(["日本", "12345678", ""]);
        table.row(["a\u{1b}[0m\n", "0", "x"]);
        let expected = "actor           events  gaps\n\
                        wörker               6  2, 4-5\n\
                        日本          12345678\n\
                        a\\u{1b}[0m\\n         0  x";
        assert_eq!(table.to_string(), expected);
    }
}
