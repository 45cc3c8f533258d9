//! Finds the interpreters, and where they keep what they execute.
//!
//! ART marks the rows of its interpreters' unwind information with the register of the bytecode pc. mterp's frames are linked shadow
//! frames, and a register points to them. nterp's frames are native frames: their CFA is an offset from a word that a register points to.

use super::error::LayoutError;
use super::library::{Function, Library};
use super::trace::{Code, Event, Trace};
use std::ops::Range;
use varid_instructions::{Base, Effect, Flow, Instruction, Register};
use varid_tunnel::abi::{NO_WORD, RULE_AT_SP, Rule};
use varid_unwind::{CallerRegister, UnwindRow};

/// Size of all handlers in bytes: one for each value of a byte, all of the same size.
const HANDLERS: u64 = 256 * HANDLER;
const HANDLER: u64 = 128;
/// A marked function of at most this size only calls an interpreter.
const MAX_TRAMPOLINE: u64 = 64;
/// The most functions of one interpreter. nterp has seven.
const MAX_PARTS: usize = 16;

/// An interpreter with linked frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mterp {
    pub(super) code: Range<u64>,
    /// Where its registers are valid.
    pub(super) body: Range<u64>,
    pub(super) handlers: Range<u64>,
    pub(super) reg_pc: u8,
    pub(super) reg_frame: u8,
    /// Offset from the frame to where the register points, negated.
    pub(super) frame_bias: i16,
}

/// An interpreter with native frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Nterp {
    /// Its functions, in order, without gaps.
    pub(super) parts: Vec<Range<u64>>,
    pub(super) handlers: Range<u64>,
    /// What its rows show of its frames.
    pub(super) rule: Rule,
    /// In a method: pointer to its code item. None: it calls a function to get that.
    pub(super) method_code: Option<u16>,
}

/// All interpreters in assembly.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Interpreters {
    pub(super) mterp: Option<Mterp>,
    pub(super) nterp: Option<Nterp>,
    /// The function that calls the interpreter in C++.
    pub(super) switch: Option<Range<u64>>,
}

/// A function with marked rows.
struct Marked<'a> {
    function: &'a Function,
    rows: Vec<UnwindRow>,
    /// DWARF number.
    reg_pc: u16,
}

impl Interpreters {
    /// Finds the interpreters of a library.
    pub(super) fn of(library: &Library) -> Result<Self, LayoutError> {
        if !library.has_marks() {
            return Err(LayoutError::Interpreter("marks no interpreter"));
        }
        let mut found = Self::default();
        let mut parts: Vec<Marked<'_>> = Vec::new();
        for marked in library
            .functions
            .iter()
            .filter_map(|function| marked(library, function))
        {
            let code = marked.function.code.clone();
            let size = code.end.saturating_sub(code.start);
            let has_word = |row: &UnwindRow| row.cfa().is_some_and(|cfa| cfa.word.is_some());
            if size <= MAX_TRAMPOLINE {
                put(&mut found.switch, code)?;
            } else if marked.rows.iter().any(has_word) {
                parts.push(marked);
            } else if size > HANDLERS {
                put(&mut found.mterp, mterp(library, &marked)?)?;
            }
        }
        found.nterp = nterp(library, &parts)?;
        let takes_code_item = found
            .nterp
            .as_ref()
            .is_some_and(|nterp| nterp.method_code.is_some());
        if found.mterp.is_some() && takes_code_item {
            // Native methods have something else in place of their code item. Only nterp's rule makes the distinction.
            return Err(LayoutError::Interpreter(
                "marks mterp beside the nterp of Android 12 and later, which has not been tried",
            ));
        }
        if found.mterp.is_none() && found.nterp.is_none() {
            return Err(LayoutError::Interpreter(
                "marks no interpreter whose rows are understood",
            ));
        }
        Ok(found)
    }
}

/// Stores the only one of its kind.
fn put<T>(to: &mut Option<T>, found: T) -> Result<(), LayoutError> {
    match to.replace(found) {
        None => Ok(()),
        Some(_) => Err(LayoutError::Interpreter(
            "marks more interpreters than one of a kind",
        )),
    }
}

