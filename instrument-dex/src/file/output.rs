//! The bytes of a new dex file.

use crate::error::{NotRewritten, Result};

/// Bytes of the header.
pub(crate) const HEADER_SIZE: u32 = 0x70;
/// The number that says that a file is little endian.
pub(crate) const ENDIAN_TAG: u32 = 0x1234_5678;

/// A kind of items, as the map list has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Kind {
    Header = 0,
    StringId = 1,
    TypeId = 2,
    ProtoId = 3,
    FieldId = 4,
    MethodId = 5,
    ClassDef = 6,
    CallSiteId = 7,
    MethodHandle = 8,
    MapList = 0x1000,
    TypeList = 0x1001,
    AnnotationSetRefList = 0x1002,
    AnnotationSet = 0x1003,
    ClassData = 0x2000,
    Code = 0x2001,
    StringData = 0x2002,
    DebugInfo = 0x2003,
    Annotation = 0x2004,
    EncodedArray = 0x2005,
    AnnotationsDirectory = 0x2006,
}

/// Where a table of items of a fixed size is, and how many it has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TablePlace {
    pub(crate) count: usize,
    pub(crate) at: u32,
}

/// The file so far.
#[derive(Debug)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    map: Vec<(Kind, u32, u32)>,
    /// The most bytes that it may have.
    limit: usize,
}

impl Output {
    /// Makes an empty file. Items of hostile input may share their parts, and are written apart: `limit` bounds that.
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            map: Vec::new(),
            limit,
        }
    }

    /// Returns the offset of what is written next.
    ///
    /// # Errors
    ///
    /// The file is too large.
    pub(crate) fn at(&self) -> Result<u32> {
        let at = u32::try_from(self.bytes.len()).ok();
        at.filter(|_| self.bytes.len() <= self.limit)
            .ok_or(NotRewritten::Unsupported("items that share their parts"))
    }

    pub(crate) fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn uleb(&mut self, value: u32) {
        put_uleb(&mut self.bytes, value);
    }

    /// Writes over bytes that were written before.
    pub(crate) fn replace(&mut self, offset: u32, bytes: &[u8]) {
        let start = offset as usize;
        let end = start.saturating_add(bytes.len());
        if let Some(place) = self.bytes.get_mut(start..end) {
            place.copy_from_slice(bytes);
        }
    }

    /// Adds a section to the map list, unless it has no items.
    pub(crate) fn section(&mut self, kind: Kind, count: usize, offset: u32) {
        if count > 0 {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            self.map.push((kind, count, offset));
        }
    }

    /// Leaves room for a table of items of a size in bytes, which are written later. Returns where it is.
    pub(crate) fn reserve(&mut self, kind: Kind, count: usize, size: u32) -> Result<TablePlace> {
        let at = self.at()?;
        self.section(kind, count, at);
        self.put(&vec![0; count.saturating_mul(size as usize)]);
        Ok(TablePlace { count, at })
    }

    /// Writes the map list. Returns its offset.
    pub(crate) fn write_map(&mut self) -> Result<u32> {
        self.align();
        let offset = self.at()?;
        self.section(Kind::MapList, 1, offset);
        let mut map = std::mem::take(&mut self.map);
        map.sort_by_key(|(_, _, offset)| *offset);
        self.u32(u32::try_from(map.len()).unwrap_or(u32::MAX));
        for (kind, count, offset) in map {
            self.u32(u32::from(kind as u16));
            self.u32(count);
            self.u32(offset);
        }
        Ok(offset)
    }

    /// Writes the header over the place for it. `tables` are the header itself, and the tables that it lists, in their order: those of
    /// strings, types, prototypes, fields, methods, classes.
    pub(crate) fn write_header(
        &mut self,
        magic: [u8; 8],
        tables: &[TablePlace],
        data_start: u32,
        map: u32,
    ) -> Result<()> {
        let end = self.at()?;
        let mut head = magic.to_vec();
        head.extend_from_slice(&[0; 24]);
        let mut put = |value: u32| head.extend_from_slice(&value.to_le_bytes());
        for value in [end, HEADER_SIZE, ENDIAN_TAG, 0, 0, map] {
            put(value);
        }
        for table in tables.iter().take(7).skip(1) {
            put(u32::try_from(table.count).unwrap_or(u32::MAX));
            put(if table.count == 0 { 0 } else { table.at });
        }
        put(end.saturating_sub(data_start));
        put(data_start);
        self.replace(0, &head);
        Ok(())
    }

    /// Writes the checksums, and returns the file.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let signed = self.bytes.get(32..).unwrap_or_default();
        let signature = sha1_smol::Sha1::from(signed).digest().bytes();
        self.replace(12, &signature);
        let summed = self.bytes.get(12..).unwrap_or_default();
        let checksum = adler32(summed);
        self.replace(8, &checksum.to_le_bytes());
        self.bytes
    }
}

/// Appends a uleb128 number.
pub(crate) fn put_uleb(to: &mut Vec<u8>, mut value: u32) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            to.push(low & 0x7f);
            return;
        }
        to.push(low | 0x80);
    }
}

/// Appends an sleb128 number.
pub(crate) fn put_sleb(to: &mut Vec<u8>, mut value: i32) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        let is_last = match low & 0x40 {
            0 => value == 0,
            _ => value == -1,
        };
        if is_last {
            to.push(low & 0x7f);
            return;
        }
        to.push(low | 0x80);
    }
}

/// The checksum of a dex file.
fn adler32(bytes: &[u8]) -> u32 {
    const BASE: u32 = 65_521;
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in bytes {
        // Both are below 65,521, so no sum overflows.
        low = low.wrapping_add((*byte).into()) % BASE;
        high = high.wrapping_add(low) % BASE;
    }
    high << 16 | low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Cursor;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        for value in [
            0,
            1,
            63,
            64,
            127,
            128,
            -1,
            -64,
            -65,
            -128,
            i32::MAX,
            i32::MIN,
        ] {
            let mut bytes = Vec::new();
            put_sleb(&mut bytes, value);
            put_uleb(&mut bytes, value.cast_unsigned());
            let mut cursor = Cursor::new(&bytes, 0, "x");
            assert_eq!(cursor.sleb().unwrap(), value);
            assert_eq!(cursor.uleb().unwrap(), value.cast_unsigned());
            assert_eq!(cursor.at(), bytes.len());
        }
    }

    #[test]
    fn the_checksum_is_adler32() {
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
    }
}
