//! What is a function called, whose name may stand in another entry, unit or file?

use std::collections::HashMap;

use gimli::{Attribute, AttributeValue, Dwarf, Unit};

use super::Slice;
use super::budget::Budget;
use super::units::Units;
use crate::elf::name::Name;

/// How many entries are looked through for a name: each says that the next one knows more.
const MAX_STEPS: usize = 16;

/// The longest name that is kept, in bytes.
const MAX_NAME: usize = 65_536;

/// What an entry says of a function's name.
#[derive(Default, Clone)]
pub(super) struct Called<'d> {
    linkage: Option<AttributeValue<Slice<'d>>>,
    name: Option<AttributeValue<Slice<'d>>>,
    /// The entry that knows more.
    origin: Option<AttributeValue<Slice<'d>>>,
}

impl<'d> Called<'d> {
    /// Takes note of an attribute.
    pub(super) fn see(&mut self, attribute: &Attribute<Slice<'d>>) {
        match attribute.name() {
            gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                self.linkage = Some(attribute.value());
            }
            gimli::DW_AT_name => self.name = Some(attribute.value()),
            gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => {
                self.origin = Some(attribute.value());
            }
            _ => {}
        }
    }
}

/// An entry: whether it is in the supplementary file, and its offset there.
type Place = (bool, usize);

/// Collects the names of a unit's functions.
pub(super) struct Namer<'a, 'd> {
    dwarf: &'a Dwarf<Slice<'d>>,
    unit: &'a Unit<Slice<'d>>,
    budget: &'a Budget,
    /// The file's units and the supplementary file's; none if entries are only referred to
    /// within the unit.
    units: [Option<&'d Units>; 2],
    /// Other units that have been looked into, by their place.
    others: HashMap<Place, Option<Unit<Slice<'d>>>>,
    known: HashMap<Place, u32>,
    names: Vec<Name>,
}

impl<'a, 'd> Namer<'a, 'd> {
    pub(super) fn new(
        dwarf: &'a Dwarf<Slice<'d>>,
        unit: &'a Unit<Slice<'d>>,
        budget: &'a Budget,
        units: [Option<&'d Units>; 2],
    ) -> Self {
        Self {
            dwarf,
            unit,
            budget,
            units,
            others: HashMap::new(),
            known: HashMap::new(),
            names: Vec::new(),
        }
    }

    /// The names that have been collected, by index.
    pub(super) fn take(&mut self) -> Vec<Name> {
        std::mem::take(&mut self.names)
    }

    /// The index of the name of a function that is `called` so; none if the file's budget
    /// is used up.
    pub(super) fn index(&mut self, called: &Called<'d>) -> Option<u32> {
        let origin = match called.linkage {
            Some(_) => None,
            None => called
                .origin
                .and_then(|origin| self.place((false, self.start()), origin)),
        };
        // Copies of a function share its name.
        if called.name.is_none()
            && let Some(index) = origin.and_then(|place| self.known.get(&place))
        {
            return Some(*index);
        }
        let raw = self.resolve(called);
        self.budget.take(raw.len().saturating_add(1))?;
        let index = u32::try_from(self.names.len()).ok()?;
        self.names.push(Name::new(&raw));
        if called.name.is_none()
            && let Some(place) = origin
        {
            self.known.insert(place, index);
        }
        Some(index)
    }

    /// The linkage name, wherever it stands, or else the nearest name; empty if there is none.
    fn resolve(&mut self, called: &Called<'d>) -> String {
        let mut called = called.clone();
        let mut place = (false, self.start());
        let mut name = None;
        for _ in 0..MAX_STEPS {
            if let Some(linkage) = called.linkage.take()
                && let Some(linkage) = self.text(place, linkage)
            {
                return linkage;
            }
            if let (None, Some(value)) = (&name, called.name.take()) {
                name = self.text(place, value);
            }
            let Some(next) = called
                .origin
                .take()
                .and_then(|origin| self.place(place, origin))
            else {
                break;
            };
            place = next;
            let Some(next) = self.read(place) else {
                break;
            };
            called = next;
        }
        name.unwrap_or_default()
    }

    /// Where the unit itself begins.
    fn start(&self) -> usize {
        self.unit
            .header
            .debug_info_offset()
            .map_or(0, |offset| offset.0)
    }

    /// The place that a reference in the entry at `from` points to.
    fn place(&mut self, from: Place, reference: AttributeValue<Slice<'d>>) -> Option<Place> {
        Some(match reference {
            AttributeValue::UnitRef(offset) => {
                let start = self.with_unit(from, |_, unit| {
                    unit.header.debug_info_offset().map_or(0, |offset| offset.0)
                })?;
                (from.0, start.checked_add(offset.0)?)
            }
            AttributeValue::DebugInfoRef(offset) => (from.0, offset.0),
            AttributeValue::DebugInfoRefSup(offset) => (true, offset.0),
            _ => return None,
        })
    }

    /// What the entry at `place` says.
    fn read(&mut self, place: Place) -> Option<Called<'d>> {
        self.with_unit(place, |_, unit| {
            let start = unit.header.debug_info_offset().map_or(0, |offset| offset.0);
            let offset = gimli::UnitOffset(place.1.checked_sub(start)?);
            let mut entries = unit.entries_raw(Some(offset)).ok()?;
            let abbreviation = entries.read_abbreviation().ok()??;
            let mut called = Called::default();
            for &specification in abbreviation.attributes() {
                called.see(&entries.read_attribute(specification).ok()?);
            }
            Some(called)
        })?
    }

    /// The text of an attribute of the entry at `place`.
    fn text(&mut self, place: Place, value: AttributeValue<Slice<'d>>) -> Option<String> {
        self.with_unit(place, |dwarf, unit| {
            let text = dwarf.attr_string(unit, value).ok()?;
            let text = text.slice().get(..MAX_NAME).unwrap_or(text.slice());
            Some(String::from_utf8_lossy(text).into_owned())
        })?
    }

    /// Asks something of the unit that the entry at `place` is in.
    fn with_unit<T>(
        &mut self,
        place: Place,
        ask: impl FnOnce(&Dwarf<Slice<'d>>, &Unit<Slice<'d>>) -> T,
    ) -> Option<T> {
        let own = self
            .unit
            .header
            .debug_info_offset()
            .map_or(0, |offset| offset.0);
        let inside = place.1.checked_sub(own);
        if !place.0 && inside.is_some_and(|at| at < self.unit.header.length_including_self()) {
            return Some(ask(self.dwarf, self.unit));
        }
        let [main, supplementary] = self.units;
        let (units, dwarf) = match place.0 {
            false => (main?, self.dwarf),
            true => (supplementary?, self.dwarf.sup()?),
        };
        let index = units.holding(place.1)?;
        let unit = self
            .others
            .entry((place.0, index))
            .or_insert_with(|| units.unit(dwarf, index));
        Some(ask(dwarf, unit.as_ref()?))
    }
}
