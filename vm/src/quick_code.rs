//! Where is the frame of an interpreter that keeps frames on the native stack, at each instruction of its code?
//!
//! The rows of its unwind information say it, for its prologues, for the moment in which it leaves a frame, and for all else. A row in which
//! the frame is complete is marked with the register of its bytecode pc.

use std::ops::Range;
use varid_shim::{CodeState, LeaveFrame};
use varid_tunnel::abi::{CodeRange, RANGE_BODY, RANGE_INTERPRETER, Rule};
use varid_unwind::{CallerRegister, UnwindRow};

/// The states of the code of a rule, from the rows of its functions: sorted, of successive ones no two are equal. `bias`: from the
/// file's addresses to the process's.
pub(crate) fn states(rule: &Rule, rows: &[UnwindRow], bias: u64) -> Vec<CodeState> {
    let mut states: Vec<CodeState> = Vec::new();
    for row in rows {
        let address = row.start.get().wrapping_add(bias);
        let Some(start) = address
            .checked_sub(rule.code_start)
            .and_then(|start| u32::try_from(start).ok())
        else {
            continue;
        };
        let leave = leave(rule, row);
        if states.last().is_none_or(|last| last.leave != leave) {
            states.push(CodeState { start, leave });
        }
    }
    states
}

/// How a frame is left in a row; None: a register leads to no caller, or what is saved is not where the rule says.
fn leave(rule: &Rule, row: &UnwindRow) -> Option<LeaveFrame> {
    let cfa = row.cfa()?;
    let saved = |register: CallerRegister, below: u16| match register {
        CallerRegister::Unchanged => Some(false),
        CallerRegister::At(offset) => {
            (offset.checked_add(i64::from(below)) == Some(0)).then_some(true)
        }
        CallerRegister::Elsewhere => None,
    };
    let of = |register: u8| row.caller_register(u16::from(register));
    Some(LeaveFrame {
        register: cfa.register,
        word: match cfa.word {
            None => None,
            Some(word) => Some(i16::try_from(word).ok()?),
        },
        bias: i16::try_from(cfa.bias).ok()?,
        has_pc: row.bytecode_register() == Some(u16::from(rule.reg_pc)),
        saved_pc: saved(of(rule.reg_pc), rule.saved_pc)?,
        saved_frame: saved(of(rule.reg_frame), rule.saved_frame)?,
        saved_return: saved(row.return_address(), rule.saved_return)?,
    })
}

/// What the code does: a loop where frames are complete. `rule`: index of the rule.
pub(crate) fn ranges(states: &[CodeState], code: &Range<u64>, rule: u32) -> Vec<CodeRange> {
    let mut ranges: Vec<CodeRange> = Vec::new();
    for (at, state) in states.iter().enumerate() {
        let address = |state: &CodeState| code.start.saturating_add(u64::from(state.start));
        let next = states.get(at.saturating_add(1)).map(address);
        let range = CodeRange {
            start: address(state),
            end: next.unwrap_or(code.end).min(code.end),
            kind: match state.has_pc() {
                true => RANGE_BODY,
                false => RANGE_INTERPRETER,
            },
            rule,
        };
        match ranges.last_mut() {
            Some(last) if last.kind == range.kind => last.end = range.end,
            _ => ranges.push(range),
        }
    }
    ranges.retain(|range| range.start < range.end);
    ranges
}
