//! Writes the part of an ELF file that names its addresses into a separate file.
//!
//! The result is like that of `objcopy --only-keep-debug`, except for the program headers: those are the original's, so that the file
//! offsets of a mapping lead to the same addresses. Sections that are left out keep their headers with the original's offsets, but without
//! content: perf before 6.0 uses them to convert a program's symbols to file addresses. Only code sections keep their names.

use std::borrow::Cow;
use std::io::Write;
use std::ops::Range;
use std::path::Path;

use object::write::elf::{FileHeader, ProgramHeader, SectionHeader, Writer};
use object::write::{StreamingBuffer, StringId};
use object::{Endianness, elf};

use super::data::FileBytes;
use super::package;
use super::parts::{Packing, Section};
use super::reader::ElfReader;
use crate::build_id_note::build_id_note;
use crate::{Error, Result};

/// Alignment of the kept content: that of symbol table entries.
const ALIGNMENT: usize = 8;
/// Bytes that are copied at once.
const PIECE: u64 = 1 << 20;
/// The section in which readers first search the build-id.
const BUILD_ID_SECTION: &[u8] = b".note.gnu.build-id";
/// Sections, other than the symbol tables, that name addresses or lead to files that do.
const NAMING: [&str; 6] = [
    ".gnu_debuglink",
    ".gnu_debugaltlink",
    ".gnu_debugdata",
    ".eh_frame",
    ".debug_frame",
    ".ARM.exidx",
];

/// The most bytes of an ELF file that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SymbolFileLimits {
    /// Headers, symbols, and the bounds of functions.
    pub names: u64,
    /// Debug information: lines and inlined functions.
    pub debug: u64,
}

/// The part of an ELF file that names its addresses.
#[derive(Debug)]
pub struct SymbolFile<'d> {
    image: ElfReader<'d>,
    /// Whether the content of a section is kept, by its index.
    kept: Vec<bool>,
    /// Upper bound of the size of these contents and the headers, in bytes.
    size: u64,
    cut: bool,
}

impl SymbolFile<'static> {
    /// Selects that part of the file at a path, or of the library `entry` of an archive.
    ///
    /// # Errors
    /// It cannot be read, is not an ELF file, is not loaded as it is, or its headers exceed the limit of names.
    pub fn open(path: &Path, entry: Option<&str>, limits: SymbolFileLimits) -> Result<Self> {
        let image = match entry {
            Some(entry) => package::open_entry(path, entry)?,
            None => ElfReader::open(path)?,
        };
        Self::new(image, limits)
    }
}

impl<'d> SymbolFile<'d> {
    /// Selects that part of the ELF file in a part of a file. `name` is used in errors.
    ///
    /// # Errors
    /// It cannot be read, is not an ELF file, is not loaded as it is, or its headers exceed the limit of names.
    pub fn of_part(
        file: impl FileBytes + 'd,
        part: Range<u64>,
        name: &str,
        limits: SymbolFileLimits,
    ) -> Result<Self> {
        Self::new(ElfReader::from_part(Box::new(file), part, name)?, limits)
    }

    /// Selects that part from a file's bytes. `name` is used in errors.
    ///
    /// # Errors
    /// It is not an ELF file, is not loaded as it is, or its headers exceed the limit of names.
    pub fn of_bytes(
        bytes: impl Into<Cow<'d, [u8]>>,
        name: &str,
        limits: SymbolFileLimits,
    ) -> Result<Self> {
        Self::new(ElfReader::from_bytes(bytes, name)?, limits)
    }

