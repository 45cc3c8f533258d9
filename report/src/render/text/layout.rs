//! Lays out tables as aligned columns.

use std::borrow::Cow;
use std::io::{self, Write};

use varid_recording::terminal::MAX_PADDING;

use super::{column_width::ColumnWidth, emphasis::Emphasis};
use crate::{columns::Value, plain::plain, sheet::Sheet, short_name};

const RULE: &str =
    "-------------------------------------------------------------------------------";

/// Writes a table. Columns are as wide as necessary, but not wider than the terminal together.
pub fn write(sheet: &Sheet, colour: bool, out: &mut dyn Write) -> io::Result<()> {
    if let Some(replacement) = &sheet.replacement {
        writeln!(out, "{replacement}")?;
        return writeln!(out);
    }
    if sheet.lines.is_empty() && sheet.folded.is_none() && sheet.hidden == 0 {
        return Ok(());
    }
    if let Some(intro) = sheet.intro {
        writeln!(out, "{intro}")?;
        writeln!(out)?;
    }
    let mut lines = LineWriter::new(sheet, widths(sheet)?, colour);
    lines.write_header(sheet, out)?;
    sheet.each_line(&mut |cells| match cells {
        Some(cells) => lines.write(cells, out),
        None => writeln!(out, "{RULE}"),
    })?;
    if let Some(folded) = &sheet.folded {
        writeln!(out, "{folded}")?;
    }
    if sheet.hidden > 0 {
        writeln!(out, "({} more)", sheet.hidden)?;
    }
    writeln!(out)
}

const GAP: &str = "  ";

/// Returns the widths of the columns in characters. Without a terminal, nothing is cut, and the width of the last column
/// is not needed.
fn widths(sheet: &Sheet) -> io::Result<Vec<usize>> {
    let labels = sheet.header.iter();
    let mut columns: Vec<ColumnWidth> = labels.map(|label| ColumnWidth::new(label)).collect();
    let unlimited = match sheet.width {
        Some(_) => None,
        None => columns.pop().map(|_| usize::MAX),
    };
    sheet.each_line(&mut |cells| {
        for (column, value) in columns.iter_mut().zip(cells.unwrap_or_default()) {
            column.add(value);
        }
        Ok(())
    })?;
    let mut widths: Vec<usize> = columns.iter().map(ColumnWidth::widest).collect();
    if let Some(terminal) = sheet.width {
        let narrowest: Vec<usize> = columns.iter().map(ColumnWidth::narrowest).collect();
        fit(&mut widths, &narrowest, terminal);
    }
    widths.extend(unlimited);
    Ok(widths)
}

/// Makes columns narrower until they fit into a terminal or have their minimum width.
fn fit(widths: &mut [usize], narrowest: &[usize], terminal: usize) {
    let gaps = widths.len().saturating_sub(1).saturating_mul(GAP.len());
    let room = terminal.saturating_sub(gaps);
    let mut over = widths.iter().sum::<usize>().saturating_sub(room);
    // The widest column is reduced first.
    while over > 0 {
        let columns = widths.iter_mut().zip(narrowest);
        let Some(widest) = columns
            .filter(|(width, narrowest)| **width > **narrowest)
            .map(|(width, _)| width)
            .max()
        else {
            break;
        };
        *widest = widest.saturating_sub(1);
        over = over.saturating_sub(1);
    }
}

/// Writes lines with aligned columns.
struct LineWriter {
    columns: Vec<LineColumn>,
    line: AlignedLine,
    /// The text of the cell that is being made.
    cell: String,
}

#[derive(Clone, Copy)]
struct LineColumn {
    width: usize,
    /// Whether a missing or empty value is shown as `-`.
    dash: bool,
}

impl LineWriter {
    fn new(sheet: &Sheet, widths: Vec<usize>, colour: bool) -> Self {
        let columns = widths.into_iter().zip(&sheet.dashes);
        let columns = columns.map(|(width, &dash)| LineColumn { width, dash });
        Self {
            columns: columns.collect(),
            line: AlignedLine::new(colour),
            cell: String::new(),
        }
    }

    fn write_header(&mut self, sheet: &Sheet, out: &mut dyn Write) -> io::Result<()> {
        for (label, column) in sheet.header.iter().zip(&self.columns) {
            self.line.push(label, CellStyle::TITLE, column.width);
        }
        self.line.write(out)
    }

