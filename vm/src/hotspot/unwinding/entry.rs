//! How far is the frame of a method made that the interpreter is entering?
//!
//! The interpreter is entered with the return address at the stack pointer, the method in rbx and the caller's stack pointer in r13. It pops the
//! return address, makes room for local variables, pushes the address again, and makes the fixed part of the frame.

/// What of an interpreter frame there is while its method is being entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum EntryState {
    /// The return address is at the stack pointer.
    Called,
    /// The return address is in a register that samples do not have.
    Popped,
    /// The frame pointer leads to the caller. The words below it may be missing.
    Linked,
}

/// `pop %rax; lea -8(%rsp,%rcx,8),%r14`.
const POP: [u8; 6] = [0x58, 0x4c, 0x8d, 0x74, 0xcc, 0xf8];
/// `push %rbp; mov %rsp,%rbp`.
const ENTER: [u8; 4] = [0x55, 0x48, 0x8b, 0xec];

impl EntryState {
    /// Returns what there is before the instruction at `at` is executed. `code`: the entry's instructions.
    pub(in super::super) fn at(code: &[u8], at: usize) -> Self {
        let find = |bytes: &[u8]| code.windows(bytes.len()).position(|window| window == bytes);
        let (pop, enter) = (find(&POP), find(&ENTER));
        match enter {
            Some(enter) if at >= enter.saturating_add(ENTER.len()) => Self::Linked,
            _ if pop.is_some_and(|pop| at > pop) => Self::Popped,
            _ => Self::Called,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_return_address_is_popped_and_pushed_again() {
        let code = [
            &[0x90][..],
            &POP,
            &[0x50], // push %rax
            &ENTER,
            &[0x41, 0x55], // push %r13
        ]
        .concat();
        let states = [
            (0, EntryState::Called),
            (1, EntryState::Called),
            (2, EntryState::Popped),
            (7, EntryState::Popped),
            (8, EntryState::Popped),
            (9, EntryState::Popped),
            (12, EntryState::Linked),
            (14, EntryState::Linked),
        ];
        for (at, expected) in states {
            assert_eq!(EntryState::at(&code, at), expected, "{at}");
        }
        // Intrinsic methods make no frame.
        assert_eq!(EntryState::at(&[0x90; 16], 8), EntryState::Called);
        assert_eq!(EntryState::at(&[], 8), EntryState::Called);
    }
}