/// Returns true if a function may be assembly: by its name, if it has one.
fn may_be_assembly(function: &Function) -> bool {
    let name = &function.name;
    name.is_empty()
        || name.starts_with("Execute")
        || name.starts_with("nterp")
        || name.starts_with("Nterp")
}

fn marked<'a>(library: &Library, function: &'a Function) -> Option<Marked<'a>> {
    if !may_be_assembly(function) {
        return None;
    }
    let rows = library.rows(function.code.clone());
    let reg_pc = rows.iter().find_map(UnwindRow::bytecode_register)?;
    Some(Marked {
        function,
        rows,
        reg_pc,
    })
}

/// Rounds up to the start of a handler: handlers are aligned to 128 bytes.
fn aligned(address: u64) -> u64 {
    address.next_multiple_of(HANDLER)
}

fn mterp(library: &Library, marked: &Marked<'_>) -> Result<Mterp, LayoutError> {
    const WRONG: LayoutError =
        LayoutError::Interpreter("marks an interpreter whose code is not understood");
    let code = marked.function.code.clone();
    let reg_pc = Register(u8::try_from(marked.reg_pc).map_err(|_| WRONG)?);
    let trace = library.trace(marked.function);
    let first_jump = trace
        .events
        .iter()
        .find(|(_, event)| *event == Event::JumpIndirect)
        .map(|(at, _)| *at)
        .ok_or(WRONG)?;
    let start = aligned(first_jump.saturating_add(1));
    let handlers = start..start.saturating_add(HANDLERS);
    if handlers.end > code.end {
        return Err(WRONG);
    }
    // The frame was the third argument. A callee-saved register points into it.
    let frame = trace.argument(2).ok_or(WRONG)?;
    let state = trace.at_first_jump.as_ref().ok_or(WRONG)?;
    let mut leading = state.registers().filter_map(|(register, value)| {
        let into = trace.offset_from(value, frame).filter(|into| *into > 0)?;
        (!library.decoder.is_lost_in_calls(register)).then_some((register, into))
    });
    let (reg_frame, into) = leading.next().ok_or(WRONG)?;
    if leading.next().is_some() || reg_frame == reg_pc {
        return Err(WRONG);
    }
    let body_start =
        behind_assignments(library, code.start..first_jump, [reg_pc, reg_frame]).ok_or(WRONG)?;
    let body_end = before_restored(library, handlers.end..code.end, [reg_pc, reg_frame]);
    Ok(Mterp {
        body: body_start..body_end,
        code,
        handlers,
        reg_pc: reg_pc.0,
        reg_frame: reg_frame.0,
        frame_bias: i16::try_from(into).map_err(|_| WRONG)?.saturating_neg(),
    })
}

/// Calls a function with each instruction of some code in turn, until it returns a value.
fn sweep<T>(
    library: &Library,
    code: Range<u64>,
    mut found: impl FnMut(u64, &Instruction) -> Option<T>,
) -> Option<T> {
    let mut at = code.start;
    while at < code.end && library.count() {
        let instruction = library.decoder.decode(library.code(at), at)?;
        let next = at.checked_add(instruction.size.into())?;
        if let Some(found) = found(next, &instruction) {
            return Some(found);
        }
        at = next;
    }
    None
}

/// Returns the address after the first assignments of all given registers.
fn behind_assignments(
    library: &Library,
    code: Range<u64>,
    registers: [Register; 2],
) -> Option<u64> {
    let mut left = registers.to_vec();
    sweep(library, code, |next, instruction| {
        for effect in &instruction.effects {
            left.retain(|register| effect.changed() != Some(*register));
        }
        left.is_empty().then_some(next)
    })
}

