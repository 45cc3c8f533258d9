//! Executes a program: translated code where there is some, the interpreter elsewhere.

use std::{collections::HashMap, rc::Rc};

use varid_machine::{
    Call, Cause, Cell, CellId, ContextId, Elsewhere, Exit, Fault, Interpreter, Link, Stop, System,
    Timing,
};
use varid_model::Address;
use varid_processor::{Cycles, Pending, Unsupported};
use varid_riscv::{Operation, Register};

use crate::{
    code::{Entered, Gate, events},
    emit::{Emitter, Target},
    function::{Function, Unit},
    memory::{Alignment, Range, WIDTHS},
    plan::VersionId,
    planner::Planner,
    settle::{Instructions, settle},
    state::{ContextRow, Passage, State},
};

/// The most counters of all contexts: 256 MB. Further contexts are interpreted.
const MAX_COUNTERS: usize = 1 << 25;
/// A program that has changed its code so often is interpreted from then on.
const MAX_CODE_CHANGES: u64 = 16;

/// A program that is executed.
pub struct Engine<'e, 'p> {
    interpreter: &'e mut Interpreter,
    timing: &'e mut Timing<'p>,
    emitter: Emitter,
    gate: Gate,
    target: Target,
    /// How many blocks of a function are interpreted before it is translated.
    hot: u32,
    functions: HashMap<u32, Function>,
    state: Box<State>,
    /// By context.
    rows: Vec<ContextRow>,
    /// By context, as long as its function has a translation.
    counters: Vec<Box<[u64]>>,
    /// By context, as long as its function has a translation.
    known: Vec<Option<Known>>,
    /// How many counters there are.
    counted: usize,
    /// The code changes after which all translations were made.
    code_changes: u64,
    /// Whether translated code has counted something.
    is_settled: bool,
    /// What is pending where translated code was left, if it is not what was planned.
    arrived: Option<Pending>,
}

/// What is known of a context that has code.
struct Known {
    unit: Rc<Unit>,
    /// By block of its plan. None: it was not asked for.
    cells: Vec<Option<CellId>>,
}

/// A place at which translated code was left.
struct Left {
    cell: CellId,
    version: VersionId,
    /// The instruction before which it was left.
    index: usize,
    unit: Rc<Unit>,
}

impl<'e, 'p> Engine<'e, 'p> {
    /// Prepares the translation of functions of which `hot` blocks were interpreted. None: this machine does not permit it.
    pub fn new(
        interpreter: &'e mut Interpreter,
        timing: &'e mut Timing<'p>,
        hot: u32,
    ) -> Option<Self> {
        let machine = interpreter.machine_mut();
        let stack = machine.hart.get(Register::SP);
        let (start, bytes) = machine.memory.region_mut(stack)?;
        let target = Target {
            memory: Range::of(start, u32::try_from(bytes.len()).ok()?),
            alignment: Alignment::of(timing.processor()),
            is_limited: interpreter.limit() != u64::MAX,
            caches: timing.caches(),
        };
        let mut emitter = Emitter::new(target).ok()?;
        let gate = emitter.gate().ok()?;
        Some(Self {
            code_changes: interpreter.code_changes(),
            interpreter,
            timing,
            emitter,
            gate,
            target,
            hot,
            functions: HashMap::new(),
            state: Box::default(),
            rows: Vec::new(),
            counters: Vec::new(),
            known: Vec::new(),
            counted: 0,
            is_settled: true,
            arrived: None,
        })
    }

    /// Executes the program until it stops.
    pub fn run(&mut self) -> Stop {
        let stop = self.interpreter.begin().and_then(|mut cell| {
            loop {
                cell = self.step(cell)?;
            }
        });
        self.settle();
        match stop {
            Ok(never) => never,
            Err(stop) => stop,
        }
    }

    /// Executes one block, or many of them. Returns the next cell.
    fn step(&mut self, id: CellId) -> Result<CellId, Stop> {
        let (cell, start) = self.cell(id)?;
        let is_left = self.interpreter.counts().instructions < self.interpreter.limit();
        if is_left && let Some(entry) = self.entry(cell.context, start) {
            let block = self.interpreter.counts().block(cell.block);
            let block = block.ok_or_else(lost)?;
            let pending = self.timing.arrive(id, cell.block, block).map_err(refused)?;
            if pending.is_empty() {
                return self.execute(cell.context, entry);
            }
        }
        self.prepare(id, 0)?;
        let next = self.interpreter.step(id, self.timing)?;
        self.follow(id, next, None)?;
        Ok(next)
    }

    fn cell(&self, id: CellId) -> Result<(Cell, u32), Stop> {
        let counts = self.interpreter.counts();
        let cell = counts.cell(id).copied();
        let found = cell.and_then(|cell| Some((cell, counts.block(cell.block)?.start)));
        found.ok_or_else(lost)
    }

