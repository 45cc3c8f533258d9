//! Rows of unwind information: where a frame keeps its caller's registers, during a range of instructions.

use crate::dex_marker::BytecodeRule;
use crate::rule::{Cfa, Rule, Saved};
use std::ops::Range;
use varid_model::Address;

/// A row of a module's unwind information.
#[derive(Debug)]
pub struct UnwindRow {
    /// The address of its first instruction in the file.
    pub start: Address,
    /// The address after its last instruction.
    pub end: Address,
    rule: Rule,
}

/// Where the CFA is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CfaAt {
    /// DWARF number of the base register.
    pub register: u16,
    /// Byte offset from the register to a word that holds the base address. None: the register itself holds it.
    pub word: Option<i64>,
    /// Bytes from the base address to the CFA.
    pub bias: i64,
}

/// Where a register of the caller, or the return address, is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerRegister {
    /// Unchanged: in its own register, the return address in the link register.
    Unchanged,
    /// In memory, at this byte offset from the CFA.
    At(i64),
    /// Anywhere else, or lost.
    Elsewhere,
}

impl UnwindRow {
    pub(crate) fn new(addresses: Range<u64>, rule: Rule) -> Self {
        Self {
            start: Address::new(addresses.start),
            end: Address::new(addresses.end),
            rule,
        }
    }

    /// Returns the location of the CFA, if it is an offset from a register, or from a word that a register points to.
    pub fn cfa(&self) -> Option<CfaAt> {
        match &self.rule.cfa {
            Cfa::Register(place, bias) => Some(CfaAt {
                register: self.dwarf((*place)?)?,
                word: None,
                bias: *bias,
            }),
            Cfa::WordAt(place, word) => Some(CfaAt {
                register: self.dwarf((*place)?)?,
                word: Some(*word),
                bias: 0,
            }),
            Cfa::Expression(expression) => {
                let (register, word, bias) = expression.as_word_at_register(self.rule.machine)?;
                Some(CfaAt {
                    register,
                    word: Some(word),
                    bias,
                })
            }
        }
    }

    /// Returns the location of the caller's register with a DWARF number.
    pub fn caller_register(&self, register: u16) -> CallerRegister {
        let Some(place) = self.rule.machine.index(register) else {
            return CallerRegister::Elsewhere;
        };
        let is_it = |at: &usize| *at == place;
        let pushed = self.rule.pushed.iter().find(|(at, _)| is_it(at));
        let other = self.rule.others.iter().any(|(at, _)| is_it(at));
        match pushed {
            Some((_, offset)) => CallerRegister::At(*offset),
            None if other => CallerRegister::Elsewhere,
            None => CallerRegister::Unchanged,
        }
    }

    /// Returns the location of the return address.
    pub fn return_address(&self) -> CallerRegister {
        let machine = self.rule.machine;
        match &self.rule.return_address {
            Saved::At(offset) => CallerRegister::At(*offset),
            Saved::In(Some(place)) if machine.index(machine.return_address()) == Some(*place) => {
                CallerRegister::Unchanged
            }
            _ => CallerRegister::Elsewhere,
        }
    }

    /// Returns the DWARF number of the register that holds the bytecode pc of the frame, if the row names one.
    pub fn bytecode_register(&self) -> Option<u16> {
        match &self.rule.bytecode {
            BytecodeRule::Is(expression) => expression.as_marked_register(self.rule.machine),
            BytecodeRule::None | BytecodeRule::NotHere => None,
        }
    }

    fn dwarf(&self, place: usize) -> Option<u16> {
        self.rule.machine.regs().get(place).map(|reg| reg.dwarf)
    }
}
