//! Puts the sampled instruction of a precise event into its callchain.
//!
//! The interrupt of a precise event (PEBS, SPE) occurs some instructions after the sampled one, and the callchain starts at the interrupt.
//! That may be in another function: one that the instruction has called, or one that it has returned to.

use crate::{Address, FrameAddress};

/// The length of the longest x86 instruction in bytes. A return address is at most this far after the start of its call.
const MAX_INSTRUCTION: u64 = 15;

/// The position of the sampled instruction relative to the interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrecisePlace {
    /// In the same frame, or in a function that jumped into the interrupted one, as PLT stubs and tail calls do. The instruction replaces
    /// the first address of the chain.
    SameFrame,
    /// In the caller's frame, at the call. The instruction replaces the first two addresses.
    Caller,
    /// In a function that returned to the first address of the chain. The instruction precedes that address.
    Callee,
}

/// A jump leads to the first instruction of a function, or to the one after its endbr64, which a return never does. This is the size of
/// endbr64 plus one byte.
const ENTRY: u64 = 5;

impl PrecisePlace {
    /// Finds the position of the sampled instruction `ip`. `leaf` and `callers` are the interrupt's callchain, which may be empty.
    /// `function` returns the same value for two addresses in the same function, or None if the function is not known.
    pub fn of<F: PartialEq>(
        ip: Address,
        leaf: Option<Address>,
        callers: &[Address],
        mut function: impl FnMut(Address) -> Option<F>,
    ) -> Self {
        let Some(leaf) = leaf else {
            return Self::Callee;
        };
        let is_call = callers.first().is_some_and(|returns| {
            let behind = returns.offset_from(ip);
            let is_near = behind.is_some_and(|bytes| (1..=MAX_INSTRUCTION).contains(&bytes));
            // In a recursion, the call may not have been reached yet.
            is_near && !(ip..*returns).contains(&leaf)
        });
        let mut has_returned = || {
            let sampled = function(ip)?;
            let interrupted = function(leaf)?;
            let before = function(Address::new(leaf.get().saturating_sub(ENTRY)));
            Some(sampled != interrupted && before.as_ref() == Some(&interrupted))
        };
        if is_call {
            Self::Caller
        } else if ip != leaf && has_returned() == Some(true) {
            Self::Callee
        } else {
            Self::SameFrame
        }
    }

    /// Puts the sampled instruction into the interrupt's callchain.
    pub fn lead(self, ip: Address, chain: &mut Vec<Address>) {
        match self {
            Self::SameFrame => {}
            Self::Caller => {
                chain.remove(0);
            }
            Self::Callee => {
                // The interrupted address is an instruction. As a caller, it must have the form of a return address.
                if let Some(leaf) = chain.first_mut() {
                    *leaf = FrameAddress::calling_at(*leaf).recorded();
                }
                chain.insert(0, ip);
                return;
            }
        }
        if let Some(leaf) = chain.first_mut() {
            *leaf = ip;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sampled_instruction_stands_in_its_own_function() {
        // Functions of 0x100 bytes.
        let function = |address: Address| (address.get() < 0x900).then_some(address.get() >> 8);
        for (ip, chain, expected) in [
            // The same function, without and with skid.
            (0x110, &[0x118, 0x205][..], &[0x110, 0x205][..]),
            (0x110, &[0x110, 0x205], &[0x110, 0x205]),
            // The call to the interrupted function.
            (0x200, &[0x101, 0x205, 0x305], &[0x200, 0x305]),
            (0x200, &[0x101, 0x205], &[0x200]),
            // The last instruction of a function that returned to the interrupted one.
            (0x1ff, &[0x225, 0x305], &[0x1ff, 0x226, 0x305]),
            (0x1ff, &[0x225], &[0x1ff, 0x226]),
            // A jump to the interrupted function: to its first instruction, and to the one after endbr64. Then functions that are not
            // known.
            (0x1ff, &[0x200, 0x305], &[0x1ff, 0x305]),
            (0x1ff, &[0x204, 0x305], &[0x1ff, 0x305]),
            (0x1ff, &[0x925, 0x305], &[0x1ff, 0x305]),
            (0x91f, &[0x225, 0x305], &[0x91f, 0x305]),
            // A recursion before and after the next call.
            (0x110, &[0x112, 0x117, 0x117], &[0x110, 0x117, 0x117]),
            (0x112, &[0x100, 0x117, 0x117], &[0x112, 0x117]),
            (0x110, &[], &[0x110]),
        ] {
            let addresses = |numbers: &[u64]| numbers.iter().copied().map(Address::new).collect();
            let mut chain: Vec<Address> = addresses(chain);
            let ip = Address::new(ip);
            let (leaf, callers) = (chain.first().copied(), chain.get(1..).unwrap_or_default());
            PrecisePlace::of(ip, leaf, callers, function).lead(ip, &mut chain);
            assert_eq!(chain, addresses(expected), "{ip:#x}");
        }
    }
}
