//! Copies of instructions that several methods share: one range of offsets for each of these methods.
//!
//! A compiler writes equal instructions once, so their offset does not say which method executes them. Each of their methods has a copy of
//! its own: a range of offsets after the image's end, with the length of the instructions. A profiler that knows the method records an
//! offset in its copy. Names, lines and bytecode at that offset are those of the method.

use std::ops::Range;

use super::method::MethodCode;

/// Copies start at a multiple of this, so that they can be mapped separately from the image.
const PAGE: u32 = 1 << 12;

/// The copy of one method's instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeCopy {
    /// The copy's offsets, after the image's end.
    pub code: Range<u32>,
    /// The method, with the range of its instructions in the image.
    pub method: MethodCode,
}

impl CodeCopy {
    /// Returns the offset in the image for an offset in the copy.
    #[must_use]
    pub fn original(&self, offset: u32) -> u32 {
        let within = offset.wrapping_sub(self.code.start);
        self.method.code.start.wrapping_add(within)
    }

    /// Returns the offset in the copy for an offset of the method's instructions.
    #[must_use]
    pub fn copied(&self, offset: u32) -> u32 {
        let within = offset.wrapping_sub(self.method.code.start);
        self.code.start.wrapping_add(within)
    }
}

/// The copies of an image, by ascending index of their methods, and by ascending offset.
///
/// They follow each other from the first multiple of 4096 at or after the image's end. Together they take no more bytes than the image:
/// methods beyond that have no copy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CodeCopies {
    copies: Vec<CodeCopy>,
    /// Indices of the copies, sorted by where the instructions are in the image.
    by_original: Vec<u32>,
}

impl CodeCopies {
    /// No copies.
    pub const NONE: Self = Self {
        copies: Vec::new(),
        by_original: Vec::new(),
    };

    /// Makes the copies of an image of `len` bytes. `methods`: see [`super::BytecodeImage::methods`]. `definitions`: each method that has
    /// code.
    pub(crate) fn of(
        len: usize,
        methods: &[MethodCode],
        definitions: impl IntoIterator<Item = MethodCode>,
    ) -> Self {
        let shared = |method: MethodCode| {
            let by_start = methods.binary_search_by_key(&method.code.start, |own| own.code.start);
            let own = methods.get(by_start.ok()?)?;
            // A method may end earlier than its code item says.
            let code = own.code.clone();
            (own.others > 0).then_some(MethodCode { code, ..method })
        };
        let mut shared: Vec<MethodCode> = definitions.into_iter().filter_map(shared).collect();
        shared.sort_unstable_by_key(|method| method.index);
        shared.dedup_by_key(|method| method.index);
        let mut copies = Vec::new();
        let Ok(len) = u32::try_from(len) else {
            return Self::NONE;
        };
        let Some(start) = len.checked_next_multiple_of(PAGE) else {
            return Self::NONE;
        };
        let limit = start.saturating_add(len);
        let mut next = start;
        for method in shared {
            let size = method.code.end.saturating_sub(method.code.start);
            let Some(end) = next.checked_add(size).filter(|end| *end <= limit) else {
                break;
            };
            let code = next..end;
            copies.push(CodeCopy { code, method });
            next = end;
        }
        copies.shrink_to_fit();
        let mut by_original: Vec<u32> = (0..).take(copies.len()).collect();
        by_original.sort_by_key(|at| start_of(&copies, *at));
        Self {
            copies,
            by_original,
        }
    }

    /// Returns true if there are no copies, because no two methods share their instructions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }

    /// Returns all copies.
    pub fn iter(&self) -> impl Iterator<Item = &CodeCopy> {
        self.copies.iter()
    }

    /// Returns the copies of the instructions that begin at an offset of the image, one for each method that shares them.
    pub fn sharing(&self, start: u32) -> impl Iterator<Item = &CodeCopy> {
        let start_of = |at: &u32| start_of(&self.copies, *at);
        let first = self.by_original.partition_point(|at| start_of(at) < start);
        let rest = self.by_original.get(first..).unwrap_or_default();
        rest.iter()
            .take_while(move |at| start_of(at) == start)
            .filter_map(|at| self.copies.get(*at as usize))
    }

