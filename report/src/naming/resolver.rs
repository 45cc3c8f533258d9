//! What is an address called?

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
        FrameId, FrameTable, FrameTableBuilder, ImageId, InlinedFrames, ProfileFrame, ProfileImage,
        ProfileSymbol, SymbolId,
    },
    name_options::{Detail, NameOptions},
};

/// Instead of a file, where a marker is.
pub const MARKERS: &str = "[marker]";

/// What code is called that a process has made at run time and that has no name.
pub const UNNAMED_JIT: &str = "[unnamed JIT code]";

/// Where code comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CodeKind {
    /// A file, or the kernel: an address tells a function.
    File,
    /// A process made it: a name tells a function.
    RunTime,
}

/// Names addresses. It knows of the mappings that the records so far have told of.
#[derive(Debug)]
pub struct Resolver {
    spaces: AddressSpaces,
    images: ImageTable,
    kernel: KernelNames,
    detail: Detail,
    retracer: Option<Retracer>,
    /// Whether a method has lines, by its image and start.
    have_lines: FastMap<(ImageId, u64), bool>,
    frames: FrameTableBuilder,
    cache: AddressCache,
    /// Offsets of images that have been looked up.
    by_offset: FastMap<(ImageId, u64), InlinedFrames>,
    /// Kernel addresses that have been looked up.
    by_kernel_address: FastMap<Address, InlinedFrames>,
    by_marker: FastMap<Address, InlinedFrames>,
    notes: BTreeSet<String>,
}

