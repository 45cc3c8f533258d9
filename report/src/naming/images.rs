//! Maps each mapping to its file, its layer and its functions.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
};

use varid_model::Layer;
use varid_recording::{
    ImageKind, Manifest, MappingRecord, REMAP_ELF, SYMBOLS, SampleSource, is_own_memory,
};
use varid_symbolizer::{
    Frame, class,
    elf::{ElfSource, SymbolOrigin},
    hex,
    substitute::{read_descriptors, sym_file_of},
};

use super::{
    file_version::FileVersion, kept_symbols::KeptSymbols, recorded_files::RecordedFiles,
    run_time_code::Hotspot, runtimes::Runtime,
};
use crate::{
    frames::{ImageId, ProfileImage},
    name_options::Detail,
};

/// The image name of named run-time code.
pub const JIT: &str = "[jit]";

/// The files of a profile. Symbols are read on first use.
#[derive(Debug)]
pub struct ImageTable {
    /// The session folder.
    session: PathBuf,
    /// Finds the recorded files.
    files: RecordedFiles,
    /// The manifest's images, by the path in a mapping, or by the relative path of a substitute.
    listed: HashMap<String, varid_recording::SessionImage>,
    /// The files whose symbols are in the session.
    kept: KeptSymbols,
    /// The versions of the files that grow while the session is recorded.
    versions: HashMap<ImageId, Option<FileVersion>>,
    /// By path and build-id. Images that only have a name have no path.
    ids: HashMap<(PathBuf, Vec<u8>), ImageId>,
    images: Vec<ProfileImage>,
    states: Vec<State>,
    hotspot: Hotspot,
}

/// The file of an image.
#[derive(Debug)]
enum State {
    /// Not read yet.
    Unread(ImageFile),
    /// Read: the symbols, or the reason why there are none.
    Read(ImageFile, Result<Box<ImageSource>, String>),
    /// An image without a file.
    Named,
}

/// The file behind an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFile {
    /// The recorded path or, for a dex file, the path of the substitute.
    pub path: PathBuf,
    /// Empty if unknown.
    pub build_id: Vec<u8>,
    /// The kind of the file.
    pub kind: ImageKind,
    /// Whether it is in the session folder.
    pub in_session: bool,
    /// The session's file with its symbols, which is kept in addition to the original.
    pub kept: Option<PathBuf>,
}

/// The result of reading an image's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFileState {
    /// The file.
    pub file: ImageFile,
    /// The reason why it could not be read.
    pub problem: Option<String>,
    /// The reason why there is no debug information, if there are details.
    pub no_debug: Option<String>,
}

/// The symbols and lines of an image.
#[derive(Debug)]
pub struct ImageSource {
    pub elf: ElfSource,
    /// By first address: the descriptors of methods of Java on HotSpot, which their symbols do not have.
    descriptors: HashMap<u64, String>,
}

