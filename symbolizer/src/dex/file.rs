//! The tables of a dex file, and their items.

use std::borrow::Cow;
use std::ffi::CStr;

use super::header::{Compact, Header};
use super::read::{bad, u16_at, u32_at, uleb128};
use super::{MAX_NAME, mutf8};
use crate::Result;

/// The value for "no index".
const NO_INDEX: u32 = u32::MAX;
/// Offset of the first byte that the SHA-1 signature covers.
const SIGNED_FROM: usize = 0x20;

/// A dex file. All addresses are offsets from the start of its bytes.
#[derive(Debug, Clone)]
pub struct DexFile<'a> {
    data: Cow<'a, [u8]>,
    header: Header,
}

/// The fields of a class_def_item that are needed here.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClassDef {
    /// String index of the source file.
    pub(super) source_file: Option<u32>,
    /// File offset of the class_data_item.
    pub(super) class_data: Option<usize>,
}

/// A method_id_item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MethodItem {
    pub(super) class: u16,
    pub(super) proto: u16,
    pub(super) name: u32,
}

impl DexFile<'static> {
    /// Like [`DexFile::parse`], but owns the bytes.
    ///
    /// # Errors
    /// As for [`DexFile::parse`].
    pub fn from_vec(bytes: Vec<u8>) -> Result<Self> {
        Self::new(Cow::Owned(bytes), 0)
    }
}

