//! Executes a program instruction by instruction. Its counts are exact; what is faster has to agree with it.

use std::{collections::HashMap, io, ops::Range};

use varid_model::Address;
use varid_processor::{Cycles, Unsupported};
use varid_riscv::{Instruction, Operation, Register, Xlen, decode};

use crate::{
    block::{Block, Exit, Link, MAX_LENGTH},
    call_stack::{Call, CallStack},
    context::{ContextId, Contexts},
    control_registers::ControlRegisters,
    counts::{BlockId, CellId, Counts},
    execute::{self, execute},
    fault::{Cause, Fault, Stop},
    machine::Machine,
    memory::{MemoryAccess, MemoryFault, Stored},
    observer::Observer,
    system::Reply,
};

/// The most decoded instructions of all blocks. A program that has more writes its code while it runs.
const MAX_DECODED: usize = 1 << 23;
/// The most blocks in contexts.
const MAX_CELLS: usize = 1 << 25;
/// The most bytes of a store.
const MAX_STORE: u32 = 8;

/// A program that is executed.
#[derive(Debug)]
pub struct Interpreter {
    machine: Machine,
    counts: Counts,
    calls: CallStack,
    control: ControlRegisters,
    /// The blocks that are valid, by their starts.
    blocks: HashMap<u32, BlockId>,
    /// Blocks of which only the first instructions were executed.
    cut: HashMap<(BlockId, usize), BlockId>,
    /// The instructions of all blocks, valid or not.
    decoded: usize,
    /// The most instructions.
    limit: u64,
    /// How often the program has changed code that was decoded.
    code_changes: u64,
}

/// How far a block was executed.
enum Body {
    /// All instructions. What the last one does to the flow of control is not done yet.
    Whole,
    /// So many instructions, the last of which has changed code from this address on.
    Changed(usize, u32),
    /// So many instructions; the next one cannot be executed.
    Fault(usize, Fault),
}

/// Executes some instructions of a block.
#[inline]
fn run_body(
    machine: &mut Machine,
    block: &Block,
    range: Range<usize>,
    observer: &mut impl Observer,
) -> Body {
    let mut pc = match range.start {
        0 => block.start,
        first => block.address(first),
    };
    let instructions = block.instructions.iter().enumerate();
    let instructions = instructions.take(range.end).skip(range.start);
    for (index, instruction) in instructions {
        observer.instruction(index, instruction, &machine.hart);
        match execute(&mut machine.hart, &mut machine.memory, instruction, pc) {
            Ok(Stored::Data) => {}
            Ok(Stored::Code(address)) => return Body::Changed(index.wrapping_add(1), address),
            Err(cause) => return Body::Fault(index, fault(pc, cause)),
        }
        pc = pc.wrapping_add(instruction.length.bytes() as u32);
    }
    Body::Whole
}

/// A fault of the instruction at an address.
fn fault(pc: u32, cause: Cause) -> Fault {
    let pc = Address::new(pc.into());
    Fault { pc, cause }
}

/// Ends at an instruction that the processor does not have.
#[cold]
fn refused(unsupported: Unsupported) -> Stop {
    Stop::Fault(Fault {
        pc: unsupported.address,
        cause: Cause::Processor(unsupported),
    })
}

impl Interpreter {
    /// Begins at the program's entry point. `limit` is the most instructions that are executed.
    #[must_use]
    pub fn new(machine: Machine, limit: u64) -> Self {
        let entry = machine.hart.pc;
        let function = machine.functions.start(entry).unwrap_or(entry);
        Self {
            machine,
            counts: Counts::new(function),
            calls: CallStack::default(),
            control: ControlRegisters::default(),
            blocks: HashMap::new(),
            cut: HashMap::new(),
            decoded: 0,
            limit,
            code_changes: 0,
        }
    }

    /// What was executed.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// What was executed, for an engine that executes a part of the program itself.
    pub fn counts_mut(&mut self) -> &mut Counts {
        &mut self.counts
    }

    /// The program's state, for an engine that executes a part of the program itself.
    pub fn machine_mut(&mut self) -> &mut Machine {
        &mut self.machine
    }

    /// The calls that have not returned.
    pub fn calls_mut(&mut self) -> &mut CallStack {
        &mut self.calls
    }

    /// The most instructions that are executed.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// How often the program has changed code that was decoded. What was made of it before is not valid.
    #[must_use]
    pub const fn code_changes(&self) -> u64 {
        self.code_changes
    }

