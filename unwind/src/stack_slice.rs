//! The bytes of a thread's stack that a sample has.

use crate::error::UnwindError;
use varid_model::{ADDRESS_MASK, Address, BeyondCopy, Holes, Machine};

/// A copy of a part of a stack, and the words outside of it that frame pointers lead to. Where a signal handler runs on an alternate stack,
/// the slice also has a copy of a part of the interrupted stack.
#[derive(Debug, Clone, Copy)]
pub struct StackSlice<'a> {
    own: Part<'a>,
    interrupted: Option<Part<'a>>,
    beyond: Option<&'a BeyondCopy>,
}

/// Contiguous bytes.
#[derive(Debug, Clone, Copy)]
struct Part<'a> {
    start: Address,
    bytes: &'a [u8],
    holes: Holes,
}

impl<'a> Part<'a> {
    /// See [`Holes::bytes_from`].
    #[inline]
    fn from(self, address: Address) -> Option<&'a [u8]> {
        self.holes.bytes_from(self.start, self.bytes, address)
    }

    fn contains(self, address: Address) -> bool {
        let at = address.offset_from(self.start);
        at.is_some_and(|at| at < self.bytes.len() as u64)
    }
}

impl<'a> StackSlice<'a> {
    /// A slice of the bytes from `start` on.
    pub fn new(start: Address, bytes: &'a [u8]) -> Self {
        let holes = Holes::default();
        Self {
            own: Part {
                start,
                bytes,
                holes,
            },
            interrupted: None,
            beyond: None,
        }
    }

    /// Adds the words outside of the slice that frame pointers lead to.
    #[must_use]
    pub const fn and_beyond(self, beyond: &'a BeyondCopy) -> Self {
        Self {
            beyond: Some(beyond),
            ..self
        }
    }

    /// Excludes bytes that were not in memory.
    #[must_use]
    pub const fn without(self, holes: Holes) -> Self {
        let Part { start, bytes, .. } = self.own;
        Self {
            own: Part {
                start,
                bytes,
                holes,
            },
            ..self
        }
    }

    /// Adds the bytes of the interrupted stack from `start` on. The slice is then that of a signal handler's alternate stack.
    #[must_use]
    pub const fn interrupting(self, start: Address, bytes: &'a [u8], holes: Holes) -> Self {
        Self {
            interrupted: Some(Part {
                start,
                bytes,
                holes,
            }),
            ..self
        }
    }

    /// Returns true if an address is on the alternate stack of a signal handler.
    pub(crate) fn is_of_handler(self, address: Address) -> bool {
        self.interrupted.is_some() && self.own.contains(address)
    }

    /// The words outside of the slice that are known. None if there are no such words.
    pub(crate) fn beyond(self) -> Option<&'a BeyondCopy> {
        self.beyond.filter(|beyond| !beyond.is_empty())
    }

    /// The bytes of the thread's current stack.
    pub(crate) const fn bytes(self) -> &'a [u8] {
        self.own.bytes
    }

    /// The first address above these bytes.
    pub(crate) fn end(self) -> Option<Address> {
        let end = self
            .own
            .start
            .get()
            .checked_add(self.own.bytes.len() as u64);
        end.map(Address::new)
    }

    /// Returns why there is no word at an address: it is outside of the copy, or was not in memory.
    pub(crate) fn missing(self, machine: Machine, address: Address) -> UnwindError {
        let address = Address::new(address.get() & ADDRESS_MASK);
        let last = address.wrapping_add(u64::from(machine.word()).saturating_sub(1));
        match self.contains(address) && self.contains(last) {
            true => UnwindError::Unreadable(address),
            false => UnwindError::NoStack,
        }
    }

    /// Returns true if the byte at an address is in the slice.
    #[inline]
    pub(crate) fn contains(self, address: Address) -> bool {
        self.own.contains(address) || self.interrupted.is_some_and(|part| part.contains(address))
    }

    /// Reads the pointer-sized word of a machine at an address, which may have a tag. None if the slice does not contain it and frame
    /// pointers do not lead to it.
    #[inline]
    pub fn word(self, machine: Machine, address: Address) -> Option<u64> {
        let address = Address::new(address.get() & ADDRESS_MASK);
        let size = usize::from(machine.word());
        let has_word = |bytes: &&[u8]| bytes.len() >= size;
        let own = self.own.from(address).filter(has_word);
        let interrupted = || self.interrupted?.from(address).filter(has_word);
        let Some(bytes) = own.or_else(interrupted) else {
            let beyond = self.beyond().filter(|_| machine.word() == 8);
            return beyond?.word(address);
        };
        match machine.word() {
            4 => bytes
                .first_chunk()
                .map(|word| u32::from_le_bytes(*word).into()),
            _ => bytes.first_chunk().map(|word| u64::from_le_bytes(*word)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_model::StackWord;

    #[test]
    fn words_beyond_the_slice_begin_where_it_ends() {
        let bytes = [1; 16];
        let mut beyond = BeyondCopy::default();
        let word = |at| StackWord {
            at: Address::new(at),
            word: at,
        };
        beyond.set_words(vec![word(0x1018), word(0x1010), word(0x100c)]);
        let slice = StackSlice::new(Address::new(0x1000), &bytes).and_beyond(&beyond);
        let found = [0x1008, 0x100c, 0x1010, 0x1018, 0x1020]
            .map(|at| slice.word(Machine::X86_64, Address::new(at)));
        let copied = Some(u64::from_le_bytes([1; 8]));
        let expected = [copied, Some(0x100c), Some(0x1010), Some(0x1018), None];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_was_not_in_memory_has_no_value() {
        let start = Address::new(0x1ff8);
        let bytes = [0; 0x1010];
        let slice = StackSlice::new(start, &bytes).without(Holes::of_bits(0b10));
        let word = |address| slice.word(Machine::X86_64, Address::new(address));
        assert_eq!(
            [0x1ff8, 0x2000, 0x2ff8, 0x3000].map(word),
            [Some(0), None, None, Some(0)]
        );
        assert_eq!(word(0x1ffc), None, "half of it");
        let missing = |address| slice.missing(Machine::X86_64, Address::new(address));
        let hole = Address::new(0x2000);
        assert_eq!(missing(0x2000), UnwindError::Unreadable(hole));
        assert_eq!(
            [0x1ff0, 0x3008].map(missing),
            [UnwindError::NoStack, UnwindError::NoStack]
        );
        // The words of it are addresses of the stack all the same.
        assert!(slice.contains(Address::new(0x2000)));
    }
}
