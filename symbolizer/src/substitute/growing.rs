//! Adds methods to a substitute while others read it.
//!
//! The file has space behind each section that grows. New content is put there, a table of section headers that includes it follows the
//! table before, and then the ELF header's `e_shoff` is set to the new table, in one aligned write. Nothing else of what a reader finds ever
//! changes, and the file keeps its size. So a reader, and a kill, finds the methods of one table. A file without enough space is replaced by
//! one that has as much space as content. So the bytes written for all methods are a multiple of those of the complete file, however often
//! methods are added.

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::SystemTime;

use object::{LittleEndian, elf as format};

use super::atomic;
use super::bytes::Bytes;
use super::dwarf::{self, Before, Dwarf};
use super::elf;
use super::machine::TargetMachine;
use super::places::{self, Places, Room, SectionRoom, Spare};
use super::sparse::Sparse;
use super::table::{MethodSlot, Slot, Substitute};
use crate::{Error, Result};

/// The file of a list of methods that grows.
#[derive(Debug)]
pub struct GrowingSubstitute {
    build_id: Vec<u8>,
    /// How many of the methods the file has.
    written: usize,
    /// None if nothing can be appended to the file.
    open: Option<OpenFile>,
}

impl GrowingSubstitute {
    /// Makes a file that is written when it has methods. Its build-id is the same whatever methods it has.
    #[must_use]
    pub fn new(build_id: &[u8]) -> Self {
        Self {
            build_id: build_id.to_vec(),
            written: 0,
            open: None,
        }
    }

    /// Makes the file at `path` the substitute of a range of `length` addresses with `methods`: those of the last call, and others behind
    /// them.
    ///
    /// # Errors
    /// As for [`Substitute::remap`] and [`Substitute::write`]. The file has the methods that it had before.
    pub fn write(&mut self, path: &Path, methods: &[MethodSlot], length: u64) -> Result<()> {
        let new = methods.get(self.written..).unwrap_or_default();
        if new.is_empty() {
            return Ok(());
        }
        let appended = match &mut self.open {
            Some(file) => {
                let more = Substitute::remap(new.iter().cloned(), length, &self.build_id)?;
                file.append(&more, path)?
            }
            None => Appended::NoRoom,
        };
        if appended == Appended::NoRoom {
            let whole = Substitute::remap(methods.iter().cloned(), length, &self.build_id)?;
            self.open = Some(OpenFile::create(whole, path)?);
        }
        self.written = methods.len();
        Ok(())
    }

    /// Writes the file as [`Substitute::write`] does, without space for more.
    ///
    /// # Errors
    /// As for [`GrowingSubstitute::write`].
    pub fn complete(&mut self, path: &Path, methods: &[MethodSlot], length: u64) -> Result<()> {
        if self.open.is_none() && self.written == methods.len() {
            return Ok(());
        }
        Substitute::remap(methods.iter().cloned(), length, &self.build_id)?.write(path)?;
        (self.open, self.written) = (None, methods.len());
        Ok(())
    }
}

/// What became of methods that were to be appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Appended {
    All,
    /// The file is as it was before.
    NoRoom,
}

/// A file with spare space.
#[derive(Debug)]
struct OpenFile {
    file: File,
    machine: TargetMachine,
    /// The first address after the text.
    text_end: u64,
    places: Places,
    /// The last table of section headers.
    headers: Vec<u8>,
}

/// Content for the end of a section.
struct Addition {
    section: &'static str,
    bytes: Vec<u8>,
}

impl OpenFile {
    /// Writes a file with spare space.
    fn create(mut substitute: Substitute, path: &Path) -> Result<Self> {
        let text_end = substitute.text.end.saturating_mul(2);
        substitute.text.end = text_end;
        let dwarf = Dwarf::encode(&substitute)?;
        atomic::write(path, |file| {
            let mut sparse = Sparse::new(file);
            let places = elf::write(&substitute, &dwarf, Spare::Double, &mut sparse)?;
            let table = &places.headers.content;
            let mut headers = vec![0; table.len()];
            let read = || {
                sparse.finish()?;
                file.set_len(places.headers.end as u64)?;
                file.read_exact_at(&mut headers, table.start as u64)?;
                file.try_clone()
            };
            Ok(Self {
                file: read().map_err(Error::io("write", path))?,
                machine: substitute.machine,
                text_end,
                places,
                headers,
            })
        })
    }

