//! Which pointers were certainly not seen? The words of all stacks are looked at, and few of them are pointers to methods.

use super::ids::MethodPointer;

/// A number of bits, as a power of two.
const LOG2_BITS: u32 = 16;
/// An odd number whose multiples differ in their first bits (Knuth, The Art of Computer Programming, 6.4).
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The pointers that were seen: a bit for many of them.
#[derive(Debug)]
pub(super) struct SeenPointers(Box<[bool]>);

impl Default for SeenPointers {
    fn default() -> Self {
        Self(vec![false; 1 << LOG2_BITS].into())
    }
}

impl SeenPointers {
    /// Adds a pointer.
    pub(super) fn insert(&mut self, pointer: MethodPointer) {
        if let Some(seen) = self.0.get_mut(place(pointer)) {
            *seen = true;
        }
    }

    /// Returns false if a pointer was not seen. Returns true for few others.
    pub(super) fn may_have(&self, pointer: MethodPointer) -> bool {
        self.0.get(place(pointer)) == Some(&true)
    }
}

fn place(pointer: MethodPointer) -> usize {
    let hash = pointer.0.get().wrapping_mul(FACTOR) >> (u64::BITS - LOG2_BITS);
    hash as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_model::Address;

    #[test]
    fn what_was_seen_is_and_most_of_the_rest_is_not() {
        let pointer = |index: u64| MethodPointer(Address::new(0x7f12_3400_0000 + 0x68 * index));
        let mut seen = SeenPointers::default();
        (0..1000).for_each(|index| seen.insert(pointer(index)));
        assert!((0..1000).all(|index| seen.may_have(pointer(index))));
        let others = (1000..11_000).filter(|index| seen.may_have(pointer(*index)));
        assert!(others.count() < 500);
    }
}