    fn new(image: ElfReader<'d>, limits: SymbolFileLimits) -> Result<Self> {
        if image.kind == elf::ET_REL {
            return Err(image.wrong("header", "a relocatable file, which is not loaded as it is"));
        }
        if image.sections.len() >= usize::from(elf::SHN_LORESERVE) {
            return Err(image.wrong("section headers", "more than are kept"));
        }
        let headers = size_of_headers(&image);
        let Some(mut left) = limits.names.checked_sub(headers) else {
            return Err(image.wrong("headers", "larger than what is kept"));
        };
        let mut selection = Selection::new(&image);
        for (number, section) in image.sections.iter().enumerate() {
            if section.kind == elf::SHT_NOTE {
                selection.add(&[number], &mut left);
            }
        }
        for kind in [elf::SHT_DYNSYM, elf::SHT_SYMTAB] {
            if let Some(table) = image.sections.iter().position(|found| found.kind == kind) {
                let names = image.sections.get(table).map_or(0, |found| found.link);
                selection.add(&[table, names as usize], &mut left);
            }
        }
        for name in NAMING {
            let found = image.sections.iter().position(|found| found.name == name);
            found.into_iter().for_each(|number| {
                selection.add(&[number], &mut left);
            });
        }
        // Debug sections are useless without each other.
        let debug: Vec<usize> = (0..)
            .zip(&image.sections)
            .filter(|(_, section)| section.name.starts_with(".debug_"))
            .filter_map(|(number, _)| (!selection.has(number)).then_some(number))
            .collect();
        let mut left = limits.debug;
        selection.add(&debug, &mut left);
        let Selection {
            kept, size, cut, ..
        } = selection;
        Ok(Self {
            image,
            kept,
            size: size.saturating_add(headers),
            cut,
        })
    }

