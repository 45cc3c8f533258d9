//! The remap table: slots in the reserved range for methods that no mapping shows.

use crate::process::{DexImage, hex};
use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::rc::Rc;
use varid_recording::remap::{FIRST_METHOD, Marker, SLOT_SIZE};
use varid_recording::{REMAP_BASE, REMAP_SIZE};
use varid_symbolizer::substitute::{Slot, Substitute};

/// Slots that have been given out in a session, the same for all its processes.
#[derive(Debug)]
pub struct RemapTable {
    build_id: [u8; 20],
    slots: HashMap<([u8; 20], u32), u64>,
    names: Vec<Slot>,
    next: u64,
    changed: bool,
}

impl RemapTable {
    /// A table with the markers only. Its build-id is the session's own: it names the file
    /// whatever will be added to it.
    pub fn new() -> std::io::Result<Self> {
        let mut build_id = [0; 20];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut build_id)?;
        let markers = Marker::all().map(|marker| Slot {
            offset: marker.address().wrapping_sub(REMAP_BASE),
            size: SLOT_SIZE,
            name: marker.symbol().to_owned(),
        });
        Ok(Self { build_id, slots: HashMap::new(), names: markers.collect(), next: FIRST_METHOD, changed: true })
    }

    /// The build-id that the table's file has.
    pub fn build_id(&self) -> &[u8] {
        &self.build_id
    }

    /// The address that stands for a method without bytecode. None: the range is full.
    pub fn slot(&mut self, dex: &Rc<DexImage>, method: u32) -> Option<u64> {
        let key = (dex.build_id, method);
        if let Some(known) = self.slots.get(&key) {
            return Some(*known);
        }
        let address = self.next;
        if address.checked_add(SLOT_SIZE)? > REMAP_BASE.checked_add(REMAP_SIZE)? {
            return None;
        }
        let name = dex.dex.method_name(method).unwrap_or_else(|_| format!("{}@method{method}", hex(&dex.build_id)));
        self.names.push(Slot { offset: address.wrapping_sub(REMAP_BASE), size: SLOT_SIZE, name });
        self.slots.insert(key, address);
        self.next = address.wrapping_add(SLOT_SIZE);
        self.changed = true;
        Some(address)
    }

    /// Writes the table's ELF file if there is anything new in it.
    pub fn write_if_changed(&mut self, path: &Path) -> varid_symbolizer::Result<()> {
        if self.changed {
            let used = self.next.wrapping_sub(REMAP_BASE);
            Substitute::remap(self.names.iter().cloned(), used, &self.build_id)?.write(path)?;
            self.changed = false;
        }
        Ok(())
    }
}
