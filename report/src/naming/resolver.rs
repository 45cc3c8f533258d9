//! Resolves addresses to frames.

use std::collections::BTreeSet;

use varid_model::{Address, FrameAddress, Interval, Layer, Marker, Pid, Reason};
use varid_recording::{
    ImageKind, Manifest, MappingRecord, SessionReader, SessionRecord,
    remap::{self, address_of, marker_at},
};

use super::{
    address_spaces::{AddressSpaces, MappedImage, SpaceState},
    images::{ImageFileState, ImageTable, JIT, NamedFunction, unnamed},
    kernel::KernelNames,
    recorded_files::RecordedFiles,
    retrace::{self, Retracer},
    run_time_code,
};
use crate::{
    error::Result,
    fast_hash::FastMap,
    frames::{
        FrameId, FrameTable, FrameTableBuilder, ImageId, ImageOffset, InlinedFrames, ProfileFrame,
        ProfileImage, ProfileSymbol, SymbolId,
    },
    name_options::{Detail, NameOptions},
};

/// The image name of markers.
pub const MARKERS: &str = "[marker]";

/// The name of run-time code without a name.
pub const UNNAMED_JIT: &str = "[unnamed JIT code]";

/// The origin of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CodeKind {
    /// A file or the kernel: the address identifies a function.
    File,
    /// Run-time code: the name identifies a function.
    RunTime,
}

/// Resolves addresses with the mappings of the records so far.
#[derive(Debug)]
pub struct Resolver {
    spaces: AddressSpaces,
    images: ImageTable,
    kernel: KernelNames,
    detail: Detail,
    retracer: Option<Retracer>,
    /// Whether a method has lines, by its start.
    have_lines: FastMap<ImageOffset, bool>,
    frames: FrameTableBuilder,
    known: KnownFrames,
    notes: BTreeSet<String>,
}

/// Caches of resolved addresses.
#[derive(Debug)]
struct KnownFrames {
    user: AddressCache,
    by_offset: FastMap<ImageOffset, InlinedFrames>,
    kernel: FastMap<Address, InlinedFrames>,
    markers: FastMap<Address, InlinedFrames>,
}

/// Cache of recent user addresses. The slot depends on the last bits of the address and of the address space, because
/// many processes may have different mappings at the same addresses. Addresses of a function are in neighbouring slots.
///
/// An entry is valid in the address spaces with the same state.
#[derive(Debug)]
struct AddressCache {
    slots: Vec<Option<CachedAddress>>,
}

#[derive(Debug, Clone, Copy)]
struct CachedAddress {
    space: SpaceState,
    address: Address,
    frames: InlinedFrames,
}

impl AddressCache {
    /// More than the number of return addresses in a compiler's code. Takes 3 MB. Must be a power of two.
    const SLOTS: usize = 1 << 16;

    fn new() -> Self {
        Self {
            slots: vec![None; Self::SLOTS],
        }
    }

    fn slot(space: SpaceState, address: Address) -> usize {
        let bits = address.get() ^ space.bits();
        // If instructions are aligned, the last bits alone would leave three of four slots empty.
        let spread = bits ^ bits.checked_shr(2).unwrap_or(0);
        spread as usize & Self::SLOTS.saturating_sub(1)
    }

    fn get(&self, space: SpaceState, address: Address) -> Option<InlinedFrames> {
        let cached = self.slots.get(Self::slot(space, address))?.as_ref()?;
        let holds = (cached.space, cached.address) == (space, address);
        holds.then_some(cached.frames)
    }

    fn insert(&mut self, cached: CachedAddress) {
        if let Some(slot) = self.slots.get_mut(Self::slot(cached.space, cached.address)) {
            *slot = Some(cached);
        }
    }
}

/// The result of a resolver.
#[derive(Debug)]
pub struct ResolvedNames {
    pub frames: FrameTable,
    /// By [`ImageId`]: the files that were read.
    pub files: Vec<Option<ImageFileState>>,
    /// The reasons why files could not be read.
    pub notes: Vec<String>,
}

