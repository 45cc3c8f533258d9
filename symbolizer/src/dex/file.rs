//! Where do a dex file's tables lie, and what do their items hold?

use std::borrow::Cow;

use super::method::{MethodId, Methods};
use super::read::{bad, u16_at, u32_at, uleb128};
use super::{MAX_NAME, mutf8};
use crate::Result;

/// The value that stands for "no index".
const NO_INDEX: u32 = u32::MAX;
/// Size of the header up to version 040.
const HEADER_SIZE: usize = 0x70;
/// Offset of what the SHA-1 signature covers.
const SIGNED_FROM: usize = 0x20;

/// A table of fixed-size items, verified to lie within the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    offset: usize,
    count: u32,
    item: usize,
    field: &'static str,
}

impl Table {
    /// Items.
    pub(super) fn count(&self) -> u32 {
        self.count
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

/// A dex file. All addresses are offsets from the start of its bytes.
#[derive(Debug, Clone)]
pub struct DexFile<'a> {
    data: Cow<'a, [u8]>,
    version: u16,
    header: usize,
    next_header: Option<u32>,
    strings: Table,
    types: Table,
    protos: Table,
    fields: Table,
    methods: Table,
    classes: Table,
}

/// What a class_def_item says that matters here.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClassDef {
    /// string index of the source file.
    pub(super) source_file: Option<u32>,
    /// File offset of the class_data_item; zero: there is none.
    pub(super) class_data: usize,
}

/// A method_id_item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MethodItem {
    pub(super) class: u16,
    pub(super) proto: u16,
    pub(super) name: u32,
}

impl DexFile<'static> {
    /// As [`DexFile::parse`], keeping the bytes.
    ///
    /// # Errors
    /// As [`DexFile::parse`].
    pub fn from_vec(bytes: Vec<u8>) -> Result<Self> {
        Self::new(Cow::Owned(bytes), 0)
    }
}

