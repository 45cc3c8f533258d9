//! Finds the source line at an address of a unit.

use gimli::{Dwarf, LineRow, Unit};

use super::Slice;
use super::unit_input::UnitInput;

/// The line table of a unit.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Sorted by address. A row holds up to the next one. The last row of a sequence has no file.
    rows: Vec<Row>,
    files: Vec<Option<Box<str>>>,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    address: u64,
    file: u32,
    line: u32,
}

/// The file index of a row that ends a sequence.
const END: u32 = u32::MAX;

/// The maximum length of a source file's path, in bytes. Longer ones are truncated.
const MAX_PATH: usize = 4096;

impl Lines {
    /// Runs the unit's line program. Of a broken one the rows before the error are kept.
    /// `call_files` are the file indices of the places where functions were inlined.
    pub(super) fn read(input: UnitInput<'_, '_>, call_files: impl Iterator<Item = u32>) -> Self {
        let UnitInput {
            dwarf,
            unit,
            budget,
        } = input;
        let mut lines = Self::default();
        let Some(program) = unit.line_program.clone() else {
            return lines;
        };
        let mut sequences: Vec<Vec<Row>> = Vec::new();
        let mut sequence = Vec::new();
        let mut rows = program.clone().rows();
        while let Ok(Some((_, row))) = rows.next_row() {
            if budget.take(1).is_none() {
                break;
            }
            push(&mut sequence, row);
            if row.end_sequence() {
                sequences.push(std::mem::take(&mut sequence));
            }
        }
        sequences.retain(|rows| {
            let bounds = rows.first().zip(rows.last());
            // Functions that the linker discarded have address 0.
            bounds.is_some_and(|(first, last)| first.address != 0 && first.address < last.address)
        });
        sequences.sort_by_key(|rows| rows.first().map(|row| row.address));
        lines.rows.reserve(sequences.iter().map(Vec::len).sum());
        for rows in sequences {
            let end = lines.rows.last().map_or(0, |row| row.address);
            lines
                .rows
                .extend(rows.into_iter().filter(|row| row.address >= end));
        }
        lines.name_files(dwarf, unit, program.header(), call_files);
        lines
    }

    /// Reads the paths of the files that rows and inlined calls refer to.
    fn name_files(
        &mut self,
        dwarf: &Dwarf<Slice<'_>>,
        unit: &Unit<Slice<'_>>,
        header: &gimli::LineProgramHeader<Slice<'_>>,
        call_files: impl Iterator<Item = u32>,
    ) {
        let known = header.file_names().len().saturating_add(1);
        self.files.resize(known, None);
        for file in self.rows.iter().map(|row| row.file).chain(call_files) {
            if let Some(slot) = self.files.get_mut(file as usize)
                && slot.is_none()
            {
                *slot = path(dwarf, unit, header, file).map(String::into_boxed_str);
            }
        }
    }

    /// The file at this index and the line. `None` for line 0, which means that the code comes from no line.
    pub(super) fn location(&self, file: u32, line: u32) -> Option<crate::Location<'_>> {
        let file = self.files.get(file as usize)?.as_deref()?;
        (line > 0).then_some(crate::Location {
            file: file.into(),
            line,
        })
    }

    /// The line at `address`.
    pub(super) fn find(&self, address: u64) -> Option<crate::Location<'_>> {
        let after = self.rows.partition_point(|row| row.address <= address);
        let row = self.rows.get(after.checked_sub(1)?)?;
        self.location(row.file, row.line)
    }

    /// The address ranges that have lines: start and exclusive end.
    pub(super) fn ranges(&self) -> Vec<(u64, u64)> {
        self.rows
            .chunk_by(|row, _| row.file != END)
            .filter_map(|rows| Some((rows.first()?.address, rows.last()?.address)))
            .collect()
    }
}

/// Adds a row. Of several rows at one address the last one is kept. A row with the file and line of the previous one is
/// dropped.
fn push(sequence: &mut Vec<Row>, row: &LineRow) {
    let row = Row {
        address: row.address(),
        file: match row.end_sequence() {
            true => END,
            false => u32::try_from(row.file_index()).unwrap_or(END - 1),
        },
        line: row
            .line()
            .and_then(|line| u32::try_from(line.get()).ok())
            .unwrap_or_default(),
    };
    if let Some(last) = sequence.last_mut() {
        if last.address == row.address && row.file != END {
            *last = row;
            return;
        }
        if (last.file, last.line) == (row.file, row.line) {
            return;
        }
    }
    sequence.push(row);
}

/// The path of the file at this index. A relative name is below the file's directory, a relative directory below the unit's
/// compilation directory.
fn path(
    dwarf: &Dwarf<Slice<'_>>,
    unit: &Unit<Slice<'_>>,
    header: &gimli::LineProgramHeader<Slice<'_>>,
    file: u32,
) -> Option<String> {
    let text = |value| -> Option<String> {
        let text = dwarf.attr_string(unit, value).ok()?;
        let text = text.slice().get(..MAX_PATH).unwrap_or(text.slice());
        Some(String::from_utf8_lossy(text).into_owned())
    };
    let file = header.file(file.into())?;
    let mut path = text(file.path_name()).filter(|path| !path.is_empty())?;
    let folder = file.directory(header).and_then(text);
    let unit_folder = unit
        .comp_dir
        .map(|folder| String::from_utf8_lossy(folder.slice()).into_owned());
    // Directory 0 is the compilation directory. From DWARF 5 on it is in the table.
    let folders = match file.directory_index() {
        0 if header.version() >= 5 => [folder, None],
        0 => [None, unit_folder],
        _ => [folder, unit_folder],
    };
    for folder in folders.into_iter().flatten() {
        if path.starts_with('/') || matches!(folder.as_str(), "" | ".") {
            continue;
        }
        let separator = if folder.ends_with('/') { "" } else { "/" };
        path = format!("{folder}{separator}{path}");
    }
    Some(path)
}
