//! What is the shim told about a process?

use crate::abi::{Body, MAX_STATES, RawState, RawStates, RawTarget, state_flags, target_flags};
use std::sync::Arc;
use varid_model::Machine;
use varid_tunnel::abi::{
    Layout, MAX_RULES, NO_REG, NO_WORD, RULE_LIST, RULE_SAVE_AREA, RULE_SHADOW,
};

/// The rules that the BPF programs at the events walk themselves.
const BASIC_RULES: u32 = 1 << RULE_LIST | 1 << RULE_SHADOW | 1 << RULE_SAVE_AREA;

/// Where the caller of a frame of [`varid_tunnel::abi::RULE_AT_SP`] is, while the instruction pointer is in a stretch of the rule's
/// code: what the unwind information of that code says. The stretch ends where the next state begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeState {
    /// Bytes behind the first address of the rule's code.
    pub start: u32,
    /// How the frame is left; None: nothing leads to its caller.
    pub leave: Option<LeaveFrame>,
}

/// How a frame is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaveFrame {
    /// DWARF number of the register that leads to the CFA.
    pub register: u16,
    /// Bytes from the register to a word that leads to the CFA; None: the register itself does.
    pub word: Option<i16>,
    /// Bytes from there to the CFA.
    pub bias: i16,
    /// The frame is complete: its method is at the stack pointer, its bytecode pc in the rule's register.
    pub has_pc: bool,
    /// The caller's bytecode pc is where the rule says, else still in its register.
    pub saved_pc: bool,
    /// So is the register that leads to the caller's frame.
    pub saved_frame: bool,
    /// And the return address, else in the link register.
    pub saved_return: bool,
}

impl LeaveFrame {
    /// [`state_flags`].
    pub(crate) fn flags(&self) -> u8 {
        let flags = [
            (self.has_pc, state_flags::HAS_PC),
            (self.saved_pc, state_flags::SAVED_PC),
            (self.saved_frame, state_flags::SAVED_FRAME),
            (self.saved_return, state_flags::SAVED_RETURN),
        ];
        let set = flags.into_iter().filter(|(is_set, _)| *is_set);
        set.fold(state_flags::KNOWN, |all, (_, flag)| all | flag)
    }
}

/// The states of a rule's code, as the shim has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodeStates(Arc<[RawState]>);

impl CodeStates {
    /// States sorted by their start, whose registers are those of `machine`. More than the shim has room for are as good as none: it
    /// leaves samples in the middle of a call to the copy of the stack.
    pub fn new(states: &[CodeState], machine: Machine) -> Self {
        Self(match states.len() {
            0..=MAX_STATES => states.iter().map(|state| state.raw(machine)).collect(),
            _ => Arc::default(),
        })
    }

    /// Whether nothing is known of the code.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The shim's table of them.
    pub(crate) fn table(&self) -> RawStates {
        let mut table = RawStates {
            count: self.0.len().min(MAX_STATES) as u32,
            reserved: 0,
            states: [RawState::default(); MAX_STATES],
        };
        for (to, state) in table.states.iter_mut().zip(self.0.iter()) {
            *to = *state;
        }
        table
    }
}

impl CodeState {
    /// Whether the frame is complete.
    pub fn has_pc(&self) -> bool {
        self.leave.is_some_and(|leave| leave.has_pc)
    }

    /// As the shim has it; a register that a record does not hold leads nowhere.
    fn raw(&self, machine: Machine) -> RawState {
        let unknown = RawState {
            start: self.start,
            ..RawState::default()
        };
        let Some(leave) = self.leave else {
            return unknown;
        };
        let Some(reg) = machine
            .index(leave.register)
            .and_then(|index| u8::try_from(index).ok())
        else {
            return unknown;
        };
        RawState {
            reg,
            flags: leave.flags(),
            cfa_word: leave.word.unwrap_or(NO_WORD),
            cfa_bias: leave.bias,
            ..unknown
        }
    }
}

/// What the shim knows of a process.
#[derive(Debug, Clone, Default)]
pub struct Target {
    /// How its frames are linked; register numbers are indices of a record's registers.
    pub layout: Layout,
    /// Of the rule with the same index in the layout.
    pub body: [Body; MAX_RULES],
    /// [`target_flags`].
    pub flags: u32,
    /// [`Layout::rule_bits`] of the layout.
    pub rules: u32,
    /// The states of the code of its rule of quick frames.
    pub states: CodeStates,
}

impl Target {
    /// A process whose layout is known: its registers are still numbered as in DWARF, those of `machine`. The bodies
    /// are those of the layout's rules, in their order.
    pub fn ready(layout: &Layout, bodies: &[Body], machine: Machine, flags: u32) -> Self {
        let index = |register: u8| {
            let index = machine.index(u16::from(register));
            index
                .and_then(|index| u8::try_from(index).ok())
                .unwrap_or(NO_REG)
        };
        let mut target = Self {
            layout: *layout,
            flags: flags | target_flags::READY,
            rules: layout.rule_bits(),
            ..Self::default()
        };
        for rule in &mut target.layout.rules {
            (rule.reg_pc, rule.reg_frame) = (index(rule.reg_pc), index(rule.reg_frame));
        }
        for (to, body) in target.body.iter_mut().zip(bodies) {
            *to = *body;
        }
        target
    }

    /// Whether its frames follow a rule that the BPF programs at the events do not walk: the program behind them has to be loaded.
    pub fn needs_walker(&self) -> bool {
        self.rules & !BASIC_RULES != 0
    }

    /// The target as the shim has it; `states`: the slot of its states, counted from 1, 0: they have none.
    pub(crate) fn raw(&self, states: u32) -> RawTarget {
        RawTarget {
            layout: self.layout,
            body: self.body,
            flags: self.flags,
            rules: self.rules,
            states,
            reserved: 0,
        }
    }
}
