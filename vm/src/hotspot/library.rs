//! Where does a process's libjvm export the tables that describe the VM?

use super::error::{JvmError, Result};
use object::{Object, ObjectSymbol};
use std::collections::HashMap;
use varid_model::{Address, Machine};

/// A loaded libjvm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedLibrary {
    /// The machine of its code.
    pub(super) machine: Machine,
    /// Where the words are that it exports: each has a table's address, the size of its entries, or the offset of a part in an entry.
    pub(super) words: HashMap<&'static str, Address>,
}

impl LoadedLibrary {
    /// Reads the symbols of a library that is loaded with `bias` between the addresses of the process and those of the file.
    pub(super) fn read<'data>(file: &impl Object<'data>, bias: u64) -> Result<Self> {
        let machine = match file.architecture() {
            object::Architecture::X86_64 => Machine::X86_64,
            object::Architecture::Aarch64 => Machine::Aarch64,
            _ => return Err(JvmError::Machine),
        };
        let mut words = HashMap::new();
        for symbol in file.dynamic_symbols() {
            let Ok(name) = symbol.name() else {
                continue;
            };
            let known = exported_words().find(|word| *word == name);
            if let Some(word) = known
                && symbol.is_definition()
            {
                words.insert(word, Address::new(symbol.address().wrapping_add(bias)));
            }
        }
        Ok(Self { machine, words })
    }

    /// A library whose words lie one after the other, in the order of [`exported_words`].
    pub(crate) fn exporting_at(machine: Machine, start: Address) -> Self {
        let addresses = (start.get()..).step_by(8).map(Address::new);
        let words = exported_words().zip(addresses).collect();
        Self { machine, words }
    }

    /// Returns where a word is.
    pub(super) fn word(&self, name: &'static str) -> Result<Address> {
        let found = self.words.get(name).copied();
        found.ok_or(JvmError::NoSymbol(name))
    }
}

/// The words that describe the table of fields: its address, the size of an entry, and where an entry has the type's name, the field's
/// name, the name of the field's type, whether it is static, its offset, and its address if it is static. From vmStructs.hpp.
pub(super) const STRUCTS: [&str; 8] = [
    "gHotSpotVMStructs",
    "gHotSpotVMStructEntryArrayStride",
    "gHotSpotVMStructEntryTypeNameOffset",
    "gHotSpotVMStructEntryFieldNameOffset",
    "gHotSpotVMStructEntryTypeStringOffset",
    "gHotSpotVMStructEntryIsStaticOffset",
    "gHotSpotVMStructEntryOffsetOffset",
    "gHotSpotVMStructEntryAddressOffset",
];
/// Those of the table of types: its address, the size of an entry, and where an entry has the name and the size in bytes.
pub(super) const TYPES: [&str; 4] = [
    "gHotSpotVMTypes",
    "gHotSpotVMTypeEntryArrayStride",
    "gHotSpotVMTypeEntryTypeNameOffset",
    "gHotSpotVMTypeEntrySizeOffset",
];
/// Those of the table of constants of 32 bits: its address, the size of an entry, and where an entry has the name and the value.
pub(super) const INTS: [&str; 4] = [
    "gHotSpotVMIntConstants",
    "gHotSpotVMIntConstantEntryArrayStride",
    "gHotSpotVMIntConstantEntryNameOffset",
    "gHotSpotVMIntConstantEntryValueOffset",
];
/// The same of constants of 64 bits.
pub(super) const LONGS: [&str; 4] = [
    "gHotSpotVMLongConstants",
    "gHotSpotVMLongConstantEntryArrayStride",
    "gHotSpotVMLongConstantEntryNameOffset",
    "gHotSpotVMLongConstantEntryValueOffset",
];
/// Returns all of these.
fn exported_words() -> impl Iterator<Item = &'static str> {
    let tables: [&'static [&'static str]; 4] = [&STRUCTS, &TYPES, &INTS, &LONGS];
    tables.into_iter().flatten().copied()
}
