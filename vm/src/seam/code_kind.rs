//! What does a stretch of a VM's code do?

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
    /// Whether code of this kind executes bytecode in a frame of the VM's own list.
    pub const fn executes(self) -> bool {
        matches!(self, Self::Loop | Self::Interpreter | Self::Traces)
    }
}
