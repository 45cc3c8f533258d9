//! The frame of an adapter: code that calls one function and returns right after the call.
//!
//! CPython's trampolines, for example, are `sub rsp, 8; call; add rsp, 8; ret`. The code after the call shows the size of the frame.

use varid_instructions::{Decoder, Effect, Flow, Register};
use varid_model::Machine;
use varid_unwind::{FixedFrame, SavedRegister};

/// The most bytes at a return address that are decoded.
pub(super) const EPILOGUE: u32 = 24;
const WORD: u32 = 8;

/// The decoder of adapters' code.
#[derive(Debug, Clone, Copy)]
pub(super) struct AdapterDecoder {
    machine: Machine,
    decoder: Decoder,
}

impl AdapterDecoder {
    /// Returns the decoder for code of a machine. None if its adapters do not show their frames: only those of x86-64 do.
    pub(super) fn of(machine: Machine) -> Option<Self> {
        let decoder = Decoder::of(machine).filter(|_| machine == Machine::X86_64)?;
        Some(Self { machine, decoder })
    }

    /// Returns the frame that the code at a return address pops, if its next instructions free the frame, restore registers and return, and
    /// do nothing else. `code`: the bytes from the return address on.
    pub(super) fn frame_left_by(self, code: &[u8]) -> Option<FixedFrame> {
        let sp = self.decoder.stack_pointer();
        let (mut size, mut end) = (0_u32, 0_usize);
        let mut saved: Vec<SavedRegister> = Vec::new();
        for (at, instruction) in self.decoder.sweep(code, 0) {
            if at != end {
                // Bytes that are no instruction.
                return None;
            }
            end = at.saturating_add(instruction.size.into());
            match (&*instruction.effects, instruction.flow) {
                ([], Flow::Return) if size.is_multiple_of(WORD) => {
                    let size = size.checked_add(WORD)?;
                    return Some(FixedFrame::new(self.machine, size, &saved));
                }
                ([Effect::Move { to, from, add }], Flow::Next)
                    if at == 0 && (*to, *from) == (sp, sp) =>
                {
                    size = u32::try_from(*add).ok()?;
                }
                (_, Flow::Next) => {
                    let Register(popped) = instruction.popped(sp).filter(|to| *to != sp)?;
                    saved.push(SavedRegister {
                        dwarf: popped.into(),
                        offset: size,
                    });
                    size = size.checked_add(WORD)?;
                }
                _ => return None,
            }
        }
        None
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use varid_unwind::UnwindInfo;

    fn left_by(code: &[u8]) -> Option<FixedFrame> {
        AdapterDecoder::of(Machine::X86_64)?.frame_left_by(code)
    }

    #[test]
    fn code_that_frees_its_frame_and_returns_says_how_large_that_is() {
        let register = |dwarf, offset| SavedRegister { dwarf, offset };
        for (code, size, saved) in [
            // add rsp, 8; ret, as CPython's trampolines.
            (&[0x48, 0x83, 0xc4, 8, 0xc3][..], 16, &[][..]),
            // add rsp, 0x110; pop rbx; pop r12; ret.
            (
                &[0x48, 0x81, 0xc4, 0x10, 1, 0, 0, 0x5b, 0x41, 0x5c, 0xc3],
                0x110 + 24,
                &[register(3, 0x110), register(12, 0x118)],
            ),
            // ret; rep ret.
            (&[0xc3], 8, &[]),
            (&[0xf3, 0xc3], 8, &[]),
        ] {
            let shown = |mut frame: FixedFrame| format!("{:?}", frame.rule(Default::default()));
            let expected = FixedFrame::new(Machine::X86_64, size, saved);
            assert_eq!(shown(left_by(code).unwrap()), shown(expected), "{code:x?}");
        }
    }

    #[test]
    fn other_code_says_nothing_of_its_frame() {
        for other in [
            &[][..],
            &[0x48, 0x83, 0xc4, 0xf8, 0xc3],       // add rsp, -8
            &[0x48, 0x83, 0xc4, 8, 0x90],          // it goes on
            &[0x5c, 0xc3],                         // pop rsp
            &[0x48, 0x83, 0xc4, 8, 0x5b],          // cut
            &[0x48, 0x83, 0xc4, 8, 0xc2, 16, 0],   // it frees arguments, too
            &[0x48, 0x83, 0xc4, 12, 0xc3],         // no multiple of a word
            &[0x48, 0x81, 0xc4, 0, 0, 0, 0x80, 1], // add rsp, -2^31
            &[0x06, 0xc3],                         // no instruction
        ] {
            assert!(left_by(other).is_none(), "{other:x?}");
        }
        assert!(AdapterDecoder::of(Machine::Aarch64).is_none());
    }
}
