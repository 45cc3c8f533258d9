//! Which file, which layer and which functions are behind a mapping?

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
};

use varid_model::Layer;
use varid_recording::{
    ImageKind, Manifest, MappingRecord, REMAP_ELF, SYMBOLS, SampleSource, is_own_memory,
};
use varid_symbolizer::{
    Frame,
    elf::{ElfSource, SymbolOrigin},
};

use super::{
    file_version::FileVersion, kept_symbols::KeptSymbols, recorded_files::RecordedFiles,
    run_time_code::Hotspot, runtimes::Runtime,
};
use crate::{
    frames::{ImageId, ProfileImage},
    name_options::Detail,
};

/// What code is called that a process has made at run time and given names.
pub const JIT: &str = "[jit]";

/// The files of a profile, each with its symbols from the first time they are needed.
#[derive(Debug)]
pub struct ImageTable {
    /// The session folder.
    session: PathBuf,
    /// Where the recorded files are looked for.
    files: RecordedFiles,
    /// What the manifest says, by the path in a mapping, or by the substitute's relative path.
    listed: HashMap<String, varid_recording::SessionImage>,
    /// The files whose symbols the session keeps.
    kept: KeptSymbols,
    /// Of the files that grow while the session is recorded, when they were read.
    versions: HashMap<ImageId, Option<FileVersion>>,
    /// By path and build-id; files that only have a name have no path.
    ids: HashMap<(PathBuf, Vec<u8>), ImageId>,
    images: Vec<ProfileImage>,
    states: Vec<State>,
    hotspot: Hotspot,
}

/// The file of an image.
#[derive(Debug)]
enum State {
    /// Not looked at yet.
    Unread(ImageFile),
    /// Looked for: the symbols, or why there are none.
    Read(ImageFile, Result<Box<ElfSource>, String>),
    /// There is no file.
    Named,
}

/// The file behind an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFile {
    /// Where it was when it was recorded; of dex files, where the substitute is.
    pub path: PathBuf,
    /// Empty: not known.
    pub build_id: Vec<u8>,
    /// What it is.
    pub kind: ImageKind,
    /// Whether it is a file of the session.
    pub in_session: bool,
    /// The session's file with its symbols, if the session keeps them beside the original.
    pub kept: Option<PathBuf>,
}

/// What became of an image's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFileState {
    /// The file.
    pub file: ImageFile,
    /// Why nothing could be read of it.
    pub problem: Option<String>,
    /// Why there is no debug information of it, if there is more to say than that.
    pub no_debug: Option<String>,
}

/// A function at an address of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFunction {
    /// Its name as profiles show it.
    pub name: String,
    /// Its name in the recording, if a mapping file knows it by the other one.
    pub recorded: Option<String>,
    /// Its first address, which tells functions of the same name apart.
    pub start: u64,
    /// Whether it has a name, not only a place where it starts.
    pub named: bool,
    /// Whether it is a copy in its caller.
    pub inlined: bool,
    /// Its file and line at the address.
    pub line: Option<(String, u32)>,
}

impl ImageTable {
    /// The images of a session.
    pub fn new(session: &Path, manifest: &Manifest, files: RecordedFiles) -> Self {
        Self {
            session: session.to_owned(),
            files,
            listed: listed(manifest),
            kept: KeptSymbols::new(session, &manifest.kept),
            versions: HashMap::new(),
            ids: HashMap::new(),
            images: Vec::new(),
            states: Vec::new(),
            hotspot: match manifest.source {
                SampleSource::Import => Hotspot::Possible,
                SampleSource::Bpf | SampleSource::Module | SampleSource::Perf => Hotspot::Absent,
            },
        }
    }

