//! Parses the headers of an ELF file.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::ops::Range;

use object::elf;
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader, SectionHeader};
use object::{Endianness, FileKind, ReadRef};

use super::data::{Data, Problem};
use super::dynamic;
use super::parts::{Packing, Section, Segment, c_string};

/// The most notes sections or segments that are searched for the build-id, and the most bytes of each.
const MAX_NOTES: usize = 64;
const MAX_NOTES_SIZE: u64 = 65_536;

/// The longest section name that is read, in bytes.
const MAX_SECTION_NAME: usize = 64;

/// The most sections and program headers that a file may have. A sparse file can claim any number of them, and the parsed form of each
/// takes more memory than its header.
const MAX_SECTIONS: usize = elf::SHN_LORESERVE as usize;
const MAX_PROGRAMS: usize = elf::PN_XNUM as usize;

/// The most bytes of section names that are read.
const MAX_SECTION_NAMES: u64 = 16 << 20;

/// The most reads that parsing the headers takes: the magic number, the file header, both tables, and up to five times the first section
/// header, which has the numbers that do not fit into the file header.
const MAX_READS: usize = 10;

/// The headers of an ELF file.
#[derive(Debug)]
pub(super) struct Headers {
    pub(super) endian: Endianness,
    pub(super) is_64: bool,
    /// For example `ET_DYN`.
    pub(super) kind: u16,
    pub(super) machine: u16,
    pub(super) sections: Vec<Section>,
    /// Why the section headers cannot be used, or None. If they cannot, `sections` are made from the program headers.
    pub(super) unusable_sections: Option<Problem>,
    pub(super) segments: Vec<Segment>,
    pub(super) build_id: Option<Vec<u8>>,
}

/// The part of the headers that cannot be used, and the reason.
pub(super) type HeaderProblem = (&'static str, Problem);

impl Headers {
    /// Parses the headers.
    pub(super) fn read(data: &Data<'_>) -> Result<Self, HeaderProblem> {
        let reads = HeaderReads {
            data,
            kept: Default::default(),
            used: Cell::new(0),
            problem: Cell::new(None),
        };
        let wrong = |problem: &str| Err(("header", Problem::Format(problem.to_owned())));
        match FileKind::parse(&reads) {
            Ok(FileKind::Elf64) => reads.parse::<elf::FileHeader64<Endianness>>(),
            Ok(FileKind::Elf32) => reads.parse::<elf::FileHeader32<Endianness>>(),
            _ => match reads.problem.take() {
                Some(problem @ (Problem::TooMuch | Problem::Io(_))) => Err(("header", problem)),
                Some(_) => wrong("shorter than an ELF header"),
                None if data.read(0, 4).is_ok_and(|magic| *magic == elf::ELFMAG) => {
                    wrong("neither 32-bit nor 64-bit")
                }
                None => wrong("no ELF magic number"),
            },
        }
    }
}

/// The bytes that `object` reads while it parses the headers, kept until it is done.
struct HeaderReads<'d> {
    data: &'d Data<'d>,
    kept: [OnceCell<Cow<'d, [u8]>>; MAX_READS],
    used: Cell<usize>,
    /// Why the last read failed: `object` does not pass the reason on.
    problem: Cell<Option<Problem>>,
}

impl<'r> ReadRef<'r> for &'r HeaderReads<'_> {
    fn len(self) -> Result<u64, ()> {
        Ok(self.data.size())
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'r [u8], ()> {
        let slot = self.kept.get(self.used.get()).ok_or(())?;
        let read = self.data.read(offset, size);
        let bytes = read.map_err(|problem| self.problem.set(Some(problem)))?;
        self.used.set(self.used.get().saturating_add(1));
        Ok(slot.get_or_init(|| bytes))
    }

    /// No header contains a string.
    fn read_bytes_at_until(self, _: Range<u64>, _: u8) -> Result<&'r [u8], ()> {
        Err(())
    }
}

