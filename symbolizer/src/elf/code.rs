//! Reads the instructions of a function, and finds their instruction set.

use std::ops::Range;
use std::path::Path;

use object::elf;

use super::package;
use super::parts::Section;
use super::reader::ElfReader;
use crate::{Result, hex};

/// The most bytes of one function that are read. The loops of interpreters have about 100 KB.
const MAX_CODE: u64 = 1 << 20;

/// The most marks of one symbol table that are kept.
const MAX_MARKS: usize = 1 << 20;

/// An instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionSet {
    /// x86-64.
    X64,
    /// 32-bit x86.
    X86,
    /// AArch64.
    A64,
    /// ARM's 32-bit instruction set with instructions of four bytes.
    A32,
    /// ARM's 32-bit instruction set with instructions of two or four bytes: Thumb.
    T32,
    /// RISC-V with registers of 32 bits.
    Rv32,
    /// RISC-V with registers of 64 bits.
    Rv64,
}

/// The kind of content in a part of a function's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeKind {
    /// Instructions.
    Instructions(InstructionSet),
    /// Constants between the instructions.
    Data,
}

/// A function's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineCode {
    /// The address of the first byte.
    pub start: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Addresses at which the kind changes, with the kind from there on, by ascending address. The first is at or before `start`.
    pub kinds: Vec<(u64, CodeKind)>,
}

impl MachineCode {
    /// Reads the bytes of an address range of the file at `path`, or of the library `entry` of an archive. Of a range above 1 MB, only the
    /// beginning is read.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be read. [`Error::Elf`](crate::Error::Elf) if it is not a usable ELF file, has
    /// another build-id than `build_id` (empty: any is accepted), has no instructions there, or its machine is neither x86 nor ARM nor RISC-V.
    pub fn read(
        path: &Path,
        entry: Option<&str>,
        build_id: &[u8],
        range: Range<u64>,
    ) -> Result<Self> {
        let image = match entry {
            Some(entry) => package::open_entry(path, entry)?,
            None => ElfReader::open(path)?,
        };
        let found = image.build_id.as_deref().unwrap_or_default();
        if !build_id.is_empty() && found != build_id {
            let problem = format!("is {}, not {}", hex(found), hex(build_id));
            return Err(image.wrong("build-id", problem));
        }
        let end = range.end.min(range.start.saturating_add(MAX_CODE));
        let (offset, section) = place(&image, range.start)?;
        let bytes = image.stretch(offset, end.saturating_sub(range.start))?;
        Ok(Self {
            start: range.start,
            kinds: kinds(&image, section, range.start..end)?,
            bytes: bytes.into_owned(),
        })
    }

    /// The kind of content at an address.
    #[must_use]
    pub fn kind_at(&self, address: u64) -> CodeKind {
        let after = self.kinds.partition_point(|(start, _)| *start <= address);
        let kind = self.kinds.get(after.saturating_sub(1));
        kind.map_or(CodeKind::Data, |(_, kind)| *kind)
    }

    /// The end of the content of the same kind at an address, at most the end of the bytes.
    #[must_use]
    pub fn kind_end(&self, address: u64) -> u64 {
        let after = self.kinds.partition_point(|(start, _)| *start <= address);
        let end = self.start.saturating_add(self.bytes.len() as u64);
        let next = self.kinds.get(after);
        next.map_or(end, |(start, _)| *start).min(end)
    }
}

/// The file offset of the byte at an address, and its section, if the file has sections.
fn place<'i>(image: &'i ElfReader<'_>, address: u64) -> Result<(u64, Option<&'i Section>)> {
    let within = |start: u64, size: u64| address.checked_sub(start).filter(|&within| within < size);
    let mut sections = image.sections.iter();
    let section = sections
        .find(|section| section.is_executable() && within(section.address, section.size).is_some());
    if let Some(section) = section {
        if section.kind == elf::SHT_NOBITS {
            let problem = "has debug information only, and no instructions";
            return Err(image.wrong("text", problem));
        }
        let offset = section
            .offset
            .saturating_add(address.saturating_sub(section.address));
        return Ok((offset, Some(section)));
    }
    let mut segments = image.segments.iter().filter(|segment| segment.executable);
    let offset = segments.find_map(|segment| {
        Some(
            segment
                .offset
                .saturating_add(within(segment.address, segment.size)?),
        )
    });
    let offset = offset
        .ok_or_else(|| image.wrong("text", format!("has no instructions at {address:#x}")))?;
    Ok((offset, None))
}

