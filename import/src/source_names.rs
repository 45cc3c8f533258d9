//! The names in a recording of simpleperf, and the images to which they belong.
//!
//! Functions of files become files of the session, whose addresses are file offsets of the original. Those of the kernel go to
//! `kernel.sym`.

use std::collections::HashMap;

use varid_model::Layer;
use varid_recording::{ImageKind, SessionWriter};
use varid_symbolizer::substitute::{MethodSlot, Slot};

use crate::{
    error::Result,
    images::{self, ImageFile, MAX_OFFSET, NamedImage},
    input::Input,
    kernel::KernelFunction,
    layers,
    limits::ListRoom,
    perfdata::Features,
    simpleperf::{self, FileKind, JitCache, SourceFile},
};

/// The names that are shown for the files of a code cache.
const JIT: &str = "[jit]";
const JIT_ZYGOTE: &str = "[jit-zygote]";
/// The gap between the parts of an image that stands for several files. A mapping may start this far before the first function.
const MARGIN: u64 = 1 << 20;

/// How addresses of a mapping are converted to addresses of an image.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// The address is the offset in the file.
    Offset,
    /// The address is the distance from the mapping's start.
    Distance,
    /// Symbols have addresses of the process. Those from `first` to `end` are in the image from `at` on.
    Address { first: u64, end: u64, at: u64 },
}

/// The most files of the session. The processes of a phone map a few thousand.
const MAX_FILES: usize = 1 << 14;
/// A mapping offset at which no image has a function.
const NOWHERE: u64 = MAX_OFFSET * 2;

/// The names in a source.
#[derive(Debug, Default)]
pub(crate) struct SourceNames {
    /// The image and the conversion of addresses, by the path in a mapping.
    places: HashMap<String, (usize, Place)>,
    images: Vec<NamedImage>,
    files: Vec<ImageFile>,
    kernel: Vec<KernelFunction>,
    /// Modules whose mapping has not been seen yet.
    modules: HashMap<String, SourceFile>,
    /// The image of each code cache, and the end of its last part.
    caches: HashMap<&'static str, (usize, u64)>,
}

impl SourceNames {
    /// Reads the names from a file's features.
    pub(crate) fn new(features: &Features, notes: &mut Vec<String>) -> Self {
        let mut names = Self::default();
        let mut files = Vec::new();
        for (section, first) in &features.files {
            if let Err(malformed) = simpleperf::files(section, *first, &mut files) {
                notes.push(format!(
                    "simpleperf's symbols cannot be read as a whole: {} bytes behind their start: {}",
                    malformed.at, malformed.reason
                ));
            }
        }
        let (mut unused, mut beyond) = (0u64, 0u64);
        let mut room = ListRoom::new(MAX_FILES);
        for file in files {
            if file.functions.is_empty() {
                continue;
            }
            if !room.take(file.path.len()) {
                beyond = beyond.saturating_add(1);
                continue;
            }
            let build_id = features.build_ids.get(&file.path).cloned();
            if !names.add(file, build_id.unwrap_or_default()) {
                unused = unused.saturating_add(1);
            }
        }
        if unused > 0 {
            notes.push(format!(
                "the symbols of {unused} files of the recording, which are neither ELF nor dex, are not used"
            ));
        }
        if beyond > 0 {
            notes.push(format!(
                "the recording has symbols of more files than a session keeps: those of {beyond} files are not used"
            ));
        }
        names
    }

    /// Number of files with names.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Adds a file. Returns false if it is of a kind whose addresses are unknown.
    fn add(&mut self, file: SourceFile, build_id: Vec<u8>) -> bool {
        match file.kind {
            FileKind::Kernel => {
                let functions = file.functions.into_iter().map(|function| {
                    // Functions of a module are called `name [module]`.
                    let split = function.name.strip_suffix(']');
                    let (name, module) = split
                        .and_then(|name| name.rsplit_once(" ["))
                        .unwrap_or((&function.name, ""));
                    KernelFunction {
                        start: function.address,
                        size: function.size.into(),
                        name: name.to_owned(),
                        module: module.to_owned(),
                    }
                });
                self.kernel.extend(functions);
                true
            }
            FileKind::KernelModule => {
                self.modules.insert(file.path.clone(), file);
                true
            }
            FileKind::Elf | FileKind::Dex => match JitCache::of_path(&file.path) {
                Some(cache) => self.add_to_cache(cache, file),
                None => {
                    self.add_image(file, build_id);
                    true
                }
            },
            FileKind::Other => false,
        }
    }

    fn add_image(&mut self, file: SourceFile, build_id: Vec<u8>) {
        let is_dex = file.kind == FileKind::Dex;
        let place = match file.min_place.is_some() || is_dex {
            true => Place::Offset,
            false => Place::Distance,
        };
        let (kind, layer) = match is_dex {
            true => (ImageKind::Dex, layers::of_managed(&file.path)),
            false => (ImageKind::Elf, layers::of_native(&file.path)),
        };
        let slots = slots(&file).into_iter().map(Into::into).collect();
        self.places
            .insert(file.path.clone(), (self.images.len(), place));
        self.images.push(NamedImage {
            path: file.path,
            kind,
            layer,
            build_id,
            slots,
        });
    }

