//! The remap table: addresses in the reserved range for methods that no mapping shows.

use crate::by_place::ByPlace;
use crate::seam::MethodInMemory;
use std::collections::HashMap;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use varid_model::{Layer, Marker};
use varid_process::CodeImage;
use varid_recording::remap::{
    APP_FILE, FILE_OFFSET, FIRST_METHOD, FRAMEWORK_BASE, FRAMEWORK_FILE, SLOT_SIZE, VM_BASE,
    VM_FILE, address_of,
};
use varid_recording::{REMAP_BASE, REMAP_SIZE};
use varid_symbolizer::hex;
use varid_symbolizer::substitute::{
    GrowingSubstitute, MethodSlot, Slot, Substitute, append_slots_sym, sym_file_of,
};

/// Slots that have been given out in a session, the same for all its processes.
#[derive(Debug)]
pub struct RemapTable {
    parts: [RemapPart; 3],
    slots: HashMap<([u8; 20], u32), u64>,
    in_memory: HashMap<Rc<MethodInMemory>, u64>,
    /// What was asked for: the hash of a method is that of all its lines.
    asked: ByPlace<MethodInMemory, u64>,
}

/// The methods of one layer: a range of addresses and the ELF file behind it.
#[derive(Debug)]
pub struct RemapPart {
    /// Whose methods these are.
    pub layer: Layer,
    /// The file's name among the session's symbols.
    pub file: &'static str,
    /// The addresses that it stands for.
    pub range: Range<u64>,
    /// The session's own: it names the file whatever will be added to it.
    pub build_id: [u8; 20],
    methods: Vec<MethodSlot>,
    /// The bytes of their names, and of those of their classes and files.
    names: usize,
    /// How many of them are in the text form.
    described: usize,
    next: u64,
    elf: GrowingSubstitute,
}

/// A build-id for a file that grows: it names the file, not its content.
pub fn random_build_id() -> std::io::Result<[u8; 20]> {
    let mut build_id = [0; 20];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut build_id)?;
    Ok(build_id)
}

impl RemapTable {
    /// A table with the markers only.
    pub fn new() -> std::io::Result<Self> {
        let end = REMAP_BASE.saturating_add(REMAP_SIZE);
        let mut app = RemapPart::new(Layer::App, APP_FILE, REMAP_BASE..FRAMEWORK_BASE)?;
        let markers = Marker::all().map(|marker| Slot {
            offset: in_file(&app.range, address_of(marker).get()),
            size: SLOT_SIZE,
            name: marker.symbol().to_owned(),
        });
        app.methods = markers.map(MethodSlot::from).collect();
        app.next = FIRST_METHOD;
        let framework = FRAMEWORK_BASE..VM_BASE;
        let framework = RemapPart::new(Layer::Framework, FRAMEWORK_FILE, framework)?;
        let vm = RemapPart::new(Layer::Vm, VM_FILE, VM_BASE..end)?;
        Ok(Self {
            parts: [app, framework, vm],
            slots: HashMap::new(),
            in_memory: HashMap::new(),
            asked: ByPlace::default(),
        })
    }

    /// Its parts.
    pub fn parts(&mut self) -> &mut [RemapPart] {
        &mut self.parts
    }

    /// The part that an address lies in.
    pub fn part_at(&self, address: u64) -> Option<&RemapPart> {
        let mut parts = self.parts.iter();
        parts.find(|part| part.range.contains(&address))
    }

    /// What an address stands for, if it was given out.
    pub fn name(&self, address: u64) -> Option<&str> {
        let part = self.part_at(address)?;
        let offset = in_file(&part.range, address);
        let after = part
            .methods
            .partition_point(|method| method.slot.offset <= offset);
        let slot = &part.methods.get(after.checked_sub(1)?)?.slot;
        (offset.wrapping_sub(slot.offset) < slot.size).then_some(slot.name.as_str())
    }

