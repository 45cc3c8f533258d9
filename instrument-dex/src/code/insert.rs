//! Inserts the counting into a method's instructions.
//!
//! | where | what |
//! |---|---|
//! | entry | `words` is loaded; the node is found in it, and counted, or `frame = enter(method, shape)`: [`entry`]; the arguments are moved down to their registers |
//! | block | `words[frame + counter] += 1` |
//! | call | `words[frame] = distance of its slot` before it |
//! | an instruction for which the VM may load or initialize a class, behind a call | the same, of slot 0 |
//! | an instruction that may throw | its code unit is in the scratch register |
//! | handler | `caught(frame, code unit)` behind its `move-exception`, or in a stub if it has none |
//! | return | `words[frame] = LEFT`, if something may be called below the method |
//! | an exception that no handler of the method catches | `words[frame] = LEFT` and `thrown(frame, code unit)` in a stub, which throws it again |
//!
//! Accesses to arrays and calls of the runtime may throw in the eyes of the verifier. While a monitor is held, an instruction that may throw must have a handler
//! for all exceptions, which all its throwing instructions reach with the same monitors: so what is inserted has the handlers of the
//! instruction that follows if that may throw, else those of no original code, and waits for such an instruction while a monitor is held.

use varid_instrument::{Counted, node::frame};
use varid_symbolizer::dex::Index;

use super::assembler::{Assembled, Assembler, Cover, Label, halves};
use super::flow::{Flow, State, index_of};
use super::instruction::{Instruction, Operand, opcode};
use super::item::{CodeItem, Handlers};
use crate::error::{Result, invalid};
use crate::file::Order;
use crate::plan::{Entries, Plan};
use crate::runtime::{Call, RuntimeMembers};

/// The registers that are added.
pub(crate) const ADDED_REGISTERS: u16 = 7;
/// The most registers that the forms of inserted instructions reach.
pub(crate) const MAX_REGISTERS: u16 = 256;

/// What is counted in a method.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counting<'m> {
    pub(crate) plan: Plan,
    pub(crate) runtime: &'m RuntimeMembers,
    /// The method's number.
    pub(crate) number: u32,
    /// The size of its node, as `enter` takes it.
    pub(crate) shape: u32,
    /// The types of its arguments as in a shorty, `L` for the instance.
    pub(crate) arguments: &'m [u8],
    /// The counter of each block, by the index of its first instruction. None: it has no counter.
    pub(crate) counters: &'m [(usize, Option<u16>)],
}

/// The parts of a method.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Method<'m> {
    pub(crate) item: &'m CodeItem,
    pub(crate) instructions: &'m [Instruction],
    pub(crate) flow: &'m Flow,
    /// The file offset of the code, for errors.
    pub(crate) at: usize,
}

/// A method's new instructions.
#[derive(Debug)]
pub(crate) struct Inserted {
    pub(crate) code: Assembled,
    /// By the index of the original instruction.
    pub(crate) labels: Vec<Label>,
    /// The labels of handlers, by the index of the original instruction; for those that a stub stands for.
    pub(crate) stubs: Vec<(usize, Label)>,
    /// The stub that leaves the method.
    pub(crate) exit: Option<Label>,
}

/// Something that is inserted.
#[derive(Debug, Clone, Copy)]
enum Insertion {
    Count(u16),
    At(u32),
    Caught,
}

/// Copies the instructions of a method, with the counting if it is counted.
pub(crate) fn insert(
    method: Method<'_>,
    order: &Order,
    counting: Option<Counting<'_>>,
) -> Result<Inserted> {
    let mut code = Assembler::default();
    let labels = method.instructions.iter().map(|_| code.label()).collect();
    let mut writer = Writer {
        method,
        order,
        counting,
        is_leaf: counting.is_some_and(|counting| is_leaf(method, counting.plan)),
        code,
        labels,
        pending: Vec::new(),
        slot: 0,
    };
    writer.entry();
    for (index, instruction) in method.instructions.iter().enumerate() {
        writer.instruction(index, instruction)?;
    }
    let stubs = writer.handler_stubs();
    let exit = writer.exit_stub();
    Ok(Inserted {
        code: writer.code.finish(),
        labels: writer.labels,
        stubs,
        exit,
    })
}

