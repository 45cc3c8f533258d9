//! Rewrites one method: its code_item and its debug information, and the table that describes them.

use std::collections::{HashMap, HashSet};

use varid_instrument::{
    Bci, Block, Body, Counted, Executions, Line, MethodReference, Plain, Site, node::frame,
};

use super::assembler::{Cover, Label};
use super::debug;
use super::flow::Flow;
use super::insert::{ADDED_REGISTERS, Counting, Inserted, MAX_REGISTERS, Method, insert};
use super::instruction::{Instruction, decode};
use super::item::CodeItem;
use crate::error::{Result, invalid};
use crate::file::{Order, put_sleb, put_uleb};
use crate::runtime::RuntimeMembers;

/// The types of a method's arguments, as in a shorty: one letter for each, `L` for the instance and for all references.
pub(crate) type Shorty = Vec<u8>;

/// A method that is rewritten.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MethodCode<'m> {
    pub(crate) data: &'m [u8],
    /// The offset of its code_item.
    pub(crate) offset: u32,
    pub(crate) order: &'m Order,
    pub(crate) runtime: &'m RuntimeMembers,
    pub(crate) plan: crate::plan::Plan,
    pub(crate) number: u32,
    pub(crate) arguments: &'m [u8],
}

/// The new code of a method, and what is counted in it.
#[derive(Debug, Default)]
pub(crate) struct NewCode {
    /// The code_item. Four bytes at [`DEBUG_INFO`](Self::DEBUG_INFO) are for the offset of the debug information.
    pub(crate) item: Vec<u8>,
    /// The debug_info_item. Empty if there is none.
    pub(crate) debug_info: Vec<u8>,
    pub(crate) body: Option<Body>,
    /// Length of the original code in code units, if the table can say it.
    pub(crate) length: u16,
    pub(crate) sites: Vec<Site>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) counters: u16,
    pub(crate) lines: Vec<Line>,
    /// The first code units of the original instructions, if blocks are counted.
    pub(crate) instructions: Vec<u16>,
}

impl NewCode {
    /// The offset of the debug information's offset in a code_item.
    pub(crate) const DEBUG_INFO: usize = 8;
}

/// The parts of a counted method's node.
struct Plan {
    shape: u32,
    blocks: Vec<Block>,
    counters: u16,
    /// The counter of each block, by its first instruction.
    by_leader: Vec<(usize, Option<u16>)>,
}

/// Rewrites a method. `target` names the method of a call by the instruction.
pub(crate) fn rewrite(
    method: MethodCode<'_>,
    target: impl Fn(&Instruction) -> MethodReference,
) -> Result<NewCode> {
    let item = CodeItem::read(method.data, method.offset)?;
    // A code_item has 16 bytes before its instructions.
    let at = (method.offset as usize).saturating_add(16);
    let instructions = decode(&item.units).map_err(|(pc, problem)| {
        let offset = (pc as usize).saturating_mul(2).saturating_add(at);
        invalid("instruction", offset, problem)
    })?;
    let flow = Flow::new(&item, &instructions);
    let parts = Method {
        item: &item,
        instructions: &instructions,
        flow: &flow,
        at,
    };
    let planned = plan(method, parts);
    let counting = planned.as_ref().ok().map(|plan| Counting {
        plan: method.plan,
        runtime: method.runtime,
        number: method.number,
        shape: plan.shape,
        arguments: method.arguments,
        counters: &plan.by_leader,
    });
    let inserted = insert(parts, method.order, counting)?;
    let mut new = NewCode {
        item: encode(method.order, parts, &inserted)?,
        length: u16::try_from(item.units.len()).unwrap_or(0),
        ..NewCode::default()
    };
    let mut lines = Vec::new();
    if item.debug_info != 0 {
        (new.debug_info, lines) = debug::copy(method.data, item.debug_info, method.order, |pc| {
            let next = instructions.partition_point(|one| one.pc < pc);
            let end = u32::try_from(inserted.code.units.len()).unwrap_or(u32::MAX);
            let label = inserted.labels.get(next);
            label.map_or(end, |label| inserted.code.place(*label))
        })?;
    }
    match planned {
        Ok(plan) => {
            let calls = instructions.iter().enumerate();
            let calls =
                calls.filter(|(index, one)| one.is_invoke() && flow.state(*index).is_some());
            let sites = calls.map(|(_, instruction)| Site {
                bci: place(instruction.pc),
                opcode: instruction.code,
                target: target(instruction),
            });
            new.sites = sites.collect();
            new.body = Some(Body::Counted);
            (new.blocks, new.counters) = (plan.blocks, plan.counters);
            let lines = lines.into_iter().filter_map(|(pc, line)| {
                let start = Bci(u16::try_from(pc).ok()?);
                let line = u16::try_from(line).ok()?;
                Some(Line { start, line })
            });
            new.lines = lines.collect();
            new.lines.sort_by_key(|line| line.start);
            if method.plan.counted == Counted::Blocks {
                new.instructions = instructions.iter().map(|one| place(one.pc).0).collect();
            }
        }
        Err(plain) => new.body = Some(Body::Plain(plain)),
    }
    Ok(new)
}

