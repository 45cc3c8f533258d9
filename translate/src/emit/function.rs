//! The control flow of a function: its entries, counters, calls and returns.

use std::mem::offset_of;

use cranelift_codegen::ir::{
    AbiParam, AliasRegion, Block, InstBuilder, JumpTableData, MemFlags, Signature, TrapCode, Type,
    Value, condcodes::IntCC, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, Variable};
use varid_riscv::{Instruction, Register};

use super::{
    Target,
    accesses::checks,
    registers::{Registers, changed, used, written},
    values::{Accessed, Destination, HeldVariables, Observed},
};
use crate::{
    plan::{Leave, Plan, Version, VersionId, Way, straddles},
    planner::Planned,
    state::{ContextRow, State},
};

/// The calling convention of translated code: the state, the context's row, the number of the entry.
pub fn signature() -> Signature {
    let mut signature = Signature::new(CallConv::Tail);
    let parameters = [types::I64, types::I64, types::I32];
    signature.params.extend(parameters.map(AbiParam::new));
    signature
}

/// The numbers of a plan's targets plus 1, by half-word from the first of them on. 0: none is there.
pub fn target_table(plan: &Plan) -> Box<[u32]> {
    let addresses = plan.targets.iter().map(|(address, _)| *address);
    let (Some(first), Some(last)) = (addresses.clone().min(), addresses.max()) else {
        return Box::default();
    };
    let mut table = vec![0; (last.saturating_sub(first) as usize / 2).saturating_add(1)];
    for ((address, _), number) in plan.targets.iter().zip(1..) {
        let row = address.saturating_sub(first) as usize / 2;
        if let Some(known) = table.get_mut(row) {
            *known = number;
        }
    }
    table.into()
}

/// Fills a function with the code of a plan. `targets` is its [`target_table`], which stays where it is.
pub fn emit(builder: FunctionBuilder<'_>, planned: &Planned, target: &Target, targets: &[u32]) {
    let mut emitter = FunctionEmitter::new(builder, planned, target, targets);
    emitter.entries();
    for (id, version) in planned.plan.versions.iter().enumerate() {
        emitter.version(VersionId(id), version);
    }
    emitter.finish();
}

/// An instruction of a block, as a place at which translated code is left.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub version: VersionId,
    pub index: usize,
    /// The registers that differ from memory.
    pub changed: Registers,
}

/// Emits a function.
pub struct FunctionEmitter<'f> {
    pub builder: FunctionBuilder<'f>,
    pub target: &'f Target,
    pub planned: &'f Planned,
    pub plan: &'f Plan,
    targets: &'f [u32],
    blocks: Vec<Block>,
    changed: Vec<Registers>,
    registers: [Variable; 32],
    pub left: Variable,
    pub held: HeldVariables,
    /// Not 0: the block is issued once more.
    pub event: Variable,
    pub observed: Observed,
    pub values: Values,
    /// Where the function is left to the interpreter: with the numbers of the block and of the instruction.
    leave: Block,
}

/// What is the same in all blocks.
#[derive(Debug, Clone, Copy)]
pub struct Values {
    pub state: Value,
    pub row: Value,
    pub counters: Value,
    /// The host's address of the region's first byte.
    pub memory: Value,
}

/// Memory of this crate.
pub fn own() -> MemFlags {
    MemFlags::trusted().with_alias_region(Some(AliasRegion::Vmctx))
}

/// Memory of this crate that can be read at any time, and does not change while a function runs.
pub fn constant() -> MemFlags {
    MemFlags::trusted().with_readonly().with_can_move()
}

/// The offset of a field, all of which are small.
pub const fn small(offset: usize) -> i32 {
    offset as i32
}