impl Resolver {
    /// Makes a resolver for a session.
    ///
    /// # Errors
    ///
    /// A folder or file of `names` cannot be read.
    pub fn new(session: &SessionReader, names: &NameOptions) -> Result<Self> {
        let files = RecordedFiles::new(names, session.manifest())?;
        let (retracer, note) = match &names.mapping {
            Some(path) => {
                let (retracer, note) = retrace::read(path)?;
                (Some(retracer), note)
            }
            None => (None, None),
        };
        let kernel = KernelNames::new(session, names, files.debug().clone());
        Ok(Self {
            spaces: AddressSpaces::default(),
            images: ImageTable::new(session.dir(), session.manifest(), files),
            kernel,
            detail: names.detail(),
            retracer,
            have_lines: FastMap::default(),
            frames: FrameTableBuilder::new(names.signatures),
            known: KnownFrames {
                user: AddressCache::new(),
                by_offset: FastMap::default(),
                kernel: FastMap::default(),
                markers: FastMap::default(),
            },
            notes: note.into_iter().collect(),
        })
    }

    /// Applies a record that changes mappings.
    pub fn follow(&mut self, record: &SessionRecord) {
        match record {
            SessionRecord::Mapping(mapping) => self.map(mapping),
            SessionRecord::Comm {
                pid, exec: true, ..
            } => self.clear(*pid),
            SessionRecord::Fork { pid, ppid, .. } => self.fork(*ppid, *pid),
            // Samples of the exit itself may follow, and other threads may outlive the first thread of a process, so
            // mappings are kept until the pid is reused.
            _ => {}
        }
    }

    /// Applies the manifest of a session that is being recorded, and drops cached results from files that have changed.
    pub fn refresh(&mut self, manifest: &Manifest) {
        let changed = self.images.refresh(manifest);
        if !changed.is_empty() {
            let by_offset = &mut self.known.by_offset;
            by_offset.retain(|place, _| !changed.contains(&place.image));
            self.known.user = AddressCache::new();
        }
        if self.kernel.refresh() {
            self.known.kernel.clear();
        }
    }

    /// Adds a mapping.
    pub fn map(&mut self, mapping: &MappingRecord) {
        if mapping.kernel {
            self.kernel.map(mapping);
            return;
        }
        let image = self.images.intern(mapping);
        let start = mapping.start;
        let end = Address::new(start.get().saturating_add(mapping.len));
        let pid = mapping.pid;
        if !self
            .spaces
            .map(pid, start..end, mapping.pgoff, (image, mapping.mode))
        {
            self.notes.insert(
                "too many mappings: addresses in the later ones are in [unknown]".to_owned(),
            );
        }
    }

    /// Handles a fork.
    pub fn fork(&mut self, parent: Pid, child: Pid) {
        self.spaces.fork(parent, child);
    }

    /// Handles the exit or exec of a process.
    pub fn clear(&mut self, pid: Pid) {
        self.spaces.clear(pid);
    }

    /// Returns the frames at a user address, innermost first. There are several if functions were inlined.
    pub fn user_frames(&mut self, pid: Pid, address: FrameAddress) -> &[FrameId] {
        self.user_frames_in(pid, self.space_state(pid), address)
    }

    /// Like [`Self::user_frames`], for a known state of the address space.
    pub fn user_frames_in(
        &mut self,
        pid: Pid,
        space: SpaceState,
        address: FrameAddress,
    ) -> &[FrameId] {
        let address = remap::lookup(address);
        let frames = match marker_at(address) {
            Some(marker) => self.marker(marker),
            None => match self.known.user.get(space, address) {
                Some(frames) => frames,
                None => {
                    let frames = self.look_up(pid, address);
                    self.known.user.insert(CachedAddress {
                        space,
                        address,
                        frames,
                    });
                    frames
                }
            },
        };
        self.frames.list(frames)
    }

    /// Returns the approximate version of a frame.
    pub fn approximate(&mut self, frame: FrameId) -> FrameId {
        self.frames.intern_approximate(frame)
    }

    /// Returns true if a user address is in a method of a VM.
    pub fn is_in_method(&self, pid: Pid, address: FrameAddress) -> bool {
        let address = remap::lookup(address);
        let mapped = self.mapping(pid, address);
        mapped.is_some_and(|mapped| self.is_managed(mapped.value.image, address))
    }

    /// Returns the state of a process's address space. Processes with equal states have the same frames at all addresses.
    pub fn space_state(&self, pid: Pid) -> SpaceState {
        self.spaces.state(pid)
    }

    /// Returns the current mapping of a user address, with its remaining range.
    pub fn mapping(&self, pid: Pid, address: Address) -> Option<&Interval<MappedImage>> {
        self.spaces.lookup(pid, address)
    }

