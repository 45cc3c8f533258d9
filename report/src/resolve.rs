//! What is an address called?

use std::collections::{BTreeSet, HashMap};

use varid_recording::{Host, Layer, Mapping, Marker, Reason, SessionReader, host, remap};
use varid_symbolizer::kernel::KernelSymbols;

use crate::{
    address_space::AddressSpaces,
    image::Images,
    profile::{Image, ImageId, Symbol, SymbolId},
};

/// The kernel's own code.
const KERNEL: &str = "[kernel]";

/// Instead of a file, where a marker is.
pub const MARKERS: &str = "[marker]";

/// Names addresses; grows with the records of a session.
#[derive(Debug)]
pub struct Resolver {
    spaces: AddressSpaces,
    images: Images,
    kernel: Kernel,
    symbols: Vec<Symbol>,
    /// By image, first address and name.
    ids: HashMap<(ImageId, u64, String), SymbolId>,
    /// User addresses that were looked up lately, at the place of their last bits.
    recent: Vec<Recent>,
    /// Grows with every change of the mappings.
    generation: u64,
    /// Offsets of images that have been looked up.
    user: HashMap<(ImageId, u64), SymbolId>,
    /// Kernel addresses that have been looked up.
    kernel_user: HashMap<u64, SymbolId>,
    notes: BTreeSet<String>,
}

/// A user address that was looked up.
#[derive(Debug, Clone, Copy)]
struct Recent {
    pid: u32,
    address: u64,
    generation: u64,
    symbol: SymbolId,
}

/// Addresses that are kept in [`Resolver::recent`]; a power of two.
const RECENT: usize = 1 << 13;

/// Where kernel names come from.
#[derive(Debug)]
enum Kernel {
    /// No kernel address has been looked up yet.
    Unread {
        /// `symbols/kernel.sym` of the session.
        path: std::path::PathBuf,
        /// The recorded kernel's release.
        release: String,
        /// Its text's first address and build-id, from its mapping.
        text: Option<(u64, Vec<u8>)>,
    },
    /// Its functions; none if they are not to be had.
    Read(Option<KernelSymbols>),
}

impl Resolver {
    /// A resolver for a session.
    pub fn new(session: &SessionReader) -> Self {
        Self {
            spaces: AddressSpaces::default(),
            images: Images::new(session.dir(), session.manifest()),
            kernel: Kernel::Unread {
                path: session.symbols().join("kernel.sym"),
                release: session.manifest().host.kernel.clone(),
                text: None,
            },
            symbols: Vec::new(),
            ids: HashMap::new(),
            recent: vec![
                Recent {
                    pid: 0,
                    address: 0,
                    generation: 0,
                    symbol: SymbolId(0),
                };
                RECENT
            ],
            generation: 1,
            user: HashMap::new(),
            kernel_user: HashMap::new(),
            notes: BTreeSet::new(),
        }
    }