    /// The session goes on: takes what its manifest lists now. The images of which there is something else to read than before.
    pub fn refresh(&mut self, manifest: &Manifest) -> HashSet<ImageId> {
        let mut changed = HashSet::new();
        let now = listed(manifest);
        let kept = KeptSymbols::new(&self.session, &manifest.kept);
        if (&now, &kept) != (&self.listed, &self.kept) {
            (self.listed, self.kept) = (now, kept);
            for ((path, build_id), id) in &self.ids {
                let index = usize::try_from(id.0).unwrap_or(usize::MAX);
                let image = self.images.get(index);
                let Some(State::Unread(file) | State::Read(file, _)) = self.states.get(index)
                else {
                    continue;
                };
                let known = image.zip(Some(file));
                let (image, file) = self.identify(path, build_id);
                if known != Some((&image, &file)) {
                    changed.insert(*id);
                    replace(&mut self.images, index, image);
                    replace(&mut self.states, index, State::Unread(file));
                }
            }
        }
        for (id, version) in &self.versions {
            let index = usize::try_from(id.0).unwrap_or(usize::MAX);
            if let Some(State::Read(file, _)) = self.states.get(index)
                && FileVersion::of(&file.path) != *version
            {
                let file = file.clone();
                changed.insert(*id);
                replace(&mut self.states, index, State::Unread(file));
            }
        }
        changed
    }

    /// The image of a user mapping.
    pub fn intern(&mut self, mapping: &MappingRecord) -> ImageId {
        let key = (mapping.path.clone(), mapping.build_id.clone());
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let (image, file) = self.identify(&mapping.path, &mapping.build_id);
        let id = self.push(image, State::Unread(file));
        self.ids.insert(key, id);
        id
    }

    /// Whether an image is memory in which a process may make code.
    pub fn is_own_memory(&self, id: ImageId) -> bool {
        let path = self.get(id).and_then(|image| image.path.as_deref());
        // The remap range's file is listed by its name alone.
        let is_remap = self.kind(id) == Some(ImageKind::Remap);
        let is_file = |path: &Path| is_remap && path.extension().is_some_and(|name| name == "elf");
        path.is_some_and(|path| is_own_memory(path) && path != "[vdso]" && !is_file(path))
    }

    /// Whether an image is code that a process made: its memory, or what perf calls that by the file that names it, `perf-PID.map`.
    pub fn is_run_time(&self, id: ImageId) -> bool {
        let path = self.get(id).and_then(|image| image.path.as_deref());
        let name = path.and_then(|path| path.file_name()?.to_str());
        let is_map = name.is_some_and(|name| name.starts_with("perf-") && name.ends_with(".map"));
        let is_dex = self.kind(id) == Some(ImageKind::Dex);
        !is_dex && (is_map || path.is_some_and(is_jit_file) || self.is_own_memory(id))
    }

    /// An image that is only a name: the kernel, a module, the markers.
    pub fn intern_named(&mut self, name: &str, layer: Layer) -> ImageId {
        let key = (PathBuf::new(), [layer.name(), name].concat().into_bytes());
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let image = ProfileImage {
            name: name.to_owned(),
            path: None,
            layer,
        };
        let id = self.push(image, State::Named);
        self.ids.insert(key, id);
        id
    }