/// Returns true if nothing can be called below a method, and its entry is inline.
fn is_leaf(method: Method<'_>, plan: Plan) -> bool {
    let mut instructions = method.instructions.iter();
    plan.entries == Entries::Inline
        && method.item.handlers.is_empty()
        && instructions.all(|one| !one.is_invoke() && !one.may_load())
}

struct Writer<'m> {
    method: Method<'m>,
    order: &'m Order,
    counting: Option<Counting<'m>>,
    /// Nothing is called below the method, and its entry finds its node by instructions: it is never the innermost frame then.
    is_leaf: bool,
    code: Assembler,
    labels: Vec<Label>,
    /// What waits for an instruction at which it can stand.
    pending: Vec<Insertion>,
    /// The slot of the last call site.
    slot: u32,
}

impl Writer<'_> {
    fn frame(&self) -> u16 {
        self.method.item.registers
    }

    /// An `int`: an argument behind the frame, an index, or the code unit of an instruction that may throw.
    fn scratch(&self) -> u16 {
        self.frame().saturating_add(1)
    }

    /// The array.
    fn words(&self) -> u16 {
        self.frame().saturating_add(2)
    }

    /// A `long`: what is put into the array.
    fn value(&self) -> u16 {
        self.frame().saturating_add(3)
    }

    /// The `long` 1, if blocks are counted; in the stub that leaves the method, the exception.
    fn one(&self) -> u16 {
        self.frame().saturating_add(5)
    }

    /// Copies an instruction, with what is inserted before and behind it.
    fn instruction(&mut self, index: usize, instruction: &Instruction) -> Result<()> {
        let flow = self.method.flow;
        if flow.is_leader(index) {
            // What waits belongs to the block before.
            self.flush(index);
        }
        if let Some(label) = self.labels.get(index) {
            self.code.place(*label);
        }
        let cover = self.cover(index);
        if let (Some(counting), Some(state)) = (self.counting, flow.state(index)) {
            if let Ok(found) = counting
                .counters
                .binary_search_by_key(&index, |(at, _)| *at)
                && let Some((_, Some(counter))) = counting.counters.get(found)
            {
                self.pending.push(Insertion::Count(*counter));
            }
            if !instruction.is_move_exception() && self.may_stand(index) {
                self.flush(index);
            }
            self.before(instruction, state, cover);
            self.copy(instruction, cover)?;
            if instruction.is_move_exception() {
                self.pending.insert(0, Insertion::Caught);
            }
        } else {
            self.copy(instruction, cover)?;
        }
        Ok(())
    }

    /// Inserts what an instruction itself needs.
    fn before(&mut self, instruction: &Instruction, state: State, cover: Cover) {
        let Some(counting) = self.counting else {
            return;
        };
        if instruction.is_invoke() {
            self.slot = self.slot.saturating_add(1);
            self.insert(Insertion::At(self.slot), cover);
        } else if instruction.may_load() && state.after_call {
            self.insert(Insertion::At(0), cover);
        }
        if instruction.throws() && counting.plan.counted == Counted::Blocks {
            self.constant(self.scratch(), instruction.pc);
        }
        if instruction.is_return() && !self.is_leaf {
            self.set_slot(frame::LEFT, cover);
        }
    }

    /// Returns where the exceptions of an instruction lead, and those of what is inserted before it.
    fn cover(&self, index: usize) -> Cover {
        let (Some(instruction), Some(state)) = (
            self.method.instructions.get(index),
            self.method.flow.state(index),
        ) else {
            return Cover::NONE;
        };
        let handlers = self.method.item.handlers_at(instruction.pc);
        let is_free = state.depth == 0 && self.counting.is_some();
        let catches_all = self.catches_all(handlers);
        if instruction.throws() || self.counting.is_none() {
            return Cover {
                handlers,
                exit: is_free && !catches_all,
            };
        }
        if is_free {
            return Cover {
                handlers: None,
                exit: true,
            };
        }
        let depth = handlers.and_then(|handlers| self.method.flow.handler_depth(handlers));
        Cover {
            handlers: handlers.filter(|_| catches_all && depth == Some(state.depth)),
            exit: false,
        }
    }

    /// Returns true if instructions that may throw can be inserted before an instruction.
    fn may_stand(&self, index: usize) -> bool {
        let instructions = self.method.instructions;
        let Some(instruction) = instructions.get(index) else {
            return true;
        };
        let state = self.method.flow.state(index);
        let is_free = state.is_none_or(|state| state.depth == 0);
        // What follows may be the end of the block.
        is_free
            || instruction.throws()
            || !instruction.falls_through()
            || instruction.operand != Operand::None
    }

    fn catches_all(&self, handlers: Option<usize>) -> bool {
        let handlers = handlers.and_then(|index| self.method.item.handlers.get(index));
        handlers.is_some_and(|handlers: &Handlers| handlers.catch_all.is_some())
    }

    /// Inserts what waits before an instruction.
    fn flush(&mut self, index: usize) {
        let cover = self.cover(index);
        for insertion in std::mem::take(&mut self.pending) {
            self.insert(insertion, cover);
        }
    }

    fn insert(&mut self, insertion: Insertion, cover: Cover) {
        match insertion {
            Insertion::Count(counter) => self.count(counter, cover),
            Insertion::At(slot) => self.set_slot(frame::distance(slot), cover),
            // Without blocks, the scratch register has another number, which is not used.
            Insertion::Caught => self.call(Call::Caught, self.frame(), cover),
        }
    }

    /// Adds one to a counter.
    fn count(&mut self, counter: u16, cover: Cover) {
        let (index, value) = (self.scratch(), self.value());
        match i8::try_from(counter) {
            Ok(distance) => {
                let operands = pair(self.frame(), distance.cast_unsigned().into());
                let add = vec![first(opcode::ADD_INT_LIT8, index), operands];
                self.code.units(add, None);
            }
            Err(_) => {
                self.constant(index, counter.into());
                let add = vec![first(opcode::ADD_INT, index), pair(self.frame(), index)];
                self.code.units(add, None);
            }
        }
        let place = pair(self.words(), index);
        let get = vec![first(opcode::AGET_WIDE, value), place];
        self.code.units(get, Some(cover));
        let add = vec![first(opcode::ADD_LONG, value), pair(value, self.one())];
        self.code.units(add, None);
        let put = vec![first(opcode::APUT_WIDE, value), place];
        self.code.units(put, Some(cover));
    }

    /// Sets the distance of the slot of the next call, or says that the method is left.
    fn set_slot(&mut self, distance: i64, cover: Cover) {
        let value = self.value();
        self.wide_constant(value, distance);
        let put = vec![
            first(opcode::APUT_WIDE, value),
            pair(self.words(), self.frame()),
        ];
        self.code.units(put, Some(cover));
    }

    /// Sets a `long` whose value has 32 bits at most.
    fn wide_constant(&mut self, register: u16, value: i64) {
        let units = match i16::try_from(value) {
            Ok(value) => vec![
                first(opcode::CONST_WIDE_16, register),
                value.cast_unsigned(),
            ],
            Err(_) => {
                let value = i32::try_from(value).unwrap_or(i32::MAX);
                let [low, high] = halves(value.cast_unsigned());
                vec![first(opcode::CONST_WIDE_32, register), low, high]
            }
        };
        self.code.units(units, None);
    }

    fn counts_blocks(&self) -> bool {
        self.counting
            .is_some_and(|counting| counting.plan.counted == Counted::Blocks)
    }

    fn constant(&mut self, register: u16, value: u32) {
        let units = match i16::try_from(value) {
            Ok(value) => vec![first(opcode::CONST_16, register), value.cast_unsigned()],
            Err(_) => {
                let [low, high] = halves(value);
                vec![first(opcode::CONST, register), low, high]
            }
        };
        self.code.units(units, None);
    }

    /// Calls the runtime with two registers: those of the frame and of the scratch, but at the entry.
    fn call(&mut self, call: Call, arguments: u16, cover: Cover) {
        let Some(counting) = self.counting else {
            return;
        };
        let units = vec![
            first(opcode::INVOKE_STATIC_RANGE, 2),
            counting.runtime.method(call),
            arguments,
        ];
        self.code.units(units, Some(cover));
    }

    /// Copies an instruction, with the new index of what it refers to.
    fn copy(&mut self, instruction: &Instruction, cover: Cover) -> Result<()> {
        let cover = instruction.throws().then_some(cover);
        let first = instruction.unit(0);
        let label = |target: &usize| self.labels.get(*target).copied();
        match &instruction.operand {
            Operand::Branch(target) => {
                if let Some(target) = label(target) {
                    match instruction.code {
                        opcode::GOTO..=opcode::GOTO_32 => self.code.goto(target),
                        _ => self.code.branch(first, target),
                    }
                }
            }
            Operand::Switch { head, targets } => {
                let targets = targets.iter().filter_map(label).collect();
                self.code.table(first, head.clone(), targets, cover);
            }
            Operand::Data(units) => self.code.table(first, units.clone(), Vec::new(), cover),
            Operand::None => {
                let units = self.with_new_index(instruction)?;
                self.code.units(units, cover);
            }
        }
        Ok(())
    }

    fn with_new_index(&self, instruction: &Instruction) -> Result<Vec<u16>> {
        let mut units = instruction.units.clone();
        let Some(old) = instruction.index() else {
            return Ok(units);
        };
        let at = (instruction.pc as usize)
            .saturating_mul(2)
            .saturating_add(self.method.at);
        let order = self.order;
        let new = match instruction.opcode.index {
            Index::String => order.strings.get(old, at)?,
            Index::Type => order.types.get(old, at)?,
            Index::Field => order.fields.get(old, at)?,
            Index::DexMethod | Index::MethodAndProto => order.methods.get(old, at)?,
            Index::Proto => order.protos.get(old, at)?,
            Index::CallSite | Index::MethodHandle | Index::No => old,
            _ => return Err(invalid("instruction", at, "an index of a VM's own")),
        };
        let [low, high] = halves(new);
        if let Some(place) = units.get_mut(1) {
            *place = low;
        }
        if instruction.opcode.index == Index::MethodAndProto
            && let Some(proto) = units.get_mut(3)
        {
            let [new, _] = halves(order.protos.get((*proto).into(), at)?);
            *proto = new;
        }
        match instruction.code {
            opcode::CONST_STRING_JUMBO => {
                if let Some(place) = units.get_mut(2) {
                    *place = high;
                }
            }
            opcode::CONST_STRING if high > 0 => {
                let [_, register] = instruction.unit(0).to_le_bytes();
                units = vec![
                    u16::from_le_bytes([opcode::CONST_STRING_JUMBO, register]),
                    low,
                    high,
                ];
            }
            _ => {}
        }
        Ok(units)
    }

    /// Adds a stub for each handler that does not begin by taking the exception, because a branch may lead to it, too.
    fn handler_stubs(&mut self) -> Vec<(usize, Label)> {
        let mut stubs: Vec<(usize, Label)> = Vec::new();
        if self.counting.is_none() {
            return stubs;
        }
        let (item, instructions) = (self.method.item, self.method.instructions);
        for target in item.handlers.iter().flat_map(Handlers::targets) {
            let Some(index) = index_of(instructions, target) else {
                continue;
            };
            let takes = instructions.get(index).map(Instruction::is_move_exception);
            let is_known = stubs.binary_search_by_key(&index, |(known, _)| *known);
            let (Some(false), Err(place)) = (takes, is_known) else {
                continue;
            };
            if self.method.flow.state(index).is_none() {
                continue;
            }
            let label = self.code.label();
            stubs.insert(place, (index, label));
        }
        for (index, label) in &stubs {
            self.code.place(*label);
            let cover = self.cover(*index);
            self.insert(Insertion::Caught, cover);
            if let Some(target) = self.labels.get(*index) {
                self.code.goto(*target);
            }
        }
        stubs
    }

    /// Adds the stub for exceptions that leave the method.
    fn exit_stub(&mut self) -> Option<Label> {
        self.counting?;
        let label = self.code.label();
        self.code.place(label);
        let exception = self.one();
        self.code
            .units(vec![first(opcode::MOVE_EXCEPTION, exception)], None);
        // The call may fail: no room on the stack.
        self.set_slot(frame::LEFT, Cover::NONE);
        self.call(Call::Thrown, self.frame(), Cover::NONE);
        self.code
            .units(vec![first(opcode::THROW, exception)], Some(Cover::NONE));
        Some(label)
    }
}

/// Returns the first code unit of an instruction with a register, or a number, below 256.
fn first(code: u8, register: u16) -> u16 {
    let [low, _] = register.to_le_bytes();
    u16::from_le_bytes([code, low])
}

/// Returns the code unit of two registers, or of a register and a number, below 256.
fn pair(low: u16, high: u16) -> u16 {
    let ([low, _], [high, _]) = (low.to_le_bytes(), high.to_le_bytes());
    u16::from_le_bytes([low, high])
}

mod entry;
#[cfg(test)]
mod tests;