impl<'f> FunctionEmitter<'f> {
    fn new(
        mut builder: FunctionBuilder<'f>,
        planned: &'f Planned,
        target: &'f Target,
        targets: &'f [u32],
    ) -> Self {
        let plan = &planned.plan;
        let registers = [(); 32].map(|()| builder.declare_var(types::I32));
        let left = builder.declare_var(types::I64);
        let event = builder.declare_var(types::I32);
        let held = HeldVariables::new(&mut builder, &planned.held);
        let first = builder.create_block();
        builder.append_block_params_for_function_params(first);
        builder.switch_to_block(first);
        let (state, row) = match *builder.block_params(first) {
            [state, row, ..] => (state, row),
            // The signature has them.
            _ => {
                let zero = builder.ins().iconst(types::I64, 0);
                (zero, zero)
            }
        };
        let counters = small(offset_of!(ContextRow, counters));
        let counters = builder.ins().load(types::I64, constant(), row, counters);
        let memory = small(offset_of!(State, memory));
        let memory = builder.ins().load(types::I64, constant(), state, memory);
        let blocks = plan.versions.iter().map(|_| builder.create_block());
        let blocks = blocks.collect();
        let leave = builder.create_block();
        builder.set_cold_block(leave);
        builder.append_block_param(leave, types::I32);
        builder.append_block_param(leave, types::I32);
        Self {
            builder,
            target,
            planned,
            plan,
            targets,
            blocks,
            changed: changed(plan),
            registers,
            left,
            held,
            event,
            observed: Observed::default(),
            values: Values {
                state,
                row,
                counters,
                memory,
            },
            leave,
        }
    }

    /// Reads a register.
    pub fn get(&mut self, register: Register) -> Value {
        match self.registers.get(register.number()) {
            Some(variable) if register != Register::ZERO => self.builder.use_var(*variable),
            _ => self.constant(0),
        }
    }

    /// Writes a register.
    pub fn set(&mut self, register: Register, value: Value) {
        if let Some(variable) = self.registers.get(register.number())
            && register != Register::ZERO
        {
            self.builder.def_var(*variable, value);
        }
    }

    /// A constant of 32 bits.
    pub fn constant(&mut self, value: u32) -> Value {
        self.builder.ins().iconst(types::I32, i64::from(value))
    }

    /// Goes on in a new block if a condition holds, else leaves the function before an instruction.
    pub fn check(&mut self, condition: Value, place: Place) {
        let next = self.builder.create_block();
        let stop = self.builder.create_block();
        self.builder.set_cold_block(stop);
        self.builder.ins().brif(condition, next, &[], stop, &[]);
        self.builder.switch_to_block(stop);
        self.stop(place);
        self.builder.switch_to_block(next);
    }

    /// Leaves the function before an instruction.
    fn stop(&mut self, place: Place) {
        self.leave_loop(place.version, None);
        self.write_addresses();
        self.write_registers(place.changed);
        let version = self.constant(place.version.0 as u32);
        let index = self.constant(place.index as u32);
        self.builder
            .ins()
            .jump(self.leave, &[version.into(), index.into()]);
    }

    /// Writes the registers, and how many instructions are left, to memory.
    pub fn write_registers(&mut self, changed: Registers) {
        for number in changed.numbers() {
            if let Some(variable) = self.registers.get(number) {
                let value = self.builder.use_var(*variable);
                let offset = State::register(number);
                self.builder
                    .ins()
                    .store(own(), value, self.values.state, offset);
            }
        }
        if self.target.is_limited {
            let left = self.builder.use_var(self.left);
            self.store_state(left, offset_of!(State, left));
        }
    }

    pub fn load_state(&mut self, kind: Type, offset: usize) -> Value {
        let state = self.values.state;
        self.builder.ins().load(kind, own(), state, small(offset))
    }

    pub fn store_state(&mut self, value: Value, offset: usize) {
        let state = self.values.state;
        self.builder.ins().store(own(), value, state, small(offset));
    }

    /// Jumps to the block of the entry with the number that the function was called with.
    fn entries(&mut self) {
        let number = match self.builder.current_block() {
            Some(first) => self.builder.block_params(first).last().copied(),
            None => None,
        };
        let used = used(self.plan);
        let unknown = self.builder.create_block();
        let mut cases = vec![unknown];
        let entries = self.plan.entries.iter();
        cases.extend(entries.map(|entry| match entry {
            Some(_) => self.builder.create_block(),
            None => unknown,
        }));
        if let Some(number) = number {
            self.switch(number, unknown, &cases);
        }
        for (entry, case) in self.plan.entries.iter().zip(cases.iter().skip(1)) {
            let Some(version) = *entry else { continue };
            let Some(block) = self.blocks.get(version.0).copied() else {
                continue;
            };
            self.builder.switch_to_block(*case);
            for number in used.numbers() {
                if let Some(variable) = self.registers.get(number) {
                    let offset = State::register(number);
                    let state = self.values.state;
                    let value = self.builder.ins().load(types::I32, own(), state, offset);
                    self.builder.def_var(*variable, value);
                }
            }
            if self.target.is_limited {
                let left = self.load_state(types::I64, offset_of!(State, left));
                self.builder.def_var(self.left, left);
            }
            if let Some(planned) = self.plan.versions.get(version.0) {
                self.fetch_first(version, planned);
            }
            self.enter_loop(None, version);
            self.builder.ins().jump(block, &[]);
        }
        // Nobody enters here: the numbers are those of the plan.
        self.builder.switch_to_block(unknown);
        self.builder.set_cold_block(unknown);
        self.builder.ins().trap(TrapCode::unwrap_user(1));
        self.builder.switch_to_block(self.leave);
        if let [version, index] = *self.builder.block_params(self.leave) {
            self.store_state(version, offset_of!(State, exit_version));
            self.store_state(index, offset_of!(State, exit_instruction));
        }
        let id = small(offset_of!(ContextRow, id));
        let id = self
            .builder
            .ins()
            .load(types::I32, own(), self.values.row, id);
        self.store_state(id, offset_of!(State, exit_context));
        self.builder.ins().return_(&[]);
    }