    /// Returns the number of a block's entry in the code of its function, which is translated if it is time for it. None: it is interpreted.
    fn entry(&mut self, context: ContextId, start: u32) -> Option<u32> {
        if self.code_changes > MAX_CODE_CHANGES {
            return None;
        }
        let address = self.interpreter.counts().contexts.function(context);
        let function = self.functions.entry(address).or_default();
        let known = function.unit.clone().zip(function.entries.number(start));
        let (unit, number) = match known {
            Some(known) => known,
            None if function.is_due(self.hot) => {
                let number = function.entries.add(start);
                (self.translate(address)?, number)
            }
            None => return None,
        };
        let is_entered = unit.has_entry(number) && self.activate(context, &unit);
        is_entered.then_some(number)
    }

    /// Translates a function, perhaps once more. None: it is interpreted.
    fn translate(&mut self, address: u32) -> Option<Rc<Unit>> {
        self.settle();
        let function = self.functions.get_mut(&address)?;
        let before = function.unit.take();
        let planner = Planner::new(
            self.interpreter,
            self.timing,
            &mut function.entries,
            address,
        );
        let planned = planner.ok()?.plan(&function.targets);
        let translation = self.emitter.translate(&planned).ok();
        let unit = translation.map(|translation| {
            Rc::new(Unit {
                planned,
                translation,
            })
        });
        function.unit.clone_from(&unit);
        if let Some(before) = before {
            let has_all = unit
                .as_ref()
                .is_some_and(|unit| unit.has_entries_of(&before));
            if !has_all || !self.replace(address, unit.as_ref()?) {
                // Other code leads to what is gone.
                self.forget();
                return None;
            }
        }
        unit
    }

    /// Gives the contexts of a function other code. Returns false if there is no room for their counters.
    fn replace(&mut self, address: u32, unit: &Rc<Unit>) -> bool {
        for id in (0..self.rows.len() as u32).map(ContextId) {
            let index = id.0 as usize;
            let is_concerned = self.interpreter.counts().contexts.function(id) == address;
            let row = self.rows.get_mut(index).zip(self.counters.get_mut(index));
            let Some((row, counters)) = row.filter(|(row, _)| is_concerned && row.code != 0) else {
                continue;
            };
            self.counted = self.counted.saturating_sub(counters.len());
            row.code = 0;
            *counters = Box::default();
            if !self.activate(id, unit) {
                return false;
            }
        }
        true
    }

    /// Drops all translations.
    fn forget(&mut self) {
        self.settle();
        for function in self.functions.values_mut() {
            function.unit = None;
        }
        self.rows.clear();
        self.counters.clear();
        self.known.clear();
        self.counted = 0;
        for call in self.interpreter.calls_mut().calls_mut() {
            call.entry = 0;
        }
    }

    /// Adds what was counted to the counts and to the time.
    fn settle(&mut self) {
        if std::mem::replace(&mut self.is_settled, true) {
            return;
        }
        let instructions = match self.target.is_limited {
            true => Instructions::Known,
            false => Instructions::Add,
        };
        let mut cycles = Cycles(0);
        for (row, counters) in self.rows.iter_mut().zip(&mut self.counters) {
            let context = ContextId(row.id);
            let counts = self.interpreter.counts_mut();
            let calls = std::mem::take(&mut row.calls);
            counts.contexts.count_calls(context, calls);
            let address = counts.contexts.function(context);
            let function = self.functions.get(&address);
            if let Some(unit) = function.and_then(|function| function.unit.as_ref())
                && row.code != 0
            {
                let planned = &unit.planned;
                let settled = settle(
                    planned,
                    context,
                    counters,
                    counts,
                    self.timing,
                    instructions,
                );
                cycles = cycles.plus(settled);
            }
        }
        self.timing.advance(cycles);
    }

    /// Gives a context the code of its function, and counters. Returns false if there is no room.
    fn activate(&mut self, id: ContextId, unit: &Rc<Unit>) -> bool {
        let index = id.0 as usize;
        while self.rows.len() <= index {
            let id = self.rows.len() as u32;
            self.rows.push(ContextRow {
                id,
                ..ContextRow::default()
            });
            self.counters.push(Box::default());
            self.known.push(None);
        }
        let (Some(row), Some(counters)) = (self.rows.get_mut(index), self.counters.get_mut(index))
        else {
            return false;
        };
        if row.code != 0 {
            return true;
        }
        let count = unit.planned.plan.counters;
        if self.counted.saturating_add(count) > MAX_COUNTERS {
            return false;
        }
        self.counted = self.counted.saturating_add(count);
        *counters = vec![0; count].into();
        row.counters = counters.as_mut_ptr();
        row.code = unit.translation.code.address();
        if let Some(known) = self.known.get_mut(index) {
            *known = Some(Known::new(Rc::clone(unit)));
        }
        true
    }

