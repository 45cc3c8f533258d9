//! A class file: its class, and its methods with their bytecode and lines.

use std::borrow::Cow;

use super::constants::{ConstantPool, ModifiedUtf8};
use super::instruction::Instructions;
use super::read::Reader;
use crate::Result;

/// The first bytes of a class file.
const MAGIC: u32 = 0xcafe_babe;
/// The most bytes of a method's bytecode.
const MAX_CODE: usize = u16::MAX as usize;

/// A class file.
#[derive(Debug, Clone)]
pub struct ClassFile<'d> {
    pub(super) pool: ConstantPool<'d>,
    /// The class, as class files write it: `org/example/App`.
    pub name: Cow<'d, str>,
    /// Its methods.
    pub methods: Vec<ClassMethod<'d>>,
}

/// A method of a class file. Its name and descriptor are not decoded, as many methods may share a long one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassMethod<'d> {
    name: ModifiedUtf8<'d>,
    descriptor: ModifiedUtf8<'d>,
    /// Its access flags: section 4.6 of the specification.
    pub access: u16,
    /// None if it is native or abstract.
    pub code: Option<CodeAttribute<'d>>,
}

/// The bytecode of a method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeAttribute<'d> {
    /// Its instructions.
    pub bytecode: &'d [u8],
    /// The starts of source lines, in the file's order. Empty if the file has none.
    pub lines: Vec<LineStart>,
    /// The first instructions of exception handlers, as indices of the bytecode, in the file's order.
    pub handlers: Vec<u16>,
}

/// The start of a source line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineStart {
    /// Its first instruction, as an index of the bytecode.
    pub bci: u16,
    /// The line, from 1.
    pub line: u16,
}

impl<'d> ClassFile<'d> {
    /// Reads a class file.
    ///
    /// # Errors
    /// [`crate::Error::Class`] if it violates the format.
    pub fn parse(bytes: &'d [u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        let bad = reader.error("magic", "it is not a class file");
        if reader.u32("magic")? != MAGIC {
            return Err(bad);
        }
        reader.u32("version")?;
        let pool = ConstantPool::read(&mut reader)?;
        reader.u16("access_flags")?;
        let name = pool.class(reader.u16("this_class")?).decoded();
        reader.u16("super_class")?;
        for _ in 0..reader.u16("interfaces_count")? {
            reader.u16("interfaces")?;
        }
        for _ in 0..reader.u16("fields_count")? {
            reader.bytes(6, "fields")?;
            for _ in 0..reader.u16("attributes_count")? {
                reader.u16("attribute_name_index")?;
                reader.part("attribute")?;
            }
        }
        let count = reader.u16("methods_count")?;
        let methods = (0..count).map(|_| method(&pool, &mut reader));
        let methods = methods.collect::<Result<_>>()?;
        Ok(Self {
            pool,
            name,
            methods,
        })
    }

    /// Returns the method with a name, such as `mul` or `<init>`, and a descriptor, such as `(I)D`.
    #[must_use]
    pub fn method(&self, name: &str, descriptor: &str) -> Option<&ClassMethod<'d>> {
        let mut methods = self.methods.iter();
        methods.find(|method| method.name.is(name) && method.descriptor.is(descriptor))
    }

    /// Returns the instructions of a method of this class.
    #[must_use]
    pub fn instructions<'c>(&'c self, code: &CodeAttribute<'d>) -> Instructions<'c, 'd> {
        Instructions::new(&self.pool, code.bytecode)
    }
}

fn method<'d>(pool: &ConstantPool<'d>, reader: &mut Reader<'d>) -> Result<ClassMethod<'d>> {
    let access = reader.u16("access_flags")?;
    let name = pool.text(reader.u16("name_index")?);
    let descriptor = pool.text(reader.u16("descriptor_index")?);
    let mut found = None;
    for _ in 0..reader.u16("attributes_count")? {
        let attribute = pool.text(reader.u16("attribute_name_index")?);
        let mut part = reader.part("attribute")?;
        if attribute.is("Code") && found.is_none() {
            found = Some(code(pool, &mut part)?);
        }
    }
    Ok(ClassMethod {
        name,
        descriptor,
        access,
        code: found,
    })
}

fn code<'d>(pool: &ConstantPool<'d>, reader: &mut Reader<'d>) -> Result<CodeAttribute<'d>> {
    reader.u16("max_stack")?;
    reader.u16("max_locals")?;
    let long = reader.error("code_length", "a method has at most 65,535 bytes of code");
    let length = usize::try_from(reader.u32("code_length")?).unwrap_or(usize::MAX);
    if length > MAX_CODE {
        return Err(long);
    }
    let bytecode = reader.bytes(length, "code")?;
    let entries = usize::from(reader.u16("exception_table_length")?);
    let entries = reader.bytes(entries.saturating_mul(8), "exception_table")?;
    let (entries, _) = entries.as_chunks::<8>();
    let handler = |[_, _, _, _, high, low, _, _]: &[u8; 8]| u16::from_be_bytes([*high, *low]);
    let handlers = entries.iter().map(handler).collect();
    let mut lines = Vec::new();
    for _ in 0..reader.u16("attributes_count")? {
        let attribute = pool.text(reader.u16("attribute_name_index")?);
        let mut part = reader.part("attribute")?;
        // There may be several tables.
        if attribute.is("LineNumberTable") {
            for _ in 0..part.u16("line_number_table_length")? {
                lines.push(LineStart {
                    bci: part.u16("start_pc")?,
                    line: part.u16("line_number")?,
                });
            }
        }
    }
    Ok(CodeAttribute {
        bytecode,
        lines,
        handlers,
    })
}
