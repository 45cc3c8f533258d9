//! Decodes an epilogue: code that pops its frame and does nothing else before it returns.
//!
//! An adapter that calls one function and returns, such as CPython's trampolines, is `sub rsp, 8; call; add rsp, 8; ret`. The code after
//! the call shows the size of the frame.

use crate::fixed_frame::{FixedFrame, SavedRegister};
use varid_model::Machine;

/// DWARF numbers of the registers, by their numbers in instructions.
const DWARF: [u16; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];
const WORD: u32 = 8;

/// Returns the frame that the instructions at the beginning of `code` pop: an optional `add rsp, SIZE`, `pop`s, and a return.
pub(super) fn frame_left_by(code: &[u8]) -> Option<FixedFrame> {
    let (mut size, mut rest) = match *code {
        [0x48, 0x83, 0xc4, size, ref rest @ ..] => (u32::try_from(size.cast_signed()).ok()?, rest),
        [0x48, 0x81, 0xc4, a, b, c, d, ref rest @ ..] => {
            let size = i32::from_le_bytes([a, b, c, d]);
            (u32::try_from(size).ok()?, rest)
        }
        _ => (0, code),
    };
    let mut saved = Vec::new();
    loop {
        let (number, behind) = match *rest {
            [0xc3, ..] | [0xf3, 0xc3, ..] if size.is_multiple_of(WORD) => {
                let size = size.checked_add(WORD)?;
                return Some(FixedFrame::new(Machine::X86_64, size, &saved));
            }
            [0x41, opcode @ 0x58..=0x5f, ref behind @ ..] => (opcode & 7 | 8, behind),
            // Excludes the stack pointer.
            [opcode @ (0x58..=0x5b | 0x5d..=0x5f), ref behind @ ..] => (opcode & 7, behind),
            _ => return None,
        };
        saved.push(SavedRegister {
            dwarf: *DWARF.get(usize::from(number))?,
            offset: size,
        });
        size = size.checked_add(WORD)?;
        rest = behind;
    }
}