    /// Returns the bytes of a code unit of the bytecode at an address: two in dex, one in class files.
    pub fn code_unit(&self, pid: Pid, address: Address) -> u8 {
        let mapped = self.mapping(pid, address);
        match mapped.and_then(|mapped| self.images.kind(mapped.value.image)) {
            Some(ImageKind::Dex) => 2,
            Some(ImageKind::Remap | ImageKind::Elf) | None => 1,
        }
    }

    /// Returns true if an address of an image is in a method of a VM.
    pub fn is_managed(&self, image: ImageId, address: Address) -> bool {
        match self.images.kind(image) {
            Some(ImageKind::Dex) => true,
            Some(ImageKind::Remap) => remap::contains(address) && marker_at(address).is_none(),
            Some(ImageKind::Elf) | None => false,
        }
    }

    /// A frame and its symbol.
    pub fn frame(&self, id: FrameId) -> Option<(&ProfileSymbol, &ProfileFrame)> {
        self.frames.get(id)
    }

    /// A symbol.
    pub fn symbol_by_id(&self, id: SymbolId) -> Option<&ProfileSymbol> {
        self.frames.symbol(id)
    }

    /// An image.
    pub fn image(&self, id: ImageId) -> Option<&ProfileImage> {
        self.images.get(id)
    }

    /// Returns the frames at a kernel address, like [`Resolver::user_frames`].
    pub fn kernel_frames(&mut self, address: FrameAddress) -> &[FrameId] {
        let address = address.lookup();
        let frames = match self.known.kernel.get(&address) {
            Some(frames) => *frames,
            None => {
                let (image, functions) = self.kernel.functions(address);
                let image = self.images.intern_named(&image, Layer::Kernel);
                let frames = self.intern_functions(image, CodeKind::File, functions);
                self.known.kernel.insert(address, frames);
                frames
            }
        };
        self.frames.list(frames)
    }

    /// Returns the tables.
    pub fn finish(mut self) -> ResolvedNames {
        self.notes.extend(self.kernel.notes());
        self.notes.extend(self.images.problems());
        let (images, files) = self.images.into_parts();
        ResolvedNames {
            frames: self.frames.finish(images),
            files,
            notes: self.notes.into_iter().collect(),
        }
    }

    /// Resolves a user address by its mapping.
    fn look_up(&mut self, pid: Pid, address: Address) -> InlinedFrames {
        let Some(mapped) = self.spaces.lookup(pid, address) else {
            let image = self.images.intern_named("[unknown]", Layer::Native);
            return self.intern_unnamed(image);
        };
        let place = ImageOffset {
            image: mapped.value.image,
            offset: mapped.value.offset(address),
        };
        let ImageOffset { image, offset } = place;
        if let Some(frames) = self.known.by_offset.get(&place) {
            return *frames;
        }
        let functions = self.functions(image, offset);
        let frames = if !functions.is_empty() {
            let made = match self.images.is_run_time(image) {
                true => CodeKind::RunTime,
                false => CodeKind::File,
            };
            self.intern_functions(image, made, functions)
        } else if self.images.is_own_memory(image) {
            let image = self.images.intern_named(UNNAMED_JIT, Layer::App);
            let symbol = self.symbol(image, UNNAMED_JIT.to_owned(), false);
            self.intern_symbol(0, symbol)
        } else {
            self.intern_unnamed(image)
        };
        self.known.by_offset.insert(place, frames);
        frames
    }

    /// Returns the functions at an offset of an image, in the requested detail.
    fn functions(&mut self, image: ImageId, offset: u64) -> Vec<NamedFunction> {
        let Some(retracer) = self.retracer.as_ref().filter(|_| self.images.is_app(image)) else {
            return self.images.functions(image, offset, self.detail);
        };
        // Several methods may have the same name. Lines distinguish them.
        let detail = Detail {
            lines: true,
            ..self.detail
        };
        let recorded = self.images.functions(image, offset, detail);
        let (images, have_lines) = (&self.images, &mut self.have_lines);
        // In a dex file, addresses are offsets.
        let found = recorded.into_iter().flat_map(|method| {
            let start = method.start;
            retracer.retrace(method, offset.saturating_sub(start), || {
                let known = have_lines.entry(ImageOffset {
                    image,
                    offset: start,
                });
                *known.or_insert_with(|| images.has_lines(image, start))
            })
        });
        let inlined = self.detail.inlined;
        found
            .filter(|function| inlined || !function.inlined)
            .collect()
    }

