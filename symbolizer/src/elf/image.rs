//! What are the parts of an ELF file, and what bytes are in them?

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use object::elf;

use crate::{Error, Result};

/// The most that is read of a file, and made of its compressed sections, in bytes: a sparse
/// file can claim sections of any size.
const MAX_READ: u64 = 1 << 30;

/// How many bytes are read at once: memory grows with what is there.
const PIECE: usize = 1 << 20;

/// How many notes sections or segments are searched for the build-id, and how many bytes of each.
const MAX_NOTES: (usize, u64) = (64, 65_536);

/// The longest name of a section that is looked at, in bytes.
const MAX_SECTION_NAME: usize = 64;

/// An ELF file whose headers have been read; sections are read when they are asked for.
#[derive(Debug)]
pub(super) struct Image<'d> {
    pub(super) name: String,
    data: Data<'d>,
    /// Bytes that may still be read or unpacked.
    left: AtomicU64,
    order: Order,
    /// `ET_DYN`, say.
    pub(super) kind: u16,
    pub(super) machine: u16,
    pub(super) sections: Vec<Section>,
    pub(super) segments: Vec<Segment>,
    pub(super) build_id: Option<Vec<u8>>,
}

/// Where the bytes are: in memory, or in a stretch of a file.
#[derive(Debug)]
enum Data<'d> {
    Bytes(Cow<'d, [u8]>),
    File { file: File, start: u64, size: u64 },
}

/// How numbers are laid out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    pub(super) big_endian: bool,
    pub(super) wide: bool,
}

/// A section header.
#[derive(Debug, Clone, Default)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) kind: u32,
    pub(super) flags: u64,
    pub(super) address: u64,
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) link: u32,
}

/// A part of the file that is loaded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub(super) offset: u64,
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) executable: bool,
}

impl Order {
    /// The number in the `size` bytes at `at`.
    fn number(self, bytes: &[u8], at: usize, size: usize) -> Option<u64> {
        let field = bytes.get(at..at.checked_add(size)?)?;
        let shift = |value: u64, &byte: &u8| (value << 8) | u64::from(byte);
        Some(if self.big_endian {
            field.iter().fold(0, shift)
        } else {
            field.iter().rev().fold(0, shift)
        })
    }

    pub(super) fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        u16::try_from(self.number(bytes, at, 2)?).ok()
    }

    pub(super) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        u32::try_from(self.number(bytes, at, 4)?).ok()
    }

    /// An address or an offset; `at` is its place in a 64-bit and in a 32-bit file.
    pub(super) fn word(self, bytes: &[u8], at: (usize, usize)) -> Option<u64> {
        if self.wide {
            self.number(bytes, at.0, 8)
        } else {
            self.number(bytes, at.1, 4)
        }
    }

    pub(super) fn address_size(self) -> u8 {
        if self.wide { 8 } else { 4 }
    }

    pub(super) fn endian(self) -> gimli::RunTimeEndian {
        if self.big_endian {
            gimli::RunTimeEndian::Big
        } else {
            gimli::RunTimeEndian::Little
        }
    }
}

impl Image<'static> {
    /// Opens a file.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        Self::from_file(file, &path.display().to_string())
    }

    /// Reads the headers of a file.
    pub(super) fn from_file(file: File, name: &str) -> Result<Self> {
        let size = file
            .metadata()
            .map_err(Error::io("stat", Path::new(name)))?
            .len();
        Self::from_part(file, 0, size, name)
    }

    /// Reads the headers of the ELF file that lies in a stretch of a file.
    pub(super) fn from_part(file: File, start: u64, size: u64, name: &str) -> Result<Self> {
        Self::new(Data::File { file, start, size }, name)
    }
}

impl<'d> Image<'d> {
    /// Reads the headers of a file's bytes.
    pub(super) fn from_bytes(bytes: impl Into<Cow<'d, [u8]>>, name: &str) -> Result<Self> {
        Self::new(Data::Bytes(bytes.into()), name)
    }