    /// Jumps to the block with a number, or elsewhere if there is none.
    fn switch(&mut self, number: Value, otherwise: Block, cases: &[Block]) {
        let lists = &mut self.builder.func.dfg;
        let otherwise = lists.block_call(otherwise, &[]);
        let cases: Vec<_> = cases
            .iter()
            .map(|case| lists.block_call(*case, &[]))
            .collect();
        let table = JumpTableData::new(otherwise, &cases);
        let table = self.builder.create_jump_table(table);
        self.builder.ins().br_table(number, table);
    }

    /// Emits a block.
    fn version(&mut self, id: VersionId, version: &Version) {
        let (Some(block), Some(before)) = (self.blocks.get(id.0), self.changed.get(id.0)) else {
            return;
        };
        let mut place = Place {
            version: id,
            index: 0,
            changed: *before,
        };
        self.builder.switch_to_block(*block);
        self.begin_observing();
        if self.target.is_limited {
            let count = version.block.instructions.len();
            let count = self.builder.ins().iconst(types::I64, count as i64);
            let left = self.builder.use_var(self.left);
            // One more: what follows the block is begun, and the way there paid for.
            let is_left = IntCC::UnsignedGreaterThan;
            let is_left = self.builder.ins().icmp(is_left, left, count);
            self.check(is_left, place);
        }
        let jump = version.block.instructions.last();
        let jump = jump.filter(|last| last.is_transfer() && version.leave != Leave::Interpret);
        let body = version.translated().saturating_sub(jump.is_some().into());
        let mut pc = version.block.start;
        let instructions = version.block.instructions.get(..body).unwrap_or_default();
        let checks = checks(instructions, self.target.alignment);
        let mut checked = vec![None; instructions.len()];
        for ((index, instruction), check) in instructions.iter().enumerate().zip(checks) {
            place.index = index;
            let extra = version.extras.iter().find(|extra| extra.index == index);
            let accessed = check.and_then(|check| {
                let known = checked.get_mut(check.by)?;
                if known.is_none() {
                    *known = Some(self.check_accesses(instruction, check.span, place));
                }
                let distance = (*known)?;
                let offset = instruction.immediate.wrapping_sub(check.span.lowest);
                Some(Accessed { distance, offset })
            });
            if let Some(accessed) = accessed {
                let may_repeat = version.cached.repeats.contains(&index);
                self.observe(instruction, accessed, may_repeat);
            }
            self.instruction(instruction, pc, place, accessed, extra);
            place.changed = place.changed.with(written(instruction));
            pc = pc.wrapping_add(instruction.length.bytes() as u32);
        }
        place.index = body;
        let end = End {
            version,
            place,
            jump,
        };
        self.leave_block(&end);
    }

    fn leave_block(&mut self, end: &End<'_>) {
        match &end.version.leave {
            Leave::Interpret => self.stop(end.place),
            Leave::Always(way) => self.way(end, *way, 0),
            Leave::Branch { next, taken } => self.branch(end, *next, *taken),
            Leave::Call {
                passage, returns, ..
            } => self.pass(end, *passage, 0, None, Some(*returns)),
            Leave::CallRegister {
                passages, returns, ..
            } => {
                let target = self.jump_target(end);
                self.pass(end, *passages, 0, Some(target), Some(*returns));
            }
            Leave::Return { .. } => self.return_to(end),
            Leave::Switch { .. } => self.switch_to(end),
        }
    }

