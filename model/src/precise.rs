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
    /// In the same frame: it takes the place of the chain's first address.
    SameFrame,
    /// In the caller's frame, about to call: it takes the place of the first two addresses.
    Caller,
    /// In a function that has returned to the chain's first address: it comes before that.
    Callee,
}

impl PrecisePlace {
    /// Where the sampled instruction `ip` is. `chain`: the interrupt's, leaf first; `is_same_function`: whether two instructions lie in one
    /// function, as far as it is known.
    pub fn of(
        ip: Address,
        chain: &[Address],
        is_same_function: impl FnOnce(Address, Address) -> bool,
    ) -> Self {
        let [leaf, callers @ ..] = chain else {
            return Self::Callee;
        };
        let is_call = callers.first().is_some_and(|returns| {
            let behind = returns.offset_from(ip);
            let is_near = behind.is_some_and(|bytes| (1..=MAX_INSTRUCTION).contains(&bytes));
            // The call has not been reached yet, in a recursion.
            is_near && !(ip..*returns).contains(leaf)
        });
        if is_call {
            Self::Caller
        } else if ip == *leaf || is_same_function(ip, *leaf) {
            Self::SameFrame
        } else {
            Self::Callee
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
        let same = |a: Address, b: Address| a.get() >> 8 == b.get() >> 8;
        for (ip, chain, expected) in [
            // The same function, and no interrupt that came later at all.
            (0x110, &[0x118, 0x205][..], &[0x110, 0x205][..]),
            (0x110, &[0x110, 0x205], &[0x110, 0x205]),
            // The function that was interrupted is called there.
            (0x200, &[0x101, 0x205, 0x305], &[0x200, 0x305]),
            (0x200, &[0x101, 0x205], &[0x200]),
            // It returned to the function that was interrupted.
            (0x1ff, &[0x205, 0x305], &[0x1ff, 0x206, 0x305]),
            (0x1ff, &[0x205], &[0x1ff, 0x206]),
            // A recursion that has not been entered again, and one that has.
            (0x110, &[0x112, 0x117, 0x117], &[0x110, 0x117, 0x117]),
            (0x112, &[0x100, 0x117, 0x117], &[0x112, 0x117]),
            (0x110, &[], &[0x110]),
        ] {
            let addresses = |numbers: &[u64]| numbers.iter().copied().map(Address::new).collect();
            let mut chain: Vec<Address> = addresses(chain);
            let ip = Address::new(ip);
            PrecisePlace::of(ip, &chain, same).lead(ip, &mut chain);
            assert_eq!(chain, addresses(expected), "{ip:#x}");
        }
    }
}
