//! What is known of the code at an address?

use crate::native_stack::NativeFrame;
use crate::rule::Rule;
use std::rc::Rc;
use varid_model::Address;

/// How the frame of the code at an address is left.
#[derive(Debug, Clone)]
pub enum CodeRule {
    /// By this rule.
    Rule(Rc<Rule>),
    /// There is code, and no rule: the machine's conventions may lead to the caller.
    Unknown,
    /// There is no code.
    NoCode,
}

impl CodeRule {
    /// The same of a caller's frame in a file's code. Where that has no rule and its frame pointer is zero, nobody has called it: so the ABIs
    /// mark the outermost frame, and so do musl, whose code has no unwind information, in the code that begins programs and threads, and Go in
    /// that which begins goroutines.
    #[must_use]
    pub fn of_file(self, frame: &NativeFrame) -> Self {
        let is_marked = !frame.address.is_instruction() && frame.regs.fp() == Some(0);
        match self {
            Self::Unknown if is_marked => {
                Self::Rule(Rc::new(Rule::of_outermost(frame.regs.machine())))
            }
            known => known,
        }
    }
}

/// Tells how frames of code are left: that of a module, of a generated blob, or of a whole process.
///
/// An implementation for a process finds what is mapped at the address and asks its implementation. It is asked for the
/// rule of each frame, so it keeps the rules that it computes.
pub trait UnwindInfo {
    /// The rule of the frame that executes the instruction at `pc`; of a caller, an address in the call instruction.
    fn rule(&mut self, pc: Address) -> CodeRule;

    /// The rule of a frame, where it follows from more than its instruction.
    fn frame_rule(&mut self, frame: &NativeFrame) -> CodeRule {
        self.rule(frame.lookup())
    }

    /// Whether there is code at `pc`. Words that may be return addresses are checked by it.
    fn is_code(&mut self, pc: Address) -> bool {
        !matches!(self.rule(pc), CodeRule::NoCode)
    }

    /// The first address of the function that `pc` is in, if a symbol tells. It is asked for AArch64 code without a rule,
    /// to tell whether the function itself has overwritten the link register.
    fn function_start(&mut self, pc: Address) -> Option<Address> {
        let _ = pc;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_model::{FrameAddress, Machine, Regs};

    #[test]
    fn a_caller_whose_frame_pointer_is_zero_is_the_outermost_if_it_has_no_rule() {
        for machine in [Machine::X86_64, Machine::Aarch64] {
            let ends = |address: fn(Address) -> FrameAddress, fp, rule: CodeRule| {
                let mut regs = Regs::unknown(machine);
                regs.set_frame(0x1000, 0x7000, fp);
                let frame = NativeFrame {
                    address: address(Address::new(0x1000)),
                    sp: Address::new(0x7000),
                    regs,
                };
                matches!(rule.of_file(&frame), CodeRule::Rule(rule) if rule.is_outermost())
            };
            assert!(ends(FrameAddress::Return, 0, CodeRule::Unknown));
            assert!(!ends(FrameAddress::Return, 0x7010, CodeRule::Unknown));
            // What it has called, and what it has kept of its caller's, is not known yet.
            assert!(!ends(FrameAddress::Instruction, 0, CodeRule::Unknown));
            assert!(!ends(FrameAddress::Return, 0, CodeRule::NoCode));
        }
    }
}
