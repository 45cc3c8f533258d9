//! Finds the mapped dex files of an oat file's methods, and of the methods that are inlined into them.

use super::is_oat;
use crate::art::code_info::InlinedDexFile;
use crate::art::oat_file::{MAX_DEX_FILES, OatDexFile, OatFile};
use std::cell::OnceCell;
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
    /// The dex files of the boot class path, as mapped when one was first needed.
    boot_class_path: OnceCell<Vec<Option<Rc<CodeImage>>>>,
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
        Self {
            own: own
                .map(|dex_file| dex_image(dex_file, path, space))
                .collect(),
            boot_locations: locations(oat),
            boot_class_path: OnceCell::new(),
        }
    }

    /// Returns the dex file of an inlined method, if it is mapped. `outer`: the dex file of the method that owns the code.
    pub(super) fn inlined(
        &self,
        dex_file: InlinedDexFile,
        outer: &Rc<CodeImage>,
        space: &AddressSpace,
    ) -> Option<Rc<CodeImage>> {
        let (files, number) = match dex_file {
            InlinedDexFile::Outer => return Some(outer.clone()),
            InlinedDexFile::OatFile(number) => (&self.own, number),
            InlinedDexFile::BootClassPath(number) => {
                let find = || boot_class_path(&self.boot_locations, space);
                (self.boot_class_path.get_or_init(find), number)
            }
        };
        files.get(usize::try_from(number).ok()?)?.clone()
    }
}

/// Returns the dex files of a boot class path in the VM's order. The dex files of an archive are consecutive.
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
            None => found.push(image_at(Path::new(location), space)),
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
            boot_class_path: OnceCell::new(),
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
    fn an_archive_has_the_dex_files_that_are_named_after_it() {
        assert!(is_in("/core.jar", "/core.jar"));
        assert!(is_in("/core.jar!classes2.dex", "/core.jar"));
        assert!(!is_in("/core.jar.bak", "/core.jar"));
        assert!(!is_in("/core.jar", "/core.jar!classes2.dex"));
    }
}
