//! The input for reading a unit.

use gimli::{Dwarf, Unit};

use super::Slice;
use super::budget::Budget;

/// Debug information, a unit of it, and the work that reading the unit may cause.
#[derive(Clone, Copy)]
pub(super) struct UnitInput<'a, 'd> {
    pub(super) dwarf: &'a Dwarf<Slice<'d>>,
    pub(super) unit: &'a Unit<Slice<'d>>,
    pub(super) budget: &'a Budget,
}
