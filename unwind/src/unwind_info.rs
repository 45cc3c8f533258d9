//! What is known about the code at an address.

use crate::native_stack::NativeFrame;
use crate::rule::Rule;
use std::rc::Rc;
use varid_model::Address;

/// How the frame of the code at an address is unwound.
#[derive(Debug, Clone)]
pub enum CodeRule {
    /// By this rule.
    Rule(Rc<Rule>),
    /// There is code without a rule. The machine's conventions may lead to the caller.
    Unknown,
    /// There is code whose rules have not been read, yet or in time: its file is late, or it is gone. Nothing is guessed.
    NotRead,
    /// There is no code.
    NoCode,
    /// There is code that a frame returns to whose callers are not on the stack: it puts them back.
    Elsewhere,
}

/// Gives the unwind rules of code: of a module, of a generated blob, or of a whole process.
///
/// An implementation for a process finds the mapping of the address and asks its implementation. It is called for each frame, so it caches
/// the rules that it computes.
pub trait UnwindInfo {
    /// Returns the rule of the frame that executes the instruction at `pc`. For a caller, `pc` is an address in the call instruction.
    fn rule(&mut self, pc: Address) -> CodeRule;

    /// Returns the rule of a frame, where it depends on more than the instruction.
    fn frame_rule(&mut self, frame: &NativeFrame) -> CodeRule {
        self.rule(frame.lookup())
    }

    /// Returns true if there is code at `pc`. Potential return addresses are checked with it.
    fn is_code(&mut self, pc: Address) -> bool {
        !matches!(self.rule(pc), CodeRule::NoCode)
    }

    /// Returns true if `pc` is in a file whose code starts threads without unwind information. The outermost functions of such threads have
    /// none, either.
    fn begins_threads(&mut self, pc: Address) -> bool {
        let _ = pc;
        false
    }

    /// Returns true if all code without rules in the file of `pc` keeps frame pointers, also across stacks: each frame pointer leads to the
    /// caller's frame, on whichever stack it is.
    fn keeps_frame_pointers(&mut self, pc: Address) -> bool {
        let _ = pc;
        false
    }

    /// Returns the first address of the function that contains `pc`, if a symbol gives it. It is used for AArch64 code without a rule, to
    /// detect that the function itself has overwritten the link register.
    fn function_start(&mut self, pc: Address) -> Option<Address> {
        let _ = pc;
        None
    }
}
