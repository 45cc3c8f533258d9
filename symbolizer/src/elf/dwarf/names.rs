//! Finds the name of a function, which may be in another entry, unit or file.

use std::collections::HashMap;

use gimli::{Attribute, AttributeValue, Dwarf, Unit};

use super::Slice;
use super::unit_input::UnitInput;
use super::units::Units;
use crate::elf::name::Name;

/// The maximum number of entries that are followed from one to the next for a name.
const MAX_STEPS: usize = 16;

/// The maximum length of a name, in bytes. Longer ones are truncated.
const MAX_NAME: usize = 65_536;

/// The attributes of an entry that lead to a function's name.
#[derive(Default, Clone)]
pub(super) struct NameAttributes<'d> {
    linkage: Option<AttributeValue<Slice<'d>>>,
    name: Option<AttributeValue<Slice<'d>>>,
    /// The abstract origin or the specification: another entry of the function.
    origin: Option<AttributeValue<Slice<'d>>>,
}

impl<'d> NameAttributes<'d> {
    /// Adds an attribute of the entry. Attributes that do not lead to a name are ignored.
    pub(super) fn add(&mut self, attribute: &Attribute<Slice<'d>>) {
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

/// The index of a name in the names of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NameId(u32);

impl NameId {
    /// Returns the id with this index. None if it does not fit.
    pub(super) fn of(index: usize) -> Option<Self> {
        u32::try_from(index).ok().map(Self)
    }

    /// Returns the index.
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The position of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct EntryId {
    /// Whether it is in the supplementary file.
    supplementary: bool,
    /// Its offset in `.debug_info`.
    offset: usize,
}

/// Collects the names of a unit's functions.
pub(super) struct NameTable<'a, 'd> {
    input: UnitInput<'a, 'd>,
    /// The units of the file and of the supplementary file. `None` if entries refer to others of the same unit only.
    units: [Option<&'d Units>; 2],
    /// The other units that have been read, by whether they are in the supplementary file and by their index.
    others: HashMap<(bool, usize), Option<Unit<Slice<'d>>>>,
    /// The names of entries that inlined copies refer to.
    by_origin: HashMap<EntryId, NameId>,
    names: Vec<Name>,
}

impl<'a, 'd> NameTable<'a, 'd> {
    pub(super) fn new(input: UnitInput<'a, 'd>, units: [Option<&'d Units>; 2]) -> Self {
        Self {
            input,
            units,
            others: HashMap::new(),
            by_origin: HashMap::new(),
            names: Vec::new(),
        }
    }

    /// Takes the names out. A [`NameId`] is an index into them.
    pub(super) fn take(&mut self) -> Vec<Name> {
        std::mem::take(&mut self.names)
    }

    /// Adds the name that these attributes lead to. `None` if the budget is used up.
    pub(super) fn intern(&mut self, attributes: &NameAttributes<'d>) -> Option<NameId> {
        let origin = match attributes.linkage {
            Some(_) => None,
            None => attributes
                .origin
                .and_then(|origin| self.entry(self.unit_id(), origin)),
        };
        // Inlined copies of a function share its name.
        if attributes.name.is_none()
            && let Some(id) = origin.and_then(|entry| self.by_origin.get(&entry))
        {
            return Some(*id);
        }
        let raw = self.resolve(attributes);
        self.input.budget.take(raw.len().saturating_add(1))?;
        let id = NameId::of(self.names.len())?;
        self.names.push(Name::new(&raw));
        if attributes.name.is_none()
            && let Some(entry) = origin
        {
            self.by_origin.insert(entry, id);
        }
        Some(id)
    }

    /// The first linkage name along the chain of origins, or else the first name. Empty if there is none.
    fn resolve(&mut self, attributes: &NameAttributes<'d>) -> String {
        let mut attributes = attributes.clone();
        let mut entry = self.unit_id();
        let mut name = None;
        for _ in 0..MAX_STEPS {
            if let Some(linkage) = attributes.linkage.take()
                && let Some(linkage) = self.text(entry, linkage)
            {
                return linkage;
            }
            if let (None, Some(value)) = (&name, attributes.name.take()) {
                name = self.text(entry, value);
            }
            let Some(next) = attributes
                .origin
                .take()
                .and_then(|origin| self.entry(entry, origin))
            else {
                break;
            };
            entry = next;
            let Some(next) = self.read(entry) else {
                break;
            };
            attributes = next;
        }
        name.unwrap_or_default()
    }

    /// The start of the unit that is read.
    fn unit_id(&self) -> EntryId {
        EntryId {
            supplementary: false,
            offset: start(self.input.unit),
        }
    }

    /// The entry that a reference in the entry `from` points to.
    fn entry(&mut self, from: EntryId, reference: AttributeValue<Slice<'d>>) -> Option<EntryId> {
        let (supplementary, offset) = match reference {
            AttributeValue::UnitRef(offset) => {
                let start = self.with_unit(from, |_, unit| start(unit))?;
                (from.supplementary, start.checked_add(offset.0)?)
            }
            AttributeValue::DebugInfoRef(offset) => (from.supplementary, offset.0),
            AttributeValue::DebugInfoRefSup(offset) => (true, offset.0),
            _ => return None,
        };
        Some(EntryId {
            supplementary,
            offset,
        })
    }

    /// Reads the attributes of an entry.
    fn read(&mut self, entry: EntryId) -> Option<NameAttributes<'d>> {
        self.with_unit(entry, |_, unit| {
            let offset = gimli::UnitOffset(entry.offset.checked_sub(start(unit))?);
            let mut entries = unit.entries_raw(Some(offset)).ok()?;
            let abbreviation = entries.read_abbreviation().ok()??;
            let mut attributes = NameAttributes::default();
            for &specification in abbreviation.attributes() {
                attributes.add(&entries.read_attribute(specification).ok()?);
            }
            Some(attributes)
        })?
    }

    /// The text of an attribute of an entry.
    fn text(&mut self, entry: EntryId, value: AttributeValue<Slice<'d>>) -> Option<String> {
        self.with_unit(entry, |dwarf, unit| {
            let text = dwarf.attr_string(unit, value).ok()?;
            let text = text.slice().get(..MAX_NAME).unwrap_or(text.slice());
            Some(String::from_utf8_lossy(text).into_owned())
        })?
    }

    /// Calls `read` with the unit that an entry is in. `None` if there is no such unit.
    fn with_unit<T>(
        &mut self,
        entry: EntryId,
        read: impl FnOnce(&Dwarf<Slice<'d>>, &Unit<Slice<'d>>) -> T,
    ) -> Option<T> {
        let UnitInput { dwarf, unit, .. } = self.input;
        let inside = entry.offset.checked_sub(start(unit));
        if !entry.supplementary && inside.is_some_and(|at| at < unit.header.length_including_self())
        {
            return Some(read(dwarf, unit));
        }
        let [main, supplementary] = self.units;
        let (units, dwarf) = match entry.supplementary {
            false => (main?, dwarf),
            true => (supplementary?, dwarf.sup()?),
        };
        let index = units.containing(entry.offset)?;
        let unit = self
            .others
            .entry((entry.supplementary, index))
            .or_insert_with(|| units.unit(dwarf, index));
        Some(read(dwarf, unit.as_ref()?))
    }
}

/// The offset of a unit in `.debug_info`.
fn start(unit: &Unit<Slice<'_>>) -> usize {
    unit.header.debug_info_offset().map_or(0, |offset| offset.0)
}