    /// Appends the methods of another substitute of the same range.
    fn append(&mut self, more: &Substitute, path: &Path) -> Result<Appended> {
        let additions = self.additions(more)?;
        let sections: Option<Vec<SectionRoom>> = additions
            .iter()
            .map(|addition| self.places.grown(addition.section, addition.bytes.len()))
            .collect();
        let tables = self.places.headers.grown(self.headers.len());
        let (Some(sections), Some(tables)) = (sections, tables) else {
            return Ok(Appended::NoRoom);
        };
        if more.text.end > self.text_end {
            return Ok(Appended::NoRoom);
        }
        let mut headers = self.headers.clone();
        for section in &sections {
            set_size(&mut headers, self.machine, section);
        }
        let rooms = sections.iter().map(|section| &section.room);
        let parts = additions.iter().map(|addition| &addition.bytes);
        let parts = parts.chain([&headers]).zip(rooms.chain([&tables]));
        self.put(parts).map_err(Error::io("write", path))?;
        for section in sections {
            self.places.replace(section);
        }
        self.places.headers = tables;
        self.headers = headers;
        // The kernel's own time of a change is coarse, so that a reader could take a second change for the first.
        let _ = self.file.set_modified(SystemTime::now());
        Ok(Appended::All)
    }

    /// Encodes the content that methods add to the sections.
    fn additions(&self, more: &Substitute) -> Result<Vec<Addition>> {
        let before = Before {
            info: self.places.size(dwarf::INFO),
            line: self.places.size(dwarf::LINE),
        };
        let (mut symbols, mut strings) = (Bytes::default(), Bytes::default());
        for slot in &more.slots {
            let name = strings.offset(self.places.size(places::STRINGS))?;
            strings.text(&slot.name);
            self.put_symbol(&mut symbols, slot, name);
        }
        let dwarf = Dwarf::encode_behind(more, before)?;
        let debug = dwarf.appended().map(|(section, bytes)| Addition {
            section,
            bytes: bytes.to_vec(),
        });
        let of_symbols = [(places::SYMBOLS, symbols), (places::STRINGS, strings)];
        let of_symbols = of_symbols.map(|(section, bytes)| Addition {
            section,
            bytes: bytes.0,
        });
        Ok(debug.chain(of_symbols).collect())
    }

    /// Appends a function symbol, as [`elf::write`] writes it.
    fn put_symbol(&self, symbols: &mut Bytes, slot: &Slot, name: u32) {
        let machine = self.machine;
        symbols.u32(name);
        if !machine.is_64() {
            symbols.word(machine, slot.offset);
            symbols.word(machine, slot.size);
        }
        symbols.u8(elf::FUNCTION);
        symbols.u8(format::STV_DEFAULT);
        symbols.u16(self.places.text.0 as u16);
        if machine.is_64() {
            symbols.word(machine, slot.offset);
            symbols.word(machine, slot.size);
        }
    }

    /// Writes bytes at the ends of their rooms, the last of which is that of the tables. Then makes the last table the file's.
    fn put<'p>(&self, parts: impl Iterator<Item = (&'p Vec<u8>, &'p Room)>) -> io::Result<()> {
        let mut at = 0;
        for (bytes, room) in parts {
            at = room.content.end.saturating_sub(bytes.len());
            self.file.write_all_at(bytes, at as u64)?;
        }
        let field = match self.machine.is_64() {
            true => offset_of!(format::FileHeader64<LittleEndian>, e_shoff),
            false => offset_of!(format::FileHeader32<LittleEndian>, e_shoff),
        };
        self.file
            .write_all_at(&number(self.machine, at), field as u64)
    }
}

/// Sets the size of a section in a table of section headers.
fn set_size(headers: &mut [u8], machine: TargetMachine, section: &SectionRoom) {
    type Header64 = format::SectionHeader64<LittleEndian>;
    type Header32 = format::SectionHeader32<LittleEndian>;
    let (header, field) = match machine.is_64() {
        true => (size_of::<Header64>(), offset_of!(Header64, sh_size)),
        false => (size_of::<Header32>(), offset_of!(Header32, sh_size)),
    };
    let size = number(machine, section.room.content.len());
    let at = header
        .saturating_mul(section.index.0 as usize)
        .saturating_add(field);
    if let Some(bytes) = headers.get_mut(at..at.saturating_add(size.len())) {
        bytes.copy_from_slice(&size);
    }
}

/// Encodes an offset or a size in a file of a machine.
fn number(machine: TargetMachine, value: usize) -> Vec<u8> {
    let mut bytes = Bytes::default();
    bytes.word(machine, value as u64);
    bytes.0
}

#[cfg(test)]
mod tests;
