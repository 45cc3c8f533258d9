//! Finds where on its stack a function has the argument that it passes to another function.

use super::trace::{Code, Event, Trace};
use std::cell::Cell;
use std::ops::Range;
use varid_instructions::{Decoder, Flow};
use varid_model::Machine;

/// The most instructions that are decoded in one function.
const MAX_INSTRUCTIONS: u32 = 1 << 13;

/// The code of one function.
struct Function<'a> {
    bytes: &'a [u8],
    start: u64,
    left: Cell<u32>,
}

impl Code for Function<'_> {
    fn code(&self, address: u64) -> &[u8] {
        let at = address.checked_sub(self.start);
        let at = at.and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.bytes.get(at..)).unwrap_or_default()
    }

    fn constant(&self, _address: u64, _size: u8) -> Option<u64> {
        None
    }

    fn count(&self) -> bool {
        let left = self.left.get().checked_sub(1);
        left.inspect(|left| self.left.set(*left)).is_some()
    }
}

/// Returns the first argument of the call with the return address `returns`, if it is an address in the calling function's frame: its
/// offset in bytes from the stack pointer at that function's first instruction. None if it is something else, or the code is not
/// understood.
///
/// `bytes` is the whole function, which begins at `start`.
pub(crate) fn first_argument_on_stack(
    machine: Machine,
    bytes: &[u8],
    start: u64,
    returns: u64,
) -> Option<i64> {
    let decoder = Decoder::of(machine)?;
    let code = Function {
        bytes,
        start,
        left: Cell::new(MAX_INSTRUCTIONS),
    };
    let end = start.checked_add(u64::try_from(bytes.len()).ok()?)?;
    let function: Range<u64> = start..end;
    let trace = Trace::of(&code, decoder, function);
    trace.events.iter().find_map(|(at, event)| {
        let Event::Call { arguments, .. } = event else {
            return None;
        };
        let call = decoder.decode(code.code(*at), *at)?;
        let next = at.checked_add(call.size.into())?;
        (matches!(call.flow, Flow::Call(_)) && next == returns).then_some(())?;
        trace.on_stack(*arguments.first()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 0x4000;

    /// `Execute` of Debian's ART 14 in short: a frame, a branch behind which the context is filled in, the call.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_context_of_the_switch_interpreter_lies_in_its_callers_frame() {
        let code = [
            0x55, // push rbp
            0x48, 0x89, 0xe5, // mov rbp, rsp
            0x41, 0x57, // push r15
            0x53, // push rbx
            0x48, 0x81, 0xec, 0x88, 0, 0, 0, // sub rsp, 0x88
            0x48, 0x89, 0xd3, // mov rbx, rdx
            0x84, 0xc0, // test al, al
            0x74, 0x04, // je +4
            0x48, 0x89, 0x5d, 0xa8, // mov [rbp-0x58], rbx
            0x48, 0x8d, 0x7d, 0x98, // lea rdi, [rbp-0x68]
            0xe8, 0, 1, 0, 0, // call
            0x4c, 0x89, 0xff, // mov rdi, r15
            0xe8, 0, 2, 0, 0,    // call
            0xc3, // ret
        ];
        let of = |returns| first_argument_on_stack(Machine::X86_64, &code, START, returns);
        let first = START + 34;
        // rbp is one word below.
        assert_eq!(of(first), Some(-0x68 - 8));
        assert_eq!(
            of(first + 8),
            None,
            "a register's, which is no address there"
        );
        assert_eq!(of(first - 1), None);
        assert_eq!(
            first_argument_on_stack(Machine::X86_64, &[], START, first),
            None
        );
    }

    #[test]
    fn the_same_on_arm64() {
        let words: [u32; 5] = [
            0xa9bb_7bfd, // stp x29, x30, [sp, #-80]!
            0x9100_03fd, // mov x29, sp
            0x9100_83a0, // add x0, x29, #32
            0x9400_0040, // bl
            0xd65f_03c0, // ret
        ];
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let found = first_argument_on_stack(Machine::Aarch64, &code, START, START + 16);
        assert_eq!(found, Some(32 - 80));
    }
}
