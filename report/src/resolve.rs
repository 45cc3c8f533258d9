//! What is an address called?

use std::collections::{BTreeSet, HashMap};

use varid_model::{Address, FrameAddress, Layer, Marker, Reason};
use varid_recording::{
    ImageKind, MappingRecord, SessionReader,
    remap::{self, address_of, marker_at},
};

use crate::{
    address_space::{AddressSpaces, Stretch},
    error::Result,
    files::Files,
    image::{FileState, Function, Images},
    kernel::Kernel,
    names::{Detail, Names},
    place::{Place, PlaceId, Places, Stack, Symbol},
    renamed::{self, Renames},
    tables::{Image, ImageId},
};

/// Instead of a file, where a marker is.
pub const MARKERS: &str = "[marker]";

/// Names addresses; grows with the records of a session.
#[derive(Debug)]
pub struct Resolver {
    spaces: AddressSpaces,
    images: Images,
    kernel: Kernel,
    detail: Detail,
    renames: Option<Renames>,
    /// Whether a method has lines, by its image and start.
    have_lines: HashMap<(ImageId, u64), bool>,
    places: Places,
    /// User addresses that were looked up lately, at the place of their last bits.
    recent: Vec<Recent>,
    /// Grows with every change of the mappings.
    generation: u64,
    /// Offsets of images that have been looked up.
    user: HashMap<(ImageId, u64), Stack>,
    /// Kernel addresses that have been looked up.
    kernel_user: HashMap<u64, Stack>,
    markers: HashMap<u64, Stack>,
    notes: BTreeSet<String>,
}

/// A user address that was looked up.
#[derive(Debug, Clone, Copy, Default)]
struct Recent {
    pid: u32,
    address: u64,
    generation: u64,
    stack: Stack,
}

/// Addresses that are kept in [`Resolver::recent`]; a power of two.
const RECENT: usize = 1 << 13;

/// What a resolver has met.
#[derive(Debug)]
pub struct Found {
    /// By [`ImageId`].
    pub images: Vec<Image>,
    /// By [`ImageId`]: the files that were looked at.
    pub files: Vec<Option<FileState>>,
    /// By [`SymbolId`](crate::SymbolId).
    pub symbols: Vec<Symbol>,
    /// By [`PlaceId`].
    pub places: Vec<Place>,
    /// What could not be had.
    pub notes: Vec<String>,
}

/// What code is called that a process has made at run time, and nobody has named.
pub const UNNAMED_JIT: &str = "[unnamed JIT code]";

impl Resolver {
    /// A resolver for a session.
    ///
    /// # Errors
    ///
    /// A folder or file of `names` cannot be read.
    pub fn new(session: &SessionReader, names: &Names) -> Result<Self> {
        let files = Files::new(names, session.manifest())?;
        let (renames, note) = match &names.mapping {
            Some(path) => {
                let (renames, note) = renamed::read(path)?;
                (Some(renames), note)
            }
            None => (None, None),
        };
        let kernel = Kernel::new(session, names, files.debug().clone());
        Ok(Self {
            spaces: AddressSpaces::default(),
            images: Images::new(session.dir(), session.manifest(), files),
            kernel,
            detail: names.detail(),
            renames,
            have_lines: HashMap::new(),
            places: Places::default(),
            recent: vec![Recent::default(); RECENT],
            generation: 1,
            user: HashMap::new(),
            kernel_user: HashMap::new(),
            markers: HashMap::new(),
            notes: note.into_iter().collect(),
        })
    }

    /// A mapping appeared.
    pub fn map(&mut self, mapping: &MappingRecord) {
        if mapping.kernel {
            self.kernel.map(mapping);
            return;
        }
        self.changed();
        let image = self.images.of_mapping(mapping);
        let MappingRecord {
            pid,
            start,
            len,
            pgoff,
            ..
        } = *mapping;
        let start = start.get();
        if !self.spaces.map(
            pid.get(),
            start..start.saturating_add(len),
            pgoff,
            (image, mapping.mode),
        ) {
            self.notes.insert(
                "too many mappings: addresses in the later ones are in [unknown]".to_owned(),
            );
        }
    }

    /// A process was forked.
    pub fn fork(&mut self, parent: u32, child: u32) {
        self.changed();
        self.spaces.fork(parent, child);
    }

    /// A process is gone, or another program runs in it.
    pub fn clear(&mut self, pid: u32) {
        self.changed();
        self.spaces.clear(pid);
    }

    /// The places of a user frame, innermost first.
    pub fn user(&mut self, pid: u32, frame: FrameAddress) -> &[PlaceId] {
        let address = remap::lookup(frame);
        let stack = match marker_at(address) {
            Some(marker) => self.marker(marker),
            None => self.recent(pid, address.get()),
        };
        self.places.of(stack)
    }

    /// The mapping of a user address now, and where in it the address is.
    pub fn mapped(&self, pid: u32, address: u64) -> Option<Stretch> {
        self.spaces.stretch(pid, address)
    }

    /// Whether an address of an image is in a method of a VM.
    pub fn is_managed(&self, image: ImageId, address: u64) -> bool {
        match self.images.kind(image) {
            Some(ImageKind::Dex) => true,
            Some(ImageKind::Remap) => {
                let address = Address::new(address);
                remap::contains(address) && marker_at(address).is_none()
            }
            Some(ImageKind::Elf) | None => false,
        }
    }

    /// A symbol and the place of it that an id stands for.
    pub fn place(&self, id: PlaceId) -> Option<(&Symbol, &Place)> {
        self.places.get(id)
    }

