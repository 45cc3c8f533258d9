//! `substitute.sym`, the text form of a substitute.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::atomic;
use super::table::Budget;
use crate::bytecode::BytecodeImage;
use crate::{Error, Result};

/// Writes the table of a bytecode image's methods to a file, in the format of [`write_sym_text`].
///
/// The file appears only when it is complete.
///
/// # Errors
/// [`Error::Io`] if it cannot be written.
pub fn write_sym(image: &dyn BytecodeImage, path: &Path) -> Result<()> {
    atomic::write(path, |file| {
        let mut out = BufWriter::new(file);
        write_sym_text(image, &mut out)
            .and_then(|()| out.flush())
            .map_err(Error::io("write", path))
    })
}

/// Writes the table of a bytecode image's methods, one line for each method with code, by class. The tab-separated columns are address,
/// size, class, method, signature, source file, first line. Addresses are hexadecimal offsets in the image. For shared instructions, they
/// are those of the method's copy. Unknown values are `-`. The first and the last line are comments.
///
/// # Errors
/// Those of `out`.
pub fn write_sym_text(image: &dyn BytecodeImage, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "# address\tsize\tclass\tmethod\tsignature\tsource\tline"
    )?;
    let none = || "-".to_owned();
    let mut budget = Budget::of(image);
    for method in image.definitions() {
        let columns = [
            budget.take(|| image.class_name(method.index)),
            budget.take(|| image.simple_name(method.index)),
            budget.take(|| image.descriptor(method.index)),
            budget.take(|| image.source_file(&method)),
        ];
        let copy = image.copies().of_method(method.index);
        let code = copy.map_or(&method.code, |copy| &copy.code);
        write!(out, "{:#x}\t{}", code.start, code.len())?;
        for column in columns {
            write!(out, "\t{}", column.unwrap_or_else(none))?;
        }
        let lines = budget.lines(image, &method);
        match lines.as_ref().and_then(|lines| lines.first()) {
            Some(first) => writeln!(out, "\t{}", first.line)?,
            None => writeln!(out, "\t-")?,
        }
    }
    out.write_all(last_line(&image.content_id()).as_bytes())
}

/// The last line of a bytecode image's text form.
pub(super) fn last_line(build_id: &[u8; 20]) -> String {
    let hex: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("# end of {hex}\n")
}
