//! The questions to a file of bytecode, whatever its format.

use std::fmt;

use super::copies::CodeCopies;
use super::invoked::Invoked;
use super::line::{CodeLine, row_at};
use super::method::{MethodCode, method_at};
use super::names::{shared_name, unqualified};
use crate::{Frame, Location};

/// A file of bytecode: a dex file, class files, or what a VM keeps instead.
///
/// Offsets count bytes from the image's start. Indices number its methods, those that it only names included, from 0 to
/// [`BytecodeImage::method_count`]. Behind the image's end lie its copies ([`BytecodeImage::copies`]), whose offsets are
/// answered as well. An answer of `None` says that the image does not know it, or that what it holds
/// there is broken: an image comes from outside, so an implementation answers for any offset and index.
pub trait BytecodeImage: fmt::Debug {
    /// Names the content wherever it is mapped, and is the substitute's build-id: the SHA-1 of a dex file's content.
    fn content_id(&self) -> [u8; 20];

    /// The image's bytes, without what may follow it.
    fn bytes(&self) -> &[u8];

    /// Bytes of the smallest step between instructions: 2 in dex, 1 in class files.
    fn code_unit(&self) -> u8;

    /// The methods that have instructions, by ascending offset; none empty, no two that overlap.
    fn methods(&self) -> &[MethodCode];

    /// The copies of instructions that several methods share, one for each of them.
    fn copies(&self) -> &CodeCopies {
        static NONE: CodeCopies = CodeCopies::NONE;
        &NONE
    }

    /// Number of methods that have an index, whether they are defined here or only named.
    fn method_count(&self) -> u32;

    /// The class of method `index`, in Java's notation: `org.example.Balls`.
    fn class_name(&self, index: u32) -> Option<String>;

    /// The name of method `index` without its class: `draw`.
    fn simple_name(&self, index: u32) -> Option<String>;

    /// The parameter types and the return type of method `index`, as class files write them: `(I)V`.
    fn descriptor(&self, index: u32) -> Option<String>;

    /// The source file of the class that defines `method`, as the compiler recorded it.
    fn source_file(&self, method: &MethodCode) -> Option<String>;

    /// The lines of `method`, by ascending offset within its instructions; empty if it has no debug information. Of
    /// several for an instruction the first is for it, the last for what follows.
    fn lines(&self, method: &MethodCode) -> Option<Vec<CodeLine>>;

    /// What the source file is called that [`CodeLine::source`] of a line of `method` stands for.
    fn line_source(&self, method: &MethodCode, source: u32) -> Option<String>;

    /// Where the only instruction with this opcode is from which the one at `offset` may be reached, exceptions apart;
    /// None: there is none, or more than one.
    fn instruction_before(&self, offset: u32, opcode: u8) -> Option<u32>;

    /// The method that the instruction at `offset` invokes, if it is an instruction that invokes one.
    fn invoked_method(&self, offset: u32) -> Option<Invoked> {
        let _ = offset;
        None
    }

    /// The method that a VM knows by where its class's name and its own name lie in the image, and by the index of its
    /// prototype; None also where a VM does not do so.
    fn method_by_names(&self, class: u32, name: u32, prototype: u32) -> Option<u32> {
        let _ = (class, name, prototype);
        None
    }

    /// Every method that has code, in the order in which the image defines them: those that share their instructions
    /// one by one.
    fn definitions(&self) -> Box<dyn Iterator<Item = MethodCode> + '_> {
        Box::new(self.methods().iter().cloned())
    }

    /// The name of method `index` as profiles show it: `org.example.Balls.draw`, with parameter types where that would
    /// be the name of several.
    fn method_name(&self, index: u32) -> Option<String> {
        Some(format!(
            "{}.{}",
            self.class_name(index)?,
            self.simple_name(index)?
        ))
    }

    /// The name of what runs there: [`BytecodeImage::method_name`], and how many other methods have the same
    /// instructions: `org.example.A.<init> and 41 more`.
    fn code_name(&self, method: &MethodCode) -> Option<String> {
        Some(shared_name(self.method_name(method.index)?, method.others))
    }

    /// The method whose instructions hold the byte at `offset`, or the method whose copy does.
    fn method_at(&self, offset: u32) -> Option<&MethodCode> {
        method_at(self.methods(), offset)
            .or_else(|| self.copies().at(offset).map(|copy| &copy.method))
    }

    /// The offset in the image of the instruction at `offset`, which may be one of a copy.
    fn original(&self, offset: u32) -> u32 {
        let copy = self.copies().at(offset);
        copy.map_or(offset, |copy| copy.original(offset))
    }

    /// The source file and line of the instruction at `offset`. A file without a name is called as the class.
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

    /// The method and the line of the instruction at `offset`; None: no method is there, or its name is broken.
    fn frame(&self, offset: u32) -> Option<Frame<'static>> {
        let method = self.method_at(offset)?;
        Some(Frame {
            function: self.code_name(method)?.into(),
            location: self.line_at(offset),
        })
    }
}
