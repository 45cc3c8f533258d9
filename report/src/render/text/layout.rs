//! Lays out tables as aligned columns.

use std::borrow::Cow;
use std::io::{self, Write};

use varid_recording::terminal::{MAX_PADDING, one_line};

use super::emphasis::Emphasis;
use crate::{
    columns::{Sheet, SheetLine},
    short_name,
};

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
    let lines: Vec<Option<Vec<Cell>>> = sheet.lines.iter().map(|line| cells(sheet, line)).collect();
    let widths = widths(&sheet.header, &lines, sheet.width);
    let label = |label: &Cow<'static, str>| Cell {
        text: one_line(label),
        stem: 0,
        is_name: false,
        emphasis: Emphasis::Title,
    };
    let header: Vec<Cell> = sheet.header.iter().map(label).collect();
    write_line(&header, &widths, colour, out)?;
    for cells in &lines {
        match cells {
            Some(cells) => write_line(cells, &widths, colour, out)?,
            None => writeln!(out, "{RULE}")?,
        }
    }
    if let Some(folded) = &sheet.folded {
        writeln!(out, "{folded}")?;
    }
    if sheet.hidden > 0 {
        writeln!(out, "({} more)", sheet.hidden)?;
    }
    writeln!(out)
}

/// The full text of a cell.
struct Cell {
    text: String,
    /// Number of characters at the start that are never cut off.
    stem: usize,
    /// Whether the rest is a function name.
    is_name: bool,
    emphasis: Emphasis,
}

/// Formats the cells of a line. None for a rule.
fn cells(sheet: &Sheet, line: &SheetLine) -> Option<Vec<Cell>> {
    let SheetLine::Cells(values) = line else {
        return None;
    };
    let cell = |(value, dash): (&crate::columns::Value, &bool)| {
        let text = match one_line(&value.cell(2)) {
            empty if empty.is_empty() && *dash => "-".to_owned(),
            text => text,
        };
        Cell {
            text,
            stem: value.stem(),
            is_name: value.is_name(),
            emphasis: Emphasis::of(value),
        }
    };
    Some(values.iter().zip(&sheet.dashes).map(cell).collect())
}

const GAP: &str = "  ";

/// The minimum width of a shortened column, so that numbers stay complete.
const NARROWEST: usize = 12;

fn widths(
    header: &[Cow<'static, str>],
    lines: &[Option<Vec<Cell>>],
    terminal: Option<usize>,
) -> Vec<usize> {
    let width = |column: usize, label: &str| {
        let cells = lines.iter().flatten();
        let cells = cells.filter_map(|row| row.get(column));
        let widest = cells
            .map(|cell| cell.text.chars().count())
            .max()
            .unwrap_or(0);
        widest.max(label.chars().count())
    };
    let columns = header.iter().enumerate();
    let mut widths: Vec<usize> = columns
        .map(|(column, label)| width(column, label))
        .collect();
    // Cells that must not be cut determine the minimum width of their column.
    let whole = |column: usize| {
        let cells = lines.iter().flatten();
        let cells = cells.filter_map(|row| row.get(column));
        let lengths = cells
            .filter(|cell| cell.stem > 0 && cell.stem == cell.text.chars().count())
            .map(|cell| cell.stem);
        lengths.max().unwrap_or(0).max(NARROWEST)
    };
    let narrowest: Vec<usize> = (0..widths.len()).map(whole).collect();
    let gaps = widths.len().saturating_sub(1).saturating_mul(GAP.len());
    let room = terminal.map_or(usize::MAX, |columns| columns.saturating_sub(gaps));
    let mut over = widths.iter().sum::<usize>().saturating_sub(room);
    // The widest column is reduced first.
    while over > 0 {
        let columns = widths.iter_mut().zip(&narrowest);
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
    widths
}

fn write_line(
    cells: &[Cell],
    widths: &[usize],
    colour: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let last = cells.len().saturating_sub(1);
    let padded = cells.iter().zip(widths).enumerate();
    let text: Vec<String> = padded
        .map(|(place, (cell, &width))| {
            let text = cut(cell, width);
            let painted = cell.emphasis.painted(&text, colour);
            // Colour codes have no width, and the last cell needs no padding.
            let room = if place == last {
                0
            } else {
                width.min(MAX_PADDING)
            };
            let padding = room.saturating_sub(text.chars().count());
            format!("{painted}{:padding$}", "")
        })
        .collect();
    writeln!(out, "{}", text.join(GAP).trim_end())
}

/// Shortens a cell: to the longest form of a function name that fits, or to both ends of another text.
fn cut(cell: &Cell, width: usize) -> Cow<'_, str> {
    if cell.text.chars().count() <= width {
        return cell.text.as_str().into();
    }
    let stem = cell.stem.min(width);
    let end_of_stem = cell.text.char_indices().nth(stem);
    let end_of_stem = end_of_stem.map_or(cell.text.len(), |(at, _)| at);
    let (stem_text, rest) = cell
        .text
        .split_at_checked(end_of_stem)
        .unwrap_or((&cell.text, ""));
    let room = width.saturating_sub(stem);
    let rest = match cell.is_name {
        true => short_name::fitted(rest, room),
        false => short_name::ends(rest, room).into(),
    };
    format!("{stem_text}{rest}").into()
}

#[cfg(test)]
mod tests {
    use super::{Cell, Emphasis, write_line};
    use varid_recording::terminal::MAX_PADDING;

    #[test]
    fn a_name_that_is_longer_than_any_padding_is_written_whole() {
        let cell = |text: String| Cell {
            text,
            stem: 0,
            is_name: false,
            emphasis: Emphasis::Plain,
        };
        let long = "n".repeat(70_000);
        let mut out = Vec::new();
        write_line(
            &[cell(long.clone()), cell("1".to_owned())],
            &[70_000, 1],
            false,
            &mut out,
        )
        .unwrap();
        write_line(
            &[cell("short".to_owned()), cell("2".to_owned())],
            &[70_000, 1],
            false,
            &mut out,
        )
        .unwrap();
        let text = String::from_utf8(out).unwrap();
        let padding = " ".repeat(MAX_PADDING - "short".len());
        assert_eq!(text, format!("{long}  1\nshort{padding}  2\n"));
    }
}
