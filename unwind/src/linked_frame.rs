//! Unwinds frames of generated code that a frame pointer leads to.

use crate::dex_marker::BytecodeRule;
use crate::rule::{Cfa, Rule, Saved};
use crate::unwind_info::{CodeRule, UnwindInfo};
use std::rc::Rc;
use varid_model::{Address, Machine};

/// Where the caller's stack pointer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerSp {
    /// It was behind the return address when the call was made.
    BehindReturn,
    /// In a word so many bytes from the frame pointer: the code has moved it, as an interpreter does that is called by compiled code.
    InWord(i64),
    /// In a register, by its DWARF number.
    InRegister(u16),
}

/// Where the return address is of a frame that is not made. Registers have DWARF numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReturnAt {
    /// In a register.
    Register(u16),
    /// So many bytes above the stack pointer.
    Stack(i64),
}

/// Frames of generated code that have no fixed size, such as those of an interpreter. The frame pointer leads to the caller's frame pointer, and
/// to the return address behind it.
///
/// The frame must be complete: see [`crate::FixedFrame`].
#[derive(Debug, Clone)]
pub struct LinkedFrame {
    rule: Rc<Rule>,
}

impl LinkedFrame {
    /// Frames with the caller's stack pointer there. All other registers are unchanged.
    pub fn new(machine: Machine, caller_sp: CallerSp) -> Self {
        let fp = machine.index(machine.fp());
        let word = i64::from(machine.word());
        let callers_fp = fp.map(|place| (place, Saved::AtRegister(fp, 0)));
        let rule = Rule {
            machine,
            cfa: match caller_sp {
                CallerSp::BehindReturn => Cfa::Register(fp, word.saturating_mul(2)),
                CallerSp::InWord(offset) => Cfa::WordAt(fp, offset),
                CallerSp::InRegister(register) => Cfa::Register(machine.index(register), 0),
            },
            pushed: Vec::new(),
            others: callers_fp.into_iter().collect(),
            return_address: Saved::AtRegister(fp, word),
            bytecode: BytecodeRule::None,
            is_short: false,
            is_signal_frame: false,
        };
        Self {
            rule: Rc::new(rule),
        }
    }

    /// The frame of code that has made none yet: the caller's frame pointer is in its register, and the caller's stack pointer in another one, by
    /// its DWARF number.
    pub fn not_made(machine: Machine, caller_sp: u16, returns: ReturnAt) -> Self {
        let rule = Rule {
            machine,
            cfa: Cfa::Register(machine.index(caller_sp), 0),
            pushed: Vec::new(),
            others: Vec::new(),
            return_address: match returns {
                ReturnAt::Register(register) => Saved::In(machine.index(register)),
                ReturnAt::Stack(offset) => Saved::AtRegister(machine.index(machine.sp()), offset),
            },
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
