//! `substitute.sym`, the text form of a substitute.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use super::table::{Budget, MethodSlot};
use super::{atomic, name};
use crate::bytecode::BytecodeImage;
use crate::regular::regular;
use crate::{Error, Result};

/// The first line.
const COLUMNS: &str = "# address\tsize\tclass\tmethod\tsignature\tsource\tline";
/// Stands for a value that is not known.
const NONE: &str = "-";
/// The most bytes that are read: the remap range has room for a million methods.
const MAX_SIZE: u64 = 256 << 20;

fn none() -> String {
    NONE.to_owned()
}

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
    writeln!(out, "{COLUMNS}")?;
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

/// Returns the path of the text form of a substitute that has this path.
#[must_use]
pub fn sym_file_of(substitute: &Path) -> PathBuf {
    substitute.with_extension("substitute.sym")
}

/// Appends those methods of the remap range that have a descriptor to a file, in the format of [`write_sym_text`] without a last line. A file
/// that does not exist is made.
///
/// # Errors
/// [`Error::Io`] if it cannot be written. The file is as it was then.
pub fn append_slots_sym(methods: &[MethodSlot], path: &Path) -> Result<()> {
    let mut lines = String::new();
    for method in methods
        .iter()
        .filter(|method| !method.descriptor.is_empty())
    {
        lines.push_str(&sym_line(method));
    }
    if lines.is_empty() {
        return Ok(());
    }
    let append = || -> io::Result<()> {
        let mut file = File::options().append(true).create(true).open(path)?;
        let size = file.metadata()?.len();
        let head = if size == 0 {
            format!("{COLUMNS}\n")
        } else {
            String::new()
        };
        let written = file.write_all((head + &lines).as_bytes());
        // Half a line would be taken for one with the next that is appended.
        written.or_else(|error| file.set_len(size).and(Err(error)))
    };
    append().map_err(Error::io("write", path))
}

fn sym_line(method: &MethodSlot) -> String {
    let slot = &method.slot;
    let name = name::printable(slot.name.clone());
    let (class, name) = name.rsplit_once('.').unwrap_or(("-", &name));
    let descriptor = name::printable(method.descriptor.clone());
    let source = method.source.as_ref();
    let file = source.map(|source| name::printable(source.file.clone()));
    let line = source.and_then(|source| source.lines.first());
    let line = line.map_or_else(none, |line| line.line.to_string());
    let file = file.unwrap_or_else(none);
    let (start, size) = (slot.offset, slot.size);
    format!("{start:#x}\t{size}\t{class}\t{name}\t{descriptor}\t{file}\t{line}\n")
}

/// Reads the descriptors of methods from a text form: by first address, those of methods that have one. Nothing is known of the methods in
/// lines that make no sense, or if the file cannot be read.
#[must_use]
pub fn read_descriptors(path: &Path) -> HashMap<u64, String> {
    let mut text = Vec::new();
    let read = regular(path).map(|file| file.take(MAX_SIZE).read_to_end(&mut text));
    if !matches!(read, Some(Ok(_))) {
        text.clear();
    }
    let text = String::from_utf8_lossy(&text);
    let descriptor = |line: &str| {
        let mut columns = line.split('\t');
        let address = columns.next()?.strip_prefix("0x")?;
        let address = u64::from_str_radix(address, 16).ok()?;
        let descriptor = columns.nth(3)?;
        (descriptor != NONE).then(|| (address, descriptor.to_owned()))
    };
    text.lines().filter_map(descriptor).collect()
}

/// The last line of a bytecode image's text form.
pub(super) fn last_line(build_id: &[u8; 20]) -> String {
    let hex: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("# end of {hex}\n")
}