/// Decides what is counted in a method.
fn plan(request: MethodCode<'_>, method: Method<'_>) -> std::result::Result<Plan, Plain> {
    let Method {
        item,
        instructions,
        flow,
        ..
    } = method;
    if item.registers.saturating_add(ADDED_REGISTERS) > MAX_REGISTERS {
        return Err(Plain::TooManyLocals);
    }
    let length = u16::try_from(item.units.len()).map_err(|_| Plain::TooLarge)?;
    let words = request.arguments.iter().map(|one| match one {
        b'J' | b'D' => 2_usize,
        _ => 1,
    });
    if words.sum::<usize>() != usize::from(item.ins) || instructions.is_empty() {
        return Err(Plain::Invalid);
    }
    let is_executed = |index: &usize| flow.state(*index).is_some();
    let calls = instructions.iter().enumerate();
    let calls = calls.filter(|(index, one)| one.is_invoke() && is_executed(index));
    let slots = calls.count().saturating_add(1);
    let mut plan = Plan {
        shape: 0,
        blocks: Vec::new(),
        counters: 0,
        by_leader: Vec::new(),
    };
    if request.plan.counted == Counted::Blocks {
        plan.counters = frame::COUNTERS;
        let mut last = None;
        for index in (0..instructions.len()).filter(|index| flow.is_leader(*index)) {
            let start = instructions.get(index).map_or(Bci(0), |one| place(one.pc));
            end_block(&mut plan.blocks, &mut last, start);
            if !is_executed(&index) {
                continue;
            }
            let counter = match index == 0 && !flow.loops_to_start {
                true => None,
                false => {
                    let counter = plan.counters;
                    plan.counters = counter.checked_add(1).ok_or(Plain::TooLarge)?;
                    Some(counter)
                }
            };
            let executions = counter.map_or(Executions::Calls, Executions::Counter);
            plan.by_leader.push((index, counter));
            last = Some((start, executions));
        }
        end_block(&mut plan.blocks, &mut last, Bci(length));
    }
    let words = frame::DISTANCE.saturating_add(plan.counters.max(frame::COUNTERS).into());
    let (Ok(slots), Ok(words)) = (u16::try_from(slots), u16::try_from(words)) else {
        return Err(Plain::TooLarge);
    };
    plan.shape = u32::from(slots) << 16 | u32::from(words);
    Ok(plan)
}

/// Ends the last block where the next one begins.
fn end_block(blocks: &mut Vec<Block>, last: &mut Option<(Bci, Executions)>, end: Bci) {
    if let Some((start, executions)) = last.take() {
        blocks.push(Block {
            start,
            end,
            executions,
        });
    }
}

/// Returns a code unit as the tables have it. That of a method that is too long is not used.
fn place(pc: u32) -> Bci {
    Bci(u16::try_from(pc).unwrap_or(u16::MAX))
}

