//! Writes text, tables and JSON to standard output, which the reader may close early.

use serde::Serialize;
use std::error::Error;
use std::io::{self, Write};
use std::iter::successors;
use varid_recording::terminal::{MAX_PADDING, one_line, printable};

/// Writes text without control sequences for a terminal.
pub fn text(text: &str) -> anyhow::Result<()> {
    bytes(printable(text).as_bytes())
}

/// Writes a message to standard error without control sequences for a terminal. Standard error may be closed.
pub fn message(line: &str) {
    let _ = writeln!(io::stderr(), "{}", printable(line));
}

/// Writes a message, except with `--quiet`.
pub fn notice(line: &str) {
    if tracing::enabled!(tracing::Level::INFO) {
        message(line);
    }
}

/// Writes bytes to standard output. A closed pipe (`| head`) is not an error.
pub fn bytes(bytes: &[u8]) -> anyhow::Result<()> {
    match io::stdout().lock().write_all(bytes) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow::anyhow!("cannot write: {error}"))
        }
        _ => Ok(()),
    }
}

/// Writes a document with its schema version.
pub fn json(document: &impl Serialize) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Versioned<'a, T> {
        version: u32,
        #[serde(flatten)]
        document: &'a T,
    }
    let mut line = serde_json::to_string_pretty(&Versioned {
        version: 1,
        document,
    })?;
    line.push('\n');
    text(&line)
}

/// Returns an error and its causes in one line, without causes that its message already contains.
pub fn reason(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in successors(error.source(), |cause| (*cause).source()) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    one_line(&text.replace('\n', " "))
}

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Formats rows in columns of the necessary width. No row ends in spaces.
pub fn table<const N: usize>(head: [(&str, Align); N], rows: &[[String; N]]) -> String {
    let mut widths = head.map(|(title, _)| title.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count()).min(MAX_PADDING);
        }
    }
    let mut text = String::new();
    let titles = head.map(|(title, _)| title.to_owned());
    for row in std::iter::once(&titles).chain(rows) {
        let mut line = String::new();
        for ((cell, (_, align)), width) in row.iter().zip(head).zip(widths) {
            match align {
                Align::Left => line.push_str(&format!("{cell:width$}  ")),
                Align::Right => line.push_str(&format!("{cell:>width$}  ")),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Formats a size in bytes for people.
pub fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KB", "MB", "GB"] {
        if value < 1000.0 {
            return if unit == "B" {
                format!("{bytes} B")
            } else {
                format!("{value:.1} {unit}")
            };
        }
        value /= 1000.0;
    }
    format!("{value:.1} TB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_have_no_tail() {
        let rows = [
            ["a".to_owned(), "10".to_owned(), "x".to_owned()],
            ["long".to_owned(), "5".to_owned(), String::new()],
        ];
        let text = table(
            [
                ("NAME", Align::Left),
                ("N", Align::Right),
                ("LAST", Align::Left),
            ],
            &rows,
        );
        assert_eq!(text, "NAME   N  LAST\na     10  x\nlong   5\n");
    }

    #[test]
    fn a_cell_that_is_longer_than_any_padding_is_written_whole() {
        let long = "n".repeat(70_000);
        let rows = [[long.clone(), "1".to_owned()]];
        let text = table([("NAME", Align::Left), ("N", Align::Right)], &rows);
        assert!(text.ends_with(&format!("{long}  1\n")), "{}", text.len());
    }

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow::Error::from(io::Error::other("no room"))
            .context("cannot write x: no room")
            .context("outer");
        assert_eq!(reason(error.as_ref()), "outer: cannot write x: no room");
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size(999), "999 B");
        assert_eq!(size(1_500), "1.5 KB");
        assert_eq!(size(12_345_678), "12.3 MB");
        assert_eq!(size(u64::MAX), "18446744.1 TB");
    }
}
