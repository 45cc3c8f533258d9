//! A disassembled instruction.

/// A disassembled instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeInstruction {
    /// Address in the file.
    pub address: u64,
    /// Size in bytes.
    pub len: u32,
    /// The disassembly in one line.
    pub text: String,
}
