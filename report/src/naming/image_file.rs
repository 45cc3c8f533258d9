//! Looks up functions in the file of one image.

use std::ops::Range;

use varid_recording::Manifest;
use varid_symbolizer::elf::SymbolOrigin;

use super::{
    images::{self, ImageFile, ImageSource, NamedFunction},
    recorded_files::RecordedFiles,
    retrace::{self, Retracer},
};
use crate::{
    error::Result,
    frames::ProfileImage,
    name_options::{Detail, NameOptions},
};

/// The file of an image, with its symbols and debug information.
#[derive(Debug)]
pub struct OpenImage<'p> {
    image: &'p ProfileImage,
    file: &'p ImageFile,
    source: ImageSource,
    retracer: Option<Retracer>,
}

/// A recorded method of Java on HotSpot, or of dex code whose calls were counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JavaMethod {
    /// Its class, such as `org.example.App`.
    pub class: String,
    /// Its name, such as `mul` or `<init>`.
    pub name: String,
    /// The types of its parameters and of its result, as in class files.
    pub descriptor: String,
}

impl<'p> OpenImage<'p> {
    /// Opens the file of an image according to a profile's options. The inner error is the reason why it is missing.
    ///
    /// # Errors
    ///
    /// A folder or file of `names` cannot be read.
    pub fn new(
        names: &NameOptions,
        manifest: &Manifest,
        image: &'p ProfileImage,
        file: &'p ImageFile,
    ) -> Result<Result<Self, String>> {
        let files = RecordedFiles::new(names, manifest)?;
        Self::open(files, names, image, file)
    }

    /// Like [`new`](Self::new), but only uses debug information on this machine.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn of_this_machine(
        names: &NameOptions,
        manifest: &Manifest,
        image: &'p ProfileImage,
        file: &'p ImageFile,
    ) -> Result<Result<Self, String>> {
        let files = RecordedFiles::new(names, manifest)?.of_this_machine();
        Self::open(files, names, image, file)
    }

    fn open(
        files: RecordedFiles,
        names: &NameOptions,
        image: &'p ProfileImage,
        file: &'p ImageFile,
    ) -> Result<Result<Self, String>> {
        let is_app =
            file.kind != varid_recording::ImageKind::Elf && image.layer == varid_model::Layer::App;
        let retracer = match &names.mapping {
            Some(path) if is_app => Some(retrace::read(path)?.0),
            _ => None,
        };
        Ok(file.open(&files).map(|source| Self {
            image,
            file,
            source,
            retracer,
        }))
    }

    /// The path of the file on this machine.
    pub fn path(&self) -> &str {
        self.source.elf.path()
    }

    /// Returns the address for an offset in the file.
    pub fn address(&self, offset: u64) -> Option<u64> {
        self.source.elf.symbols().vaddr(offset)
    }

    /// Returns the address range of the function at an address.
    pub fn bounds(&self, address: u64) -> Option<Range<u64>> {
        let symbol = self.source.elf.symbols().lookup(address)?;
        Some(symbol.start..symbol.end)
    }

    /// Returns the name of the function that starts at an address.
    pub fn name_at(&self, address: u64) -> Option<String> {
        let symbol = self.source.elf.symbols().lookup(address)?;
        let begins = symbol.start == address && symbol.origin != SymbolOrigin::Unnamed;
        begins.then(|| symbol.name().into_owned())
    }

    /// Returns the method of the remap range that starts at an address. None if it has no descriptor.
    pub fn java_method(&self, start: u64) -> Option<JavaMethod> {
        let descriptor = self.source.descriptor(start)?;
        let symbol = self.source.elf.symbols().lookup(start)?;
        let (class, name) = symbol.raw.rsplit_once('.')?;
        Some(JavaMethod {
            class: class.to_owned(),
            name: name.to_owned(),
            descriptor: descriptor.to_owned(),
        })
    }

    /// Returns the line at an address that the recording has, whatever a mapping file makes of it.
    pub fn recorded_line(&self, address: u64) -> Option<u32> {
        let frames = self.source.elf.frames(address);
        let location = frames.last()?.location.as_ref();
        location.map(|location| location.line)
    }

    /// Returns the functions at an address with their lines, innermost first, as named in a profile.
    pub fn functions(&self, address: u64) -> Vec<NamedFunction> {
        let detail = Detail {
            inlined: true,
            lines: true,
        };
        let (name, kind) = (&self.image.name, self.file.kind);
        let recorded = images::functions(&self.source, name, kind, address, detail);
        let Some(retracer) = &self.retracer else {
            return recorded;
        };
        let found = recorded.into_iter().flat_map(|method| {
            let start = method.start;
            // In a dex file, addresses are offsets.
            retracer.retrace(method, address.saturating_sub(start), || {
                images::has_lines(&self.source.elf, start)
            })
        });
        found.collect()
    }
}