    /// Returns true if a limit left out something that names addresses.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.cut
    }

    /// Upper bound of the size of the file, in bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Writes it as an ELF file.
    ///
    /// # Errors
    /// The original cannot be read, or the output cannot be written.
    pub fn write(&self, out: impl Write) -> Result<()> {
        let mut out = StreamingBuffer::new(out);
        let written = self.write_into(&mut out);
        let path = Path::new(&self.image.name);
        out.flush()
            .map_err(Error::io("keep the symbols of", path))?;
        written
    }

    fn write_into<W: Write>(&self, out: &mut StreamingBuffer<W>) -> Result<()> {
        let encoding = self.image.encoding();
        let build_id = self.image.build_id.as_deref();
        let note = build_id.map(|id| build_id_note(id, encoding.endian));
        let note = note.unwrap_or_default();
        let names = self.section_names();
        let mut writer = Writer::new(encoding.endian, encoding.is_64, out);
        let layout = self.reserve(&mut writer, &names, &note)?;
        self.write_file_header(&mut writer)?;
        self.write_program_headers(&mut writer, &layout);
        writer.pad_until(layout.note_offset);
        writer.write(&note);
        for (number, (section, place)) in
            self.image.sections.iter().zip(&layout.sections).enumerate()
        {
            writer.pad_until(place.offset);
            if self.has(number) {
                self.copy(section, &mut writer)?;
            }
        }
        writer.write_shstrtab();
        self.write_section_headers(&mut writer, &layout);
        Ok(())
    }

    /// The names that sections have in the file. Readers assume that a section has content if they find it by name, as perf does for notes
    /// and relocations.
    fn section_names(&self) -> Vec<Option<Vec<u8>>> {
        (0..)
            .zip(&self.image.sections)
            .map(|(number, section)| {
                (self.has(number) || section.is_executable()).then(|| name_of(section))
            })
            .collect()
    }

    /// Reserves everything in the order in which it is written.
    fn reserve<'n>(
        &self,
        writer: &mut Writer<'n>,
        names: &'n [Option<Vec<u8>>],
        note: &[u8],
    ) -> Result<Layout> {
        let image = &self.image;
        writer.reserve_file_header();
        let notes = usize::from(!note.is_empty());
        let programs = u32::try_from(image.segments.len().saturating_add(notes));
        writer.reserve_program_headers(programs.map_err(|error| self.refuse(&error))?);
        let note_offset = writer.reserve(note.len(), ALIGNMENT);
        writer.reserve_null_section_index();
        let mut sections = Vec::with_capacity(image.sections.len());
        for (number, (section, name)) in image.sections.iter().zip(names).enumerate() {
            let size = match self.has(number) {
                true => usize::try_from(section.size).map_err(|error| self.refuse(&error))?,
                false => 0,
            };
            let offset = writer.reserve(size, ALIGNMENT);
            if number > 0 {
                writer.reserve_section_index();
            }
            let name = name.as_ref().map(|name| writer.add_section_name(name));
            sections.push(SectionPlace { offset, name });
        }
        let mut shown = names.iter().flatten();
        let adds_note = !note.is_empty() && !shown.any(|name| name == BUILD_ID_SECTION);
        let note_name = adds_note.then(|| {
            writer.reserve_section_index();
            writer.add_section_name(BUILD_ID_SECTION)
        });
        writer.reserve_shstrtab_section_index();
        writer.reserve_shstrtab();
        writer.reserve_section_headers();
        if !image.encoding().is_64 && u32::try_from(writer.reserved_len()).is_err() {
            return Err(self.refuse(&"more than 4 GB of a 32-bit file"));
        }
        Ok(Layout {
            sections,
            note_offset,
            note_size: note.len(),
            note_name,
        })
    }

    fn write_file_header(&self, writer: &mut Writer<'_>) -> Result<()> {
        let header = FileHeader {
            os_abi: elf::ELFOSABI_NONE,
            abi_version: 0,
            e_type: self.image.kind,
            e_machine: self.image.machine,
            e_entry: 0,
            e_flags: 0,
        };
        let written = writer.write_file_header(&header);
        written.map_err(|error| self.refuse(&error))
    }

    /// Writes the original's segments, and one of the build-id.
    fn write_program_headers(&self, writer: &mut Writer<'_>, layout: &Layout) {
        writer.write_align_program_headers();
        for segment in &self.image.segments {
            let executable = if segment.executable { elf::PF_X } else { 0 };
            writer.write_program_header(&ProgramHeader {
                p_type: elf::PT_LOAD,
                p_flags: elf::PF_R | executable,
                p_offset: segment.offset,
                p_vaddr: segment.address,
                p_paddr: segment.address,
                p_filesz: segment.size,
                p_memsz: segment.size,
                p_align: 1,
            });
        }
        if layout.note_size > 0 {
            writer.write_program_header(&ProgramHeader {
                p_type: elf::PT_NOTE,
                p_flags: elf::PF_R,
                p_offset: layout.note_offset as u64,
                p_vaddr: 0,
                p_paddr: 0,
                p_filesz: layout.note_size as u64,
                p_memsz: layout.note_size as u64,
                p_align: 4,
            });
        }
    }

    fn write_section_headers(&self, writer: &mut Writer<'_>, layout: &Layout) {
        writer.write_null_section_header();
        let sections = self.image.sections.iter().zip(&layout.sections);
        for (number, (section, place)) in sections.enumerate().skip(1) {
            writer.write_section_header(&self.section_header(number, section, place));
        }
        if let Some(name) = layout.note_name {
            writer.write_section_header(&SectionHeader {
                name: Some(name),
                sh_type: elf::SHT_NOTE,
                sh_flags: 0,
                sh_addr: 0,
                sh_offset: layout.note_offset as u64,
                sh_size: layout.note_size as u64,
                sh_link: 0,
                sh_info: 0,
                sh_addralign: 4,
                sh_entsize: 0,
            });
        }
        writer.write_shstrtab_section_header();
    }

    /// The header of section `number`. One that is left out keeps the original's offset.
    fn section_header(
        &self,
        number: usize,
        section: &Section,
        place: &SectionPlace,
    ) -> SectionHeader {
        let is_kept = self.has(number);
        let is_empty = !is_kept && section.kind != elf::SHT_NULL;
        SectionHeader {
            name: place.name,
            sh_type: if is_empty {
                elf::SHT_NOBITS
            } else {
                section.kind
            },
            sh_flags: section.flags,
            sh_addr: section.address,
            sh_offset: if is_kept {
                place.offset as u64
            } else {
                section.offset
            },
            sh_size: section.size,
            sh_link: section.link,
            sh_info: 0,
            sh_addralign: 1,
            sh_entsize: entry_size(section.kind, self.image.encoding().is_64),
        }
    }

    fn refuse(&self, problem: &dyn ToString) -> Error {
        self.image.wrong("symbol file", problem.to_string())
    }

    fn has(&self, number: usize) -> bool {
        self.kept.get(number) == Some(&true)
    }

    /// Copies the content of a section unchanged.
    fn copy(&self, section: &Section, writer: &mut Writer<'_>) -> Result<()> {
        let (mut at, mut left) = (section.offset, section.size);
        while left > 0 {
            let piece = left.min(PIECE);
            writer.write(&self.image.stretch(at, piece)?);
            (at, left) = (at.saturating_add(piece), left.saturating_sub(piece));
        }
        Ok(())
    }
}

