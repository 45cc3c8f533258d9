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

    /// Whether the code at `pc` is of a file in whose code threads begin without unwind information: their outermost functions have none,
    /// either.
    fn begins_threads(&mut self, pc: Address) -> bool {
        let _ = pc;
        false
    }

    /// Whether all code without rules of the file that has `pc` keeps frame pointers, across stacks, too: each of them leads to the caller's
    /// frame, wherever that is.
    fn keeps_frame_pointers(&mut self, pc: Address) -> bool {
        let _ = pc;
        false
    }

    /// The first address of the function that `pc` is in, if a symbol tells. It is asked for AArch64 code without a rule,
    /// to tell whether the function itself has overwritten the link register.
    fn function_start(&mut self, pc: Address) -> Option<Address> {
        let _ = pc;
        None
    }
}