    fn new(data: Data<'d>, name: &str) -> Result<Self> {
        let mut image = Self {
            name: name.to_owned(),
            data,
            left: AtomicU64::new(MAX_READ),
            order: Order {
                big_endian: false,
                wide: true,
            },
            kind: 0,
            machine: 0,
            sections: Vec::new(),
            segments: Vec::new(),
            build_id: None,
        };
        image.read_headers()?;
        Ok(image)
    }

    pub(super) fn order(&self) -> Order {
        self.order
    }

    /// The error that `part` of this file cannot be used.
    pub(super) fn wrong(&self, part: &'static str, problem: impl ToString) -> Error {
        Error::Elf {
            file: self.name.clone(),
            part,
            problem: problem.to_string(),
        }
    }

    /// The section of that name.
    pub(super) fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// What is in a section, unpacked if the file has it compressed.
    pub(super) fn bytes(&self, section: &Section) -> Result<Cow<'_, [u8]>> {
        if section.kind == elf::SHT_NOBITS {
            return Ok(Cow::Borrowed(&[]));
        }
        let bytes = self.read(section.offset, section.size, "section")?;
        if section.flags & u64::from(elf::SHF_COMPRESSED) == 0 {
            return Ok(bytes);
        }
        self.unpack(&bytes)
            .map(Cow::Owned)
            .map_err(|problem| self.wrong("compressed section", problem))
    }

    /// What is in the section of that name; nothing if there is none.
    pub(super) fn bytes_of(&self, name: &str) -> Result<Cow<'_, [u8]>> {
        self.section(name)
            .map_or(Ok(Cow::Borrowed(&[])), |section| self.bytes(section))
    }

    /// Where in the file that is mapped this one begins: not at 0 in an archive.
    pub(super) fn start(&self) -> u64 {
        match self.data {
            Data::Bytes(_) => 0,
            Data::File { start, .. } => start,
        }
    }

    /// How many bytes the file has.
    pub(super) fn size(&self) -> u64 {
        match &self.data {
            Data::Bytes(bytes) => bytes.len() as u64,
            Data::File { size, .. } => *size,
        }
    }

    /// The `size` bytes at `offset`.
    pub(super) fn read(&self, offset: u64, size: u64, part: &'static str) -> Result<Cow<'_, [u8]>> {
        let end = offset
            .checked_add(size)
            .filter(|&end| end <= self.size())
            .ok_or_else(|| self.wrong(part, "reaches beyond the end of the file"))?;
        match &self.data {
            Data::Bytes(bytes) => Ok(Cow::Borrowed(
                bytes.get(offset as usize..end as usize).unwrap_or_default(),
            )),
            Data::File { file, start, .. } => {
                self.take(size)
                    .ok_or_else(|| self.wrong(part, "more than is read of one file"))?;
                start
                    .checked_add(offset)
                    .ok_or(std::io::ErrorKind::InvalidInput.into())
                    .and_then(|at| read_pieces(file, at, size as usize))
                    .map(Cow::Owned)
                    .map_err(Error::io("read", Path::new(&self.name)))
            }
        }
    }

    /// Counts `bytes` against what may still be read.
    fn take(&self, bytes: u64) -> Option<()> {
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(bytes)
            })
            .ok()
            .map(drop)
    }

    /// Unpacks a section that begins with a compression header.
    fn unpack(&self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let cut = || "ends within its header".to_owned();
        let method = self.order.u32(bytes, 0).ok_or_else(cut)?;
        let size = self.order.word(bytes, (8, 4)).ok_or_else(cut)?;
        let packed = bytes
            .get(if self.order.wide { 24 } else { 12 }..)
            .ok_or_else(cut)?;
        self.take(size)
            .ok_or_else(|| "more than is read of one file".to_owned())?;
        let limit = usize::try_from(size).map_err(|error| error.to_string())?;
        let unpacked = match method {
            elf::ELFCOMPRESS_ZLIB => {
                miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(packed, limit)
                    .map_err(|error| error.to_string())?
            }
            elf::ELFCOMPRESS_ZSTD => {
                let mut unpacked = Vec::new();
                ruzstd::decoding::StreamingDecoder::new(packed)
                    .map_err(|error| error.to_string())?
                    .take(size)
                    .read_to_end(&mut unpacked)
                    .map_err(|error| error.to_string())?;
                unpacked
            }
            other => return Err(format!("unknown method {other}")),
        };
        if unpacked.len() == limit {
            Ok(unpacked)
        } else {
            Err(format!("has {} bytes of {size}", unpacked.len()))
        }
    }

    fn read_headers(&mut self) -> Result<()> {
        let ident = self
            .read(0, 16, "header")
            .map_err(|_| self.wrong("header", "shorter than an ELF header"))?
            .into_owned();
        self.order = match *ident {
            [0x7f, b'E', b'L', b'F', class @ (1 | 2), data @ (1 | 2), ..] => Order {
                wide: class == 2,
                big_endian: data == 2,
            },
            [0x7f, b'E', b'L', b'F', 1 | 2, ..] => {
                return Err(self.wrong("header", "neither little-endian nor big-endian"));
            }
            [0x7f, b'E', b'L', b'F', ..] => {
                return Err(self.wrong("header", "neither 32-bit nor 64-bit"));
            }
            _ => return Err(self.wrong("header", "no ELF magic number")),
        };
        let order = self.order;
        let header = self.read(0, if order.wide { 64 } else { 52 }, "header")?;
        let half = |at: (usize, usize)| {
            order
                .u16(&header, if order.wide { at.0 } else { at.1 })
                .unwrap_or_default()
        };
        let (kind, machine) = (half((16, 16)), half((18, 18)));
        let programs = Table {
            offset: order.word(&header, (32, 28)).unwrap_or_default(),
            entry: half((54, 42)),
            count: half((56, 44)).into(),
        };
        let sections = Table {
            offset: order.word(&header, (40, 32)).unwrap_or_default(),
            entry: half((58, 46)),
            count: half((60, 48)).into(),
        };
        let names = half((62, 50));
        drop(header);
        self.kind = kind;
        self.machine = machine;
        let more_programs = self.read_sections(sections, names);
        self.read_segments(programs, *more_programs.as_ref().unwrap_or(&0))?;
        // What is loaded can be used without sections.
        if self.segments.is_empty() {
            more_programs?;
        }
        self.find_build_id();
        Ok(())
    }

    /// Returns the number of program headers if it is too large for the file's header.
    fn read_sections(&mut self, mut table: Table, names: u16) -> Result<u64> {
        let order = self.order;
        let entry = if order.wide { 64 } else { 40 };
        if table.offset == 0 {
            return Ok(0);
        }
        if usize::from(table.entry) != entry {
            return Err(self.wrong("section headers", "are of another size than the format's"));
        }
        let parse = |bytes: &[u8]| {
            Some((
                order.u32(bytes, 0)?,
                Section {
                    name: String::new(),
                    kind: order.u32(bytes, 4)?,
                    flags: order.word(bytes, (8, 8))?,
                    address: order.word(bytes, (16, 12))?,
                    offset: order.word(bytes, (24, 16))?,
                    size: order.word(bytes, (32, 20))?,
                    link: order.u32(bytes, if order.wide { 40 } else { 24 })?,
                },
            ))
        };
        let first = self.read(table.offset, entry as u64, "section headers")?;
        let (_, first) = parse(&first).unwrap_or_default();
        if table.count == 0 {
            table.count = first.size;
        }
        let size = table
            .count
            .checked_mul(entry as u64)
            .ok_or_else(|| self.wrong("section headers", "are too many"))?;
        let bytes = self.read(table.offset, size, "section headers")?;
        let (offsets, mut sections): (Vec<u32>, Vec<Section>) =
            bytes.chunks_exact(entry).filter_map(parse).unzip();
        drop(bytes);
        let names = match names {
            0xffff => first.link as usize,
            names => names.into(),
        };
        if let Some(names) = sections.get(names)
            && let Ok(text) = self.bytes(names)
        {
            let named: Vec<String> = offsets
                .iter()
                .map(|&offset| {
                    let text = text.get(offset as usize..).unwrap_or_default();
                    let text = text.get(..MAX_SECTION_NAME).unwrap_or(text);
                    String::from_utf8_lossy(c_string(text)).into_owned()
                })
                .collect();
            for (section, name) in sections.iter_mut().zip(named) {
                section.name = name;
            }
        }
        self.sections = sections;
        // The first section header has what does not fit into the file's header.
        Ok(u64::from(
            order
                .u32(
                    &self.read(table.offset, entry as u64, "section headers")?,
                    if order.wide { 44 } else { 28 },
                )
                .unwrap_or_default(),
        ))
    }

    fn read_segments(&mut self, mut table: Table, more: u64) -> Result<()> {
        let order = self.order;
        let entry = if order.wide { 56 } else { 32 };
        if table.offset == 0 || table.count == 0 {
            return Ok(());
        }
        if usize::from(table.entry) != entry {
            return Err(self.wrong("program headers", "are of another size than the format's"));
        }
        if table.count == 0xffff {
            table.count = more;
        }
        let size = table
            .count
            .checked_mul(entry as u64)
            .ok_or_else(|| self.wrong("program headers", "are too many"))?;
        let bytes = self.read(table.offset, size, "program headers")?;
        let parse = |bytes: &[u8]| {
            (order.u32(bytes, 0)? == elf::PT_LOAD).then_some(Segment {
                offset: order.word(bytes, (8, 4))?,
                address: order.word(bytes, (16, 8))?,
                size: order.word(bytes, (32, 16))?,
                executable: order.u32(bytes, if order.wide { 4 } else { 24 })? & elf::PF_X != 0,
            })
        };
        let segments = bytes.chunks_exact(entry).filter_map(parse).collect();
        let notes: Vec<(u64, u64)> = bytes
            .chunks_exact(entry)
            .filter(|bytes| order.u32(bytes, 0) == Some(elf::PT_NOTE))
            .take(MAX_NOTES.0)
            .filter_map(|bytes| Some((order.word(bytes, (8, 4))?, order.word(bytes, (32, 16))?)))
            .collect();
        drop(bytes);
        self.segments = segments;
        self.build_id = notes
            .into_iter()
            .find_map(|(offset, size)| self.build_id_in(offset, size));
        Ok(())
    }

    /// A file without program headers (an object file, a debug file of some tools) has its
    /// notes in sections.
    fn find_build_id(&mut self) {
        if self.build_id.is_none() {
            self.build_id = self
                .sections
                .iter()
                .filter(|section| section.kind == elf::SHT_NOTE)
                .take(MAX_NOTES.0)
                .find_map(|section| self.build_id_in(section.offset, section.size));
        }
    }

    /// The GNU build-id among the notes there.
    fn build_id_in(&self, offset: u64, size: u64) -> Option<Vec<u8>> {
        let notes = self.read(offset, size.min(MAX_NOTES.1), "notes").ok()?;
        let mut at = 0usize;
        loop {
            let name_size = self.order.u32(&notes, at)? as usize;
            let size = self.order.u32(&notes, at.checked_add(4)?)? as usize;
            let kind = self.order.u32(&notes, at.checked_add(8)?)?;
            let name = at.checked_add(12)?;
            let description = name.checked_add(name_size.checked_next_multiple_of(4)?)?;
            if kind == elf::NT_GNU_BUILD_ID
                && notes.get(name..name.checked_add(name_size)?)? == b"GNU\0"
            {
                return notes
                    .get(description..description.checked_add(size)?)
                    .map(<[u8]>::to_vec);
            }
            at = description.checked_add(size.checked_next_multiple_of(4)?)?;
        }
    }
}

/// A table of headers.
#[derive(Clone, Copy)]
struct Table {
    offset: u64,
    entry: u16,
    count: u64,
}

/// The `size` bytes at `at` of a file.
fn read_pieces(file: &File, mut at: u64, size: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size)?;
    while bytes.len() < size {
        let before = bytes.len();
        bytes.resize(size.min(before.saturating_add(PIECE)), 0);
        let piece = bytes.get_mut(before..).unwrap_or_default();
        file.read_exact_at(piece, at)?;
        at = at.saturating_add(piece.len() as u64);
    }
    Ok(bytes)
}

/// The bytes before the first NUL.
pub(super) fn c_string(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}
