//! Which methods does a mapped oat file have code of, and where?

use super::method::{CompiledMethod, DexMethod, InfoBytes, Owner};
use crate::art::oat_file::{CompiledMethods, OatDexFile, OatFile};
use std::path::Path;
use std::rc::Rc;
use varid_process::{AddressSpace, CodeImage, ElfImage, LoadedBytes, ProcessImage};
use varid_symbolizer::dex::DexFile;

/// Bytes of a dex file in which its checksum is.
const CHECKSUM: std::ops::Range<usize> = 8..12;

/// The compiled code of an oat file.
#[derive(Debug)]
pub(super) struct OatCode {
    file: LoadedBytes,
    methods: CompiledMethods,
    /// By their numbers in the oat file: the dex files that were mapped when it was read.
    dex_files: Vec<Option<Rc<CodeImage>>>,
}

impl OatCode {
    /// That of an ELF file; None: it is no oat file that can be read, which has been said.
    pub(super) fn read(elf: &ElfImage, space: &AddressSpace) -> Option<Self> {
        let file = elf.between_symbols("oatdata", "oatlastword")?;
        let read = || {
            let oat = OatFile::parse(&file.bytes)?;
            let dex_files = oat.dex_files.iter();
            let dex_files: Vec<_> = dex_files
                .map(|dex_file| dex_image(dex_file, &elf.path, space))
                .collect();
            let classes = |number: usize| {
                let image = dex_files.get(number)?.as_ref()?;
                let dex = DexFile::parse(image.bytecode.bytes()).ok()?;
                Some(dex.class_methods().collect::<Vec<_>>().into_iter())
            };
            let methods = oat.compiled_methods(classes);
            for (number, error) in &methods.unreadable {
                let location = oat
                    .dex_files
                    .get(*number)
                    .map(|dex_file| &*dex_file.location);
                tracing::warn!(
                    "{}: {error}; the methods of {} stay without names",
                    elf.path.display(),
                    location.unwrap_or_default()
                );
            }
            Ok((methods, dex_files))
        };
        let (methods, dex_files) = read()
            .inspect_err(|error: &crate::art::oat_file::OatError| {
                tracing::warn!(
                    "{}: {error}; its methods stay without names",
                    elf.path.display()
                );
            })
            .ok()?;
        Some(Self {
            file,
            methods,
            dex_files,
        })
    }

    /// Whether a dex file that it lacked is mapped by now; `path`: its own path.
    pub(super) fn would_have_more(&self, path: &Path, space: &AddressSpace) -> bool {
        if self.dex_files.iter().all(Option::is_some) {
            return false;
        }
        let Ok(oat) = OatFile::parse(&self.file.bytes) else {
            return false;
        };
        let mut dex_files = oat.dex_files.iter().zip(&self.dex_files);
        dex_files
            .any(|(dex_file, known)| known.is_none() && dex_image(dex_file, path, space).is_some())
    }

    /// The method whose code has the instruction at an address of the file; `bias`: from the file's addresses to the process's.
    pub(super) fn method_at(&self, address: u64, bias: u64) -> Option<CompiledMethod> {
        let oatdata = self.file.address.get();
        let offset = u32::try_from(address.checked_sub(oatdata)?).ok()?;
        let (code, methods) = self.methods.at(offset)?;
        let start = oatdata.wrapping_add(code.start.into()).wrapping_add(bias);
        let first = usize::try_from(code.start).ok()?;
        let end = first.checked_add(usize::try_from(code.size).ok()?)?;
        let owners = methods.iter().filter_map(|method| {
            let image = self.dex_files.get(method.dex_file)?.clone()?;
            let index = method.index;
            Some(DexMethod { image, index })
        });
        CompiledMethod::new(
            start,
            self.file.bytes.get(first..end)?,
            Owner::Dex(owners.collect()),
            InfoBytes::Oat(self.file.bytes.clone(), code.code_info),
        )
        .inspect_err(|error| tracing::debug!(%error, "code of an oat file"))
        .ok()
    }
}

/// The mapped dex file that a part of an oat file was compiled from: at its place in the .vdex file beside it, or the one with its
/// checksum.
fn dex_image(dex_file: &OatDexFile<'_>, oat: &Path, space: &AddressSpace) -> Option<Rc<CodeImage>> {
    let vdex = oat.with_extension("vdex");
    let images = || {
        space.iter().filter_map(|mapped| match &mapped.image {
            ProcessImage::Code(image) => Some(image),
            ProcessImage::Elf(_) | ProcessImage::Other(_) => None,
        })
    };
    let in_vdex = |image: &&Rc<CodeImage>| {
        image.path == vdex && dex_file.vdex_offset.map(u64::from) == Some(image.file_offset)
    };
    let has_checksum = |image: &&Rc<CodeImage>| {
        let checksum = image.bytecode.bytes().get(CHECKSUM);
        checksum == Some(&dex_file.checksum.to_le_bytes())
    };
    images()
        .find(in_vdex)
        .or_else(|| images().find(has_checksum))
        .cloned()
}