impl HeaderReads<'_> {
    fn parse<Elf: FileHeader<Endian = Endianness>>(&self) -> Result<Headers, HeaderProblem> {
        let wrong = |part| {
            move |error: object::Error| (part, self.problem.take().unwrap_or_else(|| error.into()))
        };
        let header = Elf::parse(self).map_err(wrong("header"))?;
        let endian = header.endian().map_err(wrong("header"))?;
        let sections = header
            .shnum(endian, self)
            .map_err(wrong("section headers"))
            .and_then(|count| at_most(MAX_SECTIONS, "section headers", count))
            .and_then(|()| {
                let sections = header.section_headers(endian, self);
                sections.map_err(wrong("section headers"))
            });
        let programs = header
            .phnum(endian, self)
            .map_err(wrong("program headers"))
            .and_then(|count| at_most(MAX_PROGRAMS, "program headers", count))
            .and_then(|()| {
                let programs = header.program_headers(endian, self);
                programs.map_err(wrong("program headers"))
            })?;
        let segments: Vec<Segment> = programs
            .iter()
            .filter_map(|program| segment(program, endian))
            .collect();
        let (mut sections, mut unusable_sections) = match sections {
            Ok(sections) => (self.sections(header, endian, sections), None),
            // The loaded segments can be used without sections.
            Err((_, problem)) if !segments.is_empty() => (Vec::new(), Some(problem)),
            Err(problem) => return Err(problem),
        };
        if !segments.is_empty() && !sections.iter().any(Section::is_loaded) {
            let none = || Problem::Format("there are none of what is loaded".to_owned());
            unusable_sections.get_or_insert_with(none);
            let more =
                dynamic::sections::<Elf>(self.data, endian, programs, &segments, sections.len());
            sections.extend(more);
        }
        let build_id = self.find_build_id::<Elf>(endian, programs, &sections);
        Ok(Headers {
            endian,
            is_64: header.is_class_64(),
            kind: header.e_type(endian),
            machine: header.e_machine(endian),
            sections,
            unusable_sections,
            segments,
            build_id,
        })
    }

    fn sections<Elf: FileHeader<Endian = Endianness>>(
        &self,
        header: &Elf,
        endian: Endianness,
        sections: &[Elf::SectionHeader],
    ) -> Vec<Section> {
        let names = header
            .section_strings_index(endian, self)
            .ok()
            .and_then(|index| sections.get(index.0)?.file_range(endian))
            .and_then(|(offset, size)| self.data.read(offset, size.min(MAX_SECTION_NAMES)).ok())
            .unwrap_or_default();
        let name = |offset: u32| {
            let text = names.get(offset as usize..).unwrap_or_default();
            let text = c_string(text.get(..MAX_SECTION_NAME).unwrap_or(text));
            String::from_utf8_lossy(text).into_owned()
        };
        let section = |section: &Elf::SectionHeader| {
            let flags = section.sh_flags(endian).into();
            let name = name(section.sh_name(endian));
            let zlib = name.strip_prefix(".zdebug_");
            let packing = match zlib {
                _ if flags & u64::from(elf::SHF_COMPRESSED) != 0 => Packing::Header,
                Some(_) => Packing::Zlib,
                None => Packing::Plain,
            };
            Section {
                name: zlib.map_or_else(|| name.clone(), |rest| format!(".debug_{rest}")),
                kind: section.sh_type(endian),
                flags,
                packing,
                address: section.sh_addr(endian).into(),
                offset: section.sh_offset(endian).into(),
                size: section.sh_size(endian).into(),
                link: section.sh_link(endian),
            }
        };
        sections.iter().map(section).collect()
    }

    /// Finds the GNU build-id. A file without program headers (an object file, or a debug file of some tools) has its notes in sections.
    fn find_build_id<Elf: FileHeader<Endian = Endianness>>(
        &self,
        endian: Endianness,
        programs: &[Elf::ProgramHeader],
        sections: &[Section],
    ) -> Option<Vec<u8>> {
        let in_programs = programs
            .iter()
            .filter(|program| program.p_type(endian) == elf::PT_NOTE)
            .map(|program| program.file_range(endian));
        let in_sections = sections
            .iter()
            .filter(|section| section.kind == elf::SHT_NOTE)
            .map(|section| (section.offset, section.size));
        in_programs
            .take(MAX_NOTES)
            .chain(in_sections.take(MAX_NOTES))
            .find_map(|(offset, size)| self.build_id::<Elf>(endian, offset, size))
    }

    /// Finds the GNU build-id in the notes there. Notes are aligned to four bytes, as the kernel and perf expect.
    fn build_id<Elf: FileHeader<Endian = Endianness>>(
        &self,
        endian: Endianness,
        offset: u64,
        size: u64,
    ) -> Option<Vec<u8>> {
        let notes = self.data.read(offset, size.min(MAX_NOTES_SIZE)).ok()?;
        let mut notes = NoteIterator::<Elf>::new(endian, Elf::Word::default(), &notes).ok()?;
        while let Ok(Some(note)) = notes.next() {
            if note.n_type(endian) == elf::NT_GNU_BUILD_ID && note.name_bytes() == b"GNU\0" {
                return Some(note.desc().to_vec());
            }
        }
        None
    }
}

/// Rejects a table with more than `most` entries.
fn at_most(most: usize, part: &'static str, count: usize) -> Result<(), HeaderProblem> {
    match count <= most {
        true => Ok(()),
        false => Err((part, Problem::TooMuch)),
    }
}

fn segment<P: ProgramHeader<Endian = Endianness>>(
    program: &P,
    endian: Endianness,
) -> Option<Segment> {
    (program.p_type(endian) == elf::PT_LOAD).then(|| Segment {
        offset: program.p_offset(endian).into(),
        address: program.p_vaddr(endian).into(),
        size: program.p_filesz(endian).into(),
        executable: program.p_flags(endian) & elf::PF_X != 0,
    })
}
