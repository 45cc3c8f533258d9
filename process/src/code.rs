//! Unwind rules of the code that a process has mapped.

use crate::image::{ElfImage, ProcessImage};
use crate::space::AddressSpace;
use std::ops::Range;
use varid_model::Address;
use varid_unwind::{CodeRule, Module, NativeFrame, UnwindInfo, UnwindRow};

/// The code of a process, as its mappings show it.
///
/// Code of an ELF file has the file's rules. Memory without a file may hold generated code, of which nothing is known here.
#[derive(Debug, Clone, Copy)]
pub struct MappedCode<'a>(&'a AddressSpace);

/// The code at an address of a mapping.
enum Code<T> {
    /// A module's code.
    Module(T),
    /// Code without rules.
    Unknown,
    /// Code of a file that has not been read yet.
    NotRead,
    /// No code.
    None,
}

impl<'a> MappedCode<'a> {
    /// The code of a process with this address space.
    pub const fn new(space: &'a AddressSpace) -> Self {
        Self(space)
    }

    /// Returns the ELF file that is mapped at an address, and the file's own address there.
    pub fn file_at(self, pc: Address) -> Option<(&'a ElfImage, Address)> {
        let mapped = self.0.at(pc.get())?;
        let ProcessImage::Elf(image) = &mapped.image else {
            return None;
        };
        let module = image.contents()?.module.borrow();
        let own = module.address_of_offset(mapped.offset_of(pc.get()))?;
        Some((image, own))
    }

    /// Calls `ask` with the module at an address and the module's own address.
    fn at<T>(self, pc: Address, ask: impl FnOnce(&mut Module, Address) -> T) -> Code<T> {
        let Some(mapped) = self.0.at(pc.get()) else {
            return Code::None;
        };
        let elf = match &mapped.image {
            ProcessImage::Elf(elf) => elf,
            ProcessImage::Other(_) => return Code::Unknown,
            ProcessImage::Code(_) => return Code::None,
        };
        let Some(contents) = elf.contents() else {
            return match elf.is_read() {
                true => Code::Unknown,
                false => Code::NotRead,
            };
        };
        let mut module = contents.module.borrow_mut();
        match module.address_of_offset(mapped.offset_of(pc.get())) {
            Some(own) => Code::Module(ask(&mut module, own)),
            None => Code::Unknown,
        }
    }
}

impl MappedCode<'_> {
    /// Returns the rows of unwind information of the code in a range, if it is all in one module, and the bias from the addresses in a row
    /// to the process's.
    pub fn rows(self, code: Range<Address>) -> Option<(Vec<UnwindRow>, u64)> {
        let size = code.end.offset_from(code.start)?;
        let rows = |module: &mut Module, own: Address| {
            let bias = code.start.get().wrapping_sub(own.get());
            (module.rows(own..own.wrapping_add(size)), bias)
        };
        match self.at(code.start, rows) {
            Code::Module(found) => Some(found),
            Code::Unknown | Code::NotRead | Code::None => None,
        }
    }
}

impl MappedCode<'_> {
    /// Returns the first address of the function, or of the separate part of a function, whose FDE contains an instruction.
    pub fn described_start(self, pc: Address) -> Option<Address> {
        let start = |module: &mut Module, own: Address| {
            let start = module.described_start(own)?;
            Some(start.wrapping_add(pc.get().wrapping_sub(own.get())))
        };
        match self.at(pc, start) {
            Code::Module(start) => start,
            Code::Unknown | Code::NotRead | Code::None => None,
        }
    }
}

impl UnwindInfo for MappedCode<'_> {
    fn rule(&mut self, pc: Address) -> CodeRule {
        match self.at(pc, Module::rule) {
            Code::Module(rule) => rule,
            Code::Unknown => CodeRule::Unknown,
            Code::NotRead => CodeRule::NotRead,
            Code::None => CodeRule::NoCode,
        }
    }

    fn frame_rule(&mut self, frame: &NativeFrame) -> CodeRule {
        let rule = |module: &mut Module, own: Address| module.rule_of_frame(own, frame);
        match self.at(frame.lookup(), rule) {
            Code::Module(rule) => rule,
            Code::Unknown => CodeRule::Unknown,
            Code::NotRead => CodeRule::NotRead,
            Code::None => CodeRule::NoCode,
        }
    }

    fn is_code(&mut self, pc: Address) -> bool {
        !matches!(self.at(pc, |_, _| ()), Code::None)
    }

    fn begins_threads(&mut self, pc: Address) -> bool {
        matches!(self.at(pc, Module::begins_threads), Code::Module(true))
    }

    fn keeps_frame_pointers(&mut self, pc: Address) -> bool {
        matches!(
            self.at(pc, Module::keeps_frame_pointers),
            Code::Module(true)
        )
    }

    fn function_start(&mut self, pc: Address) -> Option<Address> {
        let start = |module: &mut Module, own: Address| {
            let start = module.function_start(own)?;
            Some(start.wrapping_add(pc.get().wrapping_sub(own.get())))
        };
        match self.at(pc, start) {
            Code::Module(start) => start,
            Code::Unknown | Code::NotRead | Code::None => None,
        }
    }
}
