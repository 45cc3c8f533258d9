//! Copies encoded values, whose indices change.

use std::collections::HashMap;

use super::{Cursor, Kind, Order, Output};
use crate::error::Result;

/// How deep arrays and annotations may be nested.
const MAX_DEPTH: u32 = 32;

/// The types of values that have an index, or contain values.
mod kind {
    pub(super) const BYTE: u8 = 0x00;
    pub(super) const SHORT: u8 = 0x02;
    pub(super) const CHAR: u8 = 0x03;
    pub(super) const INT: u8 = 0x04;
    pub(super) const LONG: u8 = 0x06;
    pub(super) const FLOAT: u8 = 0x10;
    pub(super) const DOUBLE: u8 = 0x11;
    pub(super) const METHOD_TYPE: u8 = 0x15;
    pub(super) const METHOD_HANDLE: u8 = 0x16;
    pub(super) const STRING: u8 = 0x17;
    pub(super) const TYPE: u8 = 0x18;
    pub(super) const FIELD: u8 = 0x19;
    pub(super) const METHOD: u8 = 0x1a;
    pub(super) const ENUM: u8 = 0x1b;
    pub(super) const ARRAY: u8 = 0x1c;
    pub(super) const ANNOTATION: u8 = 0x1d;
    pub(super) const NULL: u8 = 0x1e;
    pub(super) const BOOLEAN: u8 = 0x1f;
}

/// The arrays of values that were written, by their old offsets.
#[derive(Debug, Default)]
pub(crate) struct Arrays {
    new: HashMap<u32, u32>,
}

impl Arrays {
    /// Writes arrays, which are at these offsets.
    pub(crate) fn write(
        data: &[u8],
        offsets: impl Iterator<Item = u32>,
        order: &Order,
        out: &mut Output,
    ) -> Result<Self> {
        let start = out.at()?;
        let mut new = HashMap::new();
        for old in offsets {
            if let std::collections::hash_map::Entry::Vacant(entry) = new.entry(old) {
                entry.insert(out.at()?);
                copy_array(&mut Cursor::new(data, old, "encoded_array"), order, out, 0)?;
            }
        }
        out.section(Kind::EncodedArray, new.len(), start);
        Ok(Self { new })
    }

    /// Returns the new offset of an array; 0 for 0.
    pub(crate) fn get(&self, old: u32) -> u32 {
        self.new.get(&old).copied().unwrap_or(0)
    }
}

/// Copies an array of values.
pub(crate) fn copy_array(
    from: &mut Cursor<'_>,
    order: &Order,
    out: &mut Output,
    depth: u32,
) -> Result<()> {
    let count = from.uleb()?;
    out.uleb(count);
    for _ in 0..count {
        copy_value(from, order, out, depth)?;
    }
    Ok(())
}

/// Copies an annotation: its type and its elements.
pub(crate) fn copy_annotation(
    from: &mut Cursor<'_>,
    order: &Order,
    out: &mut Output,
    depth: u32,
) -> Result<()> {
    let at = from.at();
    out.uleb(order.types.get(from.uleb()?, at)?);
    let count = from.uleb()?;
    out.uleb(count);
    for _ in 0..count {
        let at = from.at();
        out.uleb(order.strings.get(from.uleb()?, at)?);
        copy_value(from, order, out, depth)?;
    }
    Ok(())
}

fn copy_value(from: &mut Cursor<'_>, order: &Order, out: &mut Output, depth: u32) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(from.error("values are nested too deeply"));
    }
    let depth = depth.saturating_add(1);
    let at = from.at();
    let head = from.u8()?;
    let (kind, argument) = (head & 0x1f, head >> 5);
    let size = usize::from(argument).saturating_add(1);
    let remap = match kind {
        kind::BYTE
        | kind::SHORT
        | kind::CHAR
        | kind::INT
        | kind::LONG
        | kind::FLOAT
        | kind::DOUBLE => {
            out.u8(head);
            out.put(from.bytes(size)?);
            return Ok(());
        }
        kind::NULL | kind::BOOLEAN => {
            out.u8(head);
            return Ok(());
        }
        kind::ARRAY => {
            out.u8(head);
            return copy_array(from, order, out, depth);
        }
        kind::ANNOTATION => {
            out.u8(head);
            return copy_annotation(from, order, out, depth);
        }
        kind::METHOD_HANDLE => None,
        kind::METHOD_TYPE => Some(&order.protos),
        kind::STRING => Some(&order.strings),
        kind::TYPE => Some(&order.types),
        kind::FIELD | kind::ENUM => Some(&order.fields),
        kind::METHOD => Some(&order.methods),
        _ => return Err(from.error("a value of an unknown type")),
    };
    let mut index = [0; 4];
    for (place, byte) in index.iter_mut().zip(from.bytes(size)?) {
        *place = *byte;
    }
    let old = u32::from_le_bytes(index);
    let new = match remap {
        Some(remap) => remap.get(old, at)?,
        None => old,
    };
    // The least number of bytes that has the index.
    let zeros = usize::try_from(new.leading_zeros() / 8).unwrap_or(0);
    let size = 4_usize.saturating_sub(zeros).max(1);
    let argument = u8::try_from(size.saturating_sub(1)).unwrap_or(0);
    out.u8(argument << 5 | kind);
    out.put(new.to_le_bytes().get(..size).unwrap_or_default());
    Ok(())
}
