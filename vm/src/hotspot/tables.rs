//! Reads the tables in which HotSpot describes its structures to debuggers (`gHotSpotVMStructs` and others, vmStructs.cpp).

use super::error::{JvmError, Result};
use super::library::{INTS, LONGS, LoadedLibrary, STRUCTS, TYPES};
use super::member::Width;
use super::memory::PagedMemory;
use std::collections::HashMap;
use varid_model::Address;

/// The most entries of a table. JDK 21's longest has eight hundred.
const MAX_ENTRIES: u64 = 1 << 13;
/// The largest entry in bytes. JDK 17's have 48.
const MAX_ENTRY: u64 = 256;
/// The longest name in bytes. The names of some types are whole declarations.
const MAX_NAME: usize = 1 << 9;
/// The most bytes of all names. JDK 21's have 80,000.
const MAX_NAMES: usize = 1 << 20;

/// Where a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldPlace {
    /// In each structure of its type, at this offset in bytes.
    In(u64),
    /// At this address: it is static.
    Static(Address),
}

/// A field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    /// The structure.
    pub(super) structure: String,
    /// The type as it is declared. None if it is not exported.
    pub(super) declared: Option<String>,
    /// Where it is.
    pub(super) place: FieldPlace,
}

/// The tables of a VM, by names as in its sources.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct VmTables {
    /// `TYPE::FIELD`.
    pub(super) fields: HashMap<String, Field>,
    /// The sizes of types in bytes.
    pub(super) types: HashMap<String, u64>,
    /// Constants of both tables.
    pub(super) constants: HashMap<String, i64>,
}

impl VmTables {
    /// Reads the tables.
    pub(super) fn read(library: &LoadedLibrary, memory: &PagedMemory<'_>) -> Result<Self> {
        let mut tables = Self::default();
        let mut names = Names { memory, read: 0 };
        let structs = Table::read(STRUCTS, library, memory)?;
        let [type_name, field_name, declared, is_static, offset, address] = structs.offsets;
        structs.for_each(type_name, &mut names, |structure, entry, names| {
            let word = |offset| memory.number(structs.name, at(entry, offset), Width::Eight);
            let field = names.required(structs.name, word(field_name)?)?;
            let declared = names.read(structs.name, word(declared)?)?;
            let is_static = memory.number(structs.name, at(entry, is_static), Width::Four)? != 0;
            let place = match is_static {
                true => FieldPlace::Static(Address::new(word(address)?)),
                false => FieldPlace::In(word(offset)?),
            };
            let name = format!("{structure}::{field}");
            tables.fields.entry(name).or_insert(Field {
                structure,
                declared,
                place,
            });
            Ok(())
        })?;
        if tables.fields.is_empty() {
            return Err(JvmError::NotStarted("its library is being relocated"));
        }
        let types = Table::read(TYPES, library, memory)?;
        let [name, size] = types.offsets;
        types.for_each(name, &mut names, |name, entry, _| {
            let size = memory.number(types.name, at(entry, size), Width::Eight)?;
            tables.types.entry(name).or_insert(size);
            Ok(())
        })?;
        for (words, width) in [(INTS, Width::Four), (LONGS, Width::Eight)] {
            let constants = Table::read(words, library, memory)?;
            let [name, value] = constants.offsets;
            constants.for_each(name, &mut names, |name, entry, _| {
                let value = memory.number(constants.name, at(entry, value), width)?;
                let value = match width {
                    Width::Four => i64::from(value as u32 as i32),
                    _ => value.cast_signed(),
                };
                tables.constants.entry(name).or_insert(value);
                Ok(())
            })?;
        }
        Ok(tables)
    }
}

fn at(entry: Address, offset: u64) -> Address {
    entry.wrapping_add(offset)
}

const NOT_INITIALIZED: JvmError = JvmError::NotStarted("its library is not initialized");

/// A table.
struct Table<const PARTS: usize> {
    /// Its symbol.
    name: &'static str,
    start: Address,
    /// The size of an entry in bytes.
    stride: u64,
    /// Where the parts of an entry are, in bytes.
    offsets: [u64; PARTS],
}

impl<const PARTS: usize> Table<PARTS> {
    /// Reads the words that describe a table. They are those of its parts, after its address and the size of an entry.
    fn read<const WORDS: usize>(
        words: [&'static str; WORDS],
        library: &LoadedLibrary,
        memory: &PagedMemory<'_>,
    ) -> Result<Self> {
        const { assert!(WORDS == PARTS.wrapping_add(2)) };
        let word = |name| memory.number(name, library.word(name)?, Width::Eight);
        let mut values = [("", 0); WORDS];
        for (value, name) in values.iter_mut().zip(words) {
            *value = (name, word(name)?);
        }
        let mut values = values.into_iter();
        let (name, start) = values.next().unwrap_or_default();
        let (stride_name, stride) = values.next().unwrap_or_default();
        if start == 0 {
            return Err(JvmError::NotStarted("its library is not relocated"));
        }
        // The library's own constructors write these words.
        if stride == 0 {
            return Err(NOT_INITIALIZED);
        }
        if stride > MAX_ENTRY || !stride.is_multiple_of(8) {
            let why = "no entry of a table is that large";
            return Err(JvmError::implausible(stride_name, stride, why));
        }
        let mut offsets = [0; PARTS];
        for (offset, (name, value)) in offsets.iter_mut().zip(values) {
            // The smallest part has four bytes.
            if value > stride.saturating_sub(4) {
                return Err(JvmError::implausible(
                    name,
                    value,
                    "it is outside of an entry",
                ));
            }
            *offset = value;
        }
        if offsets.iter().filter(|offset| **offset == 0).count() > 1 {
            return Err(NOT_INITIALIZED);
        }
        Ok(Self {
            name,
            start: Address::new(start),
            stride,
            offsets,
        })
    }

    /// Calls `with` for each entry, with its name and its address. An entry without a name is the end.
    fn for_each<'n, 'm>(
        &self,
        name: u64,
        names: &mut Names<'n, 'm>,
        mut with: impl FnMut(String, Address, &mut Names<'n, 'm>) -> Result<()>,
    ) -> Result<()> {
        for index in 0..MAX_ENTRIES {
            let entry = self.start.wrapping_add(index.wrapping_mul(self.stride));
            let address = names
                .memory
                .number(self.name, at(entry, name), Width::Eight)?;
            let Some(name) = names.read(self.name, address)? else {
                return Ok(());
            };
            with(name, entry, names)?;
        }
        Err(JvmError::EndlessTable {
            table: self.name,
            most: MAX_ENTRIES,
        })
    }
}

/// Reads names, but not more of them than tables have.
struct Names<'n, 'm> {
    memory: &'n PagedMemory<'m>,
    /// Bytes that have been read.
    read: usize,
}

impl Names<'_, '_> {
    /// Returns the name at an address. None if that is null.
    fn read(&mut self, table: &'static str, address: u64) -> Result<Option<String>> {
        if address == 0 {
            return Ok(None);
        }
        let name = self.memory.string(table, Address::new(address), MAX_NAME)?;
        self.read = self.read.saturating_add(name.len());
        if self.read > MAX_NAMES {
            let most = MAX_NAMES;
            return Err(JvmError::TooManyNames { table, most });
        }
        Ok(Some(name))
    }

    /// Returns the name at an address, which must not be null.
    fn required(&mut self, table: &'static str, address: u64) -> Result<String> {
        let name = self.read(table, address)?;
        name.ok_or_else(|| JvmError::implausible(table, address, "a field has no name"))
    }
}
