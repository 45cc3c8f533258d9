//! A calling context, as a tree has it.

use varid_instrument::MethodNumber;

/// A calling context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its offset in the tree's file.
    pub offset: u64,
    /// Its method.
    pub method: MethodNumber,
    /// The index of the call site in the caller's table. None: the VM called.
    pub site: Option<usize>,
    /// How often it was called.
    pub calls: u64,
    /// The values of the method's counters.
    pub counters: Vec<u64>,
    /// Exceptions that left a block: behind which instruction, and how often. By ascending instruction.
    pub aborts: Vec<(u16, u64)>,
}
