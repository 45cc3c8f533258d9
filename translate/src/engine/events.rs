//! What happens when a cache does not have what translated code accesses.

use std::rc::Rc;

use varid_machine::{CellId, ContextId, Elsewhere};

use super::{Engine, Known, addresses};
use crate::{
    code::Simulator,
    function::Unit,
    plan::VersionId,
    state::{ContextRow, Next},
};

impl Known {
    pub fn new(unit: Rc<Unit>) -> Self {
        let cells = vec![None; unit.planned.plan.versions.len()];
        Self { unit, cells }
    }
}

impl Engine<'_, '_> {
    fn unit_of(&self, context: ContextId) -> Option<Rc<Unit>> {
        let known = self.known.get(context.0 as usize)?.as_ref()?;
        Some(Rc::clone(&known.unit))
    }

    fn cell_of(&mut self, context: ContextId, version: VersionId) -> Option<CellId> {
        let known = self.known.get_mut(context.0 as usize)?.as_mut()?;
        let id = known.unit.planned.plan.versions.get(version.0)?.id;
        let counts = self.interpreter.counts_mut();
        let cell = known.cells.get_mut(version.0)?;
        Some(*cell.get_or_insert_with(|| counts.cell_of(context, id)))
    }

    fn try_reissue(&mut self, context: ContextId, id: VersionId, way: usize) -> Option<Next> {
        let unit = self.unit_of(context)?;
        let version = unit.planned.plan.versions.get(id.0)?;
        let counters = self.counters.get_mut(context.0 as usize)?;
        let count = counters.get_mut(version.reissued().plus(way).0)?;
        *count = count.saturating_add(1);
        let next_context = ContextId(self.state.next_context);
        let next_unit = self.unit_of(next_context)?;
        let next_id = match self.state.next_entry {
            0 => VersionId(self.state.next_version as usize),
            entry => next_unit.version_of(entry)?,
        };
        let next = next_unit.planned.plan.versions.get(next_id.0)?;
        let cell = self.cell_of(context, id)?;
        let next_cell = self.cell_of(next_context, next_id)?;
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
        let is_so = |other: &VersionId| {
            let other = unit.planned.plan.versions.get(other.0);
            other.is_some_and(|other| other.pending == pending)
        };
        if let Some(row) = edge.others.iter().position(is_so) {
            return Some(Next::Other(row));
        }
        self.state.exit_context = next_context.0;
        self.state.exit_version = next_id.0 as u32;
        self.state.exit_instruction = 0;
        self.state.accesses = 0;
        self.arrived = Some(pending);
        Some(Next::Leave)
    }

    fn try_fetch(&mut self, context: ContextId, id: VersionId) -> Option<()> {
        let unit = self.unit_of(context)?;
        let version = unit.planned.plan.versions.get(id.0)?;
        let distance = self.state.from_row.checked_sub(self.rows.as_ptr() as u64)?;
        let row = (distance as usize).checked_div(size_of::<ContextRow>())?;
        let from_context = ContextId(self.rows.get(row)?.id);
        let from_unit = self.unit_of(from_context)?;
        let from_id = VersionId(self.state.from_version as usize);
        let from = from_unit.planned.plan.versions.get(from_id.0)?;
        let from_cell = self.cell_of(from_context, from_id)?;
        let cell = self.cell_of(context, id)?;
        let from = (from_cell, &from.block);
        self.timing
            .fetch(from, (cell, version.id, &version.block))
            .ok()
    }
}

/// Whoever calls has the numbers from a plan.
impl Simulator for Engine<'_, '_> {
    fn reissue(&mut self, context: ContextId, version: VersionId, way: usize) -> Next {
        let next = self.try_reissue(context, version, way);
        next.unwrap_or(Next::Planned)
    }

    fn fetch(&mut self, context: ContextId, version: VersionId) {
        let _ = self.try_fetch(context, version);
    }
}