impl<'a> DexFile<'a> {
    /// Reads the header and checks that every table lies within the file.
    ///
    /// `bytes` may be longer than the file, as a mapping is. Takes no time to speak
    /// of; items are read when they are asked for.
    ///
    /// # Errors
    /// [`crate::Error::Dex`], naming the header's field that is wrong.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        Self::new(Cow::Borrowed(bytes), 0)
    }

    /// The dex file whose header is at `header` in a container (version 041): see [`DexFile::next_header`].
    ///
    /// # Errors
    /// As [`DexFile::parse`].
    pub fn parse_at(container: &'a [u8], header: u32) -> Result<Self> {
        Self::new(Cow::Borrowed(container), header as usize)
    }

    fn new(mut data: Cow<'a, [u8]>, header: usize) -> Result<Self> {
        let field = |at: usize, name| u32_at(&data, header.saturating_add(at), name);
        let magic = data
            .get(header..)
            .and_then(|rest| rest.first_chunk::<8>())
            .ok_or_else(|| bad("magic", header, "the file is shorter than its magic number"))?;
        let version = match *magic {
            [
                b'd',
                b'e',
                b'x',
                b'\n',
                b'0',
                tens @ b'0'..=b'9',
                ones @ b'0'..=b'9',
                0,
            ] => u16::from(tens & 0xf)
                .saturating_mul(10)
                .saturating_add(u16::from(ones & 0xf)),
            [b'c', b'd', b'e', b'x', ..] => {
                return Err(bad(
                    "magic",
                    header,
                    "a compact dex file, not a standard one",
                ));
            }
            [b'd', b'e', b'y', b'\n', ..] => {
                return Err(bad(
                    "magic",
                    header,
                    "an optimized dex file (odex), not a standard one",
                ));
            }
            _ => return Err(bad("magic", header, "not a dex file")),
        };
        if !(35..=41).contains(&version) {
            return Err(bad("magic", header, "a dex version other than 035 to 041"));
        }
        match field(0x28, "endian_tag")? {
            0x1234_5678 => {}
            0x7856_3412 => {
                return Err(bad(
                    "endian_tag",
                    header.saturating_add(0x28),
                    "a big-endian dex file",
                ));
            }
            _ => {
                return Err(bad(
                    "endian_tag",
                    header.saturating_add(0x28),
                    "not a byte order",
                ));
            }
        }
        let header_size = field(0x24, "header_size")? as usize;
        if header_size < HEADER_SIZE {
            return Err(bad(
                "header_size",
                header.saturating_add(0x24),
                "smaller than a header",
            ));
        }
        let file_size = field(0x20, "file_size")?;
        // Up to 040 the file is all there is; from 041 it is a part of its container,
        // and all offsets count from the container's start.
        let (size, size_field, size_at) = if version >= 41 {
            if field(0x74, "header_offset")? as usize != header {
                return Err(bad(
                    "header_offset",
                    header.saturating_add(0x74),
                    "the header is elsewhere",
                ));
            }
            (
                field(0x70, "container_size")? as usize,
                "container_size",
                0x70,
            )
        } else if header == 0 {
            (file_size as usize, "file_size", 0x20)
        } else {
            return Err(bad("magic", header, "a dex version that has no containers"));
        };
        if size < header.saturating_add(header_size) {
            return Err(bad(
                size_field,
                header.saturating_add(size_at),
                "smaller than the header",
            ));
        }
        if size > data.len() {
            return Err(bad(
                size_field,
                header.saturating_add(size_at),
                "larger than what is there: the file is cut short",
            ));
        }
        let next = header.saturating_add(file_size as usize);
        let next_header = if version >= 41 && file_size as usize >= header_size && next < size {
            u32::try_from(next).ok()
        } else {
            None
        };
        let table = |at: usize, item: usize, name: &'static str| -> Result<Table> {
            let count = field(at, name)?;
            let offset = field(at.saturating_add(4), name)? as usize;
            let end = (count as usize)
                .checked_mul(item)
                .and_then(|bytes| bytes.checked_add(offset));
            if count != 0 && end.is_none_or(|end| end > size) {
                return Err(bad(
                    name,
                    header.saturating_add(at),
                    "the table reaches beyond the end of the file",
                ));
            }
            Ok(Table {
                offset,
                count,
                item,
                field: name,
            })
        };
        let strings = table(0x38, 4, "string_ids")?;
        let types = table(0x40, 4, "type_ids")?;
        let protos = table(0x48, 12, "proto_ids")?;
        let fields = table(0x50, 8, "field_ids")?;
        let methods = table(0x58, 8, "method_ids")?;
        let classes = table(0x60, 32, "class_defs")?;
        match &mut data {
            Cow::Borrowed(bytes) => *bytes = bytes.get(..size).unwrap_or_default(),
            Cow::Owned(bytes) => bytes.truncate(size),
        }
        Ok(Self {
            data,
            version,
            header,
            next_header,
            strings,
            types,
            protos,
            fields,
            methods,
            classes,
        })
    }

    /// The file's bytes, without what may follow it; from version 041 the container's.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.data
    }

    /// The format's version: 35 to 41.
    #[must_use]
    pub fn version(&self) -> u16 {
        self.version
    }

    /// Offset of the header; zero except in containers.
    #[must_use]
    pub fn header_offset(&self) -> u32 {
        u32::try_from(self.header).unwrap_or(u32::MAX)
    }

    /// Where the container's next header is said to be, for [`DexFile::parse_at`].
    #[must_use]
    pub fn next_header(&self) -> Option<u32> {
        self.next_header
    }

    /// SHA-1 of the file's content, over the bytes that the header's signature covers.
    ///
    /// An honest file's signature says the same; this one is computed.
    #[must_use]
    pub fn content_sha1(&self) -> [u8; 20] {
        let signed = self.data.get(SIGNED_FROM..).unwrap_or_default();
        sha1_smol::Sha1::from(signed).digest().bytes()
    }

    /// Number of method ids: indices below it have a name, whether the method is defined here or elsewhere.
    #[must_use]
    pub fn method_count(&self) -> u32 {
        self.methods.count
    }

    /// All methods that the file's classes define, class by class, with and without code.
    #[must_use]
    pub fn methods(&self) -> Methods<'_> {
        Methods::new(self)
    }

    /// The method that `index` names, whether it is defined here or elsewhere.
    ///
    /// # Errors
    /// [`crate::Error::Dex`] if there is no such index.
    pub fn method_id(&self, index: u32) -> Result<MethodId<'_>> {
        MethodId::new(self, index)
    }

    /// [`MethodId::display_name`] of method `index`.
    ///
    /// # Errors
    /// [`crate::Error::Dex`] if there is no such index or its name is broken.
    pub fn method_name(&self, index: u32) -> Result<String> {
        self.method_id(index)?.display_name()
    }

    /// Number of classes defined.
    pub(super) fn class_count(&self) -> u32 {
        self.classes.count()
    }

    /// Number of field ids.
    pub(super) fn field_count(&self) -> u32 {
        self.fields.count()
    }

    pub(super) fn class_def(&self, index: u32) -> Result<ClassDef> {
        let at = self.classes.at(index)?;
        let source_file = u32_at(&self.data, at.saturating_add(16), "source_file_idx")?;
        let class_data = u32_at(&self.data, at.saturating_add(24), "class_data_off")?;
        Ok(ClassDef {
            source_file: (source_file != NO_INDEX).then_some(source_file),
            class_data: class_data as usize,
        })
    }

    pub(super) fn method_item(&self, index: u32) -> Result<MethodItem> {
        let at = self.methods.at(index)?;
        Ok(MethodItem {
            class: u16_at(&self.data, at, "class_idx")?,
            proto: u16_at(&self.data, at.saturating_add(2), "proto_idx")?,
            name: u32_at(&self.data, at.saturating_add(4), "name_idx")?,
        })
    }

    /// The text of string `index`.
    pub(super) fn string(&self, index: u32) -> Result<String> {
        let at = self.strings.at(index)?;
        let mut at = u32_at(&self.data, at, "string_data_off")? as usize;
        uleb128(&self.data, &mut at, "utf16_size")?;
        let rest = self.data.get(at..).unwrap_or_default();
        let text = rest.get(..MAX_NAME.saturating_add(1)).unwrap_or(rest);
        let end = text.iter().position(|&byte| byte == 0).ok_or_else(|| {
            bad(
                "string_data_item",
                at,
                "a name that does not end, or is longer than 65535 bytes",
            )
        })?;
        Ok(mutf8::decode(text.get(..end).unwrap_or_default()))
    }

    /// The descriptor of type `index`.
    pub(super) fn descriptor(&self, index: u32) -> Result<String> {
        let at = self.types.at(index)?;
        self.string(u32_at(&self.data, at, "descriptor_idx")?)
    }

    /// The descriptor of prototype `index`'s return type.
    pub(super) fn return_descriptor(&self, index: u32) -> Result<String> {
        let at = self.protos.at(index)?;
        self.descriptor(u32_at(&self.data, at.saturating_add(4), "return_type_idx")?)
    }

    /// Calls `take` with the descriptor of each of prototype `index`'s parameters.
    ///
    /// Gives up when they are more than a method can have or longer than a name may be.
    pub(super) fn parameter_descriptors(
        &self,
        index: u32,
        mut take: impl FnMut(String),
    ) -> Result<()> {
        let at = self.protos.at(index)?;
        let list = u32_at(&self.data, at.saturating_add(8), "parameters_off")? as usize;
        if list == 0 {
            return Ok(());
        }
        let count = u32_at(&self.data, list, "type_list size")?;
        if count > 255 {
            return Err(bad("type_list size", list, "more than 255 parameters"));
        }
        let mut total = 0usize;
        for parameter in 0..count as usize {
            let at = list
                .saturating_add(4)
                .saturating_add(parameter.saturating_mul(2));
            let descriptor = self.descriptor(u16_at(&self.data, at, "type_item")?.into())?;
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