    fn branch(&mut self, end: &End<'_>, next: Way, taken: Way) {
        let Some(instruction) = end.jump else {
            return self.stop(end.place);
        };
        let condition = self.condition(instruction);
        let ways = [(next, 0), (taken, 1)].map(|(way, row)| {
            let block = self.builder.create_block();
            if way == Way::Interpret {
                self.builder.set_cold_block(block);
            }
            (block, way, row)
        });
        let [(not_taken, ..), (is_taken, ..)] = ways;
        let (yes, no) = (is_taken, not_taken);
        self.builder.ins().brif(condition, yes, &[], no, &[]);
        for (block, way, row) in ways {
            self.builder.switch_to_block(block);
            self.way(end, way, row);
        }
    }

    /// Leaves a block by a way whose counter is in this row.
    fn way(&mut self, end: &End<'_>, way: Way, row: usize) {
        match way {
            Way::Interpret => self.stop(end.place),
            Way::Block(version, _) => {
                self.link(end);
                self.count(end, row);
                self.settle_caches(end, row, None, Destination::Block(version));
                self.jump_to(end, version);
            }
            Way::Function(passage, _) => self.pass(end, passage, row, None, None),
        }
    }

    /// The registers that differ from memory behind the last instruction of a block.
    pub fn written_behind(&self, end: &End<'_>) -> Registers {
        let link = end.jump.map(written).unwrap_or_default();
        end.place.changed.with(link)
    }

    pub fn jump_to(&mut self, end: &End<'_>, version: VersionId) {
        self.leave_loop(end.place.version, Some(version));
        self.enter_loop(Some(end.place.version), version);
        if let Some(block) = self.blocks.get(version.0) {
            self.builder.ins().jump(*block, &[]);
        }
    }

    /// The address that a jump to a register leads to.
    pub fn jump_target(&mut self, end: &End<'_>) -> Value {
        let Some(jump) = end.jump else {
            return self.constant(0);
        };
        let base = self.get(jump.rs1);
        let offset = self.constant(jump.immediate.cast_unsigned());
        let address = self.builder.ins().iadd(base, offset);
        let even = self.constant(!1);
        self.builder.ins().band(address, even)
    }

    /// Writes the return address of a block's jump.
    pub fn link(&mut self, end: &End<'_>) {
        if let Some(jump) = end.jump
            && let Some(register) = jump.writes()
        {
            let address = self.constant(end.version.block.end);
            self.set(register, address);
        }
    }

    /// Jumps to one of the plan's targets.
    fn switch_to(&mut self, end: &End<'_>) {
        let addresses = self.plan.targets.iter().map(|(address, _)| *address);
        let Some(first) = addresses.min() else {
            return self.stop(end.place);
        };
        let target = self.jump_target(end);
        let first = self.constant(first);
        let distance = self.builder.ins().isub(target, first);
        // Both are even, as all addresses of code.
        let size = self.constant((self.targets.len() as u32).saturating_mul(2));
        let is_near = self
            .builder
            .ins()
            .icmp(IntCC::UnsignedLessThan, distance, size);
        self.check(is_near, end.place);
        let offset = self.builder.ins().uextend(types::I64, distance);
        let offset = self.builder.ins().ishl_imm(offset, 1);
        let table = self.targets.as_ptr() as i64;
        let table = self.builder.ins().iconst(types::I64, table);
        let at = self.builder.ins().iadd(table, offset);
        let flags = MemFlags::trusted().with_readonly();
        let number = self.builder.ins().load(types::I32, flags, at, 0);
        let unknown = self.builder.create_block();
        self.builder.set_cold_block(unknown);
        let mut cases = vec![unknown];
        cases.extend(
            self.plan
                .targets
                .iter()
                .map(|_| self.builder.create_block()),
        );
        self.switch(number, unknown, &cases);
        self.builder.switch_to_block(unknown);
        self.stop(end.place);
        for ((address, id), case) in self.plan.targets.iter().zip(cases.iter().skip(1)) {
            self.builder.switch_to_block(*case);
            self.link(end);
            let version = self.plan.versions.get(id.0);
            let straddles = version.is_some_and(|version| straddles(*address, &version.block));
            self.count(end, straddles.into());
            self.settle_caches(end, straddles.into(), None, Destination::Block(*id));
            self.jump_to(end, *id);
        }
    }

    fn finish(mut self) {
        self.builder.seal_all_blocks();
        self.builder.finalize();
    }
}

/// The end of a block.
#[derive(Debug, Clone, Copy)]
pub struct End<'f> {
    pub version: &'f Version,
    /// The jump, if there is one, else the place behind the last instruction.
    pub place: Place,
    pub jump: Option<&'f Instruction>,
}