/// A function at an address of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFunction {
    /// The name in profiles.
    pub name: String,
    /// The name in the recording, if a mapping file renames it.
    pub recorded: Option<String>,
    /// The parameters of a method, if they are not a part of its name: `(int, java.lang.String)`.
    pub signature: Option<String>,
    /// Its first address, which distinguishes functions with the same name.
    pub start: u64,
    /// Whether its name is known.
    pub named: bool,
    /// Whether it is inlined at this address.
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
                SampleSource::Bpf
                | SampleSource::Module
                | SampleSource::Perf
                | SampleSource::Agent => Hotspot::Absent,
            },
        }
    }

    /// Applies the manifest of a session that is being recorded. Returns the images whose files have changed.
    pub fn refresh(&mut self, manifest: &Manifest) -> HashSet<ImageId> {
        let mut changed = HashSet::new();
        let now = listed(manifest);
        let kept = KeptSymbols::new(&self.session, &manifest.kept);
        if (&now, &kept) != (&self.listed, &self.kept) {
            (self.listed, self.kept) = (now, kept);
            for ((path, build_id), id) in &self.ids {
                let index = id.index();
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
            let index = id.index();
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

    /// Returns the image of a user mapping.
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

    /// Returns true if an image is memory in which a process may generate code.
    pub fn is_own_memory(&self, id: ImageId) -> bool {
        let path = self.get(id).and_then(|image| image.path.as_deref());
        // The remap range's file is listed by its name only.
        let is_remap = self.kind(id) == Some(ImageKind::Remap);
        let is_file = |path: &Path| is_remap && path.extension().is_some_and(|name| name == "elf");
        path.is_some_and(|path| is_own_memory(path) && path != "[vdso]" && !is_file(path))
    }

    /// Returns true if an image is run-time code: memory of a process, or the file that perf uses for such memory,
    /// `perf-PID.map`.
    pub fn is_run_time(&self, id: ImageId) -> bool {
        let path = self.get(id).and_then(|image| image.path.as_deref());
        let name = path.and_then(|path| path.file_name()?.to_str());
        let is_map = name.is_some_and(|name| name.starts_with("perf-") && name.ends_with(".map"));
        let is_dex = self.kind(id) == Some(ImageKind::Dex);
        !is_dex && (is_map || path.is_some_and(is_jit_file) || self.is_own_memory(id))
    }

    /// Returns an image that only has a name: the kernel, a module, the markers.
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

    /// Returns the functions at an offset of an image's file, innermost first. None if there is no function.
    pub fn functions(&mut self, id: ImageId, offset: u64, detail: Detail) -> Vec<NamedFunction> {
        let Some(state) = self.states.get_mut(id.index()) else {
            return Vec::new();
        };
        if let State::Unread(file) = state {
            if file.in_session && file.kind == ImageKind::Remap {
                self.versions.insert(id, FileVersion::of(&file.path));
            }
            let source = file.open(&self.files).map(Box::new);
            let runtime = Runtime::of(&file.path).filter(|_| file.kind == ImageKind::Elf);
            let is_other = runtime.zip(source.as_ref().ok());
            let is_other = is_other
                .is_some_and(|(runtime, source)| runtime.is_refuted_by(source.elf.symbols()));
            let image = self.images.get_mut(id.index());
            if let Some(image) = image.filter(|_| is_other) {
                image.layer = Layer::Native;
            }
            *state = State::Read(file.clone(), source);
        }
        match state {
            State::Read(file, Ok(source)) => {
                let image = self.images.get(id.index());
                let image = image.map_or("", |image| &image.name);
                let address = source.elf.symbols().vaddr(offset);
                let of = |address| functions(source, image, file.kind, address, detail);
                address.map(of).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// Returns true if any instruction of the dex method at an offset has a line.
    pub fn has_lines(&self, id: ImageId, offset: u64) -> bool {
        let state = self.states.get(id.index());
        matches!(state, Some(State::Read(_, Ok(source))) if has_lines(&source.elf, offset))
    }

    /// Returns the kind of an image's file. None if it only has a name.
    pub fn kind(&self, id: ImageId) -> Option<ImageKind> {
        match self.states.get(id.index())? {
            State::Unread(file) | State::Read(file, _) => Some(file.kind),
            State::Named => None,
        }
    }

    /// Returns true if an image contains the app's own methods.
    pub fn is_app(&self, id: ImageId) -> bool {
        let is_managed = self.kind(id).is_some_and(|kind| kind != ImageKind::Elf);
        is_managed && self.get(id).is_some_and(|image| image.layer == Layer::App)
    }

    /// An image.
    pub fn get(&self, id: ImageId) -> Option<&ProfileImage> {
        self.images.get(id.index())
    }

    /// The files that have not been read.
    pub fn files(&self) -> impl Iterator<Item = &ImageFile> {
        self.states.iter().filter_map(|state| match state {
            State::Unread(file) => Some(file),
            State::Read(..) | State::Named => None,
        })
    }

    /// Reports files that could only be read in part, as sentences.
    pub fn problems(&self) -> impl Iterator<Item = String> {
        self.states.iter().filter_map(|state| {
            let State::Read(file, Ok(source)) = state else {
                return None;
            };
            let path = file.path.display();
            if let Some(problem) = source.elf.symbols().problems().first() {
                return Some(format!(
                    "{path} cannot be read as a whole, names are missing or of its other tables: {problem}"
                ));
            }
            let problem = source.elf.debug_problem()?;
            Some(format!(
                "{path}: debug information cannot be read as a whole, lines and inlined functions are missing: {problem}"
            ))
        })
    }

    /// Returns whether HotSpot may have generated code, according to the mappings.
    pub const fn hotspot(&self) -> Hotspot {
        self.hotspot
    }

    /// Returns all images, and by image index the files that were read.
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
        let id = ImageId::at(self.images.len());
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

    /// Returns the image of a mapping whose names are in a file of the session.
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
            None if is_kept_file(substitute, build_id) => ImageKind::Elf,
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
        // The remap range's file grows while it is mapped, so its build-id may be newer than the recorded one.
        let build_id = match kind {
            ImageKind::Remap => Vec::new(),
            _ => build_id.to_vec(),
        };
        let own = self.session.join(substitute);
        // The original may be available now, for example through --symfs below the root of its container. It has more
        // than symbols, and the build-id identifies it.
        let is_kept = kind == ImageKind::Elf && is_kept_file(substitute, &build_id);
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

    /// Returns the relative path of this session's file for a mapping, wherever the session was recorded:
    /// `symbols/NAME` or `symbols/ID/NAME`.
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

impl ImageSource {
    /// Returns the descriptor of the Java method that starts at an address.
    pub fn descriptor(&self, start: u64) -> Option<&str> {
        self.descriptors.get(&start).map(String::as_str)
    }

    /// Returns the parameters of the Java method that starts at an address.
    fn signature(&self, start: u64) -> Option<String> {
        class::parameters(self.descriptor(start)?)
    }
}

impl ImageFile {
    /// Opens the file, or returns the reason why that fails.
    pub fn open(&self, files: &RecordedFiles) -> Result<ImageSource, String> {
        let elf = match self.in_session {
            true => files.open_own(&self.path, &self.build_id),
            false => files.open(&self.path, &self.build_id, self.kept.as_deref()),
        };
        let has_methods = self.in_session && self.kind == ImageKind::Remap;
        Ok(ImageSource {
            elf: elf?,
            descriptors: match has_methods {
                true => read_descriptors(&sym_file_of(&self.path)),
                false => HashMap::new(),
            },
        })
    }
}

/// Returns the layer of an image from the recording.
fn layer_of(recorded: Layer, path: Option<&Path>) -> Layer {
    match recorded {
        Layer::Native if path.is_some_and(|path| Runtime::of(path).is_some()) => Layer::Vm,
        layer => layer,
    }
}

/// Returns true if a file of the session has the symbols of a mapped ELF file. Such a file is in a folder of its own, as is a substitute,
/// whose folder has the name of its build-id.
fn is_kept_file(substitute: &str, build_id: &[u8]) -> bool {
    let parts: Vec<&str> = substitute.split('/').collect();
    matches!(parts.as_slice(), [_, id, _] if *id != hex(build_id))
}

/// Returns true if a file has names of run-time code and belongs to another session of varid, which perf has read or
/// which was imported.
fn is_jit_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let is_named = name.is_some_and(|name| name.starts_with("jit-") && name.ends_with(".elf"));
    is_named && path.parent().and_then(Path::file_name) == Some(SYMBOLS.as_ref())
}

/// Returns the name for code of an image if its function is unknown.
pub fn unnamed(image: &str) -> String {
    format!("{image}+0x?")
}

/// Returns true if any instruction of the dex method at an offset of its substitute has a line.
pub fn has_lines(source: &ElfSource, offset: u64) -> bool {
    let symbol = source.symbols().lookup_offset(offset);
    let code = symbol.map_or(0..0, |symbol| symbol.start..symbol.end);
    // Instructions are aligned to code units.
    code.step_by(2).any(|offset| {
        let frames = source.frames_at_offset(offset);
        frames.iter().any(|frame| frame.location.is_some())
    })
}

/// Returns the manifest's images, by the path in a mapping, or by the relative path of a substitute.
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

/// Returns the functions at an offset of an image's file, innermost first. A function without a name gets its name from
/// the image: the file itself may be in a cache under another name.
pub fn functions(
    source: &ImageSource,
    image: &str,
    kind: ImageKind,
    address: u64,
    detail: Detail,
) -> Vec<NamedFunction> {
    let symbol = source.elf.symbols().lookup(address);
    // Debug information is slow to read, so it is only used if required.
    let frames = match detail {
        Detail { lines: true, .. } => source.elf.frames(address),
        Detail { inlined: true, .. } => source.elf.functions(address),
        _ => Vec::new(),
    };
    let name = match (&symbol, frames.last()) {
        // Names of methods are never demangled, even if they look mangled.
        (Some(symbol), _) if kind != ImageKind::Elf => symbol.raw.clone().into_owned(),
        (_, Some(outermost)) => outermost.function.clone().into_owned(),
        (Some(symbol), None) => symbol.name().into_owned(),
        (None, None) => String::new(),
    };
    // There may be a line at an address without a function.
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
    let mut functions = with_inlined(&frames, detail, name, start, named);
    if let Some(method) = functions.last_mut() {
        method.signature = source.signature(start);
    }
    functions
}

/// Returns the functions at an address with their debug information, innermost first. The outermost one gets the name
/// `name`.
pub fn with_inlined(
    frames: &[Frame<'_>],
    detail: Detail,
    name: String,
    start: u64,
    named: bool,
) -> Vec<NamedFunction> {
    let (inlined, innermost) = match frames.split_last() {
        Some((outermost, inlined)) if detail.inlined => (inlined, Some(outermost)),
        // Without inlined functions, the line is still that of the innermost one.
        _ => (&[][..], frames.first()),
    };
    let outermost = NamedFunction {
        name,
        recorded: None,
        signature: None,
        start,
        named,
        inlined: false,
        line: innermost.and_then(line),
    };
    let inlined = inlined.iter().map(|frame| NamedFunction {
        name: frame.function.clone().into_owned(),
        recorded: None,
        signature: None,
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