    /// The places of a kernel address, as [`Resolver::user`] has them.
    pub fn kernel(&mut self, frame: FrameAddress) -> &[PlaceId] {
        let address = frame.lookup().get();
        let stack = match self.kernel_user.get(&address) {
            Some(stack) => *stack,
            None => {
                let (image, functions) = self.kernel.functions(address);
                let image = self.images.named(&image, Layer::Kernel);
                let stack = self.keep_all(image, functions);
                self.kernel_user.insert(address, stack);
                stack
            }
        };
        self.places.of(stack)
    }

    /// What has been met.
    pub fn finish(mut self) -> Found {
        self.notes.extend(self.kernel.notes());
        let (images, files) = self.images.into_parts();
        let (symbols, places) = self.places.into_parts();
        Found {
            images,
            files,
            symbols,
            places,
            notes: self.notes.into_iter().collect(),
        }
    }

    const fn changed(&mut self) {
        self.generation = self.generation.saturating_add(1);
    }

    /// The places of a user address, which was mostly looked up before.
    fn recent(&mut self, pid: u32, address: u64) -> Stack {
        let place = usize::try_from(address).unwrap_or(0) & RECENT.saturating_sub(1);
        let generation = self.generation;
        if let Some(recent) = self.recent.get(place)
            && (recent.pid, recent.address, recent.generation) == (pid, address, generation)
        {
            return recent.stack;
        }
        let stack = self.look_up(pid, address);
        if let Some(recent) = self.recent.get_mut(place) {
            *recent = Recent {
                pid,
                address,
                generation,
                stack,
            };
        }
        stack
    }

    /// The places of a user address, by its mapping.
    fn look_up(&mut self, pid: u32, address: u64) -> Stack {
        let Some(mapped) = self.spaces.lookup(pid, address) else {
            let image = self.images.named("[unknown]", Layer::Native);
            let symbol = self.symbol(image, format!("{address:#x}"), false);
            return self.keep(address, symbol);
        };
        let (image, offset) = (mapped.image, mapped.offset(address));
        if let Some(stack) = self.user.get(&(image, offset)) {
            return *stack;
        }
        let functions = self.functions(image, offset);
        let stack = if functions.is_empty() && self.images.is_own_memory(image) {
            let image = self.images.named(UNNAMED_JIT, Layer::App);
            let symbol = self.symbol(image, UNNAMED_JIT.to_owned(), false);
            self.keep(0, symbol)
        } else if functions.is_empty() {
            let name = self.images.get(image).map_or("", |image| &image.name);
            let symbol = self.symbol(image, format!("{name}+{offset:#x}"), false);
            self.keep(offset, symbol)
        } else {
            self.keep_all(image, functions)
        };
        self.user.insert((image, offset), stack);
        stack
    }

    /// The functions at an offset of an image, as far as they are asked for.
    fn functions(&mut self, image: ImageId, offset: u64) -> Vec<Function> {
        let Some(renames) = self.renames.as_ref().filter(|_| self.images.is_app(image)) else {
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
            renames.retraced(method, offset.saturating_sub(start), || {
                let known = have_lines.entry((image, start));
                *known.or_insert_with(|| images.has_lines(image, start))
            })
        });
        let inlined = self.detail.inlined;
        found
            .filter(|function| inlined || !function.inlined)
            .collect()
    }

    fn marker(&mut self, marker: Marker) -> Stack {
        let address = address_of(marker).get();
        if let Some(stack) = self.markers.get(&address) {
            return *stack;
        }
        let image = self.images.named(MARKERS, layer_of(marker));
        let symbol = Symbol {
            marker: Some(marker),
            ..self.symbol(image, marker.symbol().to_owned(), true)
        };
        let stack = self.keep(address, symbol);
        self.markers.insert(address, stack);
        stack
    }

    /// A symbol of an image.
    fn symbol(&self, image: ImageId, name: String, named: bool) -> Symbol {
        Symbol {
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
        }
    }

    /// The stack of the functions at an address.
    fn keep_all(&mut self, image: ImageId, functions: Vec<Function>) -> Stack {
        let mut stack = Vec::with_capacity(functions.len());
        for function in functions {
            let symbol = Symbol {
                recorded: function.recorded,
                inlined: function.inlined,
                ..self.symbol(image, function.name, function.named)
            };
            let symbol = self.places.symbol(function.start, symbol);
            let line = function.line.as_ref().filter(|_| self.detail.lines);
            let line = line.map(|(file, line)| (file.as_str(), *line));
            stack.push(self.places.place(symbol, line));
        }
        self.places.keep(&stack)
    }

    /// The stack of one symbol without a line.
    fn keep(&mut self, start: u64, symbol: Symbol) -> Stack {
        let symbol = self.places.symbol(start, symbol);
        let place = self.places.place(symbol, None);
        self.places.keep(&[place])
    }
}

/// The layer of the frames that a marker stands for.
const fn layer_of(marker: Marker) -> Layer {
    match marker {
        Marker::Native
        | Marker::Reason(Reason::UnknownMapping | Reason::NoUnwindInfo | Reason::StackUnreadable) => {
            Layer::Native
        }
        Marker::Reason(Reason::VmNotReady | Reason::UnknownVm) => Layer::Vm,
        Marker::Reason(
            Reason::TornFrames
            | Reason::VmGone
            | Reason::Truncated
            | Reason::UnknownMethod
            | Reason::ArtQuick,
        ) => Layer::App,
    }
}