    /// Adds a file with code that was generated at run time. All files of a cache share one image.
    ///
    /// The symbols of such a file have addresses of the process (`PROT_JIT_SYMFILE_MAP` in simpleperf's `thread_tree.cpp`).
    fn add_to_cache(&mut self, cache: JitCache, mut file: SourceFile) -> bool {
        let (name, layer) = match cache {
            JitCache::App => (JIT, Layer::App),
            JitCache::Zygote => (JIT_ZYGOTE, Layer::Framework),
        };
        let images = &mut self.images;
        let (image, next) = self.caches.entry(name).or_insert_with(|| {
            images.push(NamedImage {
                path: name.to_owned(),
                kind: ImageKind::Remap,
                layer,
                build_id: Vec::new(),
                slots: Vec::new(),
            });
            (images.len().saturating_sub(1), 0)
        });
        for function in &mut file.functions {
            function.name = simpleperf::method_name(&function.name).to_owned();
        }
        let starts = file.functions.iter().map(|function| function.address);
        let ends = file.functions.iter().map(|function| {
            let size = u64::from(function.size.max(1));
            function.address.saturating_add(size)
        });
        let (Some(first), Some(end)) = (starts.min(), ends.max()) else {
            return false;
        };
        let at = next.saturating_add(MARGIN);
        let Some(behind) = at
            .checked_add(end.saturating_sub(first))
            .filter(|behind| *behind < MAX_OFFSET)
        else {
            return false;
        };
        *next = behind;
        let place = Place::Address { first, end, at };
        self.places.insert(file.path, (*image, place));
        let slots = file.functions.into_iter().map(|function| Slot {
            offset: function.address.saturating_sub(first).saturating_add(at),
            size: function.size.into(),
            name: function.name,
        });
        if let Some(image) = images.get_mut(*image) {
            image.slots.extend(slots.map(MethodSlot::from));
        }
        true
    }

    /// Writes the session's files.
    pub(crate) fn write(
        &mut self,
        writer: &mut SessionWriter,
        input: &Input,
        arch: &str,
    ) -> Result<()> {
        for (number, image) in std::mem::take(&mut self.images).into_iter().enumerate() {
            let file = images::file(writer, input, number);
            images::write(writer, &file, image, arch)?;
            self.files.push(file);
        }
        Ok(())
    }

    /// The session's file for a mapping of this path, and the mapping's offset in that file.
    pub(crate) fn place(&self, path: &str, start: u64, pgoff: u64) -> Option<(&ImageFile, u64)> {
        let (image, place) = self.places.get(path)?;
        let pgoff = match place {
            Place::Offset => pgoff,
            Place::Distance => 0,
            Place::Address { first, end, at } if start < *end => {
                // A mapping that starts even earlier contains none of the functions.
                let before = first.saturating_sub(MARGIN.min(*first));
                match start.checked_sub(before) {
                    Some(into) => at
                        .saturating_sub(first.saturating_sub(before))
                        .saturating_add(into),
                    None => NOWHERE,
                }
            }
            Place::Address { .. } => NOWHERE,
        };
        Some((self.files.get(*image)?, pgoff))
    }

    /// Handles a mapping of a kernel module, or of the kernel itself.
    pub(crate) fn map_kernel(&mut self, path: &str, start: u64) {
        let Some(file) = self.modules.remove(path) else {
            return;
        };
        let name = path.rsplit('/').next().unwrap_or(path);
        let name = name.strip_suffix(".ko").unwrap_or(name);
        let name = name.trim_start_matches('[').trim_end_matches(']');
        for function in file.functions {
            let into = function.address.wrapping_sub(file.min_address);
            let into = into.wrapping_add(file.min_place.unwrap_or(0));
            self.kernel.push(KernelFunction {
                start: start.wrapping_add(into),
                size: function.size.into(),
                name: function.name,
                module: name.to_owned(),
            });
        }
    }

    /// Takes the functions of the kernel.
    pub(crate) fn take_kernel(&mut self) -> Vec<KernelFunction> {
        std::mem::take(&mut self.kernel)
    }
}

/// A file's functions by their file offsets.
fn slots(file: &SourceFile) -> Vec<Slot> {
    let is_dex = file.kind == FileKind::Dex;
    let offset = |address: u64| match is_dex {
        true => Some(address),
        false => address
            .checked_sub(file.min_address)?
            .checked_add(file.min_place.unwrap_or(0)),
    };
    let functions = file.functions.iter().filter_map(|function| {
        let offset = offset(function.address)?;
        Some(Slot {
            offset: Some(offset).filter(|offset| *offset < MAX_OFFSET)?,
            size: function.size.into(),
            // Bionic's linker prefixes the names of its copies of other libraries' functions.
            name: match function.name.strip_prefix("__dl_") {
                Some(name) => name.to_owned(),
                None => function.name.clone(),
            },
        })
    });
    functions.collect()
}
