//! The location of a method's instructions.

use std::ops::Range;

/// A method's instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodCode {
    /// Offsets of the instructions in the image.
    pub code: Range<u32>,
    /// The method's index, for [`super::BytecodeImage::method_name`]. If several methods share their instructions, this is the lowest
    /// index.
    pub index: u32,
    /// How many other methods share the instructions.
    pub others: u32,
    /// Access flags, as dex and class files have them.
    pub access_flags: u32,
    /// The class that defines the method, by a number that the image assigns. Methods of one class have the same number.
    pub class: u32,
}

impl MethodCode {
    /// If `next` has the same instructions, counts it as a method that shares them. Returns whether it has.
    pub(crate) fn absorb(&mut self, next: &Self) -> bool {
        let is_shared = self.code.start == next.code.start;
        if is_shared {
            self.others = self.others.saturating_add(next.others).saturating_add(1);
        }
        is_shared
    }
}

/// The method of `methods`, which are sorted by offset, whose instructions hold the byte at `offset`.
pub(crate) fn method_at(methods: &[MethodCode], offset: u32) -> Option<&MethodCode> {
    let after = methods.partition_point(|method| method.code.start <= offset);
    let method = methods.get(after.checked_sub(1)?)?;
    method.code.contains(&offset).then_some(method)
}
