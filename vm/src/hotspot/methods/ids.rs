//! What identifies code, methods and their instructions?

use std::fmt;
use varid_model::Address;

/// The index of an instruction in its method's bytecode, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bci(u16);

impl Bci {
    /// An index.
    pub const fn new(index: u16) -> Self {
        Self(index)
    }

    /// Its number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Bci {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The address of a `Method` of the VM. Another method can have it once its class is unloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MethodPointer(pub Address);

/// The number of a compilation, `nmethod::_compile_id`. The VM uses each number once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CompileId(pub u32);

impl fmt::Display for CompileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Identifies code for all time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodeKey {
    /// The address of the code blob.
    pub blob: Address,
    /// The number of the compilation.
    pub compile_id: CompileId,
}
