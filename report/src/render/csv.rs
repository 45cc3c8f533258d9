//! Views as CSV.

use std::{
    borrow::Cow,
    io::{self, Write},
};

use crate::{
    columns::OutputFormat,
    plain::plain,
    scope::Scope,
    sheet::{Sheet, SheetRole},
    views,
};

/// Writes the view's rows after a header. A call graph is written as pairs.
pub fn write(scope: &Scope, out: &mut dyn Write) -> io::Result<()> {
    let sheets = views::sheets(scope, OutputFormat::Csv);
    for sheet in sheets.iter().filter(|sheet| sheet.role == SheetRole::Rows) {
        write_sheet(sheet, out)?;
    }
    Ok(())
}

/// Writes a table after a header.
pub fn write_sheet(sheet: &Sheet, out: &mut dyn Write) -> io::Result<()> {
    record(sheet.header.iter().map(|name| name.as_ref().into()), out)?;
    sheet.each_line(&mut |cells| match cells {
        Some(cells) => record(cells.iter().map(|value| value.cell(6)), out),
        None => Ok(()),
    })
}

/// Writes a record according to RFC 4180, but with Unix line endings.
pub fn record<'f>(
    fields: impl Iterator<Item = Cow<'f, str>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut line = String::new();
    for (place, field) in fields.enumerate() {
        if place > 0 {
            line.push(',');
        }
        line.push_str(&quoted(&field));
    }
    line.push('\n');
    out.write_all(line.as_bytes())
}

/// Formats a field in one line. An apostrophe precedes a field that a spreadsheet would take for a formula.
fn quoted(field: &str) -> Cow<'_, str> {
    let mut text = plain(field);
    if text.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠'])
        && text.parse::<f64>().is_err()
    {
        text = format!("'{text}").into();
    }
    if text.contains([',', '"']) {
        text = format!("\"{}\"", text.replace('"', "\"\"")).into();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_recorded_name_is_neither_a_formula_nor_a_line() {
        assert_eq!(
            quoted("=HYPERLINK(\"x\",1)"),
            "\"'=HYPERLINK(\"\"x\"\",1)\""
        );
        assert_eq!(quoted("-bash"), "'-bash");
        assert_eq!(quoted("-2"), "-2");
        assert_eq!(quoted("a\r\n\u{1b}[2J"), "a???[2J");
        assert_eq!(quoted("a = b"), "a = b");
    }
}
