//! What is in the constant pool, and how is it extended?

use super::Reader;
use crate::error::Result;
use crate::{MethodReference, NotRewritten};
use std::collections::HashMap;

/// Tags of constants: table 4.4-A.
pub(crate) mod tag {
    pub(crate) const UTF8: u8 = 1;
    pub(crate) const INTEGER: u8 = 3;
    pub(crate) const FLOAT: u8 = 4;
    pub(crate) const LONG: u8 = 5;
    pub(crate) const DOUBLE: u8 = 6;
    pub(crate) const CLASS: u8 = 7;
    pub(crate) const STRING: u8 = 8;
    pub(crate) const FIELD: u8 = 9;
    pub(crate) const METHOD: u8 = 10;
    pub(crate) const INTERFACE_METHOD: u8 = 11;
    pub(crate) const NAME_AND_TYPE: u8 = 12;
    pub(crate) const METHOD_HANDLE: u8 = 15;
    pub(crate) const METHOD_TYPE: u8 = 16;
    pub(crate) const DYNAMIC: u8 = 17;
    pub(crate) const INVOKE_DYNAMIC: u8 = 18;
    pub(crate) const MODULE: u8 = 19;
    pub(crate) const PACKAGE: u8 = 20;
}

/// A constant pool. Constants that are added follow those of the file, whose indices stay as they are.
#[derive(Debug)]
pub(crate) struct Constants<'c> {
    /// The file's constants without their count.
    original: &'c [u8],
    /// For each index the tag and the bytes after it. Index 0, and the one after a long or double, have tag 0.
    entries: Vec<(u8, &'c [u8])>,
    /// The constants that are added, as they are in a file.
    added: Vec<u8>,
    /// The index of each constant that is added.
    indices: HashMap<Vec<u8>, u16>,
    /// The next free index.
    next: u16,
}

impl<'c> Constants<'c> {
    /// Returns an empty pool, for a class that is assembled.
    pub(crate) fn empty() -> Self {
        Self {
            original: &[],
            entries: vec![(0, &[])],
            added: Vec::new(),
            indices: HashMap::new(),
            next: 1,
        }
    }

    /// Reads a constant pool with its count.
    pub(crate) fn read(reader: &mut Reader<'c>) -> Result<Self> {
        let count = reader.u16("constant_pool_count")?;
        let before = *reader;
        let mut entries: Vec<(u8, &'c [u8])> = vec![(0, &[])];
        while entries.len() < usize::from(count) {
            let tag = reader.u8("tag")?;
            let length = match tag {
                tag::UTF8 => usize::from(reader.u16("Utf8.length")?),
                tag::INTEGER
                | tag::FLOAT
                | tag::FIELD
                | tag::METHOD
                | tag::INTERFACE_METHOD
                | tag::NAME_AND_TYPE
                | tag::DYNAMIC
                | tag::INVOKE_DYNAMIC => 4,
                tag::LONG | tag::DOUBLE => 8,
                tag::CLASS | tag::STRING | tag::METHOD_TYPE | tag::MODULE | tag::PACKAGE => 2,
                tag::METHOD_HANDLE => 3,
                _ => return Err(reader.error("tag", "it is unknown")),
            };
            entries.push((tag, reader.bytes(length, "constant_pool")?));
            if matches!(tag, tag::LONG | tag::DOUBLE) {
                entries.push((0, &[]));
            }
        }
        if entries.len() != usize::from(count.max(1)) {
            return Err(reader.error("constant_pool_count", "a constant exceeds it"));
        }
        let length = reader.offset().saturating_sub(before.offset());
        Ok(Self {
            original: before.rest().get(..length).unwrap_or_default(),
            entries,
            added: Vec::new(),
            indices: HashMap::new(),
            next: count.max(1),
        })
    }

    /// Appends the pool with its count.
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        to.extend(self.next.to_be_bytes());
        to.extend(self.original);
        to.extend(&self.added);
    }

