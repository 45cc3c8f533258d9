//! Reads and validates the header of a dex file.

use super::read::{bad, u32_at};
use crate::{Error, Result};

/// Size of the header up to version 040.
const HEADER_SIZE: usize = 0x70;
/// Size of a compact dex file's header.
const COMPACT_HEADER_SIZE: usize = 0x88;

/// A table of fixed-size items, checked to be within the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    offset: usize,
    count: u32,
    item: usize,
    field: &'static str,
}

impl Table {
    /// Number of items.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Size of all items in bytes.
    pub(super) fn size(&self) -> usize {
        (self.count as usize).saturating_mul(self.item)
    }

    /// File offset of item `index`.
    pub(super) fn at(&self, index: u32) -> Result<usize> {
        if index >= self.count {
            return Err(bad(
                self.field,
                self.offset,
                "an index lies beyond the end of the table",
            ));
        }
        Ok((index as usize)
            .saturating_mul(self.item)
            .saturating_add(self.offset))
    }
}

/// A header whose offsets and sizes have been validated.
#[derive(Debug, Clone)]
pub(super) struct Header {
    pub(super) version: u16,
    /// Offset of the header.
    pub(super) at: usize,
    /// Size of the file, or of the container that it belongs to, in bytes.
    pub(super) size: usize,
    pub(super) next: Option<u32>,
    /// The base of offsets other than those of the tables.
    pub(super) data: usize,
    /// Fields that only compact dex files have.
    pub(super) compact: Option<Compact>,
    pub(super) strings: Table,
    pub(super) types: Table,
    pub(super) protos: Table,
    pub(super) fields: Table,
    pub(super) methods: Table,
    pub(super) classes: Table,
}

/// Where a compact dex file keeps the offset of each method's debug information, by the method's index: its code_item has no field for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compact {
    /// File offset of the blocks.
    pub(super) blocks: usize,
    /// File offset of the table of the blocks' positions.
    pub(super) table: usize,
    /// Added to the first offset of each block.
    pub(super) base: u32,
}

/// The kind of dex file, from the magic number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A file of its own, with its version.
    Standard(u16),
    /// From version 041 on: a part of a container.
    Contained(u16),
    Compact,
}

impl Kind {
    /// The least size of a header in bytes.
    const fn header_size(self) -> usize {
        match self {
            Self::Standard(_) | Self::Contained(_) => HEADER_SIZE,
            Self::Compact => COMPACT_HEADER_SIZE,
        }
    }

    const fn version(self) -> u16 {
        match self {
            Self::Standard(version) | Self::Contained(version) => version,
            Self::Compact => 1,
        }
    }
}

/// A number in the header.
#[derive(Debug, Clone, Copy)]
struct Field {
    /// Offset in the header.
    offset: usize,
    name: &'static str,
}

impl Field {
    const fn new(offset: usize, name: &'static str) -> Self {
        Self { offset, name }
    }
}

/// The size of everything that offsets may lead to, and the field that has it.
struct Size {
    bytes: usize,
    field: Field,
}

const FILE_SIZE: Field = Field::new(0x20, "file_size");
const HEADER_SIZE_FIELD: Field = Field::new(0x24, "header_size");
const ENDIAN_TAG: Field = Field::new(0x28, "endian_tag");
const DATA_SIZE: Field = Field::new(0x68, "data_size");
const DATA_OFFSET: Field = Field::new(0x6c, "data_off");
const CONTAINER_SIZE: Field = Field::new(0x70, "container_size");
const HEADER_OFFSET: Field = Field::new(0x74, "header_offset");

/// A header that is being read.
#[derive(Clone, Copy)]
struct Fields<'d> {
    data: &'d [u8],
    /// Offset of the header.
    at: usize,
}