    /// The functions at an offset of an image's file, innermost first; none if it has none there.
    pub fn functions(&mut self, id: ImageId, offset: u64, detail: Detail) -> Vec<NamedFunction> {
        let state = usize::try_from(id.0)
            .ok()
            .and_then(|index| self.states.get_mut(index));
        let Some(state) = state else {
            return Vec::new();
        };
        if let State::Unread(file) = state {
            if file.in_session && file.kind == ImageKind::Remap {
                self.versions.insert(id, FileVersion::of(&file.path));
            }
            let source = file.open(&self.files).map(Box::new);
            let runtime = Runtime::of(&file.path).filter(|_| file.kind == ImageKind::Elf);
            let is_other = runtime.zip(source.as_ref().ok());
            let is_other =
                is_other.is_some_and(|(runtime, source)| runtime.is_refuted_by(source.symbols()));
            let image = usize::try_from(id.0).ok();
            let image = image.and_then(|index| self.images.get_mut(index));
            if let Some(image) = image.filter(|_| is_other) {
                image.layer = Layer::Native;
            }
            *state = State::Read(file.clone(), source);
        }
        match state {
            State::Read(file, Ok(source)) => {
                let image = usize::try_from(id.0)
                    .ok()
                    .and_then(|index| self.images.get(index));
                let image = image.map_or("", |image| &image.name);
                let address = source.symbols().vaddr(offset);
                let of = |address| functions(source, image, file.kind, address, detail);
                address.map(of).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// Whether any instruction of the dex method at an offset has a line.
    pub fn has_lines(&self, id: ImageId, offset: u64) -> bool {
        let index = usize::try_from(id.0).ok();
        let state = index.and_then(|index| self.states.get(index));
        matches!(state, Some(State::Read(_, Ok(source))) if has_lines(source, offset))
    }

    /// What kind of file an image is; none: it is only a name.
    pub fn kind(&self, id: ImageId) -> Option<ImageKind> {
        match self.states.get(usize::try_from(id.0).ok()?)? {
            State::Unread(file) | State::Read(file, _) => Some(file.kind),
            State::Named => None,
        }
    }

    /// Whether an image holds the app's own methods.
    pub fn is_app(&self, id: ImageId) -> bool {
        let is_managed = self.kind(id).is_some_and(|kind| kind != ImageKind::Elf);
        is_managed && self.get(id).is_some_and(|image| image.layer == Layer::App)
    }

    /// An image.
    pub fn get(&self, id: ImageId) -> Option<&ProfileImage> {
        self.images.get(usize::try_from(id.0).ok()?)
    }

    /// The files that have not been looked at.
    pub fn files(&self) -> impl Iterator<Item = &ImageFile> {
        self.states.iter().filter_map(|state| match state {
            State::Unread(file) => Some(file),
            State::Read(..) | State::Named => None,
        })
    }

    /// What cannot be read of files that name code by what is left of them, as sentences.
    pub fn problems(&self) -> impl Iterator<Item = String> {
        self.states.iter().filter_map(|state| {
            let State::Read(file, Ok(source)) = state else {
                return None;
            };
            let problem = source.symbols().problems().first()?;
            let path = file.path.display();
            Some(format!(
                "{path} cannot be read as a whole, names are missing or of its other tables: {problem}"
            ))
        })
    }

    /// Whether HotSpot may have made code, as far as is known of mappings.
    pub const fn hotspot(&self) -> Hotspot {
        self.hotspot
    }

    /// All images, and by their number the files that were looked at.
    pub fn into_parts(self) -> (Vec<ProfileImage>, Vec<Option<ImageFileState>>) {
        let looked_at = |state| match state {
            State::Read(file, source) => Some(ImageFileState {
                no_debug: self.files.why_no_debug(&file.build_id),
                file,
                problem: source.err(),
            }),
            State::Unread(_) | State::Named => None,
        };
        let files = self.states.into_iter().map(looked_at).collect();
        (self.images, files)
    }

    fn push(&mut self, image: ProfileImage, state: State) -> ImageId {
        let id = ImageId(u32::try_from(self.images.len()).unwrap_or(u32::MAX));
        if image.name.starts_with("libjvm.so") {
            self.hotspot = Hotspot::Possible;
        }
        self.images.push(image);
        self.states.push(state);
        id
    }

    fn identify(&self, path: &Path, build_id: &[u8]) -> (ProfileImage, ImageFile) {
        if let Some(substitute) = self.substitute(path) {
            return self.identify_own(path, &substitute, build_id);
        }
        let listed = self.listed.get(path.to_string_lossy().as_ref());
        if is_jit_file(path) {
            let image = ProfileImage {
                name: JIT.to_owned(),
                path: Some(path.to_owned()),
                layer: Layer::App,
            };
            let file = ImageFile {
                path: path.to_owned(),
                build_id: build_id.to_vec(),
                kind: ImageKind::Remap,
                in_session: false,
                kept: None,
            };
            return (image, file);
        }
        let layer = listed.map_or(Layer::Native, |image| image.layer);
        let layer = layer_of(layer, Some(path));
        let image = ProfileImage {
            name: listed.map_or_else(|| base_name(path), display_name),
            path: Some(path.to_owned()),
            layer,
        };
        let file = ImageFile {
            path: path.to_owned(),
            build_id: build_id.to_vec(),
            kind: listed.map_or(ImageKind::Elf, |image| image.kind),
            in_session: false,
            kept: self.kept.of(path, build_id),
        };
        (image, file)
    }

    /// An image whose names are in a file of the session.
    fn identify_own(
        &self,
        path: &Path,
        substitute: &str,
        build_id: &[u8],
    ) -> (ProfileImage, ImageFile) {
        let listed = self.listed.get(substitute);
        let kind = match listed {
            Some(image) => image.kind,
            None if substitute == REMAP_ELF => ImageKind::Remap,
            None if is_kept_file(substitute) => ImageKind::Elf,
            None => ImageKind::Dex,
        };
        let name = match (listed, kind) {
            (Some(image), _) => display_name(image),
            (None, ImageKind::Remap) => "[remap]".to_owned(),
            (None, _) => base_name(path),
        };
        let original = listed.map(|image| PathBuf::from(&image.path));
        let unlisted = match kind {
            ImageKind::Elf => Layer::Native,
            ImageKind::Dex | ImageKind::Remap => Layer::App,
        };
        let image = ProfileImage {
            name,
            layer: layer_of(
                listed.map_or(unlisted, |image| image.layer),
                original.as_deref(),
            ),
            path: original,
        };
        // The remap range's file grows while it is mapped: its build-id may be a later one.
        let build_id = match kind {
            ImageKind::Remap => Vec::new(),
            _ => build_id.to_vec(),
        };
        let own = self.session.join(substitute);
        // The original may be found by now, below the root of its container (--symfs), say. It has more than its symbols, and a
        // build-id tells that it is the original.
        let is_kept = kind == ImageKind::Elf && is_kept_file(substitute);
        let original = image.path.as_ref();
        let original =
            original.filter(|path| is_kept && !build_id.is_empty() && !is_own_memory(path));
        let file = ImageFile {
            path: original.unwrap_or(&own).clone(),
            kind,
            in_session: original.is_none(),
            kept: original.is_some().then_some(own),
            build_id,
        };
        (image, file)
    }

    /// The relative path of this session's file that a mapping names, wherever the session was when it was recorded: `symbols/NAME` or
    /// `symbols/ID/NAME`.
    fn substitute(&self, path: &Path) -> Option<String> {
        let name = path.file_name()?.to_str()?;
        let folder = path.parent()?;
        let relative = match folder.file_name()? == SYMBOLS {
            true => format!("{SYMBOLS}/{name}"),
            false => {
                let id = folder.file_name()?.to_str()?;
                (folder.parent()?.file_name()? == SYMBOLS)
                    .then(|| format!("{SYMBOLS}/{id}/{name}"))?
            }
        };
        let known = self.listed.contains_key(&relative) || self.session.join(&relative).is_file();
        known.then_some(relative)
    }
}

impl ImageFile {
    /// Opens it; or why there is none.
    pub fn open(&self, files: &RecordedFiles) -> Result<ElfSource, String> {
        match self.in_session {
            true => files.open_own(&self.path, &self.build_id),
            false => files.open(&self.path, &self.build_id, self.kept.as_deref()),
        }
    }
}

/// The layer of an image, from what a recording says of it.
fn layer_of(recorded: Layer, path: Option<&Path>) -> Layer {
    match recorded {
        Layer::Native if path.is_some_and(|path| Runtime::of(path).is_some()) => Layer::Vm,
        layer => layer,
    }
}

/// Whether a file of the session has the symbols of one that a process has mapped: these lie in folders of their own.
fn is_kept_file(substitute: &str) -> bool {
    substitute.matches('/').count() > 1
}

/// Whether a file has the names of code that a process has made, in another session of varid, which perf has read or which was imported.
fn is_jit_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let is_named = name.is_some_and(|name| name.starts_with("jit-") && name.ends_with(".elf"));
    is_named && path.parent().and_then(Path::file_name) == Some(SYMBOLS.as_ref())
}

/// What code of an image is called of which neither the function nor its begin is known.
pub fn unnamed(image: &str) -> String {
    format!("{image}+0x?")
}

/// Whether any instruction of the dex method at an offset of its substitute has a line.
pub fn has_lines(source: &ElfSource, offset: u64) -> bool {
    let symbol = source.symbols().lookup_offset(offset);
    let code = symbol.map_or(0..0, |symbol| symbol.start..symbol.end);
    // Instructions start at code units.
    code.step_by(2).any(|offset| {
        let frames = source.frames_at_offset(offset);
        frames.iter().any(|frame| frame.location.is_some())
    })
}

/// What a manifest lists, by the path in a mapping, or by the substitute's relative path.
fn listed(manifest: &Manifest) -> HashMap<String, varid_recording::SessionImage> {
    let mut listed = HashMap::new();
    for image in &manifest.images {
        let key = image.substitute.as_ref().unwrap_or(&image.path);
        listed.entry(key.clone()).or_insert_with(|| image.clone());
    }
    listed
}

fn replace<T>(all: &mut [T], index: usize, new: T) {
    if let Some(old) = all.get_mut(index) {
        *old = new;
    }
}

/// The functions at an offset of an image's file, innermost first. One without a name is called
/// by the image's: the file's own may be that of a cache.
pub fn functions(
    source: &ElfSource,
    image: &str,
    kind: ImageKind,
    address: u64,
    detail: Detail,
) -> Vec<NamedFunction> {
    let symbol = source.symbols().lookup(address);
    // Debug information is slow to read: only what needs it asks for it.
    let frames = if detail.inlined || detail.lines {
        source.frames(address)
    } else {
        Vec::new()
    };
    let name = match (&symbol, frames.last()) {
        // A method's name is what it is, even if it looks mangled.
        (Some(symbol), _) if kind != ImageKind::Elf => symbol.raw.clone().into_owned(),
        (_, Some(outermost)) => outermost.function.clone().into_owned(),
        (Some(symbol), None) => symbol.name().into_owned(),
        (None, None) => String::new(),
    };
    // Lines may be known of a place in no function.
    if name.is_empty() {
        return Vec::new();
    }
    let named = symbol
        .as_ref()
        .is_none_or(|symbol| symbol.origin != SymbolOrigin::Unnamed || symbol.raw != name.as_str());
    let start = symbol.map_or(0, |symbol| symbol.start);
    let name = if named {
        name
    } else {
        format!("{image}+{start:#x}")
    };
    with_inlined(&frames, detail, name, start, named)
}

/// The functions of an address, innermost first, with what debug information says of it: the
/// outermost is called `name`.
pub fn with_inlined(
    frames: &[Frame<'_>],
    detail: Detail,
    name: String,
    start: u64,
    named: bool,
) -> Vec<NamedFunction> {
    let (inlined, innermost) = match frames.split_last() {
        Some((outermost, inlined)) if detail.inlined => (inlined, Some(outermost)),
        // Without inlined functions the line is still the innermost one's.
        _ => (&[][..], frames.first()),
    };
    let outermost = NamedFunction {
        name,
        recorded: None,
        start,
        named,
        inlined: false,
        line: innermost.and_then(line),
    };
    let inlined = inlined.iter().map(|frame| NamedFunction {
        name: frame.function.clone().into_owned(),
        recorded: None,
        start: 0,
        named: true,
        inlined: true,
        line: line(frame),
    });
    inlined.chain([outermost]).collect()
}

/// The line of a frame.
pub fn line(frame: &Frame<'_>) -> Option<(String, u32)> {
    let location = frame.location.as_ref()?;
    Some((location.file.clone().into_owned(), location.line))
}

fn display_name(image: &varid_recording::SessionImage) -> String {
    let name = image.location.as_ref().unwrap_or(&image.path);
    base_name(Path::new(name))
}

fn base_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}