    /// Executes translated code, and what the interpreter does where it is left.
    fn execute(&mut self, context: ContextId, entry: u32) -> Result<CellId, Stop> {
        self.is_settled = false;
        let executed = self.enter(context, entry);
        let counts = self.interpreter.counts_mut();
        counts.instructions = counts.instructions.saturating_add(executed);
        let left = self.left()?;
        self.prepare(left.cell, left.index)?;
        let next = self.resume(&left)?;
        self.follow(left.cell, next, Some(&left))?;
        Ok(next)
    }

    /// Lets translated code run. Returns how many instructions it has counted.
    fn enter(&mut self, context: ContextId, entry: u32) -> u64 {
        let limit = self.interpreter.limit();
        let left = limit.saturating_sub(self.interpreter.counts().instructions);
        let machine = self.interpreter.machine_mut();
        let state = &mut *self.state;
        state.left = left;
        for (register, value) in Register::all().zip(&mut state.registers) {
            *value = machine.hart.get(register);
        }
        let guarded = machine.memory.guarded();
        let region = self.target.memory;
        if let Some((start, bytes)) = machine.memory.region_mut(region.start) {
            let skipped = region.start.wrapping_sub(start);
            state.memory = (bytes.as_mut_ptr() as u64).wrapping_add(skipped.into());
        }
        let stores = region.outside(&guarded);
        state.store_start = stores.start.wrapping_sub(region.start);
        state.store_limits = WIDTHS.map(|width| stores.limit(width).into());
        state.stored_word = self.timing.stored_word();
        state.from_row = 0;
        let calls = self.interpreter.calls_mut();
        let len = calls.calls().len();
        let range = calls.rows_mut().as_mut_ptr_range();
        state.calls = range.start;
        state.calls_top = range.start.wrapping_add(len);
        state.calls_end = range.end;
        state.contexts = self.rows.as_mut_ptr();
        let Some(code) = self.rows.get(context.0 as usize).map(|row| row.code) else {
            return 0;
        };
        let entered = Entered {
            state: &raw mut *state,
            row: state.contexts.wrapping_add(context.0 as usize),
            code,
            entry,
        };
        let gate = self.gate.address();
        self.state.events = events(self);
        gate.enter(entered);
        self.timing.set_stored_word(self.state.stored_word);
        let state = &*self.state;
        let end = state.calls_top.addr().saturating_sub(state.calls.addr());
        let calls = self.interpreter.calls_mut();
        calls.set_len(end.checked_div(size_of::<Call>()).unwrap_or_default());
        let machine = self.interpreter.machine_mut();
        for (register, value) in Register::all().zip(state.registers) {
            machine.hart.set(register, value);
        }
        match self.target.is_limited {
            true => left.saturating_sub(state.left),
            false => 0,
        }
    }

    /// Finds the block that translated code was left in.
    fn left(&mut self) -> Result<Left, Stop> {
        let context = ContextId(self.state.exit_context);
        let version = VersionId(self.state.exit_version as usize);
        let address = self.interpreter.counts().contexts.function(context);
        let function = self.functions.get(&address);
        let unit = function.and_then(|function| function.unit.clone());
        let id = unit
            .as_ref()
            .and_then(|unit| unit.planned.plan.versions.get(version.0));
        let known = id.map(|version| (version.id, version.stopped()));
        if let Some((_, stopped)) = known
            && let Some(counters) = self.counters.get_mut(context.0 as usize)
            && let Some(stopped) = counters.get_mut(stopped.0)
        {
            *stopped = stopped.saturating_add(1);
        }
        match (known, unit) {
            (Some((id, _)), Some(unit)) => Ok(Left {
                cell: self.interpreter.counts_mut().cell_of(context, id),
                version,
                index: self.state.exit_instruction as usize,
                unit,
            }),
            _ => Err(lost()),
        }
    }

    /// Executes the rest of a block by the interpreter.
    fn resume(&mut self, left: &Left) -> Result<CellId, Stop> {
        let Some(version) = left.unit.planned.plan.versions.get(left.version.0) else {
            return Err(lost());
        };
        let index = left.index;
        let arrived = self.arrived.take();
        let elsewhere = Elsewhere {
            pending: arrived.as_ref().unwrap_or(&version.pending),
            addresses: addresses(&self.state),
        };
        let block = (version.id, &version.block);
        let resumed = self.timing.resume(left.cell, block, index, &elsewhere);
        resumed.map_err(refused)?;
        self.interpreter.resume(left.cell, index, self.timing)
    }

