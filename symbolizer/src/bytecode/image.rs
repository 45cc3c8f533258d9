//! The interface of a bytecode file, independent of its format.

use std::fmt;

use super::copies::CodeCopies;
use super::invoked::Invoked;
use super::line::{CodeLine, row_at};
use super::method::{MethodCode, method_at};
use super::names::{shared_name, unqualified};
use crate::{Frame, Location};

/// A bytecode file: a dex file, class files, or the form that a VM keeps instead.
///
/// Offsets count bytes from the image's start. Indices from 0 to [`BytecodeImage::method_count`] number its methods, including those that
/// it only references. The copies ([`BytecodeImage::copies`]) follow the image's end, and their offsets are valid arguments as well. `None`
/// means that the image does not know the answer, or that its content is broken there. An image is untrusted input, so an implementation
/// must return for any offset and index.
pub trait BytecodeImage: fmt::Debug {
    /// Identifies the content wherever it is mapped: the SHA-1 of a dex file's content. It is also the substitute's build-id.
    fn content_id(&self) -> [u8; 20];

    /// The image's bytes, without any that follow it.
    fn bytes(&self) -> &[u8];

    /// The smallest step between instructions in bytes: 2 in dex, 1 in class files.
    fn code_unit(&self) -> u8;

    /// The methods that have instructions, by ascending offset. No range is empty, and no two overlap.
    fn methods(&self) -> &[MethodCode];

    /// The copies of instructions that several methods share, one for each method.
    fn copies(&self) -> &CodeCopies {
        static NONE: CodeCopies = CodeCopies::NONE;
        &NONE
    }

    /// Number of methods that have an index, whether they are defined here or only referenced.
    fn method_count(&self) -> u32;

    /// The class of method `index`, in Java's notation: `org.example.Balls`.
    fn class_name(&self, index: u32) -> Option<String>;

    /// The name of method `index` without its class: `draw`.
    fn simple_name(&self, index: u32) -> Option<String>;

    /// The parameter types and the return type of method `index`, as class files write them: `(I)V`.
    fn descriptor(&self, index: u32) -> Option<String>;

    /// The source file of the class that defines `method`, as the compiler recorded it.
    fn source_file(&self, method: &MethodCode) -> Option<String>;

    /// The lines of `method`, by ascending offset within its instructions. Empty if it has no debug information. If several rows have the
    /// same offset, the first is for that instruction, and the last for the instructions after it.
    fn lines(&self, method: &MethodCode) -> Option<Vec<CodeLine>>;

    /// The name of the source file for a [`CodeLine::source`] of a line of `method`.
    fn line_source(&self, method: &MethodCode, source: u32) -> Option<String>;

    /// The offset of the only instruction with this opcode that may lead to the one at `offset` without an exception. None if there is
    /// none, or more than one.
    fn instruction_before(&self, offset: u32, opcode: u8) -> Option<u32>;

    /// The method that the instruction at `offset` invokes. None if it is not an invoke instruction.
    fn invoked_method(&self, offset: u32) -> Option<Invoked> {
        let _ = offset;
        None
    }

    /// The method that a VM identifies by the offsets of its class's name and its own name in the image, and by the index of its prototype.
    /// None also if VMs of this format do not do so.
    fn method_by_names(&self, class: u32, name: u32, prototype: u32) -> Option<u32> {
        let _ = (class, name, prototype);
        None
    }

    /// Every method that has code, in the order in which the image defines them. Methods that share their instructions are separate items.
    fn definitions(&self) -> Box<dyn Iterator<Item = MethodCode> + '_> {
        Box::new(self.methods().iter().cloned())
    }

    /// The name of method `index` as profiles show it: `org.example.Balls.draw`. Parameter types are added if several methods have that
    /// name.
    fn method_name(&self, index: u32) -> Option<String> {
        Some(format!(
            "{}.{}",
            self.class_name(index)?,
            self.simple_name(index)?
        ))
    }

    /// The name of the code: [`BytecodeImage::method_name`], and the number of other methods that share the instructions:
    /// `org.example.A.<init> and 41 more`.
    fn code_name(&self, method: &MethodCode) -> Option<String> {
        Some(shared_name(self.method_name(method.index)?, method.others))
    }

    /// The method whose instructions, or whose copy of them, hold the byte at `offset`.
    fn method_at(&self, offset: u32) -> Option<&MethodCode> {
        method_at(self.methods(), offset)
            .or_else(|| self.copies().at(offset).map(|copy| &copy.method))
    }

    /// The offset in the image of the instruction at `offset`, which may be in a copy.
    fn original(&self, offset: u32) -> u32 {
        let copy = self.copies().at(offset);
        copy.map_or(offset, |copy| copy.original(offset))
    }

    /// The source file and line of the instruction at `offset`. If the file has no name, the class's name is used.
    fn line_at(&self, offset: u32) -> Option<Location<'static>> {
        let method = self.method_at(offset)?;
        let offset = self.original(offset);
        let lines = self.lines(method)?;
        let row = row_at(&lines, offset, |row| row.offset).filter(|row| row.line != 0)?;
        let file = row
            .source
            .and_then(|source| self.line_source(method, source))
            .filter(|file| !file.is_empty())
            .or_else(|| Some(unqualified(&self.class_name(method.index)?).to_owned()))?;
        Some(Location {
            file: file.into(),
            line: row.line,
        })
    }

    /// The method and the line of the instruction at `offset`. None if no method is there, or its name is broken.
    fn frame(&self, offset: u32) -> Option<Frame<'static>> {
        let method = self.method_at(offset)?;
        Some(Frame {
            function: self.code_name(method)?.into(),
            location: self.line_at(offset),
        })
    }
}
