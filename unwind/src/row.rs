//! Where is what a frame keeps of its caller, while it executes some instructions of its function?

use crate::dex_marker::BytecodeRule;
use crate::rule::{Cfa, Rule, Saved};
use std::ops::Range;
use varid_model::Address;

/// A row of a module's unwind information.
#[derive(Debug)]
pub struct UnwindRow {
    /// The address of its first instruction, as the file has it.
    pub start: Address,
    /// The address behind its last instruction.
    pub end: Address,
    rule: Rule,
}

/// Where the CFA is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CfaAt {
    /// DWARF number of the register that leads to it.
    pub register: u16,
    /// Bytes from the register to a word that leads to the CFA; None: the register itself does.
    pub word: Option<i64>,
    /// Bytes from there to the CFA.
    pub bias: i64,
}

/// Where a register of the caller, or the return address, is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerRegister {
    /// Where it was: in its register, the return address in the link register.
    Unchanged,
    /// In memory, so many bytes from the CFA.
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

    /// Where the CFA is, if a register leads there, or a word to which a register leads.
    pub fn cfa(&self) -> Option<CfaAt> {
        match &self.rule.cfa {
            Cfa::Register(place, bias) => Some(CfaAt {
                register: self.dwarf((*place)?)?,
                word: None,
                bias: *bias,
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

    /// Where the caller's register of a DWARF number is.
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

    /// Where the return address is.
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

    /// DWARF number of the register that holds the pc of the bytecode that the frame executes, if the row says so.
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
