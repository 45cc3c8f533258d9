//! Whether the caches have what a block accesses. If they do not, the block is issued to the pipeline once more behind its last instruction.
//!
//! What is compared is the first line of a set, whose access changes nothing. So a block that needs no more has changed no cache, and one that
//! does is simulated from its beginning.

use std::mem::{offset_of, size_of};

use cranelift_codegen::ir::{
    AbiParam, AliasRegion, Block, InstBuilder, MemFlags, Signature, Value, condcodes::IntCC, types,
};
use cranelift_codegen::isa::CallConv;
use varid_processor::{CacheLayout, Stores};
use varid_riscv::{Instruction, Operation};

use super::{
    function::{End, FunctionEmitter, constant, small},
    values::{Accessed, Destination, Observed},
};
use crate::{
    plan::{Leave, Version, VersionId},
    state::{ContextRow, Events, Next, State},
};

/// The lines of caches, which calls change.
fn line() -> MemFlags {
    MemFlags::trusted().with_alias_region(Some(AliasRegion::Heap))
}

impl FunctionEmitter<'_> {
    /// Begins with a block.
    pub fn begin_observing(&mut self) {
        self.observed = Observed::default();
        if self.target.has_caches() {
            let zero = self.constant(0);
            self.builder.def_var(self.event, zero);
        }
    }

    /// Compares an access.
    pub fn observe(&mut self, instruction: &Instruction, accessed: Accessed, may_repeat: bool) {
        let Some((layout, stores)) = self.target.caches.data else {
            if self.target.has_caches() {
                // Whoever issues the block once more needs it.
                let address = self.address_of(accessed);
                self.observed.addresses.push(address);
            }
            return;
        };
        let address = self.address_of(accessed);
        let is_store = matches!(instruction.operation, Operation::Store(_));
        if !is_store || stores != Stores::Nothing {
            let at = self.line_at(layout, address);
            let number = self
                .builder
                .ins()
                .ushr_imm(address, i64::from(layout.line_bits));
            let number = self.builder.ins().uextend(types::I64, number);
            let tag = self.builder.ins().iadd_imm(number, 1);
            let known = self.builder.ins().load(types::I64, line(), at, 0);
            let misses = self.builder.ins().icmp(IntCC::NotEqual, known, tag);
            self.note(misses);
            if is_store && stores == Stores::Contents {
                let dirty = small(layout.dirty as usize);
                let dirty = self.builder.ins().load(types::I8, line(), at, dirty);
                let is_clean = self.builder.ins().icmp_imm(IntCC::Equal, dirty, 0);
                self.note(is_clean);
            }
        }
        if may_repeat {
            let word = self.builder.ins().ushr_imm(address, 2);
            let stored = match self.observed.stored {
                Some(stored) => stored,
                None => self.load_state(types::I32, offset_of!(State, stored_word)),
            };
            let is_same = self.builder.ins().icmp(IntCC::Equal, word, stored);
            self.note(is_same);
        }
        if is_store {
            let word = self.builder.ins().ushr_imm(address, 2);
            self.observed.stored = Some(word);
        }
        self.observed.addresses.push(address);
    }

    fn address_of(&mut self, accessed: Accessed) -> Value {
        let start = self.target.memory.start;
        let offset = start.wrapping_add_signed(accessed.offset);
        let offset = self.constant(offset);
        self.builder.ins().iadd(accessed.distance, offset)
    }

    /// Where the first line of an address's set is.
    fn line_at(&mut self, layout: CacheLayout, address: Value) -> Value {
        let number = self
            .builder
            .ins()
            .ushr_imm(address, i64::from(layout.line_bits));
        let mask = self.constant(layout.set_mask);
        let set = self.builder.ins().band(number, mask);
        let set = self.builder.ins().uextend(types::I64, set);
        let offset = self
            .builder
            .ins()
            .imul_imm(set, i64::from(layout.set_bytes));
        let lines = self.lines(layout);
        self.builder.ins().iadd(lines, offset)
    }

    fn lines(&mut self, layout: CacheLayout) -> Value {
        self.builder
            .ins()
            .iconst(types::I64, layout.lines.cast_signed())
    }

    /// Notes that the block is to be issued once more, if a condition holds.
    fn note(&mut self, condition: Value) {
        let rare = self.builder.create_block();
        let next = self.builder.create_block();
        self.builder.set_cold_block(rare);
        self.builder.ins().brif(condition, rare, &[], next, &[]);
        self.builder.switch_to_block(rare);
        let one = self.constant(1);
        self.builder.def_var(self.event, one);
        self.builder.ins().jump(next, &[]);
        self.builder.switch_to_block(next);
    }

    /// Writes the addresses of accesses that were executed to memory.
    pub fn write_addresses(&mut self) {
        if !self.target.has_caches() {
            return;
        }
        let addresses = std::mem::take(&mut self.observed.addresses);
        let count = self.constant(addresses.len() as u32);
        self.store_state(count, offset_of!(State, accesses));
        for (row, address) in addresses.iter().enumerate() {
            let offset = row.saturating_mul(size_of::<u32>());
            let offset = offset_of!(State, addresses).saturating_add(offset);
            self.store_state(*address, offset);
        }
        self.observed.addresses = addresses;
    }

    /// Jumps to `rare` if the instruction cache does not have one of these lines, else goes on.
    fn compare_lines(&mut self, lines: &[u64], rare: Block) {
        let Some(layout) = self.target.caches.instructions else {
            return;
        };
        for number in lines {
            let set = number & u64::from(layout.set_mask);
            let offset = set.saturating_mul(layout.set_bytes.into());
            let at = layout.lines.wrapping_add(offset).cast_signed();
            let at = self.builder.ins().iconst(types::I64, at);
            let known = self.builder.ins().load(types::I64, line(), at, 0);
            let tag = number.saturating_add(1).cast_signed();
            let misses = self.builder.ins().icmp_imm(IntCC::NotEqual, known, tag);
            let next = self.builder.create_block();
            self.builder.ins().brif(misses, rare, &[], next, &[]);
            self.builder.switch_to_block(next);
        }
    }

    /// Behind the last instruction of a block, which has been counted: issues it once more if a cache did not have all. `row` is the way, if it
    /// is not known yet `straddles`.
    pub fn settle_caches(
        &mut self,
        end: &End<'_>,
        row: usize,
        straddles: Option<Value>,
        target: Destination,
    ) {
        if !self.target.has_caches() {
            return;
        }
        let edge = end.version.cached.edges.get(row);
        if edge.is_some_and(|edge| edge.may_repeat)
            && let Some(stored) = self.observed.stored
        {
            self.store_state(stored, offset_of!(State, stored_word));
        }
        let rare = self.builder.create_block();
        let done = self.builder.create_block();
        let quiet = self.builder.create_block();
        self.builder.set_cold_block(rare);
        let event = self.builder.use_var(self.event);
        self.builder.ins().brif(event, rare, &[], quiet, &[]);
        self.builder.switch_to_block(quiet);
        self.compare_lines(&end.version.cached.lines, rare);
        if let Some(edge) = edge {
            self.compare_lines(&edge.lines, rare);
        }
        if let (Leave::Switch { .. }, Destination::Block(to)) = (&end.version.leave, target)
            && let Some(to) = self.plan.versions.get(to.0)
        {
            // The way has not the lines of each of its targets.
            self.compare_lines(&to.cached.first, rare);
        }
        self.builder.ins().jump(done, &[]);
        self.builder.switch_to_block(rare);
        self.write_addresses();
        let (context, entry, version) = match target {
            Destination::Block(version) => {
                let none = self.constant(0);
                let version = self.constant(version.0 as u32);
                (self.own_context(), none, version)
            }
            Destination::Entry { context, entry } => (context, entry, self.constant(0)),
        };
        self.store_state(context, offset_of!(State, next_context));
        self.store_state(entry, offset_of!(State, next_entry));
        self.store_state(version, offset_of!(State, next_version));
        let way = match straddles {
            Some(straddles) => straddles,
            None => self.constant(row as u32),
        };
        let result = self.call_reissue(end.place.version, way);
        let other = self.builder.create_block();
        self.builder.set_cold_block(other);
        self.builder.ins().brif(result, other, &[], done, &[]);
        self.builder.switch_to_block(other);
        let others = edge.map(|edge| edge.others.as_slice());
        for (row, to) in others.unwrap_or_default().iter().enumerate() {
            let goes = self.builder.create_block();
            let not = self.builder.create_block();
            self.builder.set_cold_block(goes);
            self.builder.set_cold_block(not);
            let number = Next::Other(row).number();
            let is_other = self
                .builder
                .ins()
                .icmp_imm(IntCC::Equal, result, i64::from(number));
            self.builder.ins().brif(is_other, goes, &[], not, &[]);
            self.builder.switch_to_block(goes);
            self.jump_to(end, *to);
            self.builder.switch_to_block(not);
        }
        self.leave_loop(end.place.version, None);
        self.write_registers(self.written_behind(end));
        self.builder.ins().return_(&[]);
        self.builder.switch_to_block(done);
    }

    fn call_reissue(&mut self, version: VersionId, way: Value) -> Value {
        let mut signature = Signature::new(CallConv::SystemV);
        let parameters = [types::I64, types::I32, types::I32, types::I32];
        signature.params.extend(parameters.map(AbiParam::new));
        signature.returns.push(AbiParam::new(types::I32));
        let signature = self.builder.import_signature(signature);
        let (simulator, callee) = self.callee(offset_of!(Events, reissue));
        let context = self.own_context();
        let version = self.constant(version.0 as u32);
        let arguments = [simulator, context, version, way];
        let call = self
            .builder
            .ins()
            .call_indirect(signature, callee, &arguments);
        match self.builder.inst_results(call) {
            [result] => *result,
            // The signature has one.
            _ => way,
        }
    }

    fn callee(&mut self, function: usize) -> (Value, Value) {
        let events = offset_of!(State, events);
        let simulator = events.saturating_add(offset_of!(Events, simulator));
        let simulator = self.load_state(types::I64, simulator);
        let callee = self.load_state(types::I64, events.saturating_add(function));
        (simulator, callee)
    }

    fn own_context(&mut self) -> Value {
        let id = small(offset_of!(ContextRow, id));
        let row = self.values.row;
        self.builder.ins().load(types::I32, constant(), row, id)
    }

    /// At an entry: fetches the first instruction of its block.
    pub fn fetch_first(&mut self, id: VersionId, version: &Version) {
        if self.target.caches.instructions.is_none() {
            return;
        }
        let rare = self.builder.create_block();
        let done = self.builder.create_block();
        self.builder.set_cold_block(rare);
        self.compare_lines(&version.cached.first, rare);
        self.builder.ins().jump(done, &[]);
        self.builder.switch_to_block(rare);
        let mut signature = Signature::new(CallConv::SystemV);
        let parameters = [types::I64, types::I32, types::I32];
        signature.params.extend(parameters.map(AbiParam::new));
        let signature = self.builder.import_signature(signature);
        let (simulator, callee) = self.callee(offset_of!(Events, fetch));
        let context = self.own_context();
        let version = self.constant(id.0 as u32);
        let arguments = [simulator, context, version];
        self.builder
            .ins()
            .call_indirect(signature, callee, &arguments);
        self.builder.ins().jump(done, &[]);
        self.builder.switch_to_block(done);
    }

    /// Before another function is entered: notes where control comes from.
    pub fn note_from(&mut self, version: VersionId) {
        if self.target.caches.instructions.is_some() {
            self.store_state(self.values.row, offset_of!(State, from_row));
            let version = self.constant(version.0 as u32);
            self.store_state(version, offset_of!(State, from_version));
        }
    }
}
