//! How is one method's code rewritten?

use crate::assembler::Assembler;
use crate::attributes::lines;
use crate::blocks::{basic_blocks, range, reached};
use crate::class::{Code, Constants, Index, Instructions, access, argument_words, opcode};
use crate::code_attribute::{STACK_MAP_TABLE, Writer};
use crate::constructor::{This, states};
use crate::frames::{Frames, Initial};
use crate::insert::{Inserter, stores_to_0};
use crate::layout::Layout;
use crate::order::is_ordered;
use crate::request::{Failed, NewCode, Request};
use crate::runtime::CLASS;
use crate::sequences::{Locals, Sequences};
use crate::{Bci, Counted, Line, Plain, Site};

/// Returns a method's source lines.
pub(crate) fn source_lines(code: &Code<'_>) -> Vec<Line> {
    lines(&code.attributes)
}

/// Returns true if the code calls methods.
pub(crate) fn calls(code: &Code<'_>) -> Result<bool, Plain> {
    let instructions = Instructions::decode(code.bytes).ok_or(Plain::Invalid)?;
    Ok(instructions
        .list
        .iter()
        .any(|it| opcode::is_call(it.opcode)))
}

/// Rewrites the code of a method.
pub(crate) fn rewrite(
    code: &Code<'_>,
    request: &Request<'_>,
    constants: &mut Constants<'_>,
) -> Result<NewCode, Failed> {
    let instructions = Instructions::decode(code.bytes).ok_or(Plain::Invalid)?;
    let reached = reached(code, &instructions).ok_or(Plain::Invalid)?;
    let arguments = argument_words(request.descriptor).ok_or(Plain::Invalid)?;
    if code.max_locals < arguments {
        return Err(Plain::Invalid.into());
    }
    let leaf = request.counted.is_none();
    let blocks = match request.counted {
        Some(counted) if counted.has_blocks() => {
            basic_blocks(&instructions, &reached, code.bytes.len(), |instruction| {
                counted == Counted::Order && is_ordered(instruction, constants)
            })
        }
        _ => Vec::new(),
    };
    let sites = if leaf {
        Vec::new()
    } else {
        call_sites(&instructions, constants)?
    };
    let locals =
        Locals::above(code.max_locals, leaf, !blocks.is_empty()).ok_or(Plain::TooManyLocals)?;
    let frames = if request.has_frames {
        Some(read_frames(
            code,
            request,
            locals,
            &instructions,
            constants,
        )?)
    } else {
        None
    };
    let this = match &frames {
        Some(frames) if request.name == b"<init>" => states(&instructions, frames, constants),
        _ => vec![This::Initialised; instructions.list.len()],
    };
    let inserted = Inserter {
        to: Sequences::new(Assembler::new(constants), locals),
        holds_this: request.access & access::STATIC == 0
            && !instructions.list.iter().any(stores_to_0),
        instructions: &instructions,
        reached: &reached,
        request,
        uninitialised_this: this.contains(&This::Uninitialised),
    }
    .insert(&sites, &blocks)?;

    let open = open_places(code, &instructions, &this)?;
    let initialised = |index: Index| this.get(usize::from(index)) == Some(&This::Initialised);
    let is_open = |before: Index, target: Index| {
        open.get(usize::from(before)) == Some(&true) && initialised(target)
    };
    let layout = Layout::new(&instructions, &inserted, is_open)?;
    let new_code = layout.write(&instructions, &inserted)?;
    let attribute = Writer {
        code,
        instructions: &instructions,
        layout: &layout,
        this: &this,
        tail: u16::try_from(inserted.tail.len()).map_err(|_| Plain::TooLarge)?,
    }
    .write(&new_code, locals, frames.as_ref(), constants)?;
    if attribute.len() > request.budget {
        return Err(Plain::TooLarge.into());
    }
    Ok(NewCode {
        attribute,
        sites,
        blocks,
    })
}

fn call_sites(
    instructions: &Instructions<'_>,
    constants: &Constants<'_>,
) -> Result<Vec<Site>, Plain> {
    let mut sites = Vec::new();
    for instruction in &instructions.list {
        if opcode::is_call(instruction.opcode) {
            sites.push(Site {
                bci: Bci(instruction.bci),
                opcode: instruction.opcode,
                target: constants
                    .call_target(instruction.operand())
                    .ok_or(Plain::Invalid)?,
            });
        }
    }
    Ok(sites)
}

/// Returns for each instruction, and for the end, whether a trampoline may be put before it: the instruction before does not lead there, and no
/// handler covers the place, whose frame the trampoline's would have to match.
fn open_places(
    code: &Code<'_>,
    instructions: &Instructions<'_>,
    this: &[This],
) -> Result<Vec<bool>, Plain> {
    let mut open = vec![false];
    for (instruction, this) in instructions.list.iter().zip(this) {
        let falls = opcode::falls_through(instruction.operation());
        open.push(!falls && *this == This::Initialised);
    }
    // The number of handlers that cover a place, as differences.
    let mut covers = vec![0_i32; open.len().saturating_add(1)];
    for handler in &code.handlers {
        let (start, end) = range(handler.start, handler.end, instructions).ok_or(Plain::Invalid)?;
        if let Some(first) = covers.get_mut(usize::from(start).saturating_add(1)) {
            *first = first.saturating_add(1);
        }
        if let Some(after) = covers.get_mut(usize::from(end).saturating_add(1)) {
            *after = after.saturating_sub(1);
        }
    }
    let mut covering = 0_i32;
    for (open, change) in open.iter_mut().zip(covers) {
        covering = covering.saturating_add(change);
        *open &= covering == 0;
    }
    Ok(open)
}

/// Reads and extends a method's frames.
fn read_frames(
    code: &Code<'_>,
    request: &Request<'_>,
    locals: Locals,
    instructions: &Instructions<'_>,
    constants: &mut Constants<'_>,
) -> Result<Frames, Failed> {
    let cell = constants.add_class(CLASS.as_bytes())?;
    let initial = Initial {
        access: request.access,
        name: request.name,
        descriptor: request.descriptor,
        class: request.class,
        max_locals: code.max_locals,
    };
    let table = code.attributes.iter().find(|it| it.name == STACK_MAP_TABLE);
    let frames = Frames::read(
        table.map(|table| table.data),
        &initial,
        &locals.types(cell),
        instructions,
        constants,
        request.budget,
    )?;
    Ok(frames)
}
