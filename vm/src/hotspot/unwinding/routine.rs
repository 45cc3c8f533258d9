//! How much has a routine in assembly pushed, and what does a call call? The VM describes neither.

use super::aarch64;
use super::state::CodeAt;
#[cfg(target_arch = "x86_64")]
use super::state::MAX_ROUTINE;
#[cfg(target_arch = "x86_64")]
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};
use std::ops::Range;
use varid_model::{Address, Machine};

/// The longest call: `mov $address,%r10; call *%r10`.
const LONGEST_CALL: usize = 13;

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
        let near = before.last_chunk::<5>().filter(|bytes| bytes[0] == 0xe8);
        if let Some([_, distance @ ..]) = near {
            let distance = i32::from_le_bytes(*distance);
            return Some(returns.wrapping_add_signed(distance.into()));
        }
        let far = before.get(end.checked_sub(LONGEST_CALL)?..)?;
        match far {
            [0x49, 0xba, address @ .., 0x41, 0xff, 0xd2]
            | [_, 0x48, 0xb8, address @ .., 0xff, 0xd0] => {
                let address: [u8; 8] = address.try_into().ok()?;
                Some(Address::new(u64::from_le_bytes(address)))
            }
            _ => None,
        }
    }

    /// Returns how far below its return address the stack pointer is, in bytes, when a routine that starts at `entry` has come to `at`. None
    /// if that is not known.
    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn pushed(self, _entry: Address, _at: Address) -> Option<u64> {
        None
    }

    /// Returns how far below its return address the stack pointer is, in bytes, when a routine that starts at `entry` has come to `at`. None
    /// if that is not known.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn pushed(self, entry: Address, at: Address) -> Option<u64> {
        let offset = usize::try_from(entry.offset_from(self.start)?).ok()?;
        at.offset_from(entry).filter(|size| *size < MAX_ROUTINE)?;
        let code = self.bytes.get(offset..)?;
        let mut decoder = Decoder::with_ip(64, code, entry.get(), DecoderOptions::NONE);
        let (mut depth, mut deepest) = (0_i64, 0_i64);
        while decoder.ip() < at.get() {
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                return None;
            }
            depth = depth.saturating_sub(change(&instruction)?);
            deepest = deepest.max(depth);
            // What follows is reached by a jump from where all is pushed.
            if instruction.flow_control() == FlowControl::Return {
                depth = deepest;
            }
        }
        (decoder.ip() == at.get()).then(|| u64::try_from(depth).ok())?
    }

    /// Returns true if it makes a frame with a frame pointer at once.
    pub(in super::super) fn is_linked(self) -> bool {
        match self.machine {
            Machine::Aarch64 => aarch64::is_linked(self.bytes),
            _ => self.bytes.starts_with(&ENTER),
        }
    }

    /// Of such code: returns true if there is no frame before the instruction at `at`, the first one or one that returns.
    pub(super) fn is_before_frame(self, at: Address) -> bool {
        self.offset(at).is_some_and(|offset| match self.machine {
            Machine::Aarch64 => aarch64::is_before_frame(self.bytes, offset),
            _ => offset == 0 || self.bytes.get(offset) == Some(&RET),
        })
    }

    /// Of such code: returns true if only the caller's frame pointer is on the stack, behind it the return address, before the instruction
    /// at `at`.
    pub(super) fn is_in_entry(self, at: Address) -> bool {
        self.offset(at).is_some_and(|offset| match self.machine {
            Machine::Aarch64 => aarch64::is_in_entry(offset),
            _ => offset < ENTER.len(),
        })
    }

    /// Of code that jumps on to a method (AArch64): returns how many bytes it has made room for before the instruction at `at`.
    pub(super) fn pushed_in_adapter(self, at: Address) -> Option<u32> {
        aarch64::pushed_in_adapter(self.bytes, self.offset(at)?)
    }

    /// Returns the offset of an address in bytes. None in front of the code.
    pub(super) fn offset(self, at: Address) -> Option<usize> {
        usize::try_from(at.offset_from(self.start)?).ok()
    }
}

/// `ret`.
const RET: u8 = 0xc3;
/// `push %rbp; mov %rsp,%rbp`.
const ENTER: [u8; 4] = [0x55, 0x48, 0x8b, 0xec];

#[cfg(target_arch = "x86_64")]
/// Returns by how much an instruction changes the stack pointer. None if it sets it to something else.
fn change(instruction: &Instruction) -> Option<i64> {
    if matches!(
        instruction.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall | FlowControl::Return
    ) {
        return Some(0);
    }
    let sets_sp =
        instruction.op0_kind() == OpKind::Register && instruction.op0_register() == Register::RSP;
    match instruction.code() {
        Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 if sets_sp => {
            Some(instruction.immediate(1).cast_signed().wrapping_neg())
        }
        Code::Add_rm64_imm8 | Code::Add_rm64_imm32 if sets_sp => {
            Some(instruction.immediate(1).cast_signed())
        }
        Code::Cmp_rm64_r64 | Code::Cmp_r64_rm64 | Code::Test_rm64_r64 | Code::Push_r64 => {
            Some(i64::from(instruction.stack_pointer_increment()))
        }
        _ if sets_sp => None,
        _ => Some(i64::from(instruction.stack_pointer_increment())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[cfg(target_arch = "x86_64")]
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
