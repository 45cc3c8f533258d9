//! The states of the code of an interpreter whose frames are native ones: where the frame is, at each instruction.
//!
//! The rows of its unwind information show this for its prologues, for the instructions that leave a frame, and for all others. A row with
//! a complete frame is marked with the register of the bytecode pc.

use std::ops::Range;
use varid_shim::{CodeState, LeaveFrame};
use varid_tunnel::abi::{CodeRange, RANGE_BODY, RANGE_INTERPRETER, Rule};
use varid_unwind::{CallerRegister, UnwindRow};

/// Returns the states of a rule's code, from the rows of its functions. They are sorted, and successive ones differ. Code without a row has
/// a state in which nothing is known. None if the rows are not in order. `bias`: from the file's addresses to the process's.
pub(crate) fn states(rule: &Rule, rows: &[UnwindRow], bias: u64) -> Option<Vec<CodeState>> {
    let mut states: Vec<CodeState> = Vec::new();
    let mut push = |address: u64, leave: Option<LeaveFrame>| -> Option<()> {
        let start = u32::try_from(address.checked_sub(rule.code_start)?).ok()?;
        if states.last().is_none_or(|last| last.leave != leave) {
            states.push(CodeState { start, leave });
        }
        Some(())
    };
    let mut behind = rule.code_start;
    for row in rows {
        let of_process = |address: varid_model::Address| address.get().wrapping_add(bias);
        let start = of_process(row.start).max(rule.code_start);
        let end = of_process(row.end).min(rule.code_end);
        if end <= start {
            continue;
        }
        match start.checked_sub(behind) {
            None => return None,
            Some(0) => {}
            Some(_) => push(behind, None)?,
        }
        push(start, leave(rule, row))?;
        behind = end;
    }
    if behind < rule.code_end {
        push(behind, None)?;
    }
    Some(states)
}

/// Returns how a frame is left in a row. None if no register leads to the caller, or what is saved is not where the rule says.
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
    let word = match cfa.word {
        None => None,
        Some(word) => Some(i16::try_from(word).ok()?),
    };
    let saved_pc = saved(of(rule.reg_pc), rule.saved_pc)?;
    let saved_frame = saved(of(rule.reg_frame), rule.saved_frame)?;
    let saved_return = saved(row.return_address(), rule.saved_return)?;
    // The mark remains while a frame is left, until the register is restored. By then the stack pointer is no longer the frame's.
    let is_complete = saved_pc && saved_frame && saved_return && word == Some(rule.cfa_word);
    Some(LeaveFrame {
        register: cfa.register,
        word,
        bias: i16::try_from(cfa.bias).ok()?,
        has_pc: is_complete && row.bytecode_register() == Some(u16::from(rule.reg_pc)),
        saved_pc,
        saved_frame,
        saved_return,
    })
}

/// Returns what the code does: it is a loop where frames are complete. `rule`: index of the rule.
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

#[cfg(test)]
mod tests {
    use super::*;

    const fn state(start: u32, has_pc: bool) -> CodeState {
        let leave = LeaveFrame {
            register: 7,
            word: None,
            bias: 8,
            has_pc,
            saved_pc: false,
            saved_frame: false,
            saved_return: true,
        };
        CodeState {
            start,
            leave: Some(leave),
        }
    }

    #[test]
    fn code_is_a_loop_where_its_frames_are_complete() {
        let unknown = CodeState {
            start: 0x30,
            leave: None,
        };
        let states = [
            state(0, false),
            state(0x10, true),
            state(0x20, true),
            unknown,
            state(0x40, true),
        ];
        let found: Vec<_> = ranges(&states, &(0x1000..0x1050), 1)
            .iter()
            .map(|range| (range.start, range.end, range.kind, range.rule))
            .collect();
        assert_eq!(
            found,
            [
                (0x1000, 0x1010, RANGE_INTERPRETER, 1),
                (0x1010, 0x1030, RANGE_BODY, 1),
                (0x1030, 0x1040, RANGE_INTERPRETER, 1),
                (0x1040, 0x1050, RANGE_BODY, 1),
            ]
        );
        // A state behind the code is no range.
        assert_eq!(ranges(&states, &(0x1000..0x1010), 1).len(), 1);
    }
}