    /// Adds up the time if the rest of a block asks for it.
    fn prepare(&mut self, id: CellId, first: usize) -> Result<(), Stop> {
        let block = self.interpreter.counts().block_of(id).ok_or_else(lost)?;
        if block.exit != Exit::Environment {
            return Ok(());
        }
        let is_last = first.saturating_add(1) >= block.instructions.len();
        let last = block.instructions.last().map(|last| last.operation);
        let hart = &self.interpreter.machine().hart;
        let asks = match last {
            // What it asks for is known when nothing else comes before.
            Some(Operation::Ecall) => !is_last || System::reads_clock(hart),
            Some(Operation::Csr(_) | Operation::CsrImmediate(_)) => true,
            _ => false,
        };
        if asks {
            self.settle();
        }
        Ok(())
    }

    /// Notes where the interpreter went, so that translated code goes there by itself the next time.
    fn follow(&mut self, from: CellId, to: CellId, left: Option<&Left>) -> Result<(), Stop> {
        if self.interpreter.code_changes() != self.code_changes {
            self.code_changes = self.interpreter.code_changes();
            self.forget();
            return Ok(());
        }
        let (cell, _) = self.cell(from)?;
        let block = self
            .interpreter
            .counts()
            .block(cell.block)
            .ok_or_else(lost)?;
        match block.exit {
            Exit::Jump {
                link: Link::Call, ..
            }
            | Exit::JumpRegister { link: Link::Call } => {
                let end = block.end;
                self.note_call(cell.context, end);
            }
            Exit::JumpRegister { link: Link::None } => self.note_target(cell.context, to)?,
            _ => {}
        }
        match left {
            Some(left) => self.note_passage(left, cell.context, to),
            None => Ok(()),
        }
    }

    /// Lets the innermost call return to translated code.
    fn note_call(&mut self, context: ContextId, return_to: u32) {
        let address = self.interpreter.counts().contexts.function(context);
        let Some(function) = self.functions.get(&address) else {
            return;
        };
        let unit = function
            .unit
            .as_ref()
            .zip(function.entries.number(return_to));
        let row = self.rows.get(context.0 as usize);
        let Some((unit, number)) = unit.filter(|_| row.is_some_and(|row| row.code != 0)) else {
            return;
        };
        let straddles = unit.straddles(number);
        if let Some(straddles) = straddles
            && let Some(call) = self.interpreter.calls_mut().calls_mut().last_mut()
        {
            call.entry = number;
            call.straddles = straddles.into();
        }
    }

    /// Notes where a jump to a register has led.
    fn note_target(&mut self, context: ContextId, to: CellId) -> Result<(), Stop> {
        let (next, start) = self.cell(to)?;
        let address = self.interpreter.counts().contexts.function(context);
        let Some(function) = self.functions.get_mut(&address) else {
            return Ok(());
        };
        if next.context == context
            && function.targets.insert(start)
            && function.unit.is_some()
            && function.is_due(self.hot)
        {
            self.translate(address);
        }
        Ok(())
    }

    /// Notes to which context a block leads that was left because this was unknown.
    fn note_passage(&mut self, left: &Left, from: ContextId, to: CellId) -> Result<(), Stop> {
        let (next, start) = self.cell(to)?;
        let Some(version) = left.unit.planned.plan.versions.get(left.version.0) else {
            return Ok(());
        };
        let Some(passages) = version.passages(start) else {
            return Ok(());
        };
        let address = self.interpreter.counts().contexts.function(next.context);
        let Some(function) = self.functions.get(&address) else {
            return Ok(());
        };
        let Some((unit, entry)) = function.unit.clone().zip(function.entries.number(start)) else {
            return Ok(());
        };
        let Some(straddles) = unit.straddles(entry) else {
            return Ok(());
        };
        if !self.activate(next.context, &unit) {
            return Ok(());
        }
        let numbers = Passage {
            context: next.context.0,
            cell: left.cell.0,
            entry,
            target: start,
            straddles: straddles.into(),
            unused: 0,
        };
        if let Some(counters) = self.counters.get_mut(from.0 as usize) {
            numbers.write(counters, passages.map(|place| place.0));
        }
        Ok(())
    }
}

/// The addresses of a block's accesses that were executed by translated code.
fn addresses(state: &State) -> &[u32] {
    let addresses = state.addresses.get(..state.accesses as usize);
    addresses.unwrap_or_default()
}

/// No table has a number that came from it.
#[cold]
fn lost() -> Stop {
    Stop::Fault(Fault {
        pc: Address::new(0),
        cause: Cause::Lost,
    })
}

/// Ends at an instruction that the processor does not have.
#[cold]
fn refused(unsupported: Unsupported) -> Stop {
    Stop::Fault(Fault {
        pc: unsupported.address,
        cause: Cause::Processor(unsupported),
    })
}

mod events;

#[cfg(test)]
mod tests;
