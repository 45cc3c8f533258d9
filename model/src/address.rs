//! Addresses, and the addresses of frames.

use std::fmt;

/// An address of a process's memory, or of the kernel's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Address(u64);

impl Address {
    /// Makes the address with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Adds bytes modulo 2^64, as a machine does.
    #[must_use]
    pub const fn wrapping_add(self, bytes: u64) -> Self {
        Self(self.0.wrapping_add(bytes))
    }

    /// Adds a signed distance modulo 2^64, as a machine does.
    #[must_use]
    pub const fn wrapping_add_signed(self, bytes: i64) -> Self {
        Self(self.0.wrapping_add_signed(bytes))
    }

    /// The distance in bytes from a lower address. None if `start` is higher than this address.
    #[must_use]
    pub const fn offset_from(self, start: Self) -> Option<u64> {
        self.0.checked_sub(start.0)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::LowerHex for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The address of a frame: an instruction or a return address.
///
/// A callchain in perf.data has the instruction itself for the leaf and return addresses for all other frames. Readers subtract one from
/// return addresses before they look up a function or a line: a return address may be after the last instruction of a function that never
/// returns. [`FrameAddress::lookup`] does this subtraction.
///
/// ```
/// use varid_model::{Address, FrameAddress};
///
/// let leaf = FrameAddress::in_callchain(0, Address::new(0x1000));
/// let caller = FrameAddress::in_callchain(1, Address::new(0x2005));
/// assert_eq!(leaf.lookup(), Address::new(0x1000));
/// assert_eq!(caller.lookup(), Address::new(0x2004));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameAddress {
    /// The instruction that is executed: that of a sample, or one that a signal interrupted.
    Instruction(Address),
    /// The return address of a call: the address after the call instruction.
    Return(Address),
}

impl FrameAddress {
    /// Makes the frame at this depth of a callchain in perf.data. The leaf is at depth 0.
    #[must_use]
    pub const fn in_callchain(depth: usize, recorded: Address) -> Self {
        match depth {
            0 => Self::Instruction(recorded),
            _ => Self::Return(recorded),
        }
    }

    /// Makes the frame of a caller from an address within its call instruction, if the return address is not known.
    #[must_use]
    pub const fn calling_at(call: Address) -> Self {
        Self::Return(Address(call.0.saturating_add(1)))
    }

    /// The address for looking up the function and the line.
    #[must_use]
    pub const fn lookup(self) -> Address {
        match self {
            Self::Instruction(address) => address,
            Self::Return(address) => Address(address.0.saturating_sub(1)),
        }
    }

    /// The address in a callchain of perf.data.
    #[must_use]
    pub const fn recorded(self) -> Address {
        match self {
            Self::Instruction(address) | Self::Return(address) => address,
        }
    }

    /// Returns true if it is the instruction itself.
    #[must_use]
    pub const fn is_instruction(self) -> bool {
        matches!(self, Self::Instruction(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_looked_up_at_its_call() {
        let call = Address::new(0x1000);
        let caller = FrameAddress::calling_at(call);
        assert_eq!(caller.lookup(), call);
        assert_eq!(caller.recorded(), Address::new(0x1001));
        assert_eq!(FrameAddress::in_callchain(3, caller.recorded()), caller);
        let leaf = FrameAddress::in_callchain(0, call);
        assert!(leaf.is_instruction() && !caller.is_instruction());
        assert_eq!((leaf.lookup(), leaf.recorded()), (call, call));
    }
}
