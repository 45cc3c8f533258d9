//! Takes the fields that a description needs from the VM's tables, and notes those that are missing.

use super::error::{JvmError, Result};
use super::member::{Member, Offset, Width};
use super::tables::{Field, FieldPlace, VmTables};
use std::collections::BTreeMap;
use varid_model::Address;

/// The largest structure with a member that is read, in bytes. JDK 25's `JavaThread` has 2,216.
const MAX_STRUCTURE: u64 = 1 << 15;

/// The fields of a VM. A field that is missing or implausible is noted, and a value without a meaning is returned in its place: the
/// caller takes all fields, and then calls [`Fields::finish`].
pub(super) struct Fields<'t> {
    tables: &'t VmTables,
    taken: BTreeMap<String, i64>,
    missing: Vec<String>,
    implausible: Option<JvmError>,
}

impl<'t> Fields<'t> {
    /// The fields of these tables.
    pub(super) fn of(tables: &'t VmTables) -> Self {
        Self {
            tables,
            taken: BTreeMap::new(),
            missing: Vec::new(),
            implausible: None,
        }
    }

    /// Returns the offsets, sizes and constants that were taken, by name, or an error if a field was missing or implausible. `vm`: the
    /// VM's version.
    pub(super) fn finish(self, vm: &str) -> Result<BTreeMap<String, i64>> {
        if !self.missing.is_empty() {
            return Err(JvmError::NotExported {
                vm: vm.to_owned(),
                missing: self.missing,
            });
        }
        match self.implausible {
            Some(error) => Err(error),
            None => Ok(self.taken),
        }
    }

    /// Returns true if there is such a field.
    pub(super) fn has(&self, name: &str) -> bool {
        self.tables.fields.contains_key(name)
    }

    /// Returns the first of these fields that there is, or else the first one. A field has other names in other versions.
    pub(super) fn one_of<const N: usize>(&self, names: [&'static str; N]) -> &'static str {
        let known = names.iter().find(|name| self.has(name));
        known.or(names.first()).copied().unwrap_or_default()
    }

    /// Returns a member that is a number or a pointer.
    pub(super) fn member(&mut self, name: &str) -> Member {
        let Some(field) = self.field(name) else {
            return Member::default();
        };
        let size = match &field.declared {
            Some(declared) => self.size_of(declared),
            // Of the members whose type is not exported only pointers are taken.
            None => Some(u64::from(Width::Eight.bytes())),
        };
        let Some(width) = size.and_then(Width::of) else {
            let declared = field.declared.as_deref().unwrap_or_default();
            self.note(name, size.unwrap_or(0), declared_problem(declared));
            return Member::default();
        };
        let offset = self.offset_of(name, field, width.bytes().into());
        if !offset.bytes().is_multiple_of(width.bytes()) {
            self.note(name, offset.bytes().into(), "its offset is not aligned");
        }
        Member { offset, width }
    }

    /// Returns where a structure or an array is in another structure.
    pub(super) fn offset(&mut self, name: &str) -> Offset {
        let Some(field) = self.field(name) else {
            return Offset::default();
        };
        let declared = field.declared.as_deref();
        let size = declared.and_then(|declared| self.size_of(declared));
        self.offset_of(name, field, size.unwrap_or(0))
    }

    /// Returns where a static field is.
    pub(super) fn address(&mut self, name: &str) -> Address {
        let Some(field) = self.field(name) else {
            return Address::new(0);
        };
        match field.place {
            FieldPlace::Static(address) if address.get() != 0 => address,
            FieldPlace::Static(_) => {
                self.note(name, 0, "it has no address");
                Address::new(0)
            }
            FieldPlace::In(offset) => {
                self.note(name, offset, "it is not static");
                Address::new(0)
            }
        }
    }

    /// Returns the size of a type in bytes.
    pub(super) fn size(&mut self, name: &str) -> u32 {
        match self.tables.types.get(name) {
            Some(size) if *size <= MAX_STRUCTURE => {
                self.taken.insert(name.to_owned(), size.cast_signed());
                *size as u32
            }
            Some(size) => {
                self.note(name, *size, "no type that is read has this size");
                0
            }
            None => {
                self.missing.push(format!("the type {name}"));
                0
            }
        }
    }

    /// Returns a constant.
    pub(super) fn constant(&mut self, name: &str) -> i64 {
        let Some(value) = self.tables.constants.get(name).copied() else {
            self.missing.push(format!("the constant {name}"));
            return 0;
        };
        self.taken.insert(name.to_owned(), value);
        value
    }

    fn field(&mut self, name: &str) -> Option<&'t Field> {
        let found = self.tables.fields.get(name);
        if found.is_none() {
            self.missing.push(name.to_owned());
        }
        found
    }

    /// Returns the size in bytes of a declared type. None if it is not exported.
    fn size_of(&self, declared: &str) -> Option<u64> {
        if declared.contains('*') {
            return Some(u64::from(Width::Eight.bytes()));
        }
        let known = |name: &str| self.tables.types.get(name).copied();
        let unqualified = declared.trim_start_matches("const ");
        known(declared)
            .or_else(|| known(unqualified))
            .or_else(|| known(unqualified.trim_start_matches("volatile ")))
    }

    /// Returns the offset of a member of `size` bytes, which must be inside its structure.
    fn offset_of(&mut self, name: &str, field: &Field, size: u64) -> Offset {
        let FieldPlace::In(offset) = field.place else {
            self.note(name, 0, "it is static");
            return Offset::default();
        };
        let most = self.tables.types.get(&field.structure).copied();
        let most = most.unwrap_or(MAX_STRUCTURE).min(MAX_STRUCTURE);
        match u32::try_from(offset) {
            Ok(bytes) if offset.saturating_add(size) <= most => {
                self.taken.insert(name.to_owned(), bytes.into());
                Offset::new(bytes)
            }
            _ => {
                self.note(name, offset, "it is outside of its structure");
                Offset::default()
            }
        }
    }

    /// Notes the first implausible field.
    fn note(&mut self, name: &str, value: u64, why: &'static str) {
        let error = || JvmError::implausible(name, value, why);
        self.implausible.get_or_insert_with(error);
    }
}

const fn declared_problem(declared: &str) -> &'static str {
    match declared.is_empty() {
        true => "its size is not exported",
        false => "the size of its type is not that of a number",
    }
}
