//! Class files, by the Java Virtual Machine Specification, chapter 4.

mod code;
mod constants;
mod descriptor;
mod file;
pub(crate) mod instruction;
pub mod opcode;
mod read;

pub(crate) use code::Code;
pub(crate) use constants::{Constants, modified_utf8, tag};
pub(crate) use descriptor::argument_words;
pub(crate) use file::{Attribute, ClassFile, Method, access};
pub(crate) use instruction::{Index, Instruction, Instructions, Kind};
pub(crate) use read::Reader;