/// Returns the new code_item.
fn encode(order: &Order, method: Method<'_>, inserted: &Inserted) -> Result<Vec<u8>> {
    let (item, is_counted) = (method.item, inserted.exit.is_some());
    let (registers, outs) = match is_counted {
        true => (
            item.registers.saturating_add(ADDED_REGISTERS),
            item.outs.max(2),
        ),
        false => (item.registers, item.outs),
    };
    let code = &inserted.code;
    let mut handlers = HandlerLists::new(method, order, inserted);
    let mut tries = Vec::new();
    for (start, end, cover) in &code.tries {
        tries.extend_from_slice(&start.to_le_bytes());
        let count = u16::try_from(end.saturating_sub(*start));
        let count = count.map_err(|_| invalid("try_item", method.at, "too long"))?;
        tries.extend_from_slice(&count.to_le_bytes());
        let offset = u16::try_from(handlers.offset(*cover)?);
        let offset = offset.map_err(|_| invalid("handlers", method.at, "too many"))?;
        tries.extend_from_slice(&offset.to_le_bytes());
    }
    let count = u16::try_from(code.tries.len());
    let count = count.map_err(|_| invalid("tries_size", method.at, "too many"))?;
    let mut out = Vec::new();
    for value in [registers, item.ins, outs, count] {
        out.extend_from_slice(&value.to_le_bytes());
    }
    out.extend_from_slice(&[0; 4]);
    let length = u32::try_from(code.units.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend(code.units.iter().flat_map(|unit| unit.to_le_bytes()));
    if count > 0 {
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend_from_slice(&tries);
        out.extend_from_slice(&handlers.lists);
    }
    Ok(out)
}

/// The lists of handlers of a code_item.
struct HandlerLists<'m> {
    method: Method<'m>,
    order: &'m Order,
    inserted: &'m Inserted,
    /// The covers with the places of their lists.
    known: HashMap<Cover, usize>,
    lists: Vec<u8>,
}

impl<'m> HandlerLists<'m> {
    fn new(method: Method<'m>, order: &'m Order, inserted: &'m Inserted) -> Self {
        let covers = inserted.code.tries.iter().map(|(_, _, cover)| cover);
        let covers: HashSet<&Cover> = covers.collect();
        let mut lists = Vec::new();
        put_uleb(&mut lists, u32::try_from(covers.len()).unwrap_or(u32::MAX));
        Self {
            method,
            order,
            inserted,
            known: HashMap::new(),
            lists,
        }
    }

    /// Returns the offset of the list of a cover, which is added if it is new.
    fn offset(&mut self, cover: Cover) -> Result<usize> {
        if let Some(offset) = self.known.get(&cover) {
            return Ok(*offset);
        }
        let offset = self.lists.len();
        let item = self.method.item;
        let handlers = cover.handlers.and_then(|index| item.handlers.get(index));
        let handlers = handlers.cloned().unwrap_or_default();
        let catch_all = match handlers.catch_all {
            Some(target) => Some(self.target(target)),
            None if cover.exit => self.inserted.exit,
            None => None,
        };
        let count = i32::try_from(handlers.typed.len()).unwrap_or(i32::MAX);
        let is_negative = catch_all.is_some();
        let size = if is_negative {
            count.saturating_neg()
        } else {
            count
        };
        put_sleb(&mut self.lists, size);
        for (exception, target) in &handlers.typed {
            let exception = self.order.types.get(*exception, self.method.at)?;
            put_uleb(&mut self.lists, exception);
            let place = self.inserted.code.place(self.target(*target));
            put_uleb(&mut self.lists, place);
        }
        if let Some(catch_all) = catch_all {
            put_uleb(&mut self.lists, self.inserted.code.place(catch_all));
        }
        self.known.insert(cover, offset);
        Ok(offset)
    }

    /// Returns the label of a handler: its stub's, if it has one.
    fn target(&self, pc: u32) -> Label {
        let index = super::flow::index_of(self.method.instructions, pc).unwrap_or(0);
        let stubs = &self.inserted.stubs;
        match stubs.binary_search_by_key(&index, |(known, _)| *known) {
            Ok(found) => stubs
                .get(found)
                .map_or(Label::default(), |(_, label)| *label),
            Err(_) => self.inserted.labels.get(index).copied().unwrap_or_default(),
        }
    }
}
