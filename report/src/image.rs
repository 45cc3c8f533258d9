//! Which file, which layer and which functions are behind a mapping?

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use varid_recording::{ImageKind, Layer, Manifest, Mapping, REMAP_ELF, SYMBOLS};
use varid_symbolizer::elf::{ElfSymbols, Origin};

use crate::{
    files::{Candidate, Files, hex},
    profile::{Image, ImageId},
};

/// The files of a profile, each with its symbols from the first time they are needed.
#[derive(Debug)]
pub struct Images {
    /// The session folder.
    session: PathBuf,
    /// Where the recorded files are looked for.
    files: Files,
    /// What the manifest says, by the path in a mapping, or by the substitute's relative path.
    listed: HashMap<String, varid_recording::Image>,
    /// By path and build-id; files that only have a name have no path.
    ids: HashMap<(PathBuf, Vec<u8>), ImageId>,
    images: Vec<Image>,
    states: Vec<State>,
}

/// What is known of an image's file.
#[derive(Debug)]
enum State {
    /// Not looked at yet.
    Unread(Wanted),
    /// Looked for: the symbols, or why there are none.
    Read(Wanted, Result<Box<ElfSymbols>, String>),
    /// There is no file.
    Named,
}

/// The file behind an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Where it was when it was recorded; of dex files, where the substitute is.
    pub path: PathBuf,
    /// Empty: not known.
    pub build_id: Vec<u8>,
    /// What it is.
    pub kind: ImageKind,
    /// Whether it is a file of the session.
    in_session: bool,
}

/// What became of an image's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState {
    /// The file.
    pub wanted: Wanted,
    /// Why nothing could be read of it.
    pub problem: Option<String>,
}

/// A function of an image.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name as profiles show it.
    pub name: String,
    /// Its first address, which tells functions of the same name apart.
    pub start: u64,
    /// Whether that is a name, not where it starts.
    pub named: bool,
}

impl Images {
    /// The images of a session.
    pub fn new(session: &Path, manifest: &Manifest, files: Files) -> Self {
        let mut listed = HashMap::new();
        for image in &manifest.images {
            let key = image.substitute.as_ref().unwrap_or(&image.path);
            listed.entry(key.clone()).or_insert_with(|| image.clone());
        }
        Self {
            session: session.to_owned(),
            files,
            listed,
            ids: HashMap::new(),
            images: Vec::new(),
            states: Vec::new(),
        }
    }

    /// The image of a user mapping.
    pub fn of_mapping(&mut self, mapping: &Mapping) -> ImageId {
        let key = (mapping.path.clone(), mapping.build_id.clone());
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let (image, wanted) = self.identify(mapping);
        let id = self.push(image, State::Unread(wanted));
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
        let id = self.push(image, State::Named);
        self.ids.insert(key, id);
        id
    }

    /// The function at an offset of an image's file, if its file has one there.
    pub fn function(&mut self, id: ImageId, offset: u64) -> Option<Function> {
        let state = self.states.get_mut(usize::try_from(id.0).ok()?)?;
        if let State::Unread(wanted) = state {
            let symbols = read(wanted, &self.files).map(Box::new);
            *state = State::Read(wanted.clone(), symbols);
        }
        let State::Read(wanted, Ok(symbols)) = state else {
            return None;
        };
        let symbol = symbols.lookup_offset(offset)?;
        let name = match wanted.kind {
            // A method's name is what it is, even if it looks mangled.
            ImageKind::Dex | ImageKind::Remap => symbol.raw.clone().into_owned(),
            ImageKind::Elf => symbol.name().into_owned(),
        };
        Some(Function {
            name,
            start: symbol.start,
            named: symbol.origin != Origin::Unnamed,
        })
    }

    /// An image.
    pub fn get(&self, id: ImageId) -> Option<&Image> {
        self.images.get(usize::try_from(id.0).ok()?)
    }

    /// All images, and by their number the files that were looked at.
    pub fn into_parts(self) -> (Vec<Image>, Vec<Option<FileState>>) {
        let looked_at = |state| match state {
            State::Read(wanted, symbols) => Some(FileState {
                wanted,
                problem: symbols.err(),
            }),
            State::Unread(_) | State::Named => None,
        };
        let files = self.states.into_iter().map(looked_at).collect();
        (self.images, files)
    }

    fn push(&mut self, image: Image, state: State) -> ImageId {
        let id = ImageId(u32::try_from(self.images.len()).unwrap_or(u32::MAX));
        self.images.push(image);
        self.states.push(state);
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
            let wanted = Wanted {
                path: self.session.join(substitute),
                build_id,
                kind,
                in_session: true,
            };
            return (image, wanted);
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
            in_session: false,
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

/// Reads the symbols of the very file that was mapped; or says why not.
fn read(wanted: &Wanted, files: &Files) -> Result<ElfSymbols, String> {
    let candidates = if wanted.in_session {
        vec![Candidate {
            path: wanted.path.clone(),
            trusted: true,
        }]
    } else {
        files.candidates(&wanted.path, &wanted.build_id)
    };
    let mut problem = None;
    for candidate in candidates {
        match read_one(&candidate, &wanted.build_id) {
            Ok(symbols) => return Ok(symbols),
            // A file that is there and is another one says more than one that is not there.
            Err(why) => {
                let there = candidate.path.exists();
                problem = problem.filter(|_| !there).or(Some(why));
            }
        }
    }
    Err(problem.unwrap_or_default())
}

fn read_one(candidate: &Candidate, build_id: &[u8]) -> Result<ElfSymbols, String> {
    let path = &candidate.path;
    let file = std::fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if !file.is_file() {
        return Err(format!("{} is not a regular file", path.display()));
    }
    if build_id.is_empty() && !candidate.trusted {
        return Err(format!(
            "{} is on this machine, the recording is another one's and has no build-id of it",
            path.display()
        ));
    }
    let symbols = ElfSymbols::open(path).map_err(|error| error.to_string())?;
    let found = symbols.build_id().unwrap_or_default();
    if build_id.is_empty() || found == build_id {
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
        hex(build_id)
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
