//! Finds the mapped dex files of an oat file's methods, and of the methods that are inlined into them.

use super::is_oat;
use crate::art::code_info::InlinedDexFile;
use crate::art::oat_file::{MAX_DEX_FILES, OatDexFile, OatFile};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use varid_process::{AddressSpace, CodeImage, ElfImage, ProcessImage};

/// The bytes of a dex file that are its checksum.
const CHECKSUM: std::ops::Range<usize> = 8..12;
/// The bytes at the start of an oat file that contain its header and the list of its dex files.
const MAX_HEADER: u64 = 1 << 20;

/// The dex files of an oat file.
#[derive(Debug, Default)]
pub(super) struct OatDexFiles {
    /// By their numbers in the oat file, if they were mapped when it was read.
    pub(super) own: Vec<Option<Rc<CodeImage>>>,
    /// The locations of the boot class path.
    boot_locations: Vec<String>,
    boot_class_path: RefCell<BootClassPath>,
}

/// The dex files of the boot class path.
#[derive(Debug, Default)]
struct BootClassPath {
    /// By their numbers, if they were mapped. What follows an archive that was not has no known number, and is not in it.
    files: Vec<Option<Rc<CodeImage>>>,
    /// Whether all of them were mapped.
    is_complete: bool,
    /// The state of the address space in which they were looked for, and the number of images that may be, or have, such files.
    changes: u64,
    candidates: usize,
}

impl PartialEq for OatDexFiles {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl OatDexFiles {
    /// Finds the dex files of an oat file at a path.
    pub(super) fn of(oat: &OatFile<'_>, path: &Path, space: &AddressSpace) -> Self {
        let own = oat.dex_files.iter();
        let boot_locations = locations(oat);
        Self {
            own: own
                .map(|dex_file| dex_image(dex_file, path, space))
                .collect(),
            // When one of them is first needed the process may be gone.
            boot_class_path: RefCell::new(BootClassPath::of(&boot_locations, space)),
            boot_locations,
        }
    }

    /// Returns the dex file of an inlined method, if it is mapped. `outer`: the dex file of the method that owns the code.
    pub(super) fn inlined(
        &self,
        dex_file: InlinedDexFile,
        outer: &Rc<CodeImage>,
        space: &AddressSpace,
    ) -> Option<Rc<CodeImage>> {
        let at = |files: &[Option<Rc<CodeImage>>], number| {
            let number = usize::try_from(number).ok()?;
            files.get(number)?.clone()
        };
        match dex_file {
            InlinedDexFile::Outer => Some(outer.clone()),
            InlinedDexFile::OatFile(number) => at(&self.own, number),
            InlinedDexFile::BootClassPath(number) => {
                let mut boot = self.boot_class_path.borrow_mut();
                if boot.would_have_more(space) {
                    *boot = BootClassPath::of(&self.boot_locations, space);
                }
                at(&boot.files, number)
            }
        }
    }
}

impl BootClassPath {
    fn of(locations: &[String], space: &AddressSpace) -> Self {
        let files = boot_class_path(locations, space);
        Self {
            is_complete: files.iter().all(Option::is_some),
            changes: space.changes(),
            candidates: candidates(space),
            files,
        }
    }

