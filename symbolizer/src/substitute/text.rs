//! What does `substitute.sym`, the text form of a substitute, say?

use std::io::{BufWriter, Write};
use std::path::Path;

use super::atomic;
use super::table::{Budget, others};
use crate::dex::DexFile;
use crate::{Error, Result};

/// Writes the table of a dex file's methods: address, size, class, method, signature,
/// source file, first line, separated by tabs; one line per method with code, by class. Addresses are
/// offsets in the dex file, in hexadecimal; what is not known is `-`. The first line and the last are comments.
///
/// The file appears only when it is whole.
///
/// # Errors
/// [`Error::Io`] if it cannot be written.
pub fn write_sym(dex: &DexFile<'_>, path: &Path) -> Result<()> {
    atomic::write(path, |file| {
        let mut out = BufWriter::new(file);
        let io = || Error::io("write", path);
        writeln!(
            out,
            "# address\tsize\tclass\tmethod\tsignature\tsource\tline"
        )
        .map_err(io())?;
        let none = || "-".to_owned();
        let mut budget = Budget::of(dex);
        let others = others(dex);
        for dex in std::iter::once(dex).chain(&others) {
            for method in dex.methods() {
                // A broken class was left out of the symbols as well.
                let Ok(method) = method else { continue };
                let Some(code) = method.method_code() else {
                    continue;
                };
                let source = || Ok(method.source_file()?.unwrap_or_else(none));
                let columns = [
                    budget.take(|| method.id.class_name()),
                    budget.take(|| method.id.name()),
                    budget.take(|| method.id.descriptor()),
                    budget.take(source),
                ];
                write!(out, "{:#x}\t{}", code.code.start, code.code.len()).map_err(io())?;
                for column in columns {
                    write!(out, "\t{}", column.unwrap_or_else(none)).map_err(io())?;
                }
                let lines = budget.lines(dex, &code);
                match lines.as_ref().and_then(|lines| lines.rows().first()) {
                    Some(first) => writeln!(out, "\t{}", first.line),
                    None => writeln!(out, "\t-"),
                }
                .map_err(io())?;
            }
        }
        out.write_all(last_line(&dex.content_sha1()).as_bytes())
            .and_then(|()| out.flush())
            .map_err(io())
    })
}

/// How the text form of a dex file ends.
pub(super) fn last_line(build_id: &[u8; 20]) -> String {
    let hex: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("# end of {hex}\n")
}
