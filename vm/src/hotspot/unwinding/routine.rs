//! How much has a routine in assembly pushed, and what does a call call? The VM describes neither.

use super::aarch64;
use super::code::{FP, SP, instruction, instructions};
use super::state::{CodeAt, MAX_ROUTINE};
use std::ops::Range;
use varid_instructions::{Effect, Flow};
use varid_model::{Address, Machine};

/// The size of a call of an address in bytes.
const NEAR_CALL: usize = 5;
/// The sizes of loading an address into a register and calling it: `mov $address,%r10; call *%r10`, and the same with rax.
const FAR_CALLS: [usize; 2] = [13, 12];

impl CodeAt<'_> {
    /// Returns its addresses.
    pub(super) fn addresses(self) -> Range<Address> {
        self.start..self.start.wrapping_add(self.bytes.len() as u64)
    }

    /// Returns what the call in front of a return address calls. None if there is none, or if it is not an address.
    pub(in super::super) fn called(self, returns: Address) -> Option<Address> {
        if self.machine == Machine::Aarch64 {
            return aarch64::called(self, returns);
        }
        let end = usize::try_from(returns.offset_from(self.start)?).ok()?;
        let before = self.bytes.get(..end)?;
        let near = end.checked_sub(NEAR_CALL);
        let near = near.and_then(|at| instruction(before, at));
        if let Some(near) = near
            && let Flow::Call(target) = near.flow
            && usize::from(near.size) == NEAR_CALL
        {
            return Some(self.start.wrapping_add(target));
        }
        FAR_CALLS
            .iter()
            .find_map(|size| far_call(before.get(end.checked_sub(*size)?..)?))
    }

    /// Returns how far below its return address the stack pointer is, in bytes, when a routine of x86-64 that starts at `entry` has come to
    /// `at`. None if that is not known.
    pub(super) fn pushed(self, entry: Address, at: Address) -> Option<u64> {
        let offset = usize::try_from(entry.offset_from(self.start)?).ok()?;
        let size = at.offset_from(entry).filter(|size| *size < MAX_ROUTINE)?;
        let size = usize::try_from(size).ok()?;
        let code = self.bytes.get(offset..)?;
        let (mut depth, mut deepest) = (0_i64, 0_i64);
        // The depth that the frame pointer leads to.
        let mut linked = None;
        let mut end = 0_usize;
        let executed = instructions(code).take_while(|(at, _)| *at < size);
        for (at, instruction) in executed {
            if at != end {
                // Bytes that are no instruction.
                return None;
            }
            end = at.saturating_add(instruction.size.into());
            for effect in &instruction.effects {
                match *effect {
                    Effect::Move {
                        to: SP,
                        from: SP,
                        add,
                    } => depth = depth.saturating_sub(add),
                    Effect::Move {
                        to: SP,
                        from: FP,
                        add,
                    } => depth = i64::saturating_sub(linked?, add),
                    Effect::Move {
                        to: FP,
                        from: SP,
                        add,
                    } => linked = Some(depth.saturating_sub(add)),
                    ref effect if effect.changed() == Some(SP) => return None,
                    _ => {}
                }
            }
            deepest = deepest.max(depth);
            // What follows is reached by a jump from where all is pushed.
            if instruction.flow == Flow::Return {
                depth = deepest;
            }
        }
        (end == size).then(|| u64::try_from(depth).ok())?
    }

    /// Returns true if it makes a frame with a frame pointer at once.
    pub(in super::super) fn is_linked(self) -> bool {
        match self.machine {
            Machine::Aarch64 => aarch64::is_linked(self.bytes),
            _ => self.entry_size().is_some(),
        }
    }

    /// Returns the size of the first instructions, `push %rbp; mov %rsp,%rbp`, in bytes. None: they are others.
    fn entry_size(self) -> Option<usize> {
        let push = instruction(self.bytes, 0)?;
        let link = instruction(self.bytes, push.size.into())?;
        let is_linked = matches!(
            *link.effects,
            [Effect::Move {
                to: FP,
                from: SP,
                add: 0
            }]
        );
        let is_entry = push.pushed(SP) == Some(FP) && is_linked;
        is_entry.then(|| usize::from(push.size).saturating_add(link.size.into()))
    }

    /// Of such code: returns true if there is no frame before the instruction at `at`, the first one or one that returns.
    pub(super) fn is_before_frame(self, at: Address) -> bool {
        let Some(offset) = self.offset(at) else {
            return false;
        };
        if self.machine == Machine::Aarch64 {
            return aarch64::is_before_frame(self.bytes, offset);
        }
        let instruction = instruction(self.bytes, offset);
        offset == 0 || instruction.is_some_and(|instruction| instruction.flow == Flow::Return)
    }

    /// Of such code: returns true if only the caller's frame pointer is on the stack, behind it the return address, before the instruction
    /// at `at`.
    pub(super) fn is_in_entry(self, at: Address) -> bool {
        self.offset(at).is_some_and(|offset| match self.machine {
            Machine::Aarch64 => aarch64::is_in_entry(offset),
            _ => self.entry_size().is_some_and(|size| offset < size),
        })
    }

    /// Of code that jumps on to a method (AArch64): returns how many bytes it has made room for before the instruction at `at`.
    pub(super) fn pushed_in_adapter(self, at: Address) -> Option<u32> {
        aarch64::pushed_in_adapter(self.bytes, self.offset(at)?)
    }

    /// Returns the offset of an address in bytes. None in front of the code.
    fn offset(self, at: Address) -> Option<usize> {
        usize::try_from(at.offset_from(self.start)?).ok()
    }
}