impl Fields<'_> {
    fn get(&self, field: Field) -> Result<u32> {
        u32_at(self.data, self.place(field), field.name)
    }

    /// The file offset of a field.
    const fn place(&self, field: Field) -> usize {
        self.at.saturating_add(field.offset)
    }

    fn bad(&self, field: Field, problem: &'static str) -> Error {
        bad(field.name, self.place(field), problem)
    }

    /// Up to 040, the file is everything. From 041 on, it is a part of its container, and all offsets count from the container's start.
    /// A compact file ends with its data section, which follows it and may be shared with others.
    fn size(&self, kind: Kind) -> Result<Size> {
        let file_size = self.get(FILE_SIZE)? as usize;
        let (bytes, field) = match kind {
            Kind::Contained(_) => {
                if self.get(HEADER_OFFSET)? as usize != self.at {
                    return Err(self.bad(HEADER_OFFSET, "the header is elsewhere"));
                }
                (self.get(CONTAINER_SIZE)? as usize, CONTAINER_SIZE)
            }
            Kind::Standard(_) => (file_size, FILE_SIZE),
            Kind::Compact => {
                let offset = self.get(DATA_OFFSET)? as usize;
                let end = offset.saturating_add(self.get(DATA_SIZE)? as usize);
                match end > file_size {
                    true => (end, DATA_SIZE),
                    false => (file_size, FILE_SIZE),
                }
            }
        };
        Ok(Size { bytes, field })
    }

    /// The table whose number of items and offset begin with `field`. Items have `item` bytes, and lie within `size` bytes.
    fn table(&self, field: Field, item: usize, size: usize) -> Result<Table> {
        let count = self.get(field)?;
        let start = self.get(Field::new(field.offset.saturating_add(4), field.name))? as usize;
        let end = (count as usize)
            .checked_mul(item)
            .and_then(|bytes| bytes.checked_add(start));
        if count != 0 && end.is_none_or(|end| end > size) {
            return Err(self.bad(field, "the table reaches beyond the end of the file"));
        }
        Ok(Table {
            offset: start,
            count,
            item,
            field: field.name,
        })
    }

    /// The fields of a compact file whose data section begins at `section`.
    fn compact(&self, section: usize) -> Result<Compact> {
        let blocks = self.get(Field::new(0x74, "debug_info_offsets_pos"))? as usize;
        let blocks = section.saturating_add(blocks);
        let table = self.get(Field::new(0x78, "debug_info_offsets_table_offset"))? as usize;
        Ok(Compact {
            blocks,
            table: blocks.saturating_add(table),
            base: self.get(Field::new(0x7c, "debug_info_base"))?,
        })
    }
}

impl Header {
    /// Reads the header at `at`.
    pub(super) fn read(data: &[u8], at: usize) -> Result<Self> {
        let fields = Fields { data, at };
        let kind = kind(data, at)?;
        check_byte_order(fields.get(ENDIAN_TAG)?, fields.place(ENDIAN_TAG))?;
        let header_size = fields.get(HEADER_SIZE_FIELD)? as usize;
        if header_size < kind.header_size() {
            return Err(fields.bad(HEADER_SIZE_FIELD, "smaller than a header"));
        }
        let file_size = fields.get(FILE_SIZE)? as usize;
        let is_contained = matches!(kind, Kind::Contained(_));
        if !is_contained && at != 0 {
            return Err(bad("magic", at, "a dex version that has no containers"));
        }
        let Size { bytes: size, field } = fields.size(kind)?;
        if size < at.saturating_add(header_size) {
            return Err(fields.bad(field, "smaller than the header"));
        }
        if size > data.len() {
            return Err(fields.bad(field, "larger than what is there: the file is cut short"));
        }
        let next = at.saturating_add(file_size);
        let next = match is_contained && file_size >= header_size && next < size {
            true => u32::try_from(next).ok(),
            false => None,
        };
        let (data_section, compact) = match kind {
            Kind::Standard(_) | Kind::Contained(_) => (0, None),
            Kind::Compact => {
                let section = fields.get(DATA_OFFSET)? as usize;
                (section, Some(fields.compact(section)?))
            }
        };
        let table = |offset, item, name| fields.table(Field::new(offset, name), item, size);
        Ok(Self {
            version: kind.version(),
            at,
            size,
            next,
            data: data_section,
            compact,
            strings: table(0x38, 4, "string_ids")?,
            types: table(0x40, 4, "type_ids")?,
            protos: table(0x48, 12, "proto_ids")?,
            fields: table(0x50, 8, "field_ids")?,
            methods: table(0x58, 8, "method_ids")?,
            classes: table(0x60, 32, "class_defs")?,
        })
    }
}

/// Reads the magic number at `at`.
fn kind(data: &[u8], at: usize) -> Result<Kind> {
    let magic = data
        .get(at..)
        .and_then(|rest| rest.first_chunk::<8>())
        .ok_or_else(|| bad("magic", at, "the file is shorter than its magic number"))?;
    match *magic {
        [
            b'd',
            b'e',
            b'x',
            b'\n',
            b'0',
            tens @ b'0'..=b'9',
            ones @ b'0'..=b'9',
            0,
        ] => {
            let version = u16::from(tens & 0xf)
                .saturating_mul(10)
                .saturating_add(u16::from(ones & 0xf));
            match version {
                35..41 => Ok(Kind::Standard(version)),
                41 => Ok(Kind::Contained(version)),
                _ => Err(bad("magic", at, "a dex version other than 035 to 041")),
            }
        }
        [b'c', b'd', b'e', b'x', b'0', b'0', b'1', 0] => Ok(Kind::Compact),
        [b'c', b'd', b'e', b'x', ..] => {
            Err(bad("magic", at, "a compact dex version other than 001"))
        }
        [b'd', b'e', b'y', b'\n', ..] => Err(bad(
            "magic",
            at,
            "an optimized dex file (odex), not a standard one",
        )),
        _ => Err(bad("magic", at, "not a dex file")),
    }
}

fn check_byte_order(tag: u32, at: usize) -> Result<()> {
    match tag {
        0x1234_5678 => Ok(()),
        0x7856_3412 => Err(bad("endian_tag", at, "a big-endian dex file")),
        _ => Err(bad("endian_tag", at, "not a byte order")),
    }
}
