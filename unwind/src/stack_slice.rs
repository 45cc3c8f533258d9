//! Which bytes of a thread's stack does a sample have?

use varid_model::{ADDRESS_MASK, Address, Machine};

/// A copy of a part of a stack, and of a part of the one that a signal interrupted whose handler runs on an alternate stack.
#[derive(Debug, Clone, Copy)]
pub struct StackSlice<'a> {
    start: Address,
    bytes: &'a [u8],
    interrupted: Option<(Address, &'a [u8])>,
}

impl<'a> StackSlice<'a> {
    /// The bytes that lie at `start` and above.
    pub const fn new(start: Address, bytes: &'a [u8]) -> Self {
        Self {
            start,
            bytes,
            interrupted: None,
        }
    }

    /// The same of a handler's alternate stack, with the bytes of the interrupted stack that lie at `start` and above.
    #[must_use]
    pub const fn interrupting(self, start: Address, bytes: &'a [u8]) -> Self {
        Self {
            interrupted: Some((start, bytes)),
            ..self
        }
    }

    /// Whether an address is one of the alternate stack of a signal's handler.
    pub(crate) fn is_of_handler(self, address: Address) -> bool {
        self.interrupted.is_some() && from(self.start, self.bytes, address).is_some()
    }

    /// Its bytes.
    pub(crate) const fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The first address above it.
    pub(crate) fn end(self) -> Option<Address> {
        let end = self.start.get().checked_add(self.bytes.len() as u64);
        end.map(Address::new)
    }

    /// The bytes of the slice from an address on.
    #[inline]
    fn from(self, address: Address) -> Option<&'a [u8]> {
        from(self.start, self.bytes, address).or_else(|| {
            let (start, bytes) = self.interrupted?;
            from(start, bytes, address)
        })
    }

    /// Whether the byte at an address is in the slice.
    #[inline]
    pub(crate) fn contains(self, address: Address) -> bool {
        self.from(address).is_some_and(|bytes| !bytes.is_empty())
    }

    /// The pointer of a machine at an address, which may have a tag, if the slice holds it.
    #[inline]
    pub fn word(self, machine: Machine, address: Address) -> Option<u64> {
        let bytes = self.from(Address::new(address.get() & ADDRESS_MASK))?;
        match machine.word() {
            4 => bytes
                .first_chunk()
                .map(|word| u32::from_le_bytes(*word).into()),
            _ => bytes.first_chunk().map(|word| u64::from_le_bytes(*word)),
        }
    }
}

/// The bytes of a copy, whose first one is at `start`, from an address on.
#[inline]
fn from(start: Address, bytes: &[u8], address: Address) -> Option<&[u8]> {
    bytes.get(usize::try_from(address.offset_from(start)?).ok()?..)
}
