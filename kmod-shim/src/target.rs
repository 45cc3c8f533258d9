//! The target of a process: what the shim knows of it.

use crate::abi::{Body, MAX_STATES, RawState, RawStates, RawTarget, state_flags, target_flags};
use crate::java::JvmTarget;
use std::sync::Arc;
use varid_model::Machine;
use varid_tunnel::abi::{
    Layout, MAX_RULES, NO_REG, NO_WORD, RULE_LIST, RULE_SAVE_AREA, RULE_SHADOW,
};

/// The rules that the BPF programs at the events walk themselves.
const BASIC_RULES: u32 = 1 << RULE_LIST | 1 << RULE_SHADOW | 1 << RULE_SAVE_AREA;

/// How to find the caller of a frame of [`varid_tunnel::abi::RULE_AT_SP`] while the instruction pointer is in a range of the rule's
/// code, according to the unwind information of that code. The range ends where the next state starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeState {
    /// Offset from the first address of the rule's code, in bytes.
    pub start: u32,
    /// How to leave the frame, or None if the caller cannot be found.
    pub leave: Option<LeaveFrame>,
}

/// How to leave a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaveFrame {
    /// DWARF number of the register that leads to the CFA.
    pub register: u16,
    /// Offset from the register to a word that leads to the CFA, in bytes. None if the register itself does.
    pub word: Option<i16>,
    /// Offset from there to the CFA, in bytes.
    pub bias: i16,
    /// True if the frame is complete: its method is at the stack pointer, and its bytecode pc in the rule's register.
    pub has_pc: bool,
    /// True if the caller's bytecode pc is saved where the rule defines; else it is still in its register.
    pub saved_pc: bool,
    /// The same for the register that leads to the caller's frame.
    pub saved_frame: bool,
    /// The same for the return address; else it is in the link register.
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

/// The states of a rule's code, in the shim's form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodeStates(Arc<[RawState]>);

impl CodeStates {
    /// Takes states sorted by their start, with registers of `machine`. If there are more than the shim can hold, none is used: for
    /// samples in a prologue or epilogue the shim then relies on the copy of the stack.
    pub fn new(states: &[CodeState], machine: Machine) -> Self {
        Self(match states.len() {
            0..=MAX_STATES => states.iter().map(|state| state.raw(machine)).collect(),
            _ => Arc::default(),
        })
    }

    /// Returns true if nothing is known of the code.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The shim's table of the states.
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
    /// Returns true if the frame is complete.
    pub fn has_pc(&self) -> bool {
        self.leave.is_some_and(|leave| leave.has_pc)
    }

    /// Converts to the shim's form. A register that a record does not contain gives no caller.
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

/// The shim's data of a process.
#[derive(Debug, Clone, Default)]
pub struct Target {
    /// How its frames are linked. Register numbers are indices of a record's registers.
    pub layout: Layout,
    /// The body of the rule with the same index in the layout.
    pub body: [Body; MAX_RULES],
    /// [`target_flags`].
    pub flags: u32,
    /// [`Layout::rule_bits`] of the layout.
    pub rules: u32,
    /// The states of the code of the rule of quick frames.
    pub states: CodeStates,
    /// Its HotSpot, which no layout describes.
    pub jvm: Option<JvmTarget>,
}

impl Target {
    /// Makes the target of a process whose layout is known. Its registers still have the DWARF numbers of `machine`. The bodies are
    /// those of the layout's rules, in the same order.
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

    /// Returns true if its frames follow a rule that the entry programs do not walk: the program for all rules must be loaded.
    pub fn needs_walker(&self) -> bool {
        self.rules & !BASIC_RULES != 0 || self.jvm.is_some()
    }

    /// Converts to the shim's form. `states`: the slot of its states, counted from 1, or 0 if it has none.
    pub(crate) fn raw(&self, states: u32) -> RawTarget {
        RawTarget {
            layout: self.layout,
            body: self.body,
            flags: match self.jvm {
                Some(_) => self.flags | target_flags::JAVA,
                None => self.flags,
            },
            rules: self.rules,
            states,
            reserved: 0,
        }
    }
}
