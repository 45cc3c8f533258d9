//! Where are the functions of a unit that keeps them in a file of their own?

use std::path::PathBuf;
use std::sync::OnceLock;

use gimli::{Dwarf, DwarfPackageSections, Unit};

use super::Slice;
use super::budget::Budget;
use super::file::Sections;
use super::names::Namer;
use super::unit::Tables;
use crate::elf::debug_files::{self, DebugFiles};
use crate::elf::image::Image;

/// The `.dwo` files of a program, or the `.dwp` file that has them all.
#[derive(Debug, Default)]
pub(super) struct Split {
    debug_files: DebugFiles,
    /// The program's path.
    program: String,
    package: OnceLock<Option<Package>>,
}

#[derive(Debug)]
struct Package {
    sections: DwarfPackageSections<Vec<u8>>,
    endian: gimli::RunTimeEndian,
}

impl Split {
    pub(super) fn new(program: &str, debug_files: &DebugFiles) -> Self {
        Self {
            debug_files: debug_files.clone(),
            program: program.to_owned(),
            package: OnceLock::new(),
        }
    }

    /// Reads the functions that `skeleton` keeps elsewhere; none if it keeps none, or if the
    /// file is not to be had, which is noted.
    pub(super) fn tables(
        &self,
        dwarf: &Dwarf<Slice<'_>>,
        skeleton: &Unit<Slice<'_>>,
        budget: &Budget,
    ) -> Option<Tables> {
        let id = skeleton.dwo_id?;
        let name = skeleton.dwo_name().ok()??;
        let name = dwarf.attr_string(skeleton, name).ok()?;
        let name = String::from_utf8_lossy(name.slice()).into_owned();
        let read = |split: &Dwarf<Slice<'_>>| {
            let mut headers = split.units();
            while let Ok(Some(header)) = headers.next() {
                let Ok(mut unit) = split.unit(header) else {
                    continue;
                };
                if unit.dwo_id != Some(id) {
                    continue;
                }
                unit.copy_relocated_attributes(skeleton);
                let mut namer = Namer::new(split, &unit, budget, [None, None]);
                let lines = Some((dwarf, skeleton));
                return Some(Tables::read((split, &unit), lines, &mut namer, budget));
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
            && let Some(tables) = read(&split)
        {
            return Some(tables);
        }
        let folder = skeleton
            .comp_dir
            .map(|folder| PathBuf::from(String::from_utf8_lossy(folder.slice()).into_owned()));
        let path = folder.unwrap_or_default().join(&name);
        let candidates = self.debug_files.split(&self.program, &path);
        let found = candidates.iter().find_map(|path| {
            let sections = Sections::read_split(&debug_files::open(path)?);
            let mut split = sections.view();
            split.make_dwo(dwarf);
            read(&split)
        });
        if found.is_none() {
            let reason = "the file with its functions is not there, nor beside the program, nor in a symbol folder";
            self.debug_files
                .miss(&path.display().to_string(), None, Some(reason.to_owned()));
        }
        found
    }

    fn open_package(&self) -> Option<Package> {
        let name = PathBuf::from(format!("{}.dwp", self.program));
        let image = self
            .debug_files
            .split(&self.program, &name)
            .iter()
            .find_map(|path| debug_files::open(path))?;
        let load = |id: gimli::SectionId| -> Result<Vec<u8>, gimli::Error> {
            Ok(id
                .dwo_name()
                .map(|name| read(&image, name))
                .unwrap_or_default())
        };
        Some(Package {
            sections: DwarfPackageSections::load(load).ok()?,
            endian: image.order().endian(),
        })
    }
}

/// What is in a section; nothing if it cannot be read.
fn read(image: &Image<'_>, name: &str) -> Vec<u8> {
    image
        .bytes_of(name)
        .map(std::borrow::Cow::into_owned)
        .unwrap_or_default()
}
