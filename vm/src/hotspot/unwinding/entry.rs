//! How far is the frame of a method made that the interpreter is entering?
//!
//! The interpreter is entered with the return address at the stack pointer, the method in rbx and the caller's stack pointer in r13. It pops the
//! return address into rax, pushes zeros for local variables, pushes the address again, and makes the fixed part of the frame.

/// What of an interpreter frame there is while its method is being entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum EntryState {
    /// The return address is at the stack pointer.
    Called,
    /// The return address is in rax.
    Popped,
    /// The caller's frame pointer is at the stack pointer, and still in its register; the return address is behind it.
    Saved,
    /// The frame pointer leads to the caller. The words below it may be missing.
    Linked,
}

/// `pop %rax; lea -8(%rsp,%rcx,8),%r14`.
const POP: [u8; 6] = [0x58, 0x4c, 0x8d, 0x74, 0xcc, 0xf8];
/// `push %rax; push %rbp; mov %rsp,%rbp`.
const ENTER: [u8; 5] = [0x50, 0x55, 0x48, 0x8b, 0xec];
/// Of its instructions the second and the third.
const SAVES: usize = 1;
const LINKS: usize = 2;

impl EntryState {
    /// Returns what there is before the instruction at `at` is executed. `code`: the entry's instructions.
    pub(in super::super) fn at(code: &[u8], at: usize) -> Self {
        let find = |bytes: &[u8]| code.windows(bytes.len()).position(|window| window == bytes);
        let is_popped = find(&POP).is_some_and(|pop| at > pop);
        let entered = find(&ENTER).and_then(|enter| at.checked_sub(enter));
        match entered {
            Some(SAVES) => Self::Called,
            Some(LINKS) => Self::Saved,
            Some(offset) if offset >= ENTER.len() => Self::Linked,
            _ if is_popped => Self::Popped,
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
            &ENTER,
            &[0x41, 0x55], // push %r13
        ]
        .concat();
        let states = [
            (0, EntryState::Called),
            (1, EntryState::Called),
            (2, EntryState::Popped),
            (7, EntryState::Popped),
            (8, EntryState::Called),
            (9, EntryState::Saved),
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
