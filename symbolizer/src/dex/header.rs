//! Reads and validates the header of a dex file.

use super::read::{bad, u32_at};
use crate::Result;

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
enum Kind {
    Standard(u16),
    Compact,
}

impl Header {
    /// Reads the header at `at`.
    pub(super) fn read(data: &[u8], at: usize) -> Result<Self> {
        let place = |offset: usize| at.saturating_add(offset);
        let field = |offset: usize, name| u32_at(data, place(offset), name);
        let kind = kind(data, at)?;
        check_byte_order(field(0x28, "endian_tag")?, place(0x28))?;
        let header_size = field(0x24, "header_size")? as usize;
        let least = match kind {
            Kind::Standard(_) => HEADER_SIZE,
            Kind::Compact => COMPACT_HEADER_SIZE,
        };
        if header_size < least {
            return Err(bad("header_size", place(0x24), "smaller than a header"));
        }
        let file_size = field(0x20, "file_size")?;
        let container = matches!(kind, Kind::Standard(41..));
        if !container && at != 0 {
            return Err(bad("magic", at, "a dex version that has no containers"));
        }
        // Up to 040, the file is everything. From 041 on, it is a part of its container, and all offsets count from the container's start.
        // A compact file ends with its data section, which follows it and may be shared with others.
        let (size, size_field, size_at) = match kind {
            Kind::Standard(41..) => {
                if field(0x74, "header_offset")? as usize != at {
                    return Err(bad("header_offset", place(0x74), "the header is elsewhere"));
                }
                let size = field(0x70, "container_size")?;
                (size as usize, "container_size", 0x70)
            }
            Kind::Standard(_) => (file_size as usize, "file_size", 0x20),
            Kind::Compact => {
                let offset = field(0x6c, "data_off")? as usize;
                let end = offset.saturating_add(field(0x68, "data_size")? as usize);
                match end > file_size as usize {
                    true => (end, "data_size", 0x68),
                    false => (file_size as usize, "file_size", 0x20),
                }
            }
        };
        if size < at.saturating_add(header_size) {
            return Err(bad(size_field, place(size_at), "smaller than the header"));
        }
        if size > data.len() {
            return Err(bad(
                size_field,
                place(size_at),
                "larger than what is there: the file is cut short",
            ));
        }
        let next = place(file_size as usize);
        let next = match container && file_size as usize >= header_size && next < size {
            true => u32::try_from(next).ok(),
            false => None,
        };
        let table = |offset: usize, item: usize, name: &'static str| -> Result<Table> {
            let count = field(offset, name)?;
            let start = field(offset.saturating_add(4), name)? as usize;
            let end = (count as usize)
                .checked_mul(item)
                .and_then(|bytes| bytes.checked_add(start));
            if count != 0 && end.is_none_or(|end| end > size) {
                return Err(bad(
                    name,
                    place(offset),
                    "the table reaches beyond the end of the file",
                ));
            }
            Ok(Table {
                offset: start,
                count,
                item,
                field: name,
            })
        };
        let (data_section, compact) = match kind {
            Kind::Standard(_) => (0, None),
            Kind::Compact => {
                let section = field(0x6c, "data_off")? as usize;
                let blocks =
                    section.saturating_add(field(0x74, "debug_info_offsets_pos")? as usize);
                let table = field(0x78, "debug_info_offsets_table_offset")? as usize;
                let compact = Compact {
                    blocks,
                    table: blocks.saturating_add(table),
                    base: field(0x7c, "debug_info_base")?,
                };
                (section, Some(compact))
            }
        };
        Ok(Self {
            version: match kind {
                Kind::Standard(version) => version,
                Kind::Compact => 1,
            },
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
                35..=41 => Ok(Kind::Standard(version)),
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
