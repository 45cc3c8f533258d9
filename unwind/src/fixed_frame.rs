//! Unwinds frames of generated code that have a known size.

use crate::dex_marker::BytecodeRule;
use crate::native_stack::NativeFrame;
use crate::rule::{Cfa, Rule, Saved};
use crate::stack_slice::StackSlice;
use crate::unwind_info::{CodeRule, UnwindInfo};
use std::rc::Rc;
use varid_model::{Address, Machine};

/// A register of the caller that a frame of generated code has saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavedRegister {
    /// The register's DWARF number.
    pub dwarf: u16,
    /// Its offset in the frame: bytes above the stack pointer.
    pub offset: u32,
}

/// A blob of generated code whose frames all have the same size, as a VM's compiler records it for each method that it compiles.
///
/// The return address is the last word of the frame, at `sp + size - word`; above it lies the caller's frame.
///
/// ```text
/// sp + size         the caller's frame
/// sp + size - word  return address
///                   registers of the caller, each at its offset
/// sp
/// ```
///
/// The frame must be complete. In the prologue and the epilogue it is not, and the rule would take other words for the return address and
/// the registers. The owner of the code must handle those addresses separately.
#[derive(Debug, Clone)]
pub struct FixedFrame {
    rule: Rc<Rule>,
}

impl FixedFrame {
    /// Frames of `size` bytes that save these registers of the caller. All other registers are unchanged.
    ///
    /// Registers that samples do not have are ignored.
    pub fn new(machine: Machine, size: u32, saved: &[SavedRegister]) -> Self {
        let last_word = Saved::At(i64::from(machine.word()).saturating_neg());
        Self::returning(machine, size, saved, last_word)
    }

    /// Frames of the same shape whose return address is in the machine's link register: in a prologue, in an epilogue, or in code that
    /// makes no calls. x86 has no such register.
    pub fn unlinked(machine: Machine, size: u32, saved: &[SavedRegister]) -> Self {
        let link = machine.link().and_then(|link| machine.index(link));
        Self::returning(machine, size, saved, Saved::In(link))
    }

    /// Returns the return address of a frame. None if it lies outside the known part of the stack.
    pub fn return_address(&self, frame: &NativeFrame, stack: StackSlice<'_>) -> Option<Address> {
        let cfa = self.rule.cfa(&frame.regs, stack)?;
        let caller = self.rule.caller(cfa, &frame.regs, stack).ok()?;
        caller.ip().map(Address::new)
    }

    fn returning(
        machine: Machine,
        size: u32,
        saved: &[SavedRegister],
        return_address: Saved,
    ) -> Self {
        let from_cfa = |offset: u32| i64::from(offset).saturating_sub(i64::from(size));
        let special = [machine.sp(), machine.ip(), machine.return_address()];
        let pushed = saved
            .iter()
            .filter(|register| !special.contains(&register.dwarf))
            .filter_map(|register| {
                let place = machine.index(register.dwarf)?;
                Some((place, from_cfa(register.offset)))
            });
        let rule = Rule {
            machine,
            cfa: Cfa::Register(machine.index(machine.sp()), i64::from(size)),
            pushed: pushed.collect(),
            others: Vec::new(),
            return_address,
            bytecode: BytecodeRule::None,
            is_short: false,
            is_signal_frame: false,
        };
        Self {
            rule: Rc::new(rule),
        }
    }
}

/// Every address has the same rule: the owner of the code knows where the code is.
impl UnwindInfo for FixedFrame {
    fn rule(&mut self, _: Address) -> CodeRule {
        CodeRule::Rule(Rc::clone(&self.rule))
    }
}
