//! Which file and which layer is behind a mapping?

use std::{
    collections::{BTreeSet, HashMap},
    fmt::Write,
    path::{Path, PathBuf},
};

use varid_recording::{ImageKind, Layer, Manifest, Mapping, REMAP_ELF, SYMBOLS};
use varid_symbolizer::elf::ElfSymbols;

use crate::profile::{Image, ImageId};

/// The files of a profile, each with its symbols from the first time they are needed.
#[derive(Debug)]
pub struct Images {
    /// The session folder.
    session: PathBuf,
    /// What the manifest says, by the path in a mapping, or by the substitute's relative path.
    listed: HashMap<String, varid_recording::Image>,
    /// By path and build-id; files that only have a name have no path.
    ids: HashMap<(PathBuf, Vec<u8>), ImageId>,
    images: Vec<Image>,
    files: Vec<File>,
    notes: BTreeSet<String>,
}

/// Where an image's names come from.
#[derive(Debug)]
enum File {
    /// Not looked at yet.
    Unread(Wanted),
    /// Read.
    Symbols {
        symbols: Box<ElfSymbols>,
        kind: ImageKind,
    },
    /// Not to be had, and why was noted.
    None,
}

#[derive(Debug)]
struct Wanted {
    path: PathBuf,
    /// Empty: any.
    build_id: Vec<u8>,
    kind: ImageKind,
}

/// A function of an image.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name as profiles show it.
    pub name: String,
    /// Its first address, which tells functions of the same name apart.
    pub start: u64,
}

impl Images {
    /// The images of a session.
    pub fn new(session: &Path, manifest: &Manifest) -> Self {
        let mut listed = HashMap::new();
        for image in &manifest.images {
            let key = image.substitute.as_ref().unwrap_or(&image.path);
            listed.entry(key.clone()).or_insert_with(|| image.clone());
        }
        Self {
            session: session.to_owned(),
            listed,
            ids: HashMap::new(),
            images: Vec::new(),
            files: Vec::new(),
            notes: BTreeSet::new(),
        }
    }

    /// The image of a user mapping.
    pub fn of_mapping(&mut self, mapping: &Mapping) -> ImageId {
        let key = (mapping.path.clone(), mapping.build_id.clone());
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let (image, wanted) = self.identify(mapping);
        let id = self.push(image, File::Unread(wanted));
        self.ids.insert(key, id);
        id
    }

    /// An image that is only a name: the kernel, a module, the markers.
    pub fn named(&mut self, name: &str, layer: Layer) -> ImageId {
        let key = (PathBuf::new(), [layer.name(), name].concat().into_bytes());
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let image = Image {
            name: name.to_owned(),
            path: None,
            layer,
        };
        let id = self.push(image, File::None);
        self.ids.insert(key, id);
        id
    }

    /// The function at an offset of an image's file, if its file has one there.
    pub fn function(&mut self, id: ImageId, offset: u64) -> Option<Function> {
        let index = usize::try_from(id.0).ok()?;
        let file = self.files.get_mut(index)?;
        if let File::Unread(wanted) = file {
            *file = match read(wanted) {
                Ok(symbols) => File::Symbols {
                    symbols: Box::new(symbols),
                    kind: wanted.kind,
                },
                Err(why) => {
                    let name = self.images.get(index).map_or("", |image| &image.name);
                    // Memory that is no file ([heap], //anon) has no names to miss.
                    let path = wanted.path.as_os_str().as_encoded_bytes();
                    if path.starts_with(b"/") && !path.starts_with(b"//") {
                        let note = format!("{name}: {why}; shown as {name}+0xoffset");
                        self.notes.insert(note);
                    }
                    File::None
                }
            };
        }
        let File::Symbols { symbols, kind } = file else {
            return None;
        };
        let symbol = symbols.lookup_offset(offset)?;
        let name = match kind {
            // A method's name is what it is, even if it looks mangled.
            ImageKind::Dex | ImageKind::Remap => symbol.raw.clone().into_owned(),
            ImageKind::Elf => symbol.name().into_owned(),
        };
        Some(Function {
            name,
            start: symbol.start,
        })
    }

    /// An image.
    pub fn get(&self, id: ImageId) -> Option<&Image> {
        self.images.get(usize::try_from(id.0).ok()?)
    }

    /// All images, and what is wrong with their files.
    pub fn into_parts(self) -> (Vec<Image>, BTreeSet<String>) {
        (self.images, self.notes)
    }

    fn push(&mut self, image: Image, file: File) -> ImageId {
        let id = ImageId(u32::try_from(self.images.len()).unwrap_or(u32::MAX));
        self.images.push(image);
        self.files.push(file);
        id
    }

    fn identify(&self, mapping: &Mapping) -> (Image, Wanted) {
        let path = &mapping.path;
        if let Some(substitute) = self.substitute(path) {
            let listed = self.listed.get(&substitute);
            let kind = match listed {
                Some(image) => image.kind,
                None if substitute == REMAP_ELF => ImageKind::Remap,
                None => ImageKind::Dex,
            };
            let name = match (listed, kind) {
                (Some(image), _) => shown(image),
                (None, ImageKind::Remap) => "[remap]".to_owned(),
                (None, _) => base_name(path),
            };
            let image = Image {
                name,
                path: listed.map(|image| PathBuf::from(&image.path)),
                layer: listed.map_or(Layer::App, |image| image.layer),
            };
            // The remap range's file grows while it is mapped: its build-id may be a later one.
            let build_id = match kind {
                ImageKind::Remap => Vec::new(),
                _ => mapping.build_id.clone(),
            };
            let path = self.session.join(substitute);
            return (
                image,
                Wanted {
                    path,
                    build_id,
                    kind,
                },
            );
        }
        let listed = self.listed.get(path.to_string_lossy().as_ref());
        let image = Image {
            name: listed.map_or_else(|| base_name(path), shown),
            path: Some(path.clone()),
            layer: listed.map_or(Layer::Native, |image| image.layer),
        };
        let wanted = Wanted {
            path: path.clone(),
            build_id: mapping.build_id.clone(),
            kind: listed.map_or(ImageKind::Elf, |image| image.kind),
        };
        (image, wanted)
    }

    /// The relative path of this session's substitute that a mapping names, wherever the
    /// session was when it was recorded.
    fn substitute(&self, path: &Path) -> Option<String> {
        let name = path.file_name()?.to_str()?;
        if path.parent()?.file_name()? != SYMBOLS {
            return None;
        }
        let relative = format!("{SYMBOLS}/{name}");
        let known = self.listed.contains_key(&relative) || self.session.join(&relative).is_file();
        known.then_some(relative)
    }
}

/// Reads the symbols of the very file that was mapped.
fn read(wanted: &Wanted) -> Result<ElfSymbols, String> {
    let path = &wanted.path;
    let file = std::fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if !file.is_file() {
        return Err(format!("{} is not a regular file", path.display()));
    }
    let symbols = ElfSymbols::open(path).map_err(|error| error.to_string())?;
    let found = symbols.build_id().unwrap_or_default();
    if wanted.build_id.is_empty() || found == wanted.build_id {
        return Ok(symbols);
    }
    Err(format!(
        "{} has build-id {}, the recorded file had {}",
        path.display(),
        if found.is_empty() {
            "none".to_owned()
        } else {
            hex(found)
        },
        hex(&wanted.build_id)
    ))
}

fn shown(image: &varid_recording::Image) -> String {
    let name = image.location.as_ref().unwrap_or(&image.path);
    base_name(Path::new(name))
}

fn base_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