    fn marker(&mut self, marker: Marker) -> InlinedFrames {
        let address = address_of(marker);
        if let Some(frames) = self.known.markers.get(&address) {
            return *frames;
        }
        let image = self.images.intern_named(MARKERS, layer_of(marker));
        let symbol = ProfileSymbol {
            marker: Some(marker),
            ..self.symbol(image, marker.symbol().to_owned(), true)
        };
        let frames = self.intern_symbol(address.get(), symbol);
        self.known.markers.insert(address, frames);
        frames
    }

    /// Makes a symbol of an image.
    fn symbol(&self, image: ImageId, name: String, named: bool) -> ProfileSymbol {
        ProfileSymbol {
            name,
            recorded: None,
            signature: None,
            image,
            start: 0,
            layer: self
                .images
                .get(image)
                .map_or(Layer::Native, |image| image.layer),
            marker: None,
            inlined: false,
            named,
            run_time: false,
        }
    }

    /// Returns the image and the layer of a run-time function. All processes share these images, because the name
    /// identifies a method.
    fn place_run_time(&mut self, file: ImageId, function: &str) -> (ImageId, Layer) {
        let Some(image) = self.images.get(file) else {
            return (file, Layer::Native);
        };
        let (name, of_image) = (image.name.clone(), image.layer);
        let layer = run_time_code::layer(function, &name, of_image, self.images.hotspot());
        let image = match (of_image, layer) {
            // A method among native functions, in a recording that does not specify layers.
            (Layer::Native, Layer::App | Layer::Framework) => {
                self.images.intern_named(JIT, Layer::App)
            }
            _ => self.images.intern_named(&name, of_image),
        };
        (image, layer)
    }

    /// Returns the frames of the functions at an address of an image.
    fn intern_functions(
        &mut self,
        file: ImageId,
        kind: CodeKind,
        functions: Vec<NamedFunction>,
    ) -> InlinedFrames {
        let mut frames = Vec::with_capacity(functions.len());
        for function in functions {
            let symbol = match kind {
                CodeKind::File => self.symbol(file, function.name, function.named),
                CodeKind::RunTime => {
                    let (image, layer) = self.place_run_time(file, &function.name);
                    ProfileSymbol {
                        layer,
                        run_time: true,
                        ..self.symbol(image, function.name, function.named)
                    }
                }
            };
            let symbol = ProfileSymbol {
                recorded: function.recorded,
                signature: function.signature,
                inlined: function.inlined,
                ..symbol
            };
            let symbol = self.frames.intern_symbol(function.start, symbol);
            let line = function.line.as_ref().filter(|_| self.detail.lines);
            let line = line.map(|(file, line)| (file.as_str(), *line));
            frames.push(self.frames.intern_frame(symbol, line));
        }
        self.frames.intern_list(&frames)
    }

    /// Returns the frame for addresses without a name. All of an image share one frame.
    fn intern_unnamed(&mut self, image: ImageId) -> InlinedFrames {
        let name = self.images.get(image).map_or("", |image| &image.name);
        let symbol = self.symbol(image, unnamed(name), false);
        self.intern_symbol(0, symbol)
    }

    /// Returns the frame of a symbol without a line.
    fn intern_symbol(&mut self, start: u64, symbol: ProfileSymbol) -> InlinedFrames {
        let symbol = self.frames.intern_symbol(start, symbol);
        let frame = self.frames.intern_frame(symbol, None);
        self.frames.intern_list(&[frame])
    }
}

/// Returns the layer of the frames that a marker stands for. Truncated frames may be of any layer. They count as native,
/// because a program without a VM has no app layer.
const fn layer_of(marker: Marker) -> Layer {
    match marker {
        Marker::Native
        | Marker::Reason(
            Reason::UnknownMapping
            | Reason::NoUnwindInfo
            | Reason::StackUnreadable
            | Reason::Truncated
            | Reason::NotCaptured,
        ) => Layer::Native,
        Marker::Reason(Reason::VmNotReady | Reason::UnknownVm) => Layer::Vm,
        Marker::Reason(
            Reason::TornFrames
            | Reason::VmGone
            | Reason::UnknownMethod
            | Reason::UnknownCompiledCode
            | Reason::VirtualThread,
        ) => Layer::App,
    }
}
