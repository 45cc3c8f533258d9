//! Reads split units: the skeleton is in the program, and the entries are in a .dwo or .dwp file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use gimli::{Dwarf, DwarfPackageSections};

use super::Slice;
use super::budget::Budget;
use super::names::NameTable;
use super::sections::Sections;
use super::unit_input::UnitInput;
use super::unit_tables::UnitTables;
use crate::elf::debug_files::{self, DebugFiles};
use crate::elf::reader::ElfReader;

/// The `.dwo` files of a program, or the `.dwp` package of them.
#[derive(Debug, Default)]
pub(super) struct Split {
    debug_files: DebugFiles,
    /// The program's path.
    program: String,
    package: OnceLock<Option<Package>>,
    /// The budgets of the `.dwo` files that have been opened.
    budgets: Mutex<HashMap<PathBuf, Arc<Budget>>>,
}

#[derive(Debug)]
struct Package {
    sections: DwarfPackageSections<Vec<u8>>,
    endian: gimli::RunTimeEndian,
    budget: Budget,
}

impl Split {
    pub(super) fn new(program: &str, debug_files: &DebugFiles) -> Self {
        Self {
            debug_files: debug_files.clone(),
            program: program.to_owned(),
            package: OnceLock::new(),
            budgets: Mutex::default(),
        }
    }

    /// Reads the split unit of a skeleton. `None` if the unit is not a skeleton, or if the file is missing, which is then reported as a
    /// missing debug file.
    pub(super) fn tables(&self, skeleton: UnitInput<'_, '_>) -> Option<UnitTables> {
        let UnitInput { dwarf, unit, .. } = skeleton;
        let id = unit.dwo_id?;
        let name = unit.dwo_name().ok()??;
        let name = dwarf.attr_string(unit, name).ok()?;
        let name = String::from_utf8_lossy(name.slice()).into_owned();
        let read = |split: &Dwarf<Slice<'_>>, budget: &Budget| {
            let mut headers = split.units();
            while let Ok(Some(header)) = headers.next() {
                let Ok(mut split_unit) = split.unit(header) else {
                    continue;
                };
                if split_unit.dwo_id != Some(id) {
                    continue;
                }
                split_unit.copy_relocated_attributes(unit);
                let input = UnitInput {
                    dwarf: split,
                    unit: &split_unit,
                    budget,
                };
                let mut names = NameTable::new(input, [None, None]);
                return Some(UnitTables::read(input, &mut names));
            }
            None
        };
        let package = self.package.get_or_init(|| self.open_package());
        if let Some(package) = package
            && let Ok(view) = package.sections.borrow(
                |bytes| Slice::new(bytes, package.endian),
                Slice::new(&[], package.endian),
            )
            && let Ok(Some(split)) = view.find_cu(id, dwarf)
            && let Some(tables) = read(&split, &package.budget)
        {
            return Some(tables);
        }
        let folder = unit
            .comp_dir
            .map(|folder| PathBuf::from(String::from_utf8_lossy(folder.slice()).into_owned()));
        let path = folder.unwrap_or_default().join(&name);
        let candidates = self.debug_files.split(&self.program, &path);
        let found = candidates.iter().find_map(|path| {
            let sections = Sections::read_split(&debug_files::open(path)?);
            let mut split = sections.view();
            split.make_dwo(dwarf);
            split.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
            let budget = self.budget(path, &sections);
            read(&split, &budget)
        });
        if found.is_none() {
            let reason = "the file with its functions is not there, nor beside the program, nor in a symbol folder";
            self.debug_files.note_missing(
                &path.display().to_string(),
                None,
                Some(reason.to_owned()),
            );
        }
        found
    }

    /// The budget of a `.dwo` file. All units that are read from it share it.
    fn budget(&self, path: &Path, sections: &Sections) -> Arc<Budget> {
        let mut budgets = self.budgets.lock().unwrap_or_else(PoisonError::into_inner);
        let budget = budgets.entry(path.to_owned());
        budget.or_insert_with(|| sections.budget().into()).clone()
    }

    fn open_package(&self) -> Option<Package> {
        let name = PathBuf::from(format!("{}.dwp", self.program));
        let image = self
            .debug_files
            .split(&self.program, &name)
            .iter()
            .find_map(|path| debug_files::open(path))?;
        let mut size = 0usize;
        let load = |id: gimli::SectionId| -> Result<Vec<u8>, gimli::Error> {
            let bytes = id.dwo_name().map(|name| read(&image, name));
            let bytes = bytes.unwrap_or_default();
            size = size.saturating_add(bytes.len());
            Ok(bytes)
        };
        Some(Package {
            sections: DwarfPackageSections::load(load).ok()?,
            endian: image.encoding().endian(),
            budget: Budget::new(size),
        })
    }
}

/// Reads the bytes of a section. Empty if it cannot be read.
fn read(image: &ElfReader<'_>, name: &str) -> Vec<u8> {
    image
        .bytes_of(name)
        .map(std::borrow::Cow::into_owned)
        .unwrap_or_default()
}
