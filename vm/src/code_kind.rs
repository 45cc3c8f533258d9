//! What does a stretch of a VM's code do?

use varid_tunnel::abi;

/// What a stretch of a VM's code does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeKind {
    /// An interpreter loop where its registers lead to its frame and to its bytecode.
    Loop,
    /// An interpreter loop where its registers say nothing: its prologue, its epilogue, a loop in C++.
    Interpreter,
    /// The machinery of a call, never worth a row below another frame.
    Bridge,
    /// Any other code of the VM.
    Runtime,
    /// An interpreter that keeps its frames as compiled code does: the method at the stack pointer, the bytecode pc in a register.
    NativeFrames,
    /// What a compiler has made of stretches of bytecode.
    Traces,
    /// What a compiler has made of a method, and of those that it has inlined: a native frame stands for all of them.
    Compiled,
}

impl CodeKind {
    /// The kind of a range of a tunnel or of the table of builds (`RANGE_*`); None: of one that this version does not know.
    pub(crate) const fn of_range(kind: u32) -> Option<Self> {
        Some(match kind {
            abi::RANGE_BODY | abi::RANGE_HANDLERS => Self::Loop,
            abi::RANGE_INTERPRETER => Self::Interpreter,
            abi::RANGE_BRIDGE => Self::Bridge,
            abi::RANGE_VM => Self::Runtime,
            abi::RANGE_QUICK => Self::NativeFrames,
            abi::RANGE_TRACES => Self::Traces,
            _ => return None,
        })
    }

    /// Whether code of this kind executes bytecode in a frame of the VM's own list.
    pub const fn executes(self) -> bool {
        matches!(self, Self::Loop | Self::Interpreter | Self::Traces)
    }
}