    /// The address that stands for a method without bytecode. None: the range is full.
    pub fn slot(&mut self, dex: &Rc<CodeImage>, method: u32) -> Option<u64> {
        let key = (dex.build_id, method);
        if let Some(known) = self.slots.get(&key) {
            return Some(*known);
        }
        let part = self.part_of(dex.layer.get())?;
        let name = dex
            .bytecode
            .method_name(method)
            .unwrap_or_else(|| format!("{}@method{method}", hex(&dex.build_id)));
        let slot = Slot {
            offset: 0,
            size: SLOT_SIZE,
            name,
        };
        let address = part.add(slot.into())?;
        self.slots.insert(key, address);
        Some(address)
    }

    /// The address that stands for the first instruction of a method whose bytecode is in no file. Equal methods of several processes have the
    /// same. None: the range is full.
    pub fn method(&mut self, method: &Rc<MethodInMemory>) -> Option<u64> {
        if let Some(known) = self.asked.get(method) {
            return Some(known);
        }
        let address = self.equal_method(method)?;
        self.asked.insert(method, address);
        Some(address)
    }

    fn equal_method(&mut self, method: &Rc<MethodInMemory>) -> Option<u64> {
        if let Some(known) = self.in_memory.get(method) {
            return Some(*known);
        }
        let part = self.part_of(method.layer)?;
        // A caller is looked up one byte behind its instruction, which may be the last one.
        let size = u64::from(method.code_size).saturating_add(1).max(SLOT_SIZE);
        let slot = Slot {
            offset: 0,
            size,
            name: method.name.clone(),
        };
        let address = part.add(MethodSlot {
            slot,
            descriptor: method.signature.clone(),
            source: method.source.clone(),
        })?;
        self.in_memory.insert(Rc::clone(method), address);
        Some(address)
    }

    fn part_of(&mut self, layer: Layer) -> Option<&mut RemapPart> {
        self.parts.iter_mut().find(|part| part.layer == layer)
    }
}

/// The offset in a part's file of an address of its range.
fn in_file(range: &Range<u64>, address: u64) -> u64 {
    address
        .wrapping_sub(range.start)
        .saturating_add(FILE_OFFSET)
}

impl RemapPart {
    fn new(layer: Layer, file: &'static str, range: Range<u64>) -> std::io::Result<Self> {
        let build_id = random_build_id()?;
        let next = range.start;
        Ok(Self {
            layer,
            file,
            range,
            build_id,
            methods: Vec::new(),
            names: 0,
            described: 0,
            next,
            elf: GrowingSubstitute::new(&build_id),
        })
    }

    /// Adds a method at the next free addresses.
    fn add(&mut self, mut method: MethodSlot) -> Option<u64> {
        let address = self.next;
        let next = address
            .checked_add(method.slot.size)?
            .checked_next_multiple_of(SLOT_SIZE)
            .filter(|next| *next <= self.range.end)?;
        let of_source = method.source.as_ref().map_or(0, |source| {
            source.class.len().saturating_add(source.file.len())
        });
        let names = self.names.saturating_add(method.slot.name.len());
        let names = names.saturating_add(of_source);
        if names > Substitute::MAX_NAMES {
            return None;
        }
        method.slot.offset = in_file(&self.range, address);
        self.methods.push(method);
        (self.next, self.names) = (next, names);
        Some(address)
    }

    /// Makes the part's ELF file in `folder` have all methods. Its cost is that of those which the file does not have. The text form, which
    /// has what symbols do not have, comes first: a reader of the new ELF file finds it.
    pub fn write_names(&mut self, folder: &Path) -> varid_symbolizer::Result<()> {
        let used = in_file(&self.range, self.next);
        let elf = folder.join(self.file);
        let new = self.methods.get(self.described..).unwrap_or_default();
        append_slots_sym(new, &sym_file_of(&elf))?;
        self.described = self.methods.len();
        self.elf.write(&elf, &self.methods, used)
    }

    /// Writes the ELF file without the space that it has for further methods.
    pub fn complete(&mut self, folder: &Path) -> varid_symbolizer::Result<()> {
        let used = in_file(&self.range, self.next);
        self.elf
            .complete(&folder.join(self.file), &self.methods, used)
    }
}
