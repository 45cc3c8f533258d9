//! What happens when a cache does not have what translated code accesses.

use std::rc::Rc;

use varid_machine::{ContextId, Elsewhere};

use super::{Engine, addresses};
use crate::{
    function::Unit,
    plan::VersionId,
    state::{ContextRow, Next},
};

impl Engine<'_, '_> {
    fn unit_of(&self, context: ContextId) -> Option<Rc<Unit>> {
        let address = self.interpreter.counts().contexts.function(context);
        self.functions.get(&address)?.unit.clone()
    }

    /// Issues a block to the pipeline once more, which was executed and is left by a way. Returns how to go on.
    pub fn reissue(&mut self, context: ContextId, version: VersionId, way: usize) -> Next {
        // Whoever calls has the numbers from the plan.
        self.try_reissue(context, version, way)
            .unwrap_or(Next::Planned)
    }

    fn try_reissue(&mut self, context: ContextId, id: VersionId, way: usize) -> Option<Next> {
        let unit = self.unit_of(context)?;
        let version = unit.plan.versions.get(id.0)?;
        let counters = self.counters.get_mut(context.0 as usize)?;
        let count = counters.get_mut(version.reissued().plus(way).0)?;
        *count = count.saturating_add(1);
        let next_context = ContextId(self.state.next_context);
        let next_unit = self.unit_of(next_context)?;
        let next_id = match self.state.next_entry {
            0 => VersionId(self.state.next_version as usize),
            entry => next_unit.version_of(entry)?,
        };
        let next = next_unit.plan.versions.get(next_id.0)?;
        let counts = self.interpreter.counts_mut();
        let cell = counts.cell_of(context, version.id);
        let next_cell = counts.cell_of(next_context, next.id);
        let elsewhere = Elsewhere {
            pending: &version.pending,
            addresses: addresses(&self.state),
        };
        self.timing.set_stored_word(self.state.stored_word);
        let block = (version.id, &version.block);
        let count = version.block.instructions.len();
        self.timing.resume(cell, block, count, &elsewhere).ok()?;
        let pending = self.timing.arrive(next_cell, next.id, &next.block).ok()?;
        self.state.stored_word = self.timing.stored_word();
        let edge = version.cached.edges.get(way)?;
        if pending == next.pending {
            return Some(Next::Planned);
        }
        if pending.is_empty() && edge.otherwise.is_some() {
            return Some(Next::Otherwise);
        }
        self.state.exit_context = next_context.0;
        self.state.exit_version = next_id.0 as u32;
        self.state.exit_instruction = 0;
        self.state.accesses = 0;
        self.arrived = Some(pending);
        Some(Next::Leave)
    }

    /// Fetches the first instruction of a block that was entered from another function.
    pub fn fetch(&mut self, context: ContextId, version: VersionId) {
        // Whoever calls has the numbers from the plan.
        let _ = self.try_fetch(context, version);
    }

    fn try_fetch(&mut self, context: ContextId, version: VersionId) -> Option<()> {
        let unit = self.unit_of(context)?;
        let version = unit.plan.versions.get(version.0)?;
        let distance = self.state.from_row.checked_sub(self.rows.as_ptr() as u64)?;
        let row = (distance as usize).checked_div(size_of::<ContextRow>())?;
        let from_context = ContextId(self.rows.get(row)?.id);
        let from_unit = self.unit_of(from_context)?;
        let from = from_unit
            .plan
            .versions
            .get(self.state.from_version as usize)?;
        let counts = self.interpreter.counts_mut();
        let from_cell = counts.cell_of(from_context, from.id);
        let cell = counts.cell_of(context, version.id);
        let from = (from_cell, &from.block);
        self.timing
            .fetch(from, (cell, version.id, &version.block))
            .ok()
    }
}
