//! Writes a substitute as an ELF file.
//!
//! The layout is accepted by perf, binutils, elfutils, gdb and llvm alike: a shared object of the recorded machine whose addresses are file
//! offsets, one readable and executable segment from offset zero over the text, program headers and build-id note, `.text` as PROGBITS
//! (perf does not annotate NOBITS), and global function symbols with their sizes. Methods consist of no-ops, one for each code unit:
//! disassemblers skip zeros, and perf shows samples and lines only next to instructions.

use std::ops::Range;

use object::write::elf::{FileHeader, ProgramHeader, SectionHeader, SectionIndex, Sym, Writer};
use object::write::{StringId, WritableBuffer};
use object::{Endianness, elf};

use super::dwarf::Dwarf;
use super::machine::TargetMachine;
use super::places::{Places, Room, STRINGS, SYMBOLS, SectionRoom, Spare};
use super::table::Substitute;
use crate::build_id_note::build_id_note;
use crate::{Error, Result};

/// The type and binding of all symbols.
pub(super) const FUNCTION: u8 = elf::STB_GLOBAL << 4 | elf::STT_FUNC;

/// Writes the file into `out`, which must be empty. The spare space at its end is not written.
pub(super) fn write(
    substitute: &Substitute,
    dwarf: &Dwarf,
    spare: Spare,
    out: &mut dyn WritableBuffer,
) -> Result<Places> {
    let text_end = length(substitute.text.end)?;
    let note = build_id_note(&substitute.build_id, Endianness::Little);
    let mut writer = Writer::new(Endianness::Little, substitute.machine.is_64(), out);
    writer.reserve_file_header();
    writer.reserve_until(text_end);
    writer.reserve_program_headers(2);
    let note_offset = writer.reserve(note.len(), 4);
    let note_place = note_offset as u64..(note_offset as u64).saturating_add(note.len() as u64);
    let layout = reserve_sections(substitute, dwarf, spare, &mut writer)?;

    write_file_header(substitute.machine, &mut writer)?;
    write_methods(substitute, &mut writer)?;
    writer.pad_until(text_end);
    write_program_headers(&note_place, &mut writer);
    writer.write_align(4);
    writer.write(&note);
    for section in &layout.debug {
        writer.pad_until(section.place.room.content.start);
        writer.write(section.content);
    }
    writer.pad_until(layout.symbols.room.content.start);
    write_symbols(substitute, &layout, &mut writer);
    writer.pad_until(layout.strings.room.content.start);
    writer.write_strtab();
    writer.pad_until(layout.strings.room.end);
    writer.write_shstrtab();
    write_section_headers(&substitute.text, &note_place, &layout, &mut writer);
    let debug = layout.debug.into_iter().map(|section| section.place);
    Ok(Places {
        text: layout.text_index,
        sections: debug.chain([layout.symbols, layout.strings]).collect(),
        headers: layout.headers,
    })
}

/// The names of sections and symbols, and the places of debug information.
struct Layout<'d> {
    text_name: StringId,
    text_index: SectionIndex,
    note_name: StringId,
    debug: Vec<DebugSection<'d>>,
    symbols: SectionRoom,
    strings: SectionRoom,
    headers: Room,
    /// By slot.
    symbol_names: Vec<StringId>,
}

struct DebugSection<'d> {
    name: StringId,
    place: SectionRoom,
    content: &'d [u8],
}

/// Reserves what `reserve` does, from a multiple of `align` on, and the spare space behind it.
fn reserve_room<'d>(
    spare: Spare,
    align: usize,
    writer: &mut Writer<'d>,
    reserve: impl FnOnce(&mut Writer<'d>),
) -> Room {
    let start = writer.reserve(0, align);
    reserve(writer);
    let content = start..writer.reserved_len();
    writer.reserve(spare.behind(content.len()), 1);
    let end = writer.reserved_len();
    Room { content, end }
}

/// Reserves the sections, the symbols, and the section headers. Section and symbol indices are assigned in the order of the reservations.
fn reserve_sections<'d>(
    substitute: &'d Substitute,
    dwarf: &'d Dwarf,
    spare: Spare,
    writer: &mut Writer<'d>,
) -> Result<Layout<'d>> {
    let align = substitute.machine.address_size();
    writer.reserve_null_section_index();
    let text_name = writer.add_section_name(b".text");
    let text_index = writer.reserve_section_index();
    let note_name = writer.add_section_name(b".note.gnu.build-id");
    writer.reserve_section_index();
    let symbols = writer.reserve_symtab_section_index();
    let strings = writer.reserve_strtab_section_index();
    let debug = dwarf
        .sections()
        .map(|(name, content)| DebugSection {
            place: SectionRoom {
                name,
                index: writer.reserve_section_index(),
                room: reserve_room(spare, 1, writer, |writer| {
                    writer.reserve(content.len(), 1);
                }),
            },
            name: writer.add_section_name(name.as_bytes()),
            content,
        })
        .collect();
    writer.reserve_shstrtab_section_index();

    writer.reserve_null_symbol_index();
    let symbol_names = substitute
        .slots
        .iter()
        .map(|slot| {
            writer.reserve_symbol_index(Some(text_index));
            writer.add_string(slot.name.as_bytes())
        })
        .collect();
    let symbols = SectionRoom {
        name: SYMBOLS,
        index: symbols,
        room: reserve_room(spare, align, writer, Writer::reserve_symtab),
    };
    let strings = SectionRoom {
        name: STRINGS,
        index: strings,
        room: reserve_room(spare, 1, writer, Writer::reserve_strtab),
    };
    writer.reserve_shstrtab();
    let mut headers = reserve_room(Spare::None, align, writer, Writer::reserve_section_headers);
    let tables = spare.tables(substitute.slots.len());
    writer.reserve(headers.content.len().saturating_mul(tables), 1);
    headers.end = writer.reserved_len();
    if !substitute.machine.is_64() && u32::try_from(writer.reserved_len()).is_err() {
        return Err(Error::Substitute {
            problem: "more than 4 GB for a 32-bit machine".to_owned(),
        });
    }
    Ok(Layout {
        text_name,
        text_index,
        note_name,
        debug,
        symbols,
        strings,
        headers,
        symbol_names,
    })
}

