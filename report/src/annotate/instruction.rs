//! What is read of an instruction?

/// An instruction as it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeInstruction {
    /// Its address in the file.
    pub address: u64,
    /// Bytes.
    pub len: u32,
    /// What it reads like, in one line.
    pub text: String,
}