/// Returns the address after the first instruction that loads one of the registers from the stack and does not leave the function.
fn before_restored(library: &Library, code: Range<u64>, registers: [Register; 2]) -> u64 {
    let stack = Base::Register(library.decoder.stack_pointer());
    let end = code.end;
    let found = sweep(library, code, |next, instruction| {
        let restores = instruction.effects.iter().any(|effect| match effect {
            Effect::Load {
                to: Some(to), from, ..
            } => registers.contains(to) && from.base == stack,
            _ => false,
        });
        (restores && instruction.flow == Flow::Next).then_some(next)
    });
    found.unwrap_or(end)
}

fn nterp(library: &Library, parts: &[Marked<'_>]) -> Result<Option<Nterp>, LayoutError> {
    const WRONG: LayoutError =
        LayoutError::Interpreter("marks native frames of an interpreter that are not understood");
    let Some(main) = parts.first() else {
        return Ok(None);
    };
    let code = main.function.code.clone();
    let is_long = code.end.saturating_sub(code.start) > HANDLERS;
    let gapless = parts.windows(2).all(
        |pair| matches!(pair, [one, next] if one.function.code.end <= next.function.code.start),
    );
    if !is_long || !gapless || parts.len() > MAX_PARTS {
        return Err(WRONG);
    }
    // Before the first handler, one register gets the address of the handlers.
    let trace = library.trace(main.function);
    let state = trace.at_first_jump.as_ref().ok_or(WRONG)?;
    let mut bases = state.registers().filter_map(|(register, value)| {
        let address = trace.as_constant(value)?;
        let fits = code.contains(&address) && address.saturating_add(HANDLERS) <= code.end;
        let is_kept = !library.decoder.is_lost_in_calls(register);
        (fits && is_kept && address.checked_rem(HANDLER) == Some(0)).then_some(address)
    });
    let start = bases.next().ok_or(WRONG)?;
    if bases.next().is_some() {
        return Err(WRONG);
    }
    Ok(Some(Nterp {
        parts: parts
            .iter()
            .map(|part| part.function.code.clone())
            .collect(),
        handlers: start..start.saturating_add(HANDLERS),
        rule: rule(main).ok_or(WRONG)?,
        method_code: method_code(library, &trace),
    }))
}

/// Returns what the rows with complete frames show, if they agree. nterp's other functions make the frame of a called method, and there
/// another register leads to the frame.
fn rule(main: &Marked<'_>) -> Option<Rule> {
    let mut found: Option<Rule> = None;
    for rule in main.rows.iter().filter_map(complete_frame) {
        if *found.get_or_insert(rule) != rule {
            return None;
        }
    }
    found
}

/// Returns what a row shows of a frame, if the frame is complete.
fn complete_frame(row: &UnwindRow) -> Option<Rule> {
    let (reg_pc, cfa) = (row.bytecode_register()?, row.cfa()?);
    let below = |register: CallerRegister| match register {
        CallerRegister::At(offset) => u16::try_from(offset.checked_neg()?).ok(),
        CallerRegister::Unchanged | CallerRegister::Elsewhere => None,
    };
    Some(Rule {
        kind: RULE_AT_SP,
        reg_pc: u8::try_from(reg_pc).ok()?,
        reg_frame: u8::try_from(cfa.register).ok()?,
        cfa_word: i16::try_from(cfa.word?)
            .ok()
            .filter(|word| *word != NO_WORD)?,
        cfa_bias: i16::try_from(cfa.bias).ok()?,
        saved_pc: below(row.caller_register(reg_pc))?,
        saved_frame: below(row.caller_register(cfa.register))?,
        saved_return: below(row.return_address())?,
        ..Rule::default()
    })
}

/// Returns the first word of its method that nterp reads, before it calls anything.
fn method_code(library: &Library, trace: &Trace) -> Option<u16> {
    let method = trace.argument(0)?;
    for (_, event) in &trace.events {
        match *event {
            Event::Call { .. } | Event::CallOf(_) => return None,
            Event::Load { from, size } if size == library.word() => {
                if let Some(offset) = trace.offset_from(from, method) {
                    return Some(offset);
                }
            }
            _ => {}
        }
    }
    None
}
