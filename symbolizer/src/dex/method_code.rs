//! Where a method's instructions are.

use std::ops::Range;

/// A method's instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodCode {
    /// File offsets of the instructions.
    pub code: Range<u32>,
    /// The method's index: [`super::DexFile::method_name`] has its name. Where several methods share a code_item, the lowest.
    pub index: u32,
    /// How many other methods share the code_item.
    pub others: u32,
    /// Access flags, as in the dex format.
    pub access_flags: u32,
    /// Index of the method's class among those that the file defines.
    pub(super) class: u32,
}

impl MethodCode {
    /// Whether `next` has the same code_item: then it is counted in.
    pub(crate) fn absorb(&mut self, next: &Self) -> bool {
        let is_shared = self.code.start == next.code.start;
        if is_shared {
            self.others = self.others.saturating_add(next.others).saturating_add(1);
        }
        is_shared
    }
}