    /// Returns true if a file that it lacks may be mapped by now.
    fn would_have_more(&mut self, space: &AddressSpace) -> bool {
        if self.is_complete || self.changes == space.changes() {
            return false;
        }
        self.changes = space.changes();
        self.candidates != candidates(space)
    }
}

/// Returns the number of mapped dex files and oat files.
fn candidates(space: &AddressSpace) -> usize {
    images(space).count().saturating_add(oat_files(space).len())
}

/// Returns the dex files of a boot class path in the VM's order. The dex files of an archive are consecutive; if an archive is not mapped, their
/// number is not known, and the list ends.
fn boot_class_path(locations: &[String], space: &AddressSpace) -> Vec<Option<Rc<CodeImage>>> {
    let oats: Vec<_> = oat_files(space)
        .into_iter()
        .filter_map(|elf| Located::of(elf, space))
        .collect();
    // If a boot image consists of several oat files, only the first one lists the locations.
    let locations = match locations {
        [] => oats
            .iter()
            .map(|oat| &oat.boot_locations[..])
            .find(|all| !all.is_empty())
            .unwrap_or_default(),
        own => own,
    };
    let mut found = Vec::new();
    for location in locations {
        let of_location = |(other, _): &&(String, _)| is_in(other, location);
        let in_oats = oats
            .iter()
            .map(|oat| oat.dex_files.iter().filter(of_location).collect::<Vec<_>>())
            .find(|images| !images.is_empty());
        match in_oats {
            Some(images) => found.extend(images.into_iter().map(|(_, image)| image.clone())),
            None => {
                let image = image_at(Path::new(location), space);
                let is_archive = !location.ends_with(".dex");
                let is_missing = image.is_none();
                found.push(image);
                if is_missing && is_archive {
                    break;
                }
            }
        }
        if found.len() >= MAX_DEX_FILES as usize {
            break;
        }
    }
    found
}

/// Returns true if a dex file's location is a file, or in that file.
fn is_in(location: &str, file: &str) -> bool {
    let rest = location.strip_prefix(file);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('!'))
}

/// Returns the mapped oat files.
fn oat_files(space: &AddressSpace) -> Vec<&Rc<ElfImage>> {
    let mut files: Vec<&Rc<ElfImage>> = Vec::new();
    for mapped in space.iter() {
        if let ProcessImage::Elf(elf) = &mapped.image
            && is_oat(&elf.path)
            && !files.iter().any(|known| Rc::ptr_eq(known, elf))
        {
            files.push(elf);
        }
    }
    files
}

/// The dex files of an oat file, and its boot class path.
struct Located {
    /// The locations of the boot class path.
    boot_locations: Vec<String>,
    /// Its own dex files, with their locations.
    dex_files: Vec<(String, Option<Rc<CodeImage>>)>,
}

impl Located {
    fn of(elf: &ElfImage, space: &AddressSpace) -> Option<Self> {
        let file = elf.between_symbols_up_to("oatdata", "oatlastword", MAX_HEADER)?;
        let oat = OatFile::parse(&file.bytes).ok()?;
        let dex_files = oat.dex_files.iter().map(|dex_file| {
            let image = dex_image(dex_file, &elf.path, space);
            (dex_file.location.clone().into_owned(), image)
        });
        Some(Self {
            boot_locations: locations(&oat),
            dex_files: dex_files.collect(),
        })
    }
}

/// Returns the locations of the boot class path that an oat file lists.
fn locations(oat: &OatFile<'_>) -> Vec<String> {
    let locations = oat.boot_class_path().take(MAX_DEX_FILES as usize);
    locations.map(|location| location.into_owned()).collect()
}

/// Returns the mapped dex file that a part of an oat file was compiled from: the one at its offset in the .vdex file beside it, or the one
/// with its checksum.
pub(super) fn dex_image(
    dex_file: &OatDexFile<'_>,
    oat: &Path,
    space: &AddressSpace,
) -> Option<Rc<CodeImage>> {
    let vdex = oat.with_extension("vdex");
    let in_vdex = |image: &&Rc<CodeImage>| {
        image.path == vdex && dex_file.vdex_offset.map(u64::from) == Some(image.file_offset)
    };
    let has_checksum = |image: &&Rc<CodeImage>| {
        let checksum = image.bytecode.bytes().get(CHECKSUM);
        checksum == Some(&dex_file.checksum.to_le_bytes())
    };
    images(space)
        .find(in_vdex)
        .or_else(|| images(space).find(has_checksum))
        .cloned()
}

/// Returns the dex file that is a whole mapped file.
fn image_at(path: &Path, space: &AddressSpace) -> Option<Rc<CodeImage>> {
    let is_there = |image: &&Rc<CodeImage>| image.path == path && image.file_offset == 0;
    images(space).find(is_there).cloned()
}