/// The places of what is written.
struct Layout {
    /// By the number of the section.
    sections: Vec<SectionPlace>,
    note_offset: usize,
    /// Size of the build-id's note in bytes. 0: there is none.
    note_size: usize,
    /// The name of the section that is added for the note.
    note_name: Option<StringId>,
}

struct SectionPlace {
    offset: usize,
    name: Option<StringId>,
}

/// The sections that are kept within limits.
#[derive(Debug)]
struct Selection<'i, 'd> {
    image: &'i ElfReader<'d>,
    kept: Vec<bool>,
    size: u64,
    cut: bool,
}

impl<'i, 'd> Selection<'i, 'd> {
    fn new(image: &'i ElfReader<'d>) -> Self {
        Self {
            image,
            kept: vec![false; image.sections.len()],
            size: 0,
            cut: false,
        }
    }

    fn has(&self, number: usize) -> bool {
        self.kept.get(number) == Some(&true)
    }

    /// Adds sections that belong together, all or none of them, and subtracts their sizes from `left`. A section that is not completely in
    /// the file is never kept.
    fn add(&mut self, numbers: &[usize], left: &mut u64) {
        let new = numbers.iter().filter_map(|&number| {
            let section = self.image.sections.get(number)?;
            // Section 0 is the null section.
            let has_content = number > 0 && section.kind != elf::SHT_NOBITS;
            let is_new = has_content && !self.has(number) && self.image.is_whole(section);
            is_new.then_some((number, section.size))
        });
        let new: Vec<(usize, u64)> = new.collect();
        let sizes = new.iter().map(|(_, size)| *size);
        let size = sizes.fold(0, u64::saturating_add);
        let Some(rest) = left.checked_sub(size) else {
            self.cut = true;
            return;
        };
        *left = rest;
        self.size = self.size.saturating_add(size);
        for (number, _) in new {
            if let Some(kept) = self.kept.get_mut(number) {
                *kept = true;
            }
        }
    }
}

/// Upper bound of the size of the headers, the section names, the build-id and the alignment of all contents, in bytes.
fn size_of_headers(image: &ElfReader<'_>) -> u64 {
    let alignment = ALIGNMENT as u64;
    let file = size_of::<elf::FileHeader64<Endianness>>() as u64;
    let section = (size_of::<elf::SectionHeader64<Endianness>>() as u64).saturating_add(alignment);
    let program = size_of::<elf::ProgramHeader64<Endianness>>() as u64;
    let added = [BUILD_ID_SECTION, b".shstrtab"];
    let build_id = image.build_id.as_deref();
    let note = build_id.map_or(0, |id| build_id_note(id, image.encoding().endian).len());
    // Each name has a terminating NUL, and that of a packed section is one letter longer.
    let names = image.sections.iter().map(|section| section.name.len());
    let names = names.chain(added.map(<[u8]>::len));
    let names = names.map(|name| (name as u64).saturating_add(2));
    let sections = image.sections.len().saturating_add(added.len()) as u64;
    let programs = image.segments.len().saturating_add(1) as u64;
    let parts = [
        file,
        programs.saturating_mul(program),
        sections.saturating_mul(section),
        note as u64,
        // The alignment of the note and of the section header table.
        alignment.saturating_mul(2),
    ];
    names.chain(parts).fold(0, u64::saturating_add)
}

/// The name of a section in the file.
fn name_of(section: &Section) -> Vec<u8> {
    let name = match (section.packing, section.name.strip_prefix(".debug_")) {
        (Packing::Zlib, Some(rest)) => format!(".zdebug_{rest}"),
        _ => section.name.clone(),
    };
    name.into_bytes()
}

/// Size of a symbol or relocation table's entry in bytes, from which readers compute the number of entries. 0 for other sections.
fn entry_size(kind: u32, is_64: bool) -> u64 {
    match kind {
        elf::SHT_SYMTAB | elf::SHT_DYNSYM if is_64 => 24,
        elf::SHT_SYMTAB | elf::SHT_DYNSYM => 16,
        elf::SHT_SYMTAB_SHNDX => 4,
        // perf divides by this even if there are no relocations.
        elf::SHT_RELA if is_64 => 24,
        elf::SHT_RELA => 12,
        elf::SHT_REL if is_64 => 16,
        elf::SHT_REL => 8,
        _ => 0,
    }
}