    /// A mapping appeared.
    pub fn map(&mut self, mapping: &Mapping) {
        if !mapping.kernel {
            self.changed();
            let image = self.images.of_mapping(mapping);
            let Mapping {
                pid,
                start,
                len,
                pgoff,
                ..
            } = *mapping;
            if !self.spaces.map(pid, start, len, pgoff, image) {
                self.notes.insert(
                    "too many mappings: addresses in the later ones are in [unknown]".to_owned(),
                );
            }
        } else if mapping
            .path
            .to_string_lossy()
            .starts_with("[kernel.kallsyms]")
            && let Kernel::Unread { text, .. } = &mut self.kernel
        {
            *text = Some((mapping.start, mapping.build_id.clone()));
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

    /// The symbol of a user address. Of a caller's frame the address is where it goes on,
    /// one byte or more behind its call.
    pub fn user(&mut self, pid: u32, address: u64, is_caller: bool) -> SymbolId {
        if let Some(marker) = Marker::at(address) {
            return self.marker(marker);
        }
        // Slots of the remap range are no code: nothing goes on behind them.
        let address = if is_caller && !remap::contains(address) {
            address.saturating_sub(1)
        } else {
            address
        };
        let place = usize::try_from(address).unwrap_or(0) & RECENT.saturating_sub(1);
        let generation = self.generation;
        if let Some(recent) = self.recent.get(place)
            && (recent.pid, recent.address, recent.generation) == (pid, address, generation)
        {
            return recent.symbol;
        }
        let symbol = self.look_up(pid, address);
        if let Some(recent) = self.recent.get_mut(place) {
            *recent = Recent {
                pid,
                address,
                generation,
                symbol,
            };
        }
        symbol
    }

    /// The symbol at a user address, by its mapping.
    fn look_up(&mut self, pid: u32, address: u64) -> SymbolId {
        let Some(mapped) = self.spaces.lookup(pid, address) else {
            let image = self.images.named("[unknown]", Layer::Native);
            return self.intern(image, address, format!("{address:#x}"), None);
        };
        let (image, offset) = (mapped.image, mapped.offset(address));
        if let Some(id) = self.user.get(&(image, offset)) {
            return *id;
        }
        let id = if let Some(function) = self.images.function(image, offset) {
            self.intern(image, function.start, function.name, None)
        } else {
            let name = self.images.get(image).map_or("", |image| &image.name);
            let name = format!("{name}+{offset:#x}");
            self.intern(image, offset, name, None)
        };
        self.user.insert((image, offset), id);
        id
    }

    /// The symbol of a kernel address.
    pub fn kernel(&mut self, address: u64, is_caller: bool) -> SymbolId {
        let address = address.saturating_sub(u64::from(is_caller));
        if let Some(id) = self.kernel_user.get(&address) {
            return *id;
        }
        self.read_kernel();
        let symbols = match &self.kernel {
            Kernel::Read(symbols) => symbols.as_ref(),
            Kernel::Unread { .. } => None,
        };
        let (image, start, name) = match symbols {
            // Without any names a row per address says nothing.
            None => (KERNEL.to_owned(), 0, KERNEL.to_owned()),
            Some(symbols) => match symbols.lookup(address) {
                None => (KERNEL.to_owned(), address, format!("{address:#x}")),
                Some(symbol) => (
                    symbol
                        .module
                        .map_or_else(|| KERNEL.to_owned(), |module| format!("[{module}]")),
                    symbol.start,
                    symbol.name.to_owned(),
                ),
            },
        };
        let image = self.images.named(&image, Layer::Kernel);
        let id = self.intern(image, start, name, None);
        self.kernel_user.insert(address, id);
        id
    }

    /// Images, symbols, and what could not be had.
    pub fn into_parts(mut self) -> (Vec<Image>, Vec<Symbol>, Vec<String>) {
        let (images, notes) = self.images.into_parts();
        self.notes.extend(notes);
        (images, self.symbols, self.notes.into_iter().collect())
    }

    const fn changed(&mut self) {
        self.generation = self.generation.saturating_add(1);
    }

    fn marker(&mut self, marker: Marker) -> SymbolId {
        let image = self.images.named(MARKERS, layer_of(marker));
        let name = marker.symbol().to_owned();
        self.intern(image, marker.address(), name, Some(marker))
    }

    fn intern(
        &mut self,
        image: ImageId,
        start: u64,
        name: String,
        marker: Option<Marker>,
    ) -> SymbolId {
        let next = SymbolId(u32::try_from(self.symbols.len()).unwrap_or(u32::MAX));
        *self
            .ids
            .entry((image, start, name))
            .or_insert_with_key(|(image, _, name)| {
                self.symbols.push(Symbol {
                    name: name.clone(),
                    image: *image,
                    layer: self
                        .images
                        .get(*image)
                        .map_or(Layer::Native, |image| image.layer),
                    marker,
                });
                next
            })
    }

    fn read_kernel(&mut self) {
        let Kernel::Unread {
            path,
            release,
            text,
        } = &self.kernel
        else {
            return;
        };
        let kept = std::fs::read(path).ok();
        let symbols = match kept {
            Some(bytes) => KernelSymbols::parse(&bytes).map_err(|error| error.to_string()),
            None => running_kernel(release, text.as_ref()),
        };
        let symbols = symbols
            .map_err(|why| {
                self.notes
                    .insert(format!("{KERNEL}: {why}; its functions have no names"))
            })
            .ok();
        self.kernel = Kernel::Read(symbols);
    }
}

/// The running kernel's symbols if it is the recorded one, at the same addresses.
fn running_kernel(release: &str, text: Option<&(u64, Vec<u8>)>) -> Result<KernelSymbols, String> {
    let running = Host::this_machine().kernel;
    if running != release {
        return Err(format!(
            "recorded on {release}, this machine runs {running}, and the session holds no symbols/kernel.sym"
        ));
    }
    let symbols = KernelSymbols::running().map_err(|error| error.to_string())?;
    if let Some((start, build_id)) = text {
        let same_build = build_id.is_empty() || *build_id == host::kernel_build_id();
        let same_place = symbols
            .lookup(*start)
            .is_some_and(|symbol| symbol.start == *start);
        if !(same_build && same_place) {
            return Err(
                "recorded by another build or boot of the kernel, and the session holds no symbols/kernel.sym"
                    .to_owned(),
            );
        }
    }
    Ok(symbols)
}

/// The layer of the frames that a marker stands for.
const fn layer_of(marker: Marker) -> Layer {
    match marker {
        Marker::Native
        | Marker::Reason(Reason::UnknownMapping | Reason::NoUnwindInfo | Reason::StackUnreadable) => {
            Layer::Native
        }
        Marker::Reason(Reason::VmNotReady | Reason::UnknownVm | Reason::VmGone) => Layer::Vm,
        Marker::Reason(
            Reason::TornFrames
            | Reason::StaleSlot
            | Reason::Truncated
            | Reason::UnknownMethod
            | Reason::ArtQuick,
        ) => Layer::App,
    }
}
