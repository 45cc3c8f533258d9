//! An executable: what is loaded into memory, where it starts, and its symbols.

use object::{
    Architecture, Endianness, File, Object, ObjectKind, ObjectSegment, ObjectSymbol, SegmentFlags,
    SymbolKind as Kind, elf,
};
use varid_model::{Address, Mode};

use crate::{
    Instruction, Xlen,
    decode::{Illegal, decode},
    error::{Error, Result},
};

/// The most segments of a file.
const MAX_SEGMENTS: usize = 256;
/// The most symbols of a file.
const MAX_SYMBOLS: usize = 1 << 20;

/// An executable, by its segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The width of its registers.
    pub xlen: Xlen,
    /// Where it starts.
    pub entry: Address,
    /// Its segments, by ascending address. They do not overlap.
    pub segments: Vec<Segment>,
    /// Its symbols that have a name and are not undefined, by ascending address.
    pub symbols: Vec<Symbol>,
}

/// A part of memory that is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Where it begins.
    pub address: Address,
    /// The bytes at its beginning. The others are 0.
    pub data: Vec<u8>,
    /// Its size in memory, in bytes: no less than the length of `data`, and not checked against any memory's size.
    pub size: u64,
    /// What the program may do with it.
    pub mode: Mode,
}

impl Segment {
    /// The offset of an address in it.
    fn offset(&self, address: Address) -> Option<u64> {
        address
            .offset_from(self.address)
            .filter(|offset| *offset < self.size)
    }
}

/// A named address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Its name, as in the file. Bytes that are not UTF-8 are replaced.
    pub name: String,
    /// Its address.
    pub address: Address,
    /// Its size in bytes. 0: unknown, as of labels in assembly.
    pub size: u64,
    /// What it names.
    pub kind: SymbolKind,
}

/// What a symbol names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SymbolKind {
    /// A function.
    Function,
    /// A variable.
    Object,
    /// A label, which may be in code or in data.
    Label,
}

impl Image {
    /// Reads an ELF file.
    ///
    /// # Errors
    ///
    /// It is not a statically linked executable for RISC-V, or it is damaged.
    pub fn parse(file: &[u8]) -> Result<Self> {
        let elf = File::parse(file).map_err(damaged)?;
        let xlen = check(&elf)?;
        let segments = segments(&elf, file, xlen)?;
        let image = Self {
            xlen,
            entry: Address::new(elf.entry()),
            segments,
            symbols: symbols(&elf, file.len())?,
        };
        let is_code = |segment: &Segment| segment.mode.execute;
        if !image.segment(image.entry).is_some_and(is_code) {
            return Err(Error::Entry(image.entry));
        }
        Ok(image)
    }

    /// Returns the segment that an address is in.
    #[must_use]
    pub fn segment(&self, address: Address) -> Option<&Segment> {
        let after = self
            .segments
            .partition_point(|segment| segment.address <= address);
        let segment = self.segments.get(after.checked_sub(1)?)?;
        segment.offset(address).map(|_| segment)
    }

    /// Returns the bytes of the file from an address to the end of the data of its segment.
    #[must_use]
    pub fn data(&self, address: Address) -> Option<&[u8]> {
        let segment = self.segment(address)?;
        let offset = usize::try_from(segment.offset(address)?).ok()?;
        segment.data.get(offset..)
    }

    /// Decodes the instruction at an address. None: it is not in the data of an executable segment.
    #[must_use]
    pub fn instruction(
        &self,
        address: Address,
    ) -> Option<std::result::Result<Instruction, Illegal>> {
        let is_code = self.segment(address)?.mode.execute;
        let code = self.data(address).filter(|_| is_code)?;
        Some(decode(code, self.xlen))
    }

    /// Returns the first symbol with this name.
    #[must_use]
    pub fn symbol(&self, name: &str) -> Option<&Symbol> {
        self.symbols.iter().find(|symbol| symbol.name == name)
    }
}

fn damaged(error: object::Error) -> Error {
    Error::Elf(error.to_string())
}

