//! Where does the sampled instruction of a precise event belong in its callchain?
//!
//! The interrupt of a precise event (PEBS, SPE) comes some instructions after the one that is sampled, and the callchain starts there. It
//! may have come in another function: one that the instruction has called, or one that it has returned to.

use crate::{Address, FrameAddress};

/// A return address lies no further behind a call: x86 has no longer instructions.
const MAX_INSTRUCTION: u64 = 15;

/// Where the sampled instruction is, seen from where the interrupt came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrecisePlace {
    /// In the same frame, or in a function that has jumped into the interrupted one, as stubs of dynamic linking and tail calls do: it
    /// takes the place of the chain's first address.
    SameFrame,
    /// In the caller's frame, about to call: it takes the place of the first two addresses.
    Caller,
    /// In a function that has returned to the chain's first address: it comes before that.
    Callee,
}

/// A jump leads to a function's first instruction, or behind the one that marks it as a target (endbr64): a return never does.
const ENTRY: u64 = 5;

impl PrecisePlace {
    /// Where the sampled instruction `ip` is. `leaf` and `callers`: the interrupt's callchain, of which there may be nothing; `function`: what
    /// two addresses have in common if they lie in one function; None: it is not known.
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
            // The call has not been reached yet, in a recursion.
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
                // Where the interrupt came is not the address behind a call.
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
            // The same function, and no interrupt that came later at all.
            (0x110, &[0x118, 0x205][..], &[0x110, 0x205][..]),
            (0x110, &[0x110, 0x205], &[0x110, 0x205]),
            // The function that was interrupted is called there.
            (0x200, &[0x101, 0x205, 0x305], &[0x200, 0x305]),
            (0x200, &[0x101, 0x205], &[0x200]),
            // It returned to the function that was interrupted.
            (0x1ff, &[0x225, 0x305], &[0x1ff, 0x226, 0x305]),
            (0x1ff, &[0x225], &[0x1ff, 0x226]),
            // It jumped there: the first instruction, and the one behind endbr64; and a function that is not known.
            (0x1ff, &[0x200, 0x305], &[0x1ff, 0x305]),
            (0x1ff, &[0x204, 0x305], &[0x1ff, 0x305]),
            (0x1ff, &[0x925, 0x305], &[0x1ff, 0x305]),
            (0x91f, &[0x225, 0x305], &[0x91f, 0x305]),
            // A recursion that has not been entered again, and one that has.
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