    fn write(&mut self, cells: &[Value], out: &mut dyn Write) -> io::Result<()> {
        for (value, column) in cells.iter().zip(&self.columns) {
            self.cell.clear();
            value.append_to(&mut self.cell, 2);
            if self.cell.is_empty() && column.dash {
                self.cell.push('-');
            }
            let style = CellStyle::of(value);
            self.line.push(&self.cell, style, column.width);
        }
        self.line.write(out)
    }
}

/// How the text of a cell is shown.
#[derive(Debug, Clone, Copy)]
struct CellStyle {
    /// Number of characters at the start that are never cut off.
    stem: usize,
    /// Whether the rest is a function name.
    is_name: bool,
    emphasis: Emphasis,
}

impl CellStyle {
    const TITLE: Self = Self {
        stem: 0,
        is_name: false,
        emphasis: Emphasis::Title,
    };

    fn of(value: &Value) -> Self {
        Self {
            stem: value.stem(),
            is_name: value.is_name(),
            emphasis: Emphasis::of(value),
        }
    }
}

/// A line to which cells are appended.
struct AlignedLine {
    colour: bool,
    text: Vec<u8>,
    /// Spaces between the last cell and the next one.
    padding: usize,
}

impl AlignedLine {
    const fn new(colour: bool) -> Self {
        let text = Vec::new();
        Self {
            colour,
            text,
            padding: 0,
        }
    }

    /// Appends a cell of a column.
    fn push(&mut self, text: &str, style: CellStyle, width: usize) {
        let text = plain(text);
        let text = cut(&text, style, width);
        let next = self.text.len().saturating_add(self.padding);
        self.text.resize(next, b' ');
        // Colour codes have no width.
        let painted = style.emphasis.painted(&text, self.colour);
        self.text.extend_from_slice(painted.as_bytes());
        let padding = width.min(MAX_PADDING).saturating_sub(text.chars().count());
        self.padding = padding.saturating_add(GAP.len());
    }

    /// Writes the line and empties it. The last cell is not padded.
    fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let end = self.text.trim_ascii_end().len();
        self.text.truncate(end);
        self.text.push(b'\n');
        out.write_all(&self.text)?;
        self.text.clear();
        self.padding = 0;
        Ok(())
    }
}

/// Shortens a cell: to the longest form of a function name that fits, or to both ends of another text.
fn cut(text: &str, style: CellStyle, width: usize) -> Cow<'_, str> {
    // No text has more characters than bytes.
    if text.len() <= width || text.chars().count() <= width {
        return text.into();
    }
    let stem = style.stem.min(width);
    let end_of_stem = text.char_indices().nth(stem);
    let end_of_stem = end_of_stem.map_or(text.len(), |(at, _)| at);
    let (stem_text, rest) = text.split_at_checked(end_of_stem).unwrap_or((text, ""));
    let room = width.saturating_sub(stem);
    let rest = match style.is_name {
        true => short_name::fitted(rest, room),
        false => short_name::ends(rest, room).into(),
    };
    format!("{stem_text}{rest}").into()
}

#[cfg(test)]
mod tests {
    use super::write;
    use crate::{
        columns::Value,
        sheet::{Sheet, SheetLine, SheetRole},
    };
    use varid_recording::terminal::MAX_PADDING;

    fn written(header: [&'static str; 2], rows: &[[Value<'static>; 2]]) -> String {
        let mut sheet = Sheet {
            header: header.map(Into::into).into(),
            dashes: vec![true, false],
            ..Sheet::without_columns(SheetRole::Rows)
        };
        let lines = rows.iter().map(|cells| SheetLine::Cells(cells.to_vec()));
        sheet.lines.extend(lines);
        let mut out = Vec::new();
        write(&sheet, false, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_name_that_is_longer_than_any_padding_is_written_whole() {
        let long = "n".repeat(70_000);
        let rows = [(long.clone(), 1), ("short".to_owned(), 2)];
        let text = written(
            ["", ""],
            &rows.map(|(name, count)| [name.into(), Value::Count(count)]),
        );
        let padding = " ".repeat(MAX_PADDING - "short".len());
        assert_eq!(text, format!("\n{long}  1\nshort{padding}  2\n\n"));
    }

    #[test]
    fn a_column_is_as_wide_as_its_widest_cell_and_the_last_one_is_not_padded() {
        let rows = [
            [Value::Percent(9.996), "a name".into()],
            [Value::Percent(-0.5), "b".into()],
            [Value::Absent, "\u{1b}[1m".into()],
            [Value::Text("ä".into()), Value::Absent],
        ];
        assert_eq!(
            written(["%", "name"], &rows),
            "%      name\n10.00  a name\n-0.50  b\n-      ?[1m\nä\n\n"
        );
    }
}