fn write_file_header(machine: TargetMachine, writer: &mut Writer<'_>) -> Result<()> {
    let header = FileHeader {
        os_abi: elf::ELFOSABI_NONE,
        abi_version: 0,
        e_type: elf::ET_DYN,
        e_machine: machine.e_machine(),
        e_entry: 0,
        e_flags: if machine == TargetMachine::Arm {
            elf::EF_ARM_EABI_VER5
        } else {
            0
        },
    };
    writer
        .write_file_header(&header)
        .map_err(|error| Error::Substitute {
            problem: error.to_string(),
        })
}

/// Writes a segment from offset zero to the end of the note, and one of the note.
fn write_program_headers(note: &Range<u64>, writer: &mut Writer<'_>) {
    writer.write_align_program_headers();
    let segment = |p_type, p_flags, place: &Range<u64>, p_align| {
        let size = place.end.saturating_sub(place.start);
        ProgramHeader {
            p_type,
            p_flags,
            p_offset: place.start,
            p_vaddr: place.start,
            p_paddr: place.start,
            p_filesz: size,
            p_memsz: size,
            p_align,
        }
    };
    let loaded = elf::PF_R | elf::PF_X;
    writer.write_program_header(&segment(elf::PT_LOAD, loaded, &(0..note.end), 0x1000));
    writer.write_program_header(&segment(elf::PT_NOTE, elf::PF_R, note, 4));
}

/// Writes a function symbol for each slot.
fn write_symbols(substitute: &Substitute, layout: &Layout<'_>, writer: &mut Writer<'_>) {
    writer.write_null_symbol();
    for (slot, name) in substitute.slots.iter().zip(&layout.symbol_names) {
        writer.write_symbol(&Sym {
            name: Some(*name),
            section: Some(layout.text_index),
            st_info: FUNCTION,
            st_other: elf::STV_DEFAULT,
            st_shndx: 0,
            st_value: slot.offset,
            st_size: slot.size,
        });
    }
}

fn write_section_headers(
    text: &Range<u64>,
    note: &Range<u64>,
    layout: &Layout<'_>,
    writer: &mut Writer<'_>,
) {
    writer.write_null_section_header();
    let code = elf::SHF_ALLOC | elf::SHF_EXECINSTR;
    let text = section(layout.text_name, elf::SHT_PROGBITS, code, text);
    writer.write_section_header(&text);
    let note = section(layout.note_name, elf::SHT_NOTE, elf::SHF_ALLOC, note);
    writer.write_section_header(&note);
    writer.write_symtab_section_header(1);
    writer.write_strtab_section_header();
    for debug in &layout.debug {
        let content = &debug.place.room.content;
        let place = content.start as u64..content.end as u64;
        writer.write_section_header(&section(debug.name, elf::SHT_PROGBITS, 0, &place));
    }
    writer.write_shstrtab_section_header();
}

/// Writes the instructions of a bytecode image's methods. The instructions in a range of slots are not known, so nothing is written there.
fn write_methods(substitute: &Substitute, writer: &mut Writer<'_>) -> Result<()> {
    /// Bytes that are written at once, unless one instruction is longer.
    const CHUNK: usize = 1 << 12;
    if substitute.units.is_empty() {
        return Ok(());
    }
    let instruction = substitute.machine.no_operation(substitute.code_unit);
    let chunk = instruction.repeat(CHUNK.div_ceil(instruction.len().max(1)));
    for slot in &substitute.slots {
        let start = length(slot.offset)?;
        if start < writer.len() {
            continue;
        }
        writer.pad_until(start);
        let mut rest = length(slot.size)?;
        while rest > 0 && !chunk.is_empty() {
            let part = chunk.get(..rest).unwrap_or(&chunk);
            writer.write(part);
            rest = rest.saturating_sub(part.len());
        }
    }
    Ok(())
}

/// Makes the header of the section at `place` of the file. The address of a loaded section is its file offset.
fn section(name: StringId, sh_type: u32, sh_flags: u32, place: &Range<u64>) -> SectionHeader {
    let loaded = sh_flags & elf::SHF_ALLOC != 0;
    SectionHeader {
        name: Some(name),
        sh_type,
        sh_flags: sh_flags.into(),
        sh_addr: if loaded { place.start } else { 0 },
        sh_offset: place.start,
        sh_size: place.end.saturating_sub(place.start),
        sh_link: 0,
        sh_info: 0,
        sh_addralign: if loaded { 4 } else { 1 },
        sh_entsize: 0,
    }
}

/// Converts a file offset to a `usize`.
fn length(bytes: u64) -> Result<usize> {
    usize::try_from(bytes).map_err(|_| Error::Substitute {
        problem: format!("a text of {bytes} bytes"),
    })
}