/// Returns the address that code loads into a register and calls, if it does nothing else.
fn far_call(code: &[u8]) -> Option<Address> {
    let load = instruction(code, 0)?;
    let [Effect::Set { to, value }] = *load.effects else {
        return None;
    };
    let call = instruction(code, load.size.into())?;
    let end = usize::from(load.size).saturating_add(call.size.into());
    let is_call = call.flow == Flow::CallRegister(to) && end == code.len();
    is_call.then(|| Address::new(value))
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// `push %rbp; mov %rsp,%rbp`.
    const ENTER: [u8; 4] = [0x55, 0x48, 0x8b, 0xec];
    /// `ret`.
    const RET: u8 = 0xc3;
    const START: Address = Address::new(0x1000);

    fn code(bytes: &[u8]) -> CodeAt<'_> {
        CodeAt {
            machine: Machine::X86_64,
            start: START,
            bytes,
        }
    }

    #[test]
    fn a_call_says_what_it_calls() {
        let near = [0x90, 0xe8, 0x10, 0, 0, 0];
        assert_eq!(
            code(&near).called(Address::new(0x1006)),
            Some(Address::new(0x1016))
        );
        let mut far = vec![0x49, 0xba];
        far.extend(0x7f00_1234_5678_u64.to_le_bytes());
        far.extend([0x41, 0xff, 0xd2]);
        assert_eq!(
            code(&far).called(Address::new(0x100d)),
            Some(Address::new(0x7f00_1234_5678))
        );
        let indirect = [0x90; 20];
        assert_eq!(code(&indirect).called(Address::new(0x1010)), None);
        for returns in [0, 0x1000, 0x1003, 0x2000] {
            assert_eq!(code(&near[..3]).called(Address::new(returns)), None);
        }
    }

    #[test]
    fn a_stub_has_its_frame_between_its_first_instructions_and_its_last() {
        let stub = [&ENTER[..], &[0x90, 0xc9, RET]].concat();
        let stub = code(&stub);
        let at = |offset: u64| Address::new(0x1000 + offset);
        assert!(stub.is_linked() && !code(&[0x90]).is_linked());
        assert_eq!(
            [0, 1, 4, 5, 6].map(|offset| stub.is_before_frame(at(offset))),
            [true, false, false, false, true]
        );
        assert_eq!(
            [1, 3, 4].map(|offset| stub.is_in_entry(at(offset))),
            [true, true, false]
        );
    }

    #[test]
    fn what_is_pushed_is_counted() {
        let routine = [
            0x53, // push %rbx
            0x48, 0x83, 0xec, 0x10, // sub $16,%rsp
            0x90, // nop
            0x48, 0x83, 0xc4, 0x10, // add $16,%rsp
            0x5b, // pop %rbx
            0xc3, // ret
            0x90, // reached by a jump
        ];
        let of = |at: u64| code(&routine).pushed(START, Address::new(0x1000 + at));
        let found = [0, 1, 5, 6, 10, 11, 12].map(of);
        assert_eq!(found, [0, 8, 24, 24, 8, 0, 24].map(Some));
        // In the middle of an instruction, or outside.
        assert_eq!((of(2), of(13)), (None, Some(24)));
        assert_eq!(code(&routine).pushed(Address::new(0x1005), START), None);
        let unknown = [0x48, 0x89, 0xc4, 0x90]; // mov %rax,%rsp
        assert_eq!(code(&unknown).pushed(START, Address::new(0x1003)), None);
    }
}
