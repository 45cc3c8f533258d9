//! What is in the attribute `Code`?

use super::file::attributes;
use super::{Attribute, Constants, Reader};
use crate::error::Result;

/// The attribute `Code` of a method.
#[derive(Debug)]
pub(crate) struct Code<'c> {
    /// The depth of its operand stack, in words.
    pub(crate) max_stack: u16,
    /// The number of its local variables, in words.
    pub(crate) max_locals: u16,
    /// Its instructions: 1 to 65,535 bytes.
    pub(crate) bytes: &'c [u8],
    /// The entries of its exception table.
    pub(crate) handlers: Vec<Handler>,
    /// Its attributes.
    pub(crate) attributes: Vec<Attribute<'c>>,
}

/// An entry of an exception table, by bci.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handler {
    /// The first instruction that it covers.
    pub(crate) start: u16,
    /// The bci after the last one.
    pub(crate) end: u16,
    /// The handler.
    pub(crate) handler: u16,
    /// The constant of the exception's class; 0: every exception.
    pub(crate) catch_type: u16,
}

impl<'c> Code<'c> {
    /// Reads the contents of an attribute `Code`.
    pub(crate) fn read(mut reader: Reader<'c>, constants: &Constants<'c>) -> Result<Self> {
        let max_stack = reader.u16("max_stack")?;
        let max_locals = reader.u16("max_locals")?;
        let mut code = reader.part("code")?;
        let bytes = code.bytes(code.rest().len(), "code")?;
        if bytes.is_empty() || bytes.len() > usize::from(u16::MAX) {
            return Err(reader.error("code_length", "it is none of 1 to 65535"));
        }
        let mut handlers = Vec::new();
        for _ in 0..reader.u16("exception_table_length")? {
            handlers.push(Handler {
                start: reader.u16("start_pc")?,
                end: reader.u16("end_pc")?,
                handler: reader.u16("handler_pc")?,
                catch_type: reader.u16("catch_type")?,
            });
        }
        let attributes = attributes(&mut reader, constants)?;
        if !reader.is_empty() {
            return Err(reader.error("Code", "bytes follow it"));
        }
        Ok(Self {
            max_stack,
            max_locals,
            bytes,
            handlers,
            attributes,
        })
    }
}
