//! The compiled methods of a mapped oat file.

use super::method::{CompiledMethod, DexMethod, InfoBytes, Owner};
use super::oat_dex_files::{OatDexFiles, dex_image};
use crate::art::code_format::CodeFormat;
use crate::art::oat_file::{CompiledMethods, OatFile};
use std::path::Path;
use std::rc::Rc;
use varid_process::{AddressSpace, ElfImage, LoadedBytes};
use varid_symbolizer::dex::DexFile;

/// The compiled code of an oat file.
#[derive(Debug)]
pub(super) struct OatCode {
    file: LoadedBytes,
    format: CodeFormat,
    methods: CompiledMethods,
    dex_files: Rc<OatDexFiles>,
}

impl OatCode {
    /// Reads an ELF file. None if it is not a readable oat file, after a warning.
    pub(super) fn read(elf: &ElfImage, space: &AddressSpace) -> Option<Self> {
        let file = elf.between_symbols("oatdata", "oatlastword")?;
        let read = || {
            let oat = OatFile::parse(&file.bytes)?;
            let dex_files = OatDexFiles::of(&oat, &elf.path, space);
            let classes = |number: usize| {
                let image = dex_files.own.get(number)?.as_ref()?;
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
            Ok((oat.format, methods, Rc::new(dex_files)))
        };
        let (format, methods, dex_files) = read()
            .inspect_err(|error: &crate::art::oat_file::OatError| {
                tracing::warn!(
                    "{}: {error}; its methods stay without names",
                    elf.path.display()
                );
            })
            .ok()?;
        Some(Self {
            file,
            format,
            methods,
            dex_files,
        })
    }

    /// Returns true if a dex file that it lacked is mapped by now. `path`: its own path.
    pub(super) fn would_have_more(&self, path: &Path, space: &AddressSpace) -> bool {
        if self.dex_files.own.iter().all(Option::is_some) {
            return false;
        }
        let Ok(oat) = OatFile::parse(&self.file.bytes) else {
            return false;
        };
        let mut dex_files = oat.dex_files.iter().zip(&self.dex_files.own);
        dex_files
            .any(|(dex_file, known)| known.is_none() && dex_image(dex_file, path, space).is_some())
    }

    /// Returns the method whose code contains an address of the file. `bias`: from the file's addresses to the process's.
    pub(super) fn method_at(&self, address: u64, bias: u64) -> Option<CompiledMethod> {
        let oatdata = self.file.address.get();
        let offset = u32::try_from(address.checked_sub(oatdata)?).ok()?;
        let (code, methods) = self.methods.at(offset)?;
        let start = oatdata.wrapping_add(code.start.into()).wrapping_add(bias);
        let first = usize::try_from(code.start).ok()?;
        let end = first.checked_add(usize::try_from(code.size).ok()?)?;
        let owners = methods.iter().filter_map(|method| {
            let image = self.dex_files.own.get(method.dex_file)?.clone()?;
            let index = method.index;
            Some(DexMethod { image, index })
        });
        CompiledMethod::new(
            start,
            self.file.bytes.get(first..end)?,
            Owner::Dex(owners.collect()),
            InfoBytes::Oat {
                format: self.format,
                bytes: self.file.bytes.clone(),
                offset: code.code_info,
                dex_files: self.dex_files.clone(),
            },
        )
        .inspect_err(|error| tracing::debug!(%error, "code of an oat file"))
        .ok()
    }
}