/// The kinds of content in a range.
fn kinds(
    image: &ElfReader<'_>,
    section: Option<&Section>,
    range: Range<u64>,
) -> Result<Vec<(u64, CodeKind)>> {
    let all = |set| vec![(range.start, CodeKind::Instructions(set))];
    let default = match image.machine {
        elf::EM_X86_64 => return Ok(all(InstructionSet::X64)),
        elf::EM_386 => return Ok(all(InstructionSet::X86)),
        elf::EM_RISCV if image.encoding().is_64 => return Ok(all(InstructionSet::Rv64)),
        elf::EM_RISCV => return Ok(all(InstructionSet::Rv32)),
        elf::EM_AARCH64 => Some(InstructionSet::A64),
        elf::EM_ARM => None,
        other => {
            let problem =
                format!("{other}: only the instructions of x86, ARM and RISC-V are known");
            return Err(image.wrong("machine", problem));
        }
    };
    let mut marks = Vec::new();
    for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
        read_marks(image, kind, &mut marks);
    }
    marks.sort_by_key(|mark| (mark.address, mark.rank));
    // The kind is unknown before the first mark of the section.
    let from = section.map_or(range.start, |section| section.address);
    let mut found: Vec<(u64, CodeKind)> = Vec::new();
    for mark in marks {
        if mark.address < from || mark.address >= range.end {
            continue;
        }
        if mark.address <= range.start {
            found.clear();
        }
        match found.last_mut() {
            Some(last) if last.0 == mark.address => last.1 = mark.kind,
            _ => found.push((mark.address, mark.kind)),
        }
    }
    match (found.first(), default) {
        (Some((start, _)), _) if *start <= range.start => {}
        (_, Some(set)) => found.insert(0, (range.start, CodeKind::Instructions(set))),
        (_, None) => {
            let problem = "have no symbol that says whether they are ARM's or Thumb's";
            return Err(image.wrong("instructions", problem));
        }
    }
    Ok(found)
}

/// The kind of content from an address on, from a symbol.
struct Mark {
    address: u64,
    /// Among several marks at an address, the last one counts.
    rank: u8,
    kind: CodeKind,
}

/// Reads the marks of a symbol table of an ARM file: mapping symbols (`$x` and `$d`; in 32-bit files `$a`, `$t` and `$d`), and in 32-bit
/// files also functions, where the lowest bit of the address means Thumb. A broken table has no marks.
fn read_marks(image: &ElfReader<'_>, kind: u32, marks: &mut Vec<Mark>) {
    let Ok(Some(table)) = image.symbol_table(kind) else {
        return;
    };
    let is_arm = image.machine == elf::EM_ARM;
    for symbol in table.symbols() {
        let (address, rank, kind) = match (symbol.kind, table.name(&symbol, 8)) {
            // armcc's mapping symbols are functions.
            (
                elf::STT_NOTYPE | elf::STT_FUNC,
                [b'$', mark @ (b'x' | b'a' | b't' | b'd')]
                | [b'$', mark @ (b'x' | b'a' | b't' | b'd'), b'.', ..],
            ) => {
                let kind = match (mark, is_arm) {
                    (b'x', false) => CodeKind::Instructions(InstructionSet::A64),
                    (b'a', true) => CodeKind::Instructions(InstructionSet::A32),
                    (b't', true) => CodeKind::Instructions(InstructionSet::T32),
                    (b'd', _) => CodeKind::Data,
                    _ => continue,
                };
                (symbol.value, 1, kind)
            }
            (elf::STT_FUNC, _) if is_arm && symbol.section != elf::SHN_UNDEF => {
                let set = match symbol.value & 1 {
                    0 => InstructionSet::A32,
                    _ => InstructionSet::T32,
                };
                (symbol.value & !1, 0, CodeKind::Instructions(set))
            }
            _ => continue,
        };
        if marks.len() >= MAX_MARKS {
            return;
        }
        marks.push(Mark {
            address,
            rank,
            kind,
        });
    }
}
