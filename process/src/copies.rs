//! Maps the copies of instructions that several methods share.
//!
//! A process itself has no copies. Each bytecode file with copies gets a range of addresses that processes normally do not use, the same in
//! all processes. The part of the file that begins with its copies is mapped there a second time.

use crate::image::{CodeImage, ProcessImage};
use crate::mapping_id::MappingId;
use crate::space::{AddressSpace, ProcessMapping};
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The addresses of copies, one file's after the other's. Linux places programs and their heaps below, libraries and stacks above. A
/// process may still map something there itself.
const COPIES: Range<u64> = 0x6600_0000_0000..0x7000_0000_0000;
const PAGE: u64 = 4096;

/// Returns `len` bytes of addresses, rounded up to pages, that have not been assigned before. None if the range is used up.
pub(crate) fn next_addresses(len: u64) -> Option<Range<u64>> {
    static NEXT: AtomicU64 = AtomicU64::new(COPIES.start);
    let pages = len.checked_next_multiple_of(PAGE)?;
    let end = |start: u64| start.checked_add(pages).filter(|end| *end <= COPIES.end);
    let start = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, end);
    let start = start.ok()?;
    Some(start..end(start)?)
}

impl AddressSpace {
    /// Returns the address in the copy of method `index` that stands for its instruction at `pc`. None if the method shares the instruction
    /// with no other method, has no copy, or the process has mapped something else there.
    pub fn copy_of(&mut self, image: &Rc<CodeImage>, index: u32, pc: u64) -> Option<u64> {
        let copies = image.bytecode.copies();
        let copy = copies.of_method(index)?;
        let offset = u32::try_from(self.at(pc)?.offset_of(pc)).ok()?;
        copy.method.code.contains(&offset).then_some(())?;
        let addresses = image.copies.get_or_init(|| {
            let all = copies.range();
            next_addresses(all.end.saturating_sub(all.start).into())
        });
        let addresses = addresses.clone()?;
        let first = copies.range().start;
        let is_copy = |mapped: &ProcessMapping| matches!(&mapped.image, ProcessImage::Code(code) if Rc::ptr_eq(code, image));
        let there = self.within(&addresses);
        there.iter().all(is_copy).then_some(())?;
        if there.is_empty() {
            let added = self.insert(ProcessMapping {
                start: addresses.start,
                end: addresses.end,
                pgoff: first.into(),
                image: ProcessImage::Code(image.clone()),
                mode: None,
                id: MappingId::default(),
            });
            added.then_some(())?;
        }
        let within = copy.copied(offset).saturating_sub(first);
        addresses.start.checked_add(within.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_files_have_the_same_addresses() {
        let [one, other] = [1, PAGE + 1].map(|len| next_addresses(len).unwrap());
        assert!(one.end <= other.start || other.end <= one.start);
        assert_eq!(one.end - one.start, PAGE);
        assert_eq!(other.end - other.start, 2 * PAGE);
        assert_eq!(next_addresses(u64::MAX), None);
        assert_eq!(next_addresses(COPIES.end - COPIES.start), None);
    }
}