impl<'a> DexFile<'a> {
    /// Reads the header and checks that every table is within the file.
    ///
    /// `bytes` may be longer than the file, as a mapping is. This takes little time: items are read on demand.
    ///
    /// # Errors
    /// [`crate::Error::Dex`], which names the wrong field of the header.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        Self::new(Cow::Borrowed(bytes), 0)
    }

    /// Parses the dex file whose header is at `header` in a container (version 041): see [`DexFile::next_header`].
    ///
    /// # Errors
    /// As for [`DexFile::parse`].
    pub fn parse_at(container: &'a [u8], header: u32) -> Result<Self> {
        Self::new(Cow::Borrowed(container), header as usize)
    }

    fn new(mut data: Cow<'a, [u8]>, header: usize) -> Result<Self> {
        let header = Header::read(&data, header)?;
        match &mut data {
            Cow::Borrowed(bytes) => *bytes = bytes.get(..header.size).unwrap_or_default(),
            Cow::Owned(bytes) => bytes.truncate(header.size),
        }
        Ok(Self { data, header })
    }

    /// The file's bytes, without any that follow it. From version 041 on, these are the container's.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.data
    }

    /// The format's version: 35 to 41. It is 1 for a compact dex file: see [`DexFile::is_compact`].
    #[must_use]
    pub fn version(&self) -> u16 {
        self.header.version
    }

    /// Offset of the header. Zero except in containers.
    #[must_use]
    pub fn header_offset(&self) -> u32 {
        u32::try_from(self.header.at).unwrap_or(u32::MAX)
    }

    /// The claimed offset of the container's next header, for [`DexFile::parse_at`].
    #[must_use]
    pub fn next_header(&self) -> Option<u32> {
        self.header.next
    }

    /// The dex files that follow this one in its container, up to the first broken one.
    ///
    /// Each has tables of its own. The list ends where the tables together would be larger than the container: they overlap, so that
    /// reading them would take very long.
    pub(super) fn others(&self) -> Vec<DexFile<'_>> {
        let container = self.bytes();
        let next = |dex: &DexFile<'_>| DexFile::parse_at(container, dex.next_header()?).ok();
        let mut left = container.len().saturating_sub(self.tables_size());
        std::iter::successors(next(self), next)
            .take_while(|dex| {
                let rest = left.checked_sub(dex.tables_size());
                left = rest.unwrap_or_default();
                rest.is_some()
            })
            .collect()
    }

    /// Returns the parsed header, for [`DexFile::sibling`].
    pub(super) fn into_header(self) -> Header {
        self.header
    }

    /// Returns the dex file of the same container that has this header.
    pub(super) fn sibling(&self, header: &Header) -> DexFile<'_> {
        DexFile {
            data: Cow::Borrowed(self.data.get(..header.size).unwrap_or_default()),
            header: header.clone(),
        }
    }

    /// Returns the same dex file without copying its bytes.
    pub(crate) fn borrowed(&self) -> DexFile<'_> {
        DexFile {
            data: Cow::Borrowed(&self.data),
            header: self.header.clone(),
        }
    }

    /// SHA-1 of the file's content, over the bytes that the header's signature covers.
    ///
    /// The signature in the header is not trusted: the hash is computed.
    #[must_use]
    pub fn content_sha1(&self) -> [u8; 20] {
        let signed = self.data.get(SIGNED_FROM..).unwrap_or_default();
        sha1_smol::Sha1::from(signed).digest().bytes()
    }

    /// Number of method ids. Each lower index has a name, whether the method is defined here or elsewhere.
    #[must_use]
    pub fn method_count(&self) -> u32 {
        self.header.methods.count()
    }

    /// Size in bytes of the tables that name methods and define classes. It bounds the time to read all methods.
    fn tables_size(&self) -> usize {
        let header = &self.header;
        header
            .methods
            .size()
            .saturating_add(header.fields.size())
            .saturating_add(header.classes.size())
    }

    /// Returns true if this is a compact dex file (`cdex001`), as ART 9 to 13 keeps it in a vdex file.
    ///
    /// The file's own part is followed, with or without a gap, by a data section that it may share with others. [`DexFile::bytes`] reaches
    /// from its header to the end of that section.
    #[must_use]
    pub fn is_compact(&self) -> bool {
        self.header.compact.is_some()
    }

    /// The location of debug information in compact dex files.
    pub(super) fn compact(&self) -> Option<&Compact> {
        self.header.compact.as_ref()
    }

    /// The file offset for an `offset` that the format counts from the data section.
    pub(super) fn data_at(&self, offset: u32) -> usize {
        self.header.data.saturating_add(offset as usize)
    }

    /// The descriptor of type `index`: `Lorg/example/Balls;`.
    ///
    /// # Errors
    /// [`crate::Error::Dex`] if there is no such type or its name is broken.
    pub fn type_descriptor(&self, index: u32) -> Result<String> {
        let at = self.header.types.at(index)?;
        self.string(u32_at(&self.data, at, "descriptor_idx")?)
    }

    /// Number of classes that the file defines.
    pub(super) fn class_count(&self) -> u32 {
        self.header.classes.count()
    }

    /// Number of type ids.
    pub(super) fn type_count(&self) -> u32 {
        self.header.types.count()
    }

    /// Number of field ids.
    pub(super) fn field_count(&self) -> u32 {
        self.header.fields.count()
    }

    pub(super) fn class_def(&self, index: u32) -> Result<ClassDef> {
        let at = self.header.classes.at(index)?;
        let source_file = u32_at(&self.data, at.saturating_add(16), "source_file_idx")?;
        let class_data = u32_at(&self.data, at.saturating_add(24), "class_data_off")?;
        Ok(ClassDef {
            source_file: (source_file != NO_INDEX).then_some(source_file),
            class_data: (class_data != 0).then(|| self.data_at(class_data)),
        })
    }

    /// The string index of the source file of class `index`.
    pub(super) fn class_source(&self, index: u32) -> Result<Option<u32>> {
        Ok(self.class_def(index)?.source_file)
    }

    pub(super) fn method_item(&self, index: u32) -> Result<MethodItem> {
        let at = self.header.methods.at(index)?;
        Ok(MethodItem {
            class: u16_at(&self.data, at, "class_idx")?,
            proto: u16_at(&self.data, at.saturating_add(2), "proto_idx")?,
            name: u32_at(&self.data, at.saturating_add(4), "name_idx")?,
        })
    }

    /// The text of string `index`.
    ///
    /// # Errors
    /// [`crate::Error::Dex`] if there is no such string or it does not end.
    pub fn string(&self, index: u32) -> Result<String> {
        let at = self.string_at(index)?;
        let rest = self.data.get(at..).unwrap_or_default();
        let text = rest.get(..MAX_NAME.saturating_add(1)).unwrap_or(rest);
        let text = CStr::from_bytes_until_nul(text).map_err(|_| {
            bad(
                "string_data_item",
                at,
                "a name that does not end, or is longer than 65535 bytes",
            )
        })?;
        Ok(mutf8::decode(text.to_bytes()))
    }

    /// The file offset of the text of string `index`.
    fn string_at(&self, index: u32) -> Result<usize> {
        let at = self.header.strings.at(index)?;
        let mut at = self.data_at(u32_at(&self.data, at, "string_data_off")?);
        uleb128(&self.data, &mut at, "utf16_size")?;
        Ok(at)
    }

    /// The index of the method that a VM identifies by pointers into this file, to its class's descriptor and its name, and by the index of
    /// its prototype.
    #[must_use]
    pub fn method_named_at(&self, descriptor: usize, name: usize, proto: u32) -> Option<u32> {
        let is_named = |index: u32| -> Result<bool> {
            let item = self.method_item(index)?;
            if u32::from(item.proto) != proto || self.string_at(item.name)? != name {
                return Ok(false);
            }
            let class = self.header.types.at(item.class.into())?;
            Ok(self.string_at(u32_at(&self.data, class, "descriptor_idx")?)? == descriptor)
        };
        (0..self.method_count()).find(|index| is_named(*index).unwrap_or(false))
    }

    /// Field `index` in the notation of dexdump: `Lorg/example/Balls;.x:D`.
    pub(super) fn field_reference(&self, index: u32) -> Result<String> {
        let at = self.header.fields.at(index)?;
        let class = u16_at(&self.data, at, "class_idx")?;
        let kind = u16_at(&self.data, at.saturating_add(2), "type_idx")?;
        let name = u32_at(&self.data, at.saturating_add(4), "name_idx")?;
        Ok(format!(
            "{}.{}:{}",
            self.type_descriptor(class.into())?,
            self.string(name)?,
            self.type_descriptor(kind.into())?
        ))
    }

    /// Method `index` in the notation of dexdump: `Lorg/example/Balls;.draw:(I)V`.
    pub(super) fn method_reference(&self, index: u32) -> Result<String> {
        let method = self.method_item(index)?;
        Ok(format!(
            "{}.{}:{}",
            self.type_descriptor(method.class.into())?,
            self.string(method.name)?,
            self.prototype(method.proto.into())?
        ))
    }

    /// Prototype `index` in the notation of dex: `(I[J)V`.
    pub(super) fn prototype(&self, index: u32) -> Result<String> {
        let mut text = String::from("(");
        self.parameter_descriptors(index, |descriptor| text.push_str(&descriptor))?;
        text.push(')');
        text.push_str(&self.return_descriptor(index)?);
        Ok(text)
    }

    /// The descriptor of prototype `index`'s return type.
    pub(super) fn return_descriptor(&self, index: u32) -> Result<String> {
        let at = self.header.protos.at(index)?;
        self.type_descriptor(u32_at(&self.data, at.saturating_add(4), "return_type_idx")?)
    }

    /// Calls `take` with the descriptor of each parameter of prototype `index`.
    ///
    /// Fails if there are more than a method can have, or they are longer than a name may be.
    pub(super) fn parameter_descriptors(
        &self,
        index: u32,
        mut take: impl FnMut(String),
    ) -> Result<()> {
        let at = self.header.protos.at(index)?;
        let list = u32_at(&self.data, at.saturating_add(8), "parameters_off")?;
        if list == 0 {
            return Ok(());
        }
        let list = self.data_at(list);
        let count = u32_at(&self.data, list, "type_list size")?;
        if count > 255 {
            return Err(bad("type_list size", list, "more than 255 parameters"));
        }
        let mut total = 0usize;
        for parameter in 0..count as usize {
            let at = list
                .saturating_add(4)
                .saturating_add(parameter.saturating_mul(2));
            let descriptor = self.type_descriptor(u16_at(&self.data, at, "type_item")?.into())?;
            total = total.saturating_add(descriptor.len());
            if total > MAX_NAME {
                return Err(bad(
                    "type_list",
                    list,
                    "parameter types longer than 65535 bytes",
                ));
            }
            take(descriptor);
        }
        Ok(())
    }
}
