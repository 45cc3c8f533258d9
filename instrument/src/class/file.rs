//! What are the parts of a class file?

use super::{Constants, Reader};
use crate::NotRewritten;
use crate::error::Result;

/// Access flags and properties of methods: table 4.6-A.
pub(crate) mod access {
    pub(crate) const STATIC: u16 = 0x0008;
    pub(crate) const NATIVE: u16 = 0x0100;
}

const MAGIC: u32 = 0xcafe_babe;

/// An attribute of a class, member or code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attribute<'c> {
    /// The constant of its name.
    pub(crate) name_index: u16,
    /// Its name; empty if the constant is not a name.
    pub(crate) name: &'c [u8],
    /// Its contents.
    pub(crate) data: Reader<'c>,
}

/// A method.
#[derive(Debug)]
pub(crate) struct Method<'c> {
    /// Its access flags.
    pub(crate) access: u16,
    /// The constants of its name and its descriptor.
    pub(crate) name_index: u16,
    pub(crate) descriptor_index: u16,
    /// Its name.
    pub(crate) name: &'c [u8],
    /// Its descriptor.
    pub(crate) descriptor: &'c [u8],
    /// Its attributes, in the file's order.
    pub(crate) attributes: Vec<Attribute<'c>>,
}

/// A class file. What the rewriter does not change is kept as bytes.
#[derive(Debug)]
pub(crate) struct ClassFile<'c> {
    /// Its minor and major version.
    pub(crate) minor: u16,
    pub(crate) major: u16,
    /// Its constants.
    pub(crate) constants: Constants<'c>,
    /// Its name.
    pub(crate) name: &'c [u8],
    /// From the access flags to the interfaces.
    pub(crate) head: &'c [u8],
    /// Its fields without their count.
    pub(crate) fields: &'c [u8],
    /// The number of fields.
    pub(crate) field_count: u16,
    /// All that follows the fields.
    pub(crate) after_fields: &'c [u8],
    /// Its methods.
    pub(crate) methods: Vec<Method<'c>>,
    /// Its attributes with their count.
    pub(crate) attributes: &'c [u8],
    /// The attribute `SourceFile`.
    pub(crate) source_file: Option<String>,
}

impl<'c> ClassFile<'c> {
    /// Reads a class file of a version that the rewriter supports.
    pub(crate) fn read(bytes: &'c [u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes, 0);
        if reader.u32("magic")? != MAGIC {
            return Err(Reader::new(bytes, 0).error("magic", "it is not 0xcafebabe"));
        }
        let minor = reader.u16("minor_version")?;
        let major = reader.u16("major_version")?;
        // Before 45.3 the attribute Code had shorter fields.
        if !(45..=69).contains(&major) || (major == 45 && minor < 3) {
            return Err(NotRewritten::Version(major));
        }
        let constants = Constants::read(&mut reader)?;
        let start = reader;
        reader.u16("access_flags")?;
        let this = reader.u16("this_class")?;
        let name = constants
            .class(this)
            .ok_or_else(|| reader.error("this_class", "it is not a class"))?;
        reader.u16("super_class")?;
        let interfaces = reader.u16("interfaces_count")?;
        reader.bytes(usize::from(interfaces).saturating_mul(2), "interfaces")?;
        let head = between(&start, &reader);
        let field_count = reader.u16("fields_count")?;
        let start = reader;
        for _ in 0..field_count {
            reader.bytes(6, "field_info")?;
            attributes(&mut reader, &constants)?;
        }
        let fields = between(&start, &reader);
        let after_fields = reader.rest();
        let mut methods = Vec::new();
        for _ in 0..reader.u16("methods_count")? {
            methods.push(Method::read(&mut reader, &constants)?);
        }
        let start = reader;
        let class_attributes = attributes(&mut reader, &constants)?;
        if !reader.is_empty() {
            return Err(reader.error("ClassFile", "bytes follow it"));
        }
        let source_file = class_attributes
            .iter()
            .find(|attribute| attribute.name == b"SourceFile");
        let source_file =
            source_file.and_then(|attribute| attribute.data.clone().u16("sourcefile_index").ok());
        Ok(Self {
            minor,
            major,
            name,
            head,
            fields,
            field_count,
            after_fields,
            methods,
            attributes: start.rest(),
            source_file: source_file.and_then(|index| constants.text(index)),
            constants,
        })
    }

    /// Appends all that precedes the fields.
    pub(crate) fn write_head(&self, to: &mut Vec<u8>) {
        to.extend(MAGIC.to_be_bytes());
        to.extend(self.minor.to_be_bytes());
        to.extend(self.major.to_be_bytes());
        self.constants.write(to);
        to.extend(self.head);
    }
}

impl<'c> Method<'c> {
    fn read(reader: &mut Reader<'c>, constants: &Constants<'c>) -> Result<Self> {
        let access = reader.u16("access_flags")?;
        let name_index = reader.u16("name_index")?;
        let descriptor_index = reader.u16("descriptor_index")?;
        let name = constants.utf8(name_index);
        let descriptor = constants.utf8(descriptor_index);
        let attributes = attributes(reader, constants)?;
        let (Some(name), Some(descriptor)) = (name, descriptor) else {
            return Err(reader.error("method_info", "its name or descriptor is not text"));
        };
        Ok(Self {
            access,
            name_index,
            descriptor_index,
            name,
            descriptor,
            attributes,
        })
    }

    /// Returns the attribute with this name.
    pub(crate) fn attribute(&self, name: &[u8]) -> Option<&Attribute<'c>> {
        self.attributes
            .iter()
            .find(|attribute| attribute.name == name)
    }
}

/// Reads attributes with their count.
pub(super) fn attributes<'c>(
    reader: &mut Reader<'c>,
    constants: &Constants<'c>,
) -> Result<Vec<Attribute<'c>>> {
    let mut attributes = Vec::new();
    for _ in 0..reader.u16("attributes_count")? {
        let name_index = reader.u16("attribute_name_index")?;
        attributes.push(Attribute {
            name_index,
            name: constants.utf8(name_index).unwrap_or_default(),
            data: reader.part("attribute_info")?,
        });
    }
    Ok(attributes)
}

/// Returns the bytes that were read from one place to a later one.
fn between<'c>(start: &Reader<'c>, end: &Reader<'c>) -> &'c [u8] {
    let length = end.offset().saturating_sub(start.offset());
    start.rest().get(..length).unwrap_or_default()
}