    /// Returns the tag of a constant of the file, 0 if there is none.
    pub(crate) fn tag(&self, index: u16) -> u8 {
        self.entries
            .get(usize::from(index))
            .map_or(0, |entry| entry.0)
    }

    fn entry(&self, index: u16, tag: u8) -> Option<&'c [u8]> {
        let (known, bytes) = self.entries.get(usize::from(index))?;
        (*known == tag).then_some(bytes)
    }

    /// Returns the bytes of a constant `Utf8` of the file.
    pub(crate) fn utf8(&self, index: u16) -> Option<&'c [u8]> {
        self.entry(index, tag::UTF8)
    }

    /// Returns a constant `Utf8` of the file as text.
    pub(crate) fn text(&self, index: u16) -> Option<String> {
        self.utf8(index).map(modified_utf8)
    }

    /// Returns the name of a constant `Class` of the file.
    pub(crate) fn class(&self, index: u16) -> Option<&'c [u8]> {
        let bytes = self.entry(index, tag::CLASS)?;
        self.utf8(u16::from_be_bytes(*bytes.first_chunk()?))
    }

    /// Returns the two indices of a constant of the file that has two.
    fn pair(&self, index: u16, tag: u8) -> Option<(u16, u16)> {
        let [a, b, c, d] = *self.entry(index, tag)?.first_chunk()?;
        Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
    }

    /// Returns the method of a call site.
    pub(crate) fn call_target(&self, index: u16) -> Option<MethodReference> {
        let (class, name_and_type) = match self.tag(index) {
            known @ (tag::METHOD | tag::INTERFACE_METHOD) => {
                let (class, name_and_type) = self.pair(index, known)?;
                (modified_utf8(self.class(class)?), name_and_type)
            }
            tag::INVOKE_DYNAMIC => (String::new(), self.pair(index, tag::INVOKE_DYNAMIC)?.1),
            _ => return None,
        };
        let (name, descriptor) = self.pair(name_and_type, tag::NAME_AND_TYPE)?;
        Some(MethodReference {
            class,
            name: self.text(name)?,
            descriptor: self.text(descriptor)?,
        })
    }

    /// Returns the name of the method of a call site.
    pub(crate) fn call_name(&self, index: u16) -> Option<&'c [u8]> {
        let (_, name_and_type) = self.pair(index, self.tag(index))?;
        self.utf8(self.pair(name_and_type, tag::NAME_AND_TYPE)?.0)
    }

    /// Returns the descriptor of the field or method that a constant names.
    pub(crate) fn member_descriptor(&self, index: u16) -> Option<&'c [u8]> {
        let (_, name_and_type) = self.pair(index, self.tag(index))?;
        self.utf8(self.pair(name_and_type, tag::NAME_AND_TYPE)?.1)
    }

    /// Returns the name of the class that a constant of a field is declared to be of.
    pub(crate) fn field_class(&self, index: u16) -> Option<&'c [u8]> {
        self.class(self.pair(index, tag::FIELD)?.0)
    }

    /// Returns the descriptor of a constant of a field.
    pub(crate) fn field_descriptor(&self, index: u16) -> Option<&'c [u8]> {
        let (_, name_and_type) = self.pair(index, tag::FIELD)?;
        self.utf8(self.pair(name_and_type, tag::NAME_AND_TYPE)?.1)
    }

    fn add(&mut self, constant: Vec<u8>, indices: u16) -> Result<u16> {
        if let Some(index) = self.indices.get(&constant) {
            return Ok(*index);
        }
        let index = self.next;
        self.next = index
            .checked_add(indices)
            .ok_or(NotRewritten::ConstantPoolFull)?;
        self.added.extend(&constant);
        self.indices.insert(constant, index);
        Ok(index)
    }

    fn add_indices(&mut self, tag: u8, indices: &[u16]) -> Result<u16> {
        let mut constant = vec![tag];
        constant.extend(indices.iter().flat_map(|index| index.to_be_bytes()));
        self.add(constant, 1)
    }

    /// Adds a constant `Utf8`. Text longer than 65,535 bytes does not fit.
    pub(crate) fn add_utf8(&mut self, text: &[u8]) -> Result<u16> {
        let length = u16::try_from(text.len()).map_err(|_| NotRewritten::ConstantPoolFull)?;
        let mut constant = vec![tag::UTF8];
        constant.extend(length.to_be_bytes());
        constant.extend(text);
        self.add(constant, 1)
    }

    /// Adds a constant `Class`.
    pub(crate) fn add_class(&mut self, name: &[u8]) -> Result<u16> {
        let name = self.add_utf8(name)?;
        self.add_indices(tag::CLASS, &[name])
    }

    /// Adds a constant `Fieldref` or `Methodref`, by its tag.
    pub(crate) fn add_member(
        &mut self,
        tag: u8,
        class: &str,
        name: &str,
        descriptor: &str,
    ) -> Result<u16> {
        let class = self.add_class(class.as_bytes())?;
        let name = self.add_utf8(name.as_bytes())?;
        let descriptor = self.add_utf8(descriptor.as_bytes())?;
        let name_and_type = self.add_indices(tag::NAME_AND_TYPE, &[name, descriptor])?;
        self.add_indices(tag, &[class, name_and_type])
    }

    /// Adds a constant `Integer`.
    pub(crate) fn add_integer(&mut self, value: i32) -> Result<u16> {
        let mut constant = vec![tag::INTEGER];
        constant.extend(value.to_be_bytes());
        self.add(constant, 1)
    }

    /// Adds a constant `Float`.
    pub(crate) fn add_float(&mut self, value: f32) -> Result<u16> {
        let mut constant = vec![tag::FLOAT];
        constant.extend(value.to_be_bytes());
        self.add(constant, 1)
    }

    /// Adds a constant `Double`.
    pub(crate) fn add_double(&mut self, value: f64) -> Result<u16> {
        let mut constant = vec![tag::DOUBLE];
        constant.extend(value.to_be_bytes());
        self.add(constant, 2)
    }

    /// Adds a constant `String`.
    pub(crate) fn add_string(&mut self, text: &str) -> Result<u16> {
        let text = self.add_utf8(text.as_bytes())?;
        self.add_indices(tag::STRING, &[text])
    }

    /// Adds a constant `Long`.
    pub(crate) fn add_long(&mut self, value: i64) -> Result<u16> {
        let mut constant = vec![tag::LONG];
        constant.extend(value.to_be_bytes());
        self.add(constant, 2)
    }
}

/// Decodes the specification's modified UTF-8 (section 4.4.7): a zero is two bytes, a supplementary character two surrogates of three bytes. What
/// is invalid becomes U+FFFD.
pub(crate) fn modified_utf8(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((unit, after)) = code_unit(rest) {
        units.push(unit);
        rest = after;
    }
    String::from_utf16_lossy(&units)
}

/// Decodes one UTF-16 code unit. An invalid byte is the replacement character. None: there are no bytes.
fn code_unit(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let low_bits = |byte: u8| u16::from(byte & 0x3f);
    match bytes {
        [] => None,
        [one @ ..=0x7f, rest @ ..] => Some((u16::from(*one), rest)),
        [one @ 0xc0..=0xdf, two @ 0x80..=0xbf, rest @ ..] => {
            Some((u16::from(one & 0x1f) << 6 | low_bits(*two), rest))
        }
        [
            one @ 0xe0..=0xef,
            two @ 0x80..=0xbf,
            three @ 0x80..=0xbf,
            rest @ ..,
        ] => {
            let unit = u16::from(one & 0x0f) << 12 | low_bits(*two) << 6 | low_bits(*three);
            Some((unit, rest))
        }
        [_, rest @ ..] => Some((0xfffd, rest)),
    }
}
