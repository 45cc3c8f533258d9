//! Unwinds frames of generated code that a frame pointer leads to.

use crate::dex_marker::BytecodeRule;
use crate::rule::{Cfa, Rule, Saved};
use crate::unwind_info::{CodeRule, UnwindInfo};
use std::rc::Rc;
use varid_model::{Address, Machine};

/// Frames of generated code that have no fixed size, such as those of an interpreter. The frame pointer leads to the caller's frame pointer and
/// the return address, and to a word with the caller's stack pointer.
///
/// ```text
/// fp + word       return address
/// fp              the caller's frame pointer
/// fp + sender_sp  the caller's stack pointer
/// ```
///
/// The frame must be complete: see [`crate::FixedFrame`].
#[derive(Debug, Clone)]
pub struct LinkedFrame {
    rule: Rc<Rule>,
}

impl LinkedFrame {
    /// Frames with the caller's stack pointer in the word `sender_sp` bytes from the frame pointer. All other registers are unchanged.
    pub fn new(machine: Machine, sender_sp: i64) -> Self {
        let fp = machine.index(machine.fp());
        let callers_fp = fp.map(|place| (place, Saved::AtRegister(fp, 0)));
        let rule = Rule {
            machine,
            cfa: Cfa::WordAt(fp, sender_sp),
            pushed: Vec::new(),
            others: callers_fp.into_iter().collect(),
            return_address: Saved::AtRegister(fp, i64::from(machine.word())),
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
impl UnwindInfo for LinkedFrame {
    fn rule(&mut self, _: Address) -> CodeRule {
        CodeRule::Rule(Rc::clone(&self.rule))
    }
}