/// Returns the width of the registers, if it is an executable for RISC-V.
fn check(file: &File<'_>) -> Result<Xlen> {
    let xlen = match (file, file.architecture()) {
        (File::Elf32(_), Architecture::Riscv32) => Xlen::Rv32,
        (File::Elf64(_), Architecture::Riscv64) => Xlen::Rv64,
        (_, other) => return Err(Error::Machine(format!("{other:?}"))),
    };
    if file.endianness() != Endianness::Little {
        return Err(Error::BigEndian);
    }
    match file.kind() {
        ObjectKind::Executable => Ok(xlen),
        ObjectKind::Relocatable => Err(Error::NotExecutable("an object file")),
        ObjectKind::Dynamic => Err(Error::Dynamic),
        ObjectKind::Core => Err(Error::NotExecutable("a core dump")),
        _ => Err(Error::NotExecutable("a file of an unknown type")),
    }
}

fn segments(elf: &File<'_>, file: &[u8], xlen: Xlen) -> Result<Vec<Segment>> {
    let mut segments = Vec::new();
    let mut left = file.len();
    for segment in elf.segments() {
        let address = Address::new(segment.address());
        let size = segment.size();
        if segments.len() >= MAX_SEGMENTS {
            return Err(Error::TooMany {
                what: "segments",
                limit: MAX_SEGMENTS,
            });
        }
        let data = segment.data().map_err(|_| Error::CutOff(address))?;
        // The data of all segments together is no larger than the file: no file can ask for more memory than its own size.
        left = left.checked_sub(data.len()).ok_or(Error::CutOff(address))?;
        let end = address.get().checked_add(size);
        let is_in_space = end.is_some_and(|end| xlen == Xlen::Rv64 || end <= 1 << 32);
        if !is_in_space || (data.len() as u64) > size {
            return Err(Error::SegmentSize(address, size));
        }
        if size == 0 {
            continue;
        }
        segments.push(Segment {
            address,
            data: data.to_owned(),
            size,
            mode: mode(segment.flags()),
        });
    }
    segments.sort_by_key(|segment| segment.address);
    for (segment, next) in segments.iter().zip(segments.iter().skip(1)) {
        if segment.offset(next.address).is_some() {
            return Err(Error::Overlap(segment.address, next.address));
        }
    }
    match segments.is_empty() {
        true => Err(Error::NoSegment),
        false => Ok(segments),
    }
}

fn mode(flags: SegmentFlags) -> Mode {
    let SegmentFlags::Elf { p_flags } = flags else {
        return Mode::default();
    };
    Mode {
        read: p_flags & elf::PF_R != 0,
        write: p_flags & elf::PF_W != 0,
        execute: p_flags & elf::PF_X != 0,
        shared: false,
    }
}

/// Reads the symbols of a file of this size. Many symbols may claim the same long name: all together are no longer than four files.
fn symbols(elf: &File<'_>, file_size: usize) -> Result<Vec<Symbol>> {
    let mut symbols = Vec::new();
    let limit = file_size.saturating_mul(4);
    let mut left = limit;
    for symbol in elf.symbols() {
        let kind = match symbol.kind() {
            Kind::Text => SymbolKind::Function,
            Kind::Data | Kind::Tls => SymbolKind::Object,
            Kind::Label | Kind::Unknown => SymbolKind::Label,
            _ => continue,
        };
        let name = symbol.name_bytes().unwrap_or_default();
        // "$x" and "$d" are mapping symbols.
        if symbol.is_undefined() || name.is_empty() || name.starts_with(b"$") {
            continue;
        }
        if symbols.len() >= MAX_SYMBOLS {
            return Err(Error::TooMany {
                what: "symbols",
                limit: MAX_SYMBOLS,
            });
        }
        left = left.checked_sub(name.len()).ok_or(Error::TooMany {
            what: "bytes of symbols' names",
            limit,
        })?;
        symbols.push(Symbol {
            name: String::from_utf8_lossy(name).into_owned(),
            address: Address::new(symbol.address()),
            size: symbol.size(),
            kind,
        });
    }
    symbols.sort_by_key(|symbol| symbol.address);
    Ok(symbols)
}
