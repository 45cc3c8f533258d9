//! Unwind rules: where a frame's caller has its registers.

use crate::dex_marker::{BytecodePc, BytecodeRule};
use crate::error::UnwindError;
use crate::expression::Expression;
use crate::stack_slice::StackSlice;
use varid_model::{Address, Machine, Regs};

/// Where a register of the caller is. Registers are identified by their index in a record; None: records do not have the register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Saved {
    /// Lost. For the return address: this is the outermost frame.
    Undefined,
    /// In memory at CFA + offset.
    At(i64),
    /// Its value is CFA + offset.
    Is(i64),
    /// In another register.
    In(Option<usize>),
    /// In memory at a register's value + offset.
    AtRegister(Option<usize>, i64),
    /// In memory at the address that an expression computes.
    AtExpression(Expression),
    /// Its value is what an expression computes.
    IsExpression(Expression),
}

/// Where the canonical frame address is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cfa {
    Register(Option<usize>, i64),
    /// The word at a register's value + offset.
    WordAt(Option<usize>, i64),
    Expression(Expression),
}

/// How to unwind a frame at one instruction address. Registers without a rule are unchanged.
///
/// A rule is for frames of its own machine, because each machine has its own register indices. [`crate::Module`], [`crate::FixedFrame`] and
/// [`crate::LinkedFrame`] make rules.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    pub(crate) machine: Machine,
    pub(crate) cfa: Cfa,
    /// Registers that are in memory at CFA + offset, by index: usually all callee-saved registers that changed.
    pub(crate) pushed: Vec<(usize, i64)>,
    /// The other registers that change.
    pub(crate) others: Vec<(usize, Saved)>,
    pub(crate) return_address: Saved,
    pub(crate) bytecode: BytecodeRule,
    /// The function is too short to be an interpreter's loop.
    pub(crate) is_short: bool,
    /// The caller was interrupted by a signal: its ip is not a return address.
    pub(crate) is_signal_frame: bool,
}

impl Rule {
    /// The rule of a function that has no caller.
    pub(crate) const fn of_outermost(machine: Machine) -> Self {
        Self {
            machine,
            cfa: Cfa::Register(None, 0),
            pushed: Vec::new(),
            others: Vec::new(),
            return_address: Saved::Undefined,
            bytecode: BytecodeRule::None,
            is_short: false,
            is_signal_frame: false,
        }
    }

    /// Returns true if the function has no caller: the return address is undefined.
    pub(crate) fn is_outermost(&self) -> bool {
        self.return_address == Saved::Undefined
    }

    /// Returns the bytecode that a frame executes.
    pub(crate) fn bytecode_pc(&self, regs: &Regs, stack: StackSlice<'_>) -> BytecodePc {
        match &self.bytecode {
            BytecodeRule::None => BytecodePc::NoInterpreter,
            BytecodeRule::NotHere => BytecodePc::Unknown,
            BytecodeRule::Is(expression) => {
                match expression.evaluate(self.machine, regs, stack, None) {
                    None => BytecodePc::Unknown,
                    Some(pc) if self.is_short => BytecodePc::MethodAt(Address::new(pc)),
                    Some(pc) => BytecodePc::At(Address::new(pc)),
                }
            }
        }
    }

    /// Computes the CFA of a frame, if its registers and the sample's stack suffice.
    #[inline]
    pub(crate) fn cfa(&self, regs: &Regs, stack: StackSlice<'_>) -> Option<Address> {
        let cfa = match &self.cfa {
            Cfa::Register(place, offset) => regs.at((*place)?)?.wrapping_add_signed(*offset),
            Cfa::WordAt(place, offset) => {
                let at = regs.at((*place)?)?.wrapping_add_signed(*offset);
                stack.word(self.machine, Address::new(at))?
            }
            Cfa::Expression(expression) => expression.evaluate(self.machine, regs, stack, None)?,
        };
        Some(Address::new(cfa))
    }

    /// Computes the CFA from a frame pointer, if the rule stores the caller's frame pointer and the return address next to each other: the
    /// frame pointer points to that pair.
    pub(crate) fn cfa_by_frame_pointer(&self, fp: Address) -> Option<Address> {
        let place = self.machine.index(self.machine.fp())?;
        let (_, callers) = self.pushed.iter().find(|(pushed, _)| *pushed == place)?;
        let Saved::At(return_address) = &self.return_address else {
            return None;
        };
        let word = i64::from(self.machine.word());
        (callers.checked_add(word) == Some(*return_address))
            .then(|| fp.wrapping_add_signed(callers.wrapping_neg()))
    }

    /// Restores the caller's registers. Without an ip among them, this is the outermost frame.
    #[inline]
    pub(crate) fn caller(
        &self,
        cfa: Address,
        regs: &Regs,
        stack: StackSlice<'_>,
    ) -> Result<Regs, UnwindError> {
        let mut caller = *regs;
        let read = |offset: i64| stack.word(self.machine, cfa.wrapping_add_signed(offset));
        let evaluate = |expression: &Expression| {
            expression.evaluate(self.machine, regs, stack, Some(cfa.get()))
        };
        let value = |saved: &Saved| -> Option<u64> {
            match saved {
                Saved::At(offset) => read(*offset),
                Saved::Is(offset) => Some(cfa.wrapping_add_signed(*offset).get()),
                Saved::In(place) => regs.at((*place)?),
                Saved::AtRegister(place, offset) => {
                    let at = regs.at((*place)?)?.wrapping_add_signed(*offset);
                    stack.word(self.machine, Address::new(at))
                }
                Saved::AtExpression(expression) => {
                    stack.word(self.machine, Address::new(evaluate(expression)?))
                }
                Saved::IsExpression(expression) => evaluate(expression),
                Saved::Undefined => None,
            }
        };
        for (place, offset) in &self.pushed {
            caller.set_at(*place, read(*offset));
        }
        for (place, saved) in &self.others {
            caller.set_at(*place, value(saved));
        }
        caller.set(self.machine.sp(), Some(cfa.get()));
        let ip = match &self.return_address {
            Saved::Undefined => None,
            saved => Some(value(saved).ok_or_else(|| match saved {
                Saved::At(offset) => stack.missing(self.machine, cfa.wrapping_add_signed(*offset)),
                _ => UnwindError::NoStack,
            })?),
        };
        caller.set(self.machine.ip(), ip);
        if let Some(link) = self.machine.link() {
            caller.set(link, ip);
        }
        Ok(caller)
    }
}