fn images(space: &AddressSpace) -> impl Iterator<Item = &Rc<CodeImage>> {
    space.iter().filter_map(|mapped| match &mapped.image {
        ProcessImage::Code(image) => Some(image),
        ProcessImage::Elf(_) | ProcessImage::Other(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_process::{MappingId, ProcessMapping};

    const DEX: &[u8] = include_bytes!("../../../tests/fixtures/art11/code.dex");

    fn space(paths: &[&str]) -> AddressSpace {
        let mut space = AddressSpace::default();
        for (path, start) in paths.iter().zip((0x1_0000..).step_by(0x1_0000)) {
            let image = CodeImage::of_dex(DEX.to_vec(), Path::new(path)).unwrap();
            space.insert(ProcessMapping {
                start,
                end: start + 0x1000,
                pgoff: 0,
                image: ProcessImage::Code(Rc::new(image)),
                mode: None,
                id: MappingId::default(),
            });
        }
        space
    }

    fn path(image: Option<Rc<CodeImage>>) -> Option<String> {
        Some(image?.path.display().to_string())
    }

    #[test]
    fn an_inlined_method_s_dex_file_is_numbered_in_the_oat_file_or_the_boot_class_path() {
        let space = space(&["/boot.dex", "/framework.dex", "/app.dex", "/app2.dex"]);
        let own = ["/app.dex", "/app2.dex"].map(|path| image_at(Path::new(path), &space));
        let outer = own[0].clone().unwrap();
        let files = OatDexFiles {
            own: own.to_vec(),
            boot_locations: ["/boot.dex", "/missing.dex", "/framework.dex"]
                .map(str::to_owned)
                .to_vec(),
            boot_class_path: RefCell::default(),
        };
        let inlined = |dex_file| path(files.inlined(dex_file, &outer, &space));
        assert_eq!(inlined(InlinedDexFile::Outer).as_deref(), Some("/app.dex"));
        let of_oat = |number| inlined(InlinedDexFile::OatFile(number));
        assert_eq!(of_oat(1).as_deref(), Some("/app2.dex"));
        assert_eq!(of_oat(2), None);
        let of_boot = |number| inlined(InlinedDexFile::BootClassPath(number));
        assert_eq!(of_boot(0).as_deref(), Some("/boot.dex"));
        // The others keep their numbers.
        assert_eq!(of_boot(1), None);
        assert_eq!(of_boot(2).as_deref(), Some("/framework.dex"));
        assert_eq!(of_boot(u32::MAX), None);
    }

    #[test]
    fn dex_files_of_the_boot_class_path_are_found_when_they_are_mapped_later() {
        let locations = ["/boot.dex", "/later.dex"].map(str::to_owned).to_vec();
        let early = space(&["/boot.dex"]);
        let files = OatDexFiles {
            boot_class_path: RefCell::new(BootClassPath::of(&locations, &early)),
            boot_locations: locations,
            ..OatDexFiles::default()
        };
        let outer = image_at(Path::new("/boot.dex"), &early).unwrap();
        let later = |space: &AddressSpace| {
            path(files.inlined(InlinedDexFile::BootClassPath(1), &outer, space))
        };
        assert_eq!(later(&early), None);
        let late = space(&["/boot.dex", "/other.dex", "/later.dex"]);
        assert_eq!(later(&late).as_deref(), Some("/later.dex"));
        // A complete list stays as it is, even if the process is gone.
        assert_eq!(later(&space(&[])).as_deref(), Some("/later.dex"));
    }

    #[test]
    fn what_follows_an_archive_that_is_not_mapped_has_no_number() {
        let space = space(&["/boot.dex", "/framework.dex"]);
        let locations = ["/boot.dex", "/missing.jar", "/framework.dex"].map(str::to_owned);
        let found = boot_class_path(&locations, &space);
        let names: Vec<_> = found.into_iter().map(path).collect();
        assert_eq!(names, [Some("/boot.dex".to_owned()), None]);
    }

    #[test]
    fn an_archive_has_the_dex_files_that_are_named_after_it() {
        assert!(is_in("/core.jar", "/core.jar"));
        assert!(is_in("/core.jar!classes2.dex", "/core.jar"));
        assert!(!is_in("/core.jar.bak", "/core.jar"));
        assert!(!is_in("/core.jar", "/core.jar!classes2.dex"));
    }
}