    /// Writes what is buffered of the program's output.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.machine.system.flush()
    }

    /// The program's state.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Executes the program until it stops. A program that asks for the time gets the observer's.
    pub fn run(&mut self, observer: &mut impl Observer) -> Stop {
        let mut cell = match self.begin() {
            Ok(first) => first,
            Err(stop) => return stop,
        };
        loop {
            cell = match self.step(cell, observer) {
                Ok(next) => next,
                Err(stop) => return stop,
            };
        }
    }

    /// Returns the first cell.
    ///
    /// # Errors
    ///
    /// There is no code.
    pub fn begin(&mut self) -> Result<CellId, Stop> {
        self.cell_at(Contexts::ROOT, self.machine.hart.pc)
    }

    /// Executes the block of a cell. Returns the next cell.
    ///
    /// # Errors
    ///
    /// The program has stopped.
    #[inline]
    pub fn step(&mut self, id: CellId, observer: &mut impl Observer) -> Result<CellId, Stop> {
        let Some((id_of_block, block)) = self.counts.cell(id).and_then(|cell| {
            let block = self.counts.block(cell.block)?;
            Some((cell.block, block))
        }) else {
            return Err(self.lost());
        };
        let entered = observer.enter(id, id_of_block, block);
        entered.map_err(refused)?;
        self.resume(id, 0, observer)
    }

    /// Executes the block of a cell from one of its instructions on. The observer knows of those before. Returns the next cell.
    ///
    /// # Errors
    ///
    /// The program has stopped.
    #[inline]
    pub fn resume(
        &mut self,
        id: CellId,
        first: usize,
        observer: &mut impl Observer,
    ) -> Result<CellId, Stop> {
        let (counts, machine) = (&mut self.counts, &mut self.machine);
        let Some((cell, block)) = counts
            .cell(id)
            .and_then(|cell| Some((*cell, counts.block(cell.block)?)))
        else {
            return Err(self.lost());
        };
        let length = block.instructions.len();
        let left = self.limit.saturating_sub(counts.instructions);
        if (length as u64) > left {
            return self.cut_short(id, first, left as usize, observer);
        }
        let body = run_body(machine, block, first..length, observer);
        let (start, end, exit) = (block.start, block.end, block.exit);
        let last = block.instructions.last().copied();
        match body {
            Body::Whole => {}
            Body::Changed(done, address) => return self.leave_changed(id, done, address),
            Body::Fault(done, fault) => {
                self.count_part(id, done);
                return Err(Stop::Fault(fault));
            }
        }
        counts.instructions = counts.instructions.saturating_add(length as u64);
        if let Some(known) = counts.cell_mut(id) {
            known.executions = known.executions.wrapping_add(1);
        }
        let Some(last) = last else {
            return Err(self.lost());
        };
        let hart = &mut self.machine.hart;
        match exit {
            Exit::Next => self.fall_through(id, cell.fall_through, end),
            Exit::Branch { target } => {
                let (left, right) = (hart.get(last.rs1), hart.get(last.rs2));
                let is_taken = match last.operation {
                    Operation::Branch(condition) => execute::is_taken(condition, left, right),
                    _ => false,
                };
                if !is_taken {
                    return self.fall_through(id, cell.fall_through, end);
                }
                if let Some(known) = self.counts.cell_mut(id) {
                    known.taken = known.taken.wrapping_add(1);
                }
                self.jump(id, cell.jump, target)
            }
            Exit::Jump { target, link } => {
                hart.set(last.rd, end);
                match link {
                    Link::Call => self.call(id, cell.jump, target, end),
                    Link::Return | Link::None => self.jump(id, cell.jump, target),
                }
            }
            Exit::JumpRegister { link } => {
                let target = hart.get(last.rs1).wrapping_add_signed(last.immediate) & !1;
                hart.set(last.rd, end);
                match link {
                    Link::Call => self.call(id, cell.jump, target, end),
                    Link::Return => self.return_to(id, target),
                    Link::None => self.jump(id, cell.jump, target),
                }
            }
            Exit::Environment => {
                let pc = end.wrapping_sub(last.length.bytes() as u32).max(start);
                self.environment(&last, pc, observer.cycles())?;
                self.fall_through(id, cell.fall_through, end)
            }
        }
    }

    /// Continues behind a block, in the same context unless another function begins there.
    #[inline]
    fn fall_through(
        &mut self,
        id: CellId,
        known: Option<CellId>,
        target: u32,
    ) -> Result<CellId, Stop> {
        if let Some(known) = known {
            return Ok(known);
        }
        let next = self.cell_behind(id, target)?;
        if let Some(cell) = self.counts.cell_mut(id) {
            cell.fall_through = Some(next);
        }
        Ok(next)
    }

    /// Jumps within a function, or from one to another without a call.
    #[inline]
    fn jump(&mut self, id: CellId, known: Option<CellId>, target: u32) -> Result<CellId, Stop> {
        if let Some(known) = known.filter(|known| self.starts_at(*known, target)) {
            return Ok(known);
        }
        let next = self.cell_behind(id, target)?;
        self.link(id, next);
        Ok(next)
    }

    #[inline]
    fn call(
        &mut self,
        id: CellId,
        known: Option<CellId>,
        target: u32,
        return_to: u32,
    ) -> Result<CellId, Stop> {
        let context = self.context_of(id);
        self.calls.push(Call {
            return_to,
            stack_pointer: self.machine.hart.get(Register::SP),
            context,
            cell: id,
            entry: 0,
            straddles: 0,
        });
        let next = match known.filter(|known| self.starts_at(*known, target)) {
            Some(known) => known,
            None => {
                let function = self.machine.functions.start(target).unwrap_or(target);
                let site = self.site(id);
                let callee = self.counts.contexts.enter(context, site, function);
                let next = self.cell_at(callee, target)?;
                self.link(id, next);
                next
            }
        };
        self.counts.contexts.count_calls(self.context_of(next), 1);
        Ok(next)
    }

    #[inline]
    fn return_to(&mut self, id: CellId, target: u32) -> Result<CellId, Stop> {
        if let Some(call) = self.calls.pop(target) {
            let known = self
                .counts
                .cell(call.cell)
                .and_then(|cell| cell.fall_through);
            if let Some(known) = known {
                return Ok(known);
            }
            let next = self.cell_at(call.context, target)?;
            if let Some(cell) = self.counts.cell_mut(call.cell) {
                cell.fall_through = Some(next);
            }
            return Ok(next);
        }
        let function = self.machine.functions.start(target);
        let stack_pointer = self.machine.hart.get(Register::SP);
        let contexts = &self.counts.contexts;
        let current = self.context_of(id);
        let found = self
            .calls
            .unwind(target, stack_pointer, function, current, contexts);
        match found {
            Some(context) => self.cell_at(context, target),
            None => self.cell_behind(id, target),
        }
    }

    /// Returns the cell of a jump's target. In another function it is in a context of its own.
    #[cold]
    fn cell_behind(&mut self, id: CellId, target: u32) -> Result<CellId, Stop> {
        let from = self.context_of(id);
        let function = self.machine.functions.start(target);
        let current = self.counts.contexts.function(from);
        let context = match function.filter(|function| *function != current) {
            Some(function) => {
                let site = self.site(id);
                self.counts.contexts.enter(from, site, function)
            }
            None => from,
        };
        self.cell_at(context, target)
    }

    #[cold]
    fn cell_at(&mut self, context: ContextId, target: u32) -> Result<CellId, Stop> {
        let block = self.block_at(target)?;
        Ok(self.counts.cell_of(context, block))
    }

    fn link(&mut self, from: CellId, to: CellId) {
        if let Some(cell) = self.counts.cell_mut(from) {
            cell.jump = Some(to);
        }
    }

    #[inline]
    fn starts_at(&self, id: CellId, target: u32) -> bool {
        let block = self.counts.block_of(id);
        block.is_some_and(|block| block.start == target)
    }

    #[inline]
    fn context_of(&self, id: CellId) -> ContextId {
        let cell = self.counts.cell(id);
        cell.map_or(Contexts::ROOT, |cell| cell.context)
    }

    /// The address of a cell's last instruction.
    fn site(&self, id: CellId) -> u32 {
        let block = self.counts.block_of(id);
        let last = block.and_then(|block| Some((block.end, block.instructions.last()?)));
        last.map_or(0, |(end, last)| {
            end.wrapping_sub(last.length.bytes() as u32)
        })
    }

    /// Executes an instruction that ends a block without a jump.
    fn environment(&mut self, instruction: &Instruction, pc: u32, now: Cycles) -> Result<(), Stop> {
        let fault = |cause| Stop::Fault(fault(pc, cause));
        let Machine {
            hart,
            memory,
            system,
            ..
        } = &mut self.machine;
        match instruction.operation {
            Operation::Ecall => {
                let reply = system.call(hart, memory, now);
                match reply.map_err(|call| fault(call.into()))? {
                    Reply::Value(value) => hart.set(Register::A0, value),
                    Reply::Exit(status) => return Err(Stop::Exit(status)),
                }
            }
            Operation::Ebreak => return Err(fault(Cause::Breakpoint)),
            Operation::TrapReturn => return Err(fault(Cause::Unsupported("traps"))),
            Operation::Csr(_) | Operation::CsrImmediate(_) => {
                let done = self
                    .control
                    .execute(hart, instruction, self.counts.instructions, now);
                done.map_err(fault)?;
            }
            // What was written as code is seen at once.
            _ => {}
        }
        Ok(())
    }

    /// Executes only as many instructions as the limit allows.
    #[cold]
    fn cut_short(
        &mut self,
        id: CellId,
        first: usize,
        left: usize,
        observer: &mut impl Observer,
    ) -> Result<CellId, Stop> {
        let Some(block) = self.counts.block_of(id) else {
            return Err(self.lost());
        };
        let body = run_body(&mut self.machine, block, first..left, observer);
        let (done, stop) = match body {
            Body::Whole => (left, Stop::Limit),
            Body::Changed(done, _) => (done, Stop::Limit),
            Body::Fault(done, fault) => (done, Stop::Fault(fault)),
        };
        self.count_part(id, done);
        Err(stop)
    }

    /// Leaves a block behind an instruction that has changed code, perhaps the block's own.
    #[cold]
    fn leave_changed(&mut self, id: CellId, done: usize, address: u32) -> Result<CellId, Stop> {
        self.code_changes = self.code_changes.saturating_add(1);
        let context = self.context_of(id);
        let next = self.count_part(id, done);
        let end = address.saturating_add(MAX_STORE);
        let counts = &mut self.counts;
        self.blocks.retain(|start, block| {
            let block = counts.block(*block);
            *start >= end || block.is_some_and(|block| block.end <= address)
        });
        counts.unlink();
        match next {
            Some(next) => self.cell_at(context, next),
            None => Err(self.lost()),
        }
    }

    /// Counts the first instructions of a block, as a block of its own. Returns the address behind them.
    fn count_part(&mut self, id: CellId, done: usize) -> Option<u32> {
        let cell = *self.counts.cell(id)?;
        let block = self.counts.block(cell.block)?;
        let instructions = block.instructions.get(..done)?;
        let bytes = instructions.iter().map(|one| one.length.bytes() as u32);
        let start = block.start;
        let end = bytes.fold(start, u32::wrapping_add);
        if done == 0 {
            return Some(end);
        }
        let part = match self.cut.get(&(cell.block, done)) {
            Some(known) => *known,
            None => {
                let part = Block {
                    start,
                    instructions: instructions.to_vec(),
                    end,
                    exit: Exit::Next,
                    following: block.instructions.get(done).map(|one| one.length),
                };
                self.decoded = self.decoded.saturating_add(done);
                let added = self.counts.add_block(part);
                self.cut.insert((cell.block, done), added);
                added
            }
        };
        let part = self.counts.cell_of(cell.context, part);
        let counts = &mut self.counts;
        counts.instructions = counts.instructions.saturating_add(done as u64);
        if let Some(part) = counts.cell_mut(part) {
            part.executions = part.executions.wrapping_add(1);
        }
        Some(end)
    }

    /// Returns the block that begins at an address, which is decoded if it is new.
    ///
    /// # Errors
    ///
    /// There is no code, or too much.
    pub fn block_at(&mut self, start: u32) -> Result<BlockId, Stop> {
        if let Some(known) = self.blocks.get(&start) {
            return Ok(*known);
        }
        if self.decoded >= MAX_DECODED || self.counts.cells.len() >= MAX_CELLS {
            return Err(Stop::Fault(fault(start, Cause::TooMuchCode)));
        }
        let block = self.decode(start)?;
        self.machine.memory.watch_code(&(block.start..block.end));
        self.decoded = self.decoded.saturating_add(block.instructions.len());
        let id = self.counts.add_block(block);
        self.blocks.insert(start, id);
        Ok(id)
    }

    fn decode(&self, start: u32) -> Result<Block, Stop> {
        let mut block = Block {
            start,
            instructions: Vec::new(),
            end: start,
            exit: Exit::Next,
            following: None,
        };
        while block.instructions.len() < MAX_LENGTH {
            let code = self.machine.memory.up_to(block.end, 4);
            let decoded = match code.is_empty() {
                true => Err(Cause::Memory(MemoryFault::Unmapped {
                    access: MemoryAccess::Fetch,
                    address: Address::new(block.end.into()),
                    bytes: 2,
                })),
                false => decode(code, Xlen::Rv32).map_err(Cause::from),
            };
            let instruction = match decoded {
                Ok(instruction) => instruction,
                // It is a fault when it is reached.
                Err(_) if !block.instructions.is_empty() => break,
                Err(cause) => return Err(Stop::Fault(fault(start, cause))),
            };
            let exit = Exit::of(&instruction, block.end);
            let length = instruction.length.bytes() as u32;
            block.instructions.push(instruction);
            // At the end of the address space.
            let Some(end) = block.end.checked_add(length) else {
                block.end = block.end.wrapping_add(length);
                break;
            };
            block.end = end;
            if let Some(exit) = exit {
                block.exit = exit;
                break;
            }
        }
        let code = self.machine.memory.up_to(block.end, 4);
        let following = decode(code, Xlen::Rv32).ok();
        block.following = following.map(|instruction| instruction.length);
        Ok(block)
    }

    /// No table has a number that came from it.
    #[cold]
    fn lost(&self) -> Stop {
        Stop::Fault(fault(self.machine.hart.pc, Cause::Lost))
    }
}

#[cfg(test)]
mod tests;
