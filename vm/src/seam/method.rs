//! What does a method pointer of a VM stand for?

use std::ops::Range;
use std::rc::Rc;
use varid_model::{CodeUnits, Layer};
use varid_process::{AddressSpace, CodeImage, Process};
use varid_shim::FramePc;
use varid_symbolizer::substitute::MethodSource;

/// What a method pointer of the VM stands for.
#[derive(Debug, Clone)]
pub enum Method {
    /// A method of a file of bytecode.
    Known {
        /// The file.
        image: Rc<CodeImage>,
        /// The method's index in it.
        index: u32,
        /// Addresses of its instructions; None: it has no bytecode (JNI).
        code: Option<Range<u64>>,
    },
    /// A method whose bytecode is in no file.
    InMemory(Rc<MethodInMemory>),
    /// The VM's own: no method of anybody's.
    Runtime,
    /// It could not be read, or contradicts its file.
    Unknown,
    /// The process's memory was gone before it could be read.
    Gone,
}

/// A method whose bytecode is in no file, or code of the VM that has no bytecode. Equal ones have the same addresses in a recording.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MethodInMemory {
    /// Whose method it is.
    pub layer: Layer,
    /// The name that profiles show, such as `org.example.App.mul`.
    pub name: String,
    /// The types of its parameters and of its result, as the VM writes them. Empty if it has none.
    pub signature: String,
    /// The size of its bytecode, in bytes. 0: it has none.
    pub code_size: u32,
    /// Its source lines, by bytecode index. None if they are not known.
    pub source: Option<MethodSource>,
}

impl MethodInMemory {
    /// Returns how many bytes from its first instruction a frame's instruction lies. None if it is none of its own.
    pub(crate) fn offset_of(&self, pc: FramePc) -> Option<u64> {
        let offset = match pc {
            FramePc::Relative { offset, .. } => offset.get(),
            FramePc::Absolute(_)
            | FramePc::Exported { .. }
            | FramePc::Compiled { .. }
            | FramePc::Native { .. } => 0,
        };
        (offset == 0 || offset < self.code_size).then_some(offset.into())
    }
}

/// Bytes of a code unit of dex.
const DEX_UNIT: u8 = 2;

impl Method {
    /// The address of the instruction so far behind its first one; None: it has none there.
    pub(crate) fn instruction(&self, offset: CodeUnits) -> Option<u64> {
        let Method::Known {
            code: Some(code), ..
        } = self
        else {
            return None;
        };
        let pc = code.start.wrapping_add(offset.to_bytes(DEX_UNIT));
        code.contains(&pc).then_some(pc)
    }

    /// The length of its bytecode; None: it has none.
    pub fn code_length(&self) -> Option<CodeUnits> {
        let Method::Known {
            code: Some(code), ..
        } = self
        else {
            return None;
        };
        let bytes = code.end.saturating_sub(code.start);
        let units = bytes.checked_div(u64::from(DEX_UNIT))?;
        u32::try_from(units).ok().map(CodeUnits::new)
    }

    /// The address that stands for one of its instructions, `pc`, and for no other method's: where several methods share the
    /// instructions, that in the method's copy.
    pub fn own_address(&self, pc: u64, space: &mut AddressSpace) -> u64 {
        match self {
            Method::Known { image, index, .. } => space.copy_of(image, *index, pc).unwrap_or(pc),
            Method::InMemory(_) | Method::Runtime | Method::Unknown | Method::Gone => pc,
        }
    }

    /// Whether an address is one of its instructions.
    pub fn has_code_at(&self, address: u64) -> bool {
        matches!(self, Method::Known { code: Some(code), .. } if code.contains(&address))
    }
}

/// The methods of a process, as its VM's pointers name them.
pub trait Methods {
    /// The process.
    fn process(&mut self) -> &mut Process;

    /// What a method pointer stands for; read from the process the first time it is seen.
    fn method(&mut self, pointer: u64) -> Method;

    /// Whether it is known what a pointer stands for.
    fn is_known(&self, pointer: u64) -> bool;

    /// Makes a pointer stand for a method.
    fn insert(&mut self, pointer: u64, method: Method);
}