/// User addresses that were looked up lately, each in a slot by its last bits and its address space's, for many processes may have mapped
/// different things at the same addresses. Those of a function lie side by side.
///
/// An entry holds in the address spaces with the mappings that it was looked up in.
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
    /// More than a compiler's code has return addresses; they take 3 MB. A power of two.
    const SLOTS: usize = 1 << 16;

    fn new() -> Self {
        Self {
            slots: vec![None; Self::SLOTS],
        }
    }

    fn slot(space: SpaceState, address: Address) -> usize {
        let bits = address.get() ^ space.bits();
        // Where instructions are aligned the last bits alone would leave three of four slots empty.
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

/// What a resolver has found.
#[derive(Debug)]
pub struct ResolvedNames {
    pub frames: FrameTable,
    /// By [`ImageId`]: the files that were looked at.
    pub files: Vec<Option<ImageFileState>>,
    /// What could not be read, and why.
    pub notes: Vec<String>,
}

impl Resolver {
    /// A resolver for a session.
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
            frames: FrameTableBuilder::default(),
            cache: AddressCache::new(),
            by_offset: FastMap::default(),
            by_kernel_address: FastMap::default(),
            by_marker: FastMap::default(),
            notes: note.into_iter().collect(),
        })
    }

    /// Takes note of what a record says of mappings.
    pub fn follow(&mut self, record: &SessionRecord) {
        match record {
            SessionRecord::Mapping(mapping) => self.map(mapping),
            SessionRecord::Comm {
                pid, exec: true, ..
            } => self.clear(*pid),
            SessionRecord::Fork { pid, ppid, .. } => self.fork(*ppid, *pid),
            // Samples of the exit itself may follow, and other threads may outlive a process's first one: mappings stay until
            // the id is used again.
            _ => {}
        }
    }

    /// The session goes on: takes what its manifest says now, and forgets what it has looked up in files that have changed.
    pub fn refresh(&mut self, manifest: &Manifest) {
        let changed = self.images.refresh(manifest);
        if !changed.is_empty() {
            self.by_offset
                .retain(|(image, _), _| !changed.contains(image));
            self.cache = AddressCache::new();
        }
        if self.kernel.refresh() {
            self.by_kernel_address.clear();
        }
    }

    /// A mapping appeared.
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

    /// A process was forked.
    pub fn fork(&mut self, parent: Pid, child: Pid) {
        self.spaces.fork(parent, child);
    }

    /// A process is gone, or another program runs in it.
    pub fn clear(&mut self, pid: Pid) {
        self.spaces.clear(pid);
    }

    /// The frames at a user address, innermost first: more than one where functions were inlined.
    pub fn user_frames(&mut self, pid: Pid, address: FrameAddress) -> &[FrameId] {
        self.user_frames_in((pid, self.space_state(pid)), address)
    }

    /// The same of a process of which the state of the address space is known.
    pub fn user_frames_in(
        &mut self,
        (pid, space): (Pid, SpaceState),
        address: FrameAddress,
    ) -> &[FrameId] {
        let address = remap::lookup(address);
        let frames = match marker_at(address) {
            Some(marker) => self.marker(marker),
            None => match self.cache.get(space, address) {
                Some(frames) => frames,
                None => {
                    let frames = self.look_up(pid, address);
                    self.cache.insert(CachedAddress {
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

    /// The frame of an instruction near the one that a frame was at.
    pub fn approximate(&mut self, frame: FrameId) -> FrameId {
        self.frames.intern_approximate(frame)
    }

    /// Whether a user address is in a method of a VM.
    pub fn is_in_method(&self, pid: Pid, address: FrameAddress) -> bool {
        let address = remap::lookup(address);
        let mapped = self.mapping(pid, address);
        mapped.is_some_and(|mapped| self.is_managed(mapped.value.image, address))
    }

    /// What a process has mapped now: in two processes with the same state all addresses have the same frames.
    pub fn space_state(&self, pid: Pid) -> SpaceState {
        self.spaces.state(pid)
    }

    /// The mapping of a user address now, and what is left of its range.
    pub fn mapping(&self, pid: Pid, address: Address) -> Option<&Interval<MappedImage>> {
        self.spaces.lookup(pid, address)
    }

    /// Whether an address of an image is in a method of a VM.
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

    /// The frames at a kernel address, as [`Resolver::user_frames`] has them.
    pub fn kernel_frames(&mut self, address: FrameAddress) -> &[FrameId] {
        let address = address.lookup();
        let frames = match self.by_kernel_address.get(&address) {
            Some(frames) => *frames,
            None => {
                let (image, functions) = self.kernel.functions(address);
                let image = self.images.intern_named(&image, Layer::Kernel);
                let frames = self.intern_functions((image, CodeKind::File), functions);
                self.by_kernel_address.insert(address, frames);
                frames
            }
        };
        self.frames.list(frames)
    }

    /// What has been found.
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

    /// The frames at a user address, by its mapping.
    fn look_up(&mut self, pid: Pid, address: Address) -> InlinedFrames {
        let Some(mapped) = self.spaces.lookup(pid, address) else {
            let image = self.images.intern_named("[unknown]", Layer::Native);
            return self.intern_unnamed(image);
        };
        let (image, offset) = (mapped.value.image, mapped.value.offset(address));
        if let Some(frames) = self.by_offset.get(&(image, offset)) {
            return *frames;
        }
        let functions = self.functions(image, offset);
        let frames = if !functions.is_empty() {
            let made = match self.images.is_run_time(image) {
                true => CodeKind::RunTime,
                false => CodeKind::File,
            };
            self.intern_functions((image, made), functions)
        } else if self.images.is_own_memory(image) {
            let image = self.images.intern_named(UNNAMED_JIT, Layer::App);
            let symbol = self.symbol(image, UNNAMED_JIT.to_owned(), false);
            self.intern_symbol(0, symbol)
        } else {
            self.intern_unnamed(image)
        };
        self.by_offset.insert((image, offset), frames);
        frames
    }

    /// The functions at an offset of an image, in the detail that the options ask for.
    fn functions(&mut self, image: ImageId, offset: u64) -> Vec<NamedFunction> {
        let Some(retracer) = self.retracer.as_ref().filter(|_| self.images.is_app(image)) else {
            return self.images.functions(image, offset, self.detail);
        };
        // Several methods may have one name: lines tell which it is.
        let detail = Detail {
            lines: true,
            ..self.detail
        };
        let recorded = self.images.functions(image, offset, detail);
        let (images, have_lines) = (&self.images, &mut self.have_lines);
        // Addresses of a dex file are offsets in it.
        let found = recorded.into_iter().flat_map(|method| {
            let start = method.start;
            retracer.retrace(method, offset.saturating_sub(start), || {
                let known = have_lines.entry((image, start));
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
        if let Some(frames) = self.by_marker.get(&address) {
            return *frames;
        }
        let image = self.images.intern_named(MARKERS, layer_of(marker));
        let symbol = ProfileSymbol {
            marker: Some(marker),
            ..self.symbol(image, marker.symbol().to_owned(), true)
        };
        let frames = self.intern_symbol(address.get(), symbol);
        self.by_marker.insert(address, frames);
        frames
    }

    /// A symbol of an image.
    fn symbol(&self, image: ImageId, name: String, named: bool) -> ProfileSymbol {
        ProfileSymbol {
            name,
            recorded: None,
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

    /// The image and the layer of a function that was made at run time. The images of all processes are one, for a name tells a method.
    fn place_run_time(&mut self, file: ImageId, function: &str) -> (ImageId, Layer) {
        let Some(image) = self.images.get(file) else {
            return (file, Layer::Native);
        };
        let (name, of_image) = (image.name.clone(), image.layer);
        let layer = run_time_code::layer(function, (&name, of_image), self.images.hotspot());
        let image = match (of_image, layer) {
            // A method among native functions, in a recording that says of no code what it is.
            (Layer::Native, Layer::App | Layer::Framework) => {
                self.images.intern_named(JIT, Layer::App)
            }
            _ => self.images.intern_named(&name, of_image),
        };
        (image, layer)
    }

    /// The frames of the functions at an address of an image.
    fn intern_functions(
        &mut self,
        (file, kind): (ImageId, CodeKind),
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

    /// The frame of an address that nothing names: all those of an image are one.
    fn intern_unnamed(&mut self, image: ImageId) -> InlinedFrames {
        let name = self.images.get(image).map_or("", |image| &image.name);
        let symbol = self.symbol(image, unnamed(name), false);
        self.intern_symbol(0, symbol)
    }

    /// The frame of a symbol without a line.
    fn intern_symbol(&mut self, start: u64, symbol: ProfileSymbol) -> InlinedFrames {
        let symbol = self.frames.intern_symbol(start, symbol);
        let frame = self.frames.intern_frame(symbol, None);
        self.frames.intern_list(&[frame])
    }
}

/// The layer of the frames that a marker stands for. Frames that are cut off may be anybody's: a program without a VM has no app.
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
            | Reason::UnknownCompiledCode,
        ) => Layer::App,
    }
}
