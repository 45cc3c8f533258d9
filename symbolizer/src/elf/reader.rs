//! Reads the parts of an ELF file and their bytes.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use object::read::elf::{CompressionHeader, FileHeader};
use object::{Endianness, elf, pod};

use super::data::{Data, FileBytes, Problem};
use super::headers::Headers;
use super::parts::{Encoding, Packing, Section, Segment};
use crate::{Error, Result};

/// The limit for unpacking a section: this many bytes, plus [`UNPACKED_RATIO`] for each packed byte. Debug information unpacks to two to
/// ten times its size.
const UNPACKED_AT_LEAST: u64 = 16 << 20;
const UNPACKED_RATIO: u64 = 64;

/// An ELF file with parsed headers. Sections are read on demand.
#[derive(Debug)]
pub(super) struct ElfReader<'d> {
    pub(super) name: String,
    data: Data<'d>,
    encoding: Encoding,
    /// For example `ET_DYN`.
    pub(super) kind: u16,
    pub(super) machine: u16,
    pub(super) sections: Vec<Section>,
    /// Why the section headers cannot be used, or None. If they cannot, `sections` are made from the program headers.
    pub(super) unusable_sections: Option<String>,
    pub(super) segments: Vec<Segment>,
    pub(super) build_id: Option<Vec<u8>>,
}

impl ElfReader<'static> {
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
        Self::from_part(Box::new(file), 0..size, name)
    }
}

impl<'d> ElfReader<'d> {
    /// Reads the headers of an ELF file within a part of a file.
    pub(super) fn from_part(
        file: Box<dyn FileBytes + 'd>,
        part: Range<u64>,
        name: &str,
    ) -> Result<Self> {
        let size = part.end.saturating_sub(part.start);
        Self::new(Data::in_file(file, part.start, size), name)
    }

    /// Reads the headers from a file's bytes.
    pub(super) fn from_bytes(bytes: impl Into<Cow<'d, [u8]>>, name: &str) -> Result<Self> {
        Self::new(Data::in_memory(bytes), name)
    }

    fn new(data: Data<'d>, name: &str) -> Result<Self> {
        let headers =
            Headers::read(&data).map_err(|(part, problem)| unusable(name, part, problem))?;
        Ok(Self {
            name: name.to_owned(),
            data,
            encoding: Encoding {
                endian: headers.endian,
                is_64: headers.is_64,
            },
            kind: headers.kind,
            machine: headers.machine,
            sections: headers.sections,
            unusable_sections: headers.unusable_sections.map(|problem| problem.to_string()),
            segments: headers.segments,
            build_id: headers.build_id,
        })
    }

    pub(super) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Makes an error: `part` of this file cannot be used.
    pub(super) fn wrong(&self, part: &'static str, problem: impl ToString) -> Error {
        unusable(&self.name, part, Problem::Format(problem.to_string()))
    }

    /// Returns true if all bytes of a section are in the file.
    pub(super) fn is_whole(&self, section: &Section) -> bool {
        let end = section.offset.checked_add(section.size);
        end.is_some_and(|end| end <= self.data.size())
    }

    /// The section of that name.
    pub(super) fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// Returns the content of a section, unpacked if it is compressed.
    pub(super) fn bytes(&self, section: &Section) -> Result<Cow<'_, [u8]>> {
        if section.kind == elf::SHT_NOBITS {
            return Ok(Cow::Borrowed(&[]));
        }
        let bytes = self
            .data
            .read(section.offset, section.size)
            .map_err(|problem| unusable(&self.name, "section", problem))?;
        let unpacked = match (section.packing, self.encoding.is_64) {
            (Packing::Plain, _) => return Ok(bytes),
            (Packing::Header, true) => self.unpack::<elf::FileHeader64<Endianness>>(&bytes),
            (Packing::Header, false) => self.unpack::<elf::FileHeader32<Endianness>>(&bytes),
            (Packing::Zlib, _) => match bytes.split_first_chunk() {
                Some((b"ZLIB", rest)) => self.unpack_zlib(rest),
                // The section is stored plain, because compression would not have made it smaller.
                _ => return Ok(bytes),
            },
        };
        unpacked
            .map(Cow::Owned)
            .map_err(|problem| unusable(&self.name, "compressed section", problem))
    }

    /// Returns the bytes of a part of the file.
    pub(super) fn stretch(&self, offset: u64, size: u64) -> Result<Cow<'_, [u8]>> {
        self.data
            .read(offset, size)
            .map_err(|problem| unusable(&self.name, "text", problem))
    }

    /// Returns the content of the section of that name. Empty if there is none.
    pub(super) fn bytes_of(&self, name: &str) -> Result<Cow<'_, [u8]>> {
        self.section(name)
            .map_or(Ok(Cow::Borrowed(&[])), |section| self.bytes(section))
    }

    /// The offset of the ELF file in the file that is mapped. It is not 0 in an archive.
    pub(super) fn start(&self) -> u64 {
        self.data.start()
    }

    /// Unpacks a section that begins with a compression header.
    fn unpack<Elf: FileHeader<Endian = Endianness>>(
        &self,
        bytes: &[u8],
    ) -> Result<Vec<u8>, Problem> {
        let (header, packed) =
            pod::from_bytes::<Elf::CompressionHeader>(bytes).map_err(|()| cut_header())?;
        let size: u64 = header.ch_size(self.encoding.endian).into();
        self.unpack_bytes(packed, size, header.ch_type(self.encoding.endian))
    }

    /// Unpacks what follows `ZLIB` in a `.zdebug_*` section: the size in big-endian order, then the packed bytes.
    fn unpack_zlib(&self, bytes: &[u8]) -> Result<Vec<u8>, Problem> {
        let (size, packed) = bytes.split_first_chunk().ok_or_else(cut_header)?;
        self.unpack_bytes(packed, u64::from_be_bytes(*size), elf::ELFCOMPRESS_ZLIB)
    }

    fn unpack_bytes(&self, packed: &[u8], size: u64, method: u32) -> Result<Vec<u8>, Problem> {
        let format = |error: &dyn ToString| Problem::Format(error.to_string());
        let most = UNPACKED_RATIO.saturating_mul(packed.len() as u64);
        if size > most.saturating_add(UNPACKED_AT_LEAST) {
            return Err(Problem::TooMuch);
        }
        self.data.take(size)?;
        let limit = usize::try_from(size).map_err(|error| format(&error))?;
        let unpacked = match method {
            elf::ELFCOMPRESS_ZLIB => {
                miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(packed, limit)
                    .map_err(|error| format(&error))?
            }
            elf::ELFCOMPRESS_ZSTD => {
                let mut unpacked = Vec::new();
                ruzstd::decoding::StreamingDecoder::new(packed)
                    .map_err(|error| format(&error))?
                    .take(size)
                    .read_to_end(&mut unpacked)
                    .map_err(|error| format(&error))?;
                unpacked
            }
            other => return Err(format(&format_args!("unknown method {other}"))),
        };
        if unpacked.len() == limit {
            Ok(unpacked)
        } else {
            let found = format_args!("has {} bytes of {size}", unpacked.len()).to_string();
            Err(Problem::Format(found))
        }
    }
}

fn cut_header() -> Problem {
    Problem::Format("ends within its header".to_owned())
}

/// Makes an error: `part` of a file cannot be used.
fn unusable(file: &str, part: &'static str, problem: Problem) -> Error {
    match problem {
        Problem::Io(error) => Error::io("read", Path::new(file))(error),
        problem => Error::Elf {
            file: file.to_owned(),
            part,
            problem: problem.to_string(),
        },
    }
}