    /// The offsets of all copies. Empty if there are none.
    #[must_use]
    pub fn range(&self) -> Range<u32> {
        let (first, last) = (self.copies.first(), self.copies.last());
        let start = first.map_or(0, |copy| copy.code.start);
        start..last.map_or(start, |copy| copy.code.end)
    }

    /// Returns the copy of method `index`. None if it shares its instructions with no other method, or there was no room for a copy.
    #[must_use]
    pub fn of_method(&self, index: u32) -> Option<&CodeCopy> {
        let by_index = |copy: &CodeCopy| copy.method.index;
        let at = self.copies.binary_search_by_key(&index, by_index);
        self.copies.get(at.ok()?)
    }

    /// Returns the copy that contains an offset.
    #[must_use]
    pub fn at(&self, offset: u32) -> Option<&CodeCopy> {
        let copies = &self.copies;
        let after = copies.partition_point(|copy| copy.code.start <= offset);
        let copy = copies.get(after.checked_sub(1)?)?;
        copy.code.contains(&offset).then_some(copy)
    }
}

/// Returns the start in the image of the instructions of copy `at`.
fn start_of(copies: &[CodeCopy], at: u32) -> u32 {
    let copy = copies.get(at as usize);
    copy.map_or(u32::MAX, |copy| copy.method.code.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method(index: u32, code: Range<u32>, others: u32) -> MethodCode {
        MethodCode {
            code,
            index,
            others,
            access_flags: 1,
            class: index / 2,
        }
    }

    /// Methods 1, 4 and 5 share one code item, 2 and 3 another one; 0 has its own.
    fn copies(len: usize) -> CodeCopies {
        let methods = [
            method(1, 100..110, 2),
            method(0, 110..120, 0),
            method(2, 120..128, 1),
        ];
        let definitions = [
            method(4, 100..110, 0),
            method(5, 100..110, 0),
            method(0, 110..120, 0),
            // Its code item reaches past the start of another method's instructions.
            method(2, 120..140, 0),
            method(1, 100..110, 0),
            method(3, 120..140, 0),
        ];
        CodeCopies::of(len, &methods, definitions)
    }

    #[test]
    fn each_method_of_shared_instructions_has_a_copy_behind_the_image() {
        let copies = copies(5000);
        let found: Vec<_> = copies
            .iter()
            .map(|copy| {
                (
                    copy.method.index,
                    copy.code.clone(),
                    copy.method.code.clone(),
                )
            })
            .collect();
        let expected = [
            (1, 8192..8202, 100..110),
            (2, 8202..8210, 120..128),
            (3, 8210..8218, 120..128),
            (4, 8218..8228, 100..110),
            (5, 8228..8238, 100..110),
        ];
        assert_eq!(found, expected);
        assert_eq!(copies.range(), 8192..8238);
        assert_eq!(copies.of_method(0), None);
        for copy in copies.iter() {
            assert_eq!(copy.method.others, 0);
            assert_eq!(copies.of_method(copy.method.index), Some(copy));
            for offset in copy.code.clone() {
                assert_eq!(copies.at(offset), Some(copy));
                let original = copy.original(offset);
                assert!(copy.method.code.contains(&original));
                assert_eq!(copy.copied(original), offset);
            }
        }
        let sharing = |start| -> Vec<u32> {
            let sharing = copies.sharing(start);
            sharing.map(|copy| copy.method.index).collect()
        };
        assert_eq!(sharing(100), [1, 4, 5]);
        assert_eq!(sharing(120), [2, 3]);
        assert!(sharing(110).is_empty() && sharing(0).is_empty() && sharing(u32::MAX).is_empty());
        for outside in [0, 100, 8191, 8238, u32::MAX] {
            assert_eq!(copies.at(outside), None);
        }
    }

    #[test]
    fn copies_take_no_more_room_than_the_image() {
        // Three of the five fit into 26 bytes.
        let indices: Vec<_> = copies(26).iter().map(|copy| copy.method.index).collect();
        assert_eq!(indices, [1, 2, 3]);
        assert_eq!(copies(0), CodeCopies::NONE);
        assert_eq!(copies(u32::MAX as usize), CodeCopies::NONE);
        assert_eq!(CodeCopies::NONE.range(), 0..0);
    }
}
