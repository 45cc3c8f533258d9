//! Reads the header and the map list of a dex file.

use super::Cursor;
use super::output::{ENDIAN_TAG, HEADER_SIZE, Kind};
use crate::error::{NotRewritten, Result, invalid};

/// The kind of a section that files of the boot class path have.
const HIDDEN_API: u16 = 0xf000;

/// A table of items of a fixed size, which is within the file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Table {
    pub(crate) count: u32,
    pub(crate) offset: u32,
}

/// Where the tables of a file are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header<'d> {
    /// The file, without what may follow it.
    pub(crate) data: &'d [u8],
    pub(crate) magic: [u8; 8],
    pub(crate) strings: Table,
    pub(crate) types: Table,
    pub(crate) protos: Table,
    pub(crate) fields: Table,
    pub(crate) methods: Table,
    pub(crate) classes: Table,
    pub(crate) call_sites: Table,
    pub(crate) method_handles: Table,
}

impl<'d> Header<'d> {
    /// Reads the header of a standard dex file of version 035 to 040.
    pub(crate) fn read(data: &'d [u8]) -> Result<Self> {
        let magic = *data
            .first_chunk::<8>()
            .ok_or_else(|| invalid("magic", 0, "the file is shorter than its magic number"))?;
        match magic {
            [b'd', b'e', b'x', b'\n', b'0', b'3', b'5'..=b'9', 0]
            | [b'd', b'e', b'x', b'\n', b'0', b'4', b'0', 0] => {}
            [b'd', b'e', b'x', b'\n', ..] => {
                return Err(NotRewritten::Unsupported("a version other than 035 to 040"));
            }
            [b'c', b'd', b'e', b'x', ..] => {
                return Err(NotRewritten::Unsupported("the compact format"));
            }
            _ => return Err(invalid("magic", 0, "not a dex file")),
        }
        let mut fields = Cursor::new(data, 0x20, "header");
        let size = fields.u32()? as usize;
        let data = data
            .get(..size)
            .ok_or_else(|| invalid("file_size", 0x20, "larger than the file"))?;
        let mut fields = Cursor::new(data, 0x24, "header");
        if fields.u32()? != HEADER_SIZE {
            return Err(invalid("header_size", 0x24, "not that of a header"));
        }
        if fields.u32()? != ENDIAN_TAG {
            return Err(invalid("endian_tag", 0x28, "not little endian"));
        }
        if fields.u32()? != 0 {
            return Err(NotRewritten::Unsupported("a link section"));
        }
        let _link = fields.u32()?;
        let map = fields.u32()?;
        let mut table = |item: u32| -> Result<Table> {
            let table = Table {
                count: fields.u32()?,
                offset: fields.u32()?,
            };
            check(data, table, item)?;
            Ok(table)
        };
        let mut header = Self {
            data,
            magic,
            strings: table(4)?,
            types: table(4)?,
            protos: table(12)?,
            fields: table(8)?,
            methods: table(8)?,
            classes: table(32)?,
            call_sites: Table::default(),
            method_handles: Table::default(),
        };
        header.read_map(map)?;
        Ok(header)
    }

    /// Finds the tables that only the map list has.
    fn read_map(&mut self, offset: u32) -> Result<()> {
        let mut map = Cursor::new(self.data, offset, "map_list");
        for _ in 0..map.u32()? {
            let kind = map.u16()?;
            let _unused = map.u16()?;
            let table = Table {
                count: map.u32()?,
                offset: map.u32()?,
            };
            if kind == Kind::CallSiteId as u16 {
                check(self.data, table, 4)?;
                self.call_sites = table;
            } else if kind == Kind::MethodHandle as u16 {
                check(self.data, table, 8)?;
                self.method_handles = table;
            } else if kind == HIDDEN_API {
                return Err(NotRewritten::Unsupported(
                    "the flags of a boot class path's hidden API",
                ));
            }
        }
        Ok(())
    }
}

/// Checks that a table with items of so many bytes is within the file.
fn check(data: &[u8], table: Table, item: u32) -> Result<()> {
    let end = table.count.checked_mul(item);
    let end = end.and_then(|bytes| bytes.checked_add(table.offset));
    match end {
        Some(end) if end as usize <= data.len() => Ok(()),
        _ if table.count == 0 => Ok(()),
        _ => Err(invalid(
            "table",
            table.offset as usize,
            "reaches beyond the end of the file",
        )),
    }
}
