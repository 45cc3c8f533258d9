//! How to get from a frame to its caller: what the call frame information has for one address.

use super::dex_pc::DexPcRule;
use super::expression::Expression;
use super::{DexPc, UnwindError};
use varid_model::{Machine, Regs};

/// Where a register of the caller is. Registers are known by their places in a record; None: a record does not have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Saved {
    /// Nowhere: it is lost; for the return address: this is the outermost frame.
    Undefined,
    /// In memory at CFA + offset.
    At(i64),
    /// It is CFA + offset.
    Is(i64),
    /// In another register.
    In(Option<usize>),
    /// In memory at the address that an expression computes.
    AtExpression(Expression),
    /// It is what an expression computes.
    IsExpression(Expression),
}

/// Where the canonical frame address is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cfa {
    Register(Option<usize>, i64),
    Expression(Expression),
}

/// The rules of one instruction address; a register without one is unchanged.
///
/// They are for frames of their own machine: each has its registers in other places. `read` reads one word of the process, if the sample has it.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    pub(super) machine: Machine,
    pub(super) cfa: Cfa,
    /// Registers that are in memory at CFA + offset, by their places in a record: most often all that a callee saves.
    pub(super) pushed: Vec<(usize, i64)>,
    /// The others that change.
    pub(super) others: Vec<(usize, Saved)>,
    pub(super) return_address: Saved,
    pub(super) dex_pc: DexPcRule,
    /// Its function is too short to be an interpreter's loop.
    pub(super) is_short: bool,
    /// The caller was interrupted by a signal: its ip is no return address.
    pub is_signal_frame: bool,
}

impl Rule {
    /// Whether nobody called the function: its return address is nowhere.
    pub fn is_outermost(&self) -> bool {
        self.return_address == Saved::Undefined
    }

    /// The bytecode that a frame executes.
    pub fn dex_pc(&self, regs: &Regs, read: impl Fn(u64) -> Option<u64>) -> DexPc {
        match &self.dex_pc {
            DexPcRule::None => DexPc::NoInterpreter,
            DexPcRule::NotHere => DexPc::Unknown,
            DexPcRule::Is(expression) => {
                match expression.evaluate(self.machine, regs, read, None) {
                    None => DexPc::Unknown,
                    Some(pc) if self.is_short => DexPc::MethodAt(pc),
                    Some(pc) => DexPc::At(pc),
                }
            }
        }
    }

    /// The CFA of a frame, as far as its registers and the sample's stack tell.
    #[inline]
    pub fn cfa(&self, regs: &Regs, read: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        match &self.cfa {
            Cfa::Register(place, offset) => Some(regs.at((*place)?)?.wrapping_add_signed(*offset)),
            Cfa::Expression(expression) => expression.evaluate(self.machine, regs, read, None),
        }
    }

    /// The CFA of a frame that keeps a frame pointer, if the rule has the caller's and the return address side by side: that is
    /// where it points.
    pub fn cfa_by_frame_pointer(&self, fp: u64) -> Option<u64> {
        let place = self.machine.index(self.machine.fp())?;
        let (_, callers) = self.pushed.iter().find(|(pushed, _)| *pushed == place)?;
        let Saved::At(return_address) = &self.return_address else {
            return None;
        };
        let word = i64::from(self.machine.word());
        (callers.checked_add(word) == Some(*return_address))
            .then(|| fp.wrapping_sub(callers.cast_unsigned()))
    }

    /// The caller's registers. None in the place of its ip: this is the outermost frame.
    #[inline]
    pub fn caller(
        &self,
        cfa: u64,
        regs: &Regs,
        read: impl Fn(u64) -> Option<u64> + Copy,
    ) -> Result<Regs, UnwindError> {
        let mut caller = *regs;
        let value = |saved: &Saved| -> Option<u64> {
            match saved {
                Saved::At(offset) => read(cfa.wrapping_add_signed(*offset)),
                Saved::Is(offset) => Some(cfa.wrapping_add_signed(*offset)),
                Saved::In(place) => regs.at((*place)?),
                Saved::AtExpression(expression) => {
                    read(expression.evaluate(self.machine, regs, read, Some(cfa))?)
                }
                Saved::IsExpression(expression) => {
                    expression.evaluate(self.machine, regs, read, Some(cfa))
                }
                Saved::Undefined => None,
            }
        };
        for (place, offset) in &self.pushed {
            caller.set_at(*place, read(cfa.wrapping_add_signed(*offset)));
        }
        for (place, saved) in &self.others {
            caller.set_at(*place, value(saved));
        }
        caller.set(self.machine.sp(), Some(cfa));
        let ip = match &self.return_address {
            Saved::Undefined => None,
            saved => Some(value(saved).ok_or(UnwindError::NoStack)?),
        };
        caller.set(self.machine.ip(), ip);
        if let Some(link) = self.machine.link() {
            caller.set(link, ip);
        }
        Ok(caller)
    }
}
