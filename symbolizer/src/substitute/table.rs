//! Which symbols does a substitute hold?

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

use super::elf::{self, Machine};
use super::{atomic, text};
use crate::dex::{DexFile, MAX_NAME, MethodIndex};
use crate::{Error, Result};

/// The most bytes that all names of one file may take; a file of 64 K methods with
/// names of 1,000 characters stays below.
pub(super) const MAX_NAMES: usize = 64 << 20;

/// A named stretch of a substitute's addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// First address.
    pub offset: u64,
    /// Bytes; not zero.
    pub size: u64,
    /// The name that profiles show.
    pub name: String,
}

/// What a substitute ELF file says, before it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Substitute {
    pub(super) machine: Machine,
    pub(super) text: Range<u64>,
    pub(super) build_id: Vec<u8>,
    pub(super) slots: Vec<Slot>,
}

impl Substitute {
    /// The substitute of a dex file: a symbol for each method's instructions, named by
    /// [`crate::dex::MethodId::display_name`]; the build-id is [`DexFile::content_sha1`].
    ///
    /// A method whose name is broken is called `method@17`. All dex files of a container are in it.
    ///
    /// # Errors
    /// [`Error::Dex`] if no class can be read, [`Error::Substitute`] if the names take more than 64 MB.
    pub fn of_dex(dex: &DexFile<'_>) -> Result<Self> {
        let mut slots = Vec::new();
        let mut budget = Budget::default();
        for_each_dex(dex, |dex| {
            budget.spend(dex.method_count() as usize)?;
            for method in MethodIndex::new(dex)?.methods() {
                let name = budget.take(dex.method_name(method.index))?;
                slots.push(Slot {
                    offset: method.code.start.into(),
                    size: method.code.len() as u64,
                    name: name.unwrap_or_else(|| format!("method@{}", method.index)),
                });
            }
            Ok(())
        })?;
        let end = dex.bytes().len() as u64;
        Ok(Self {
            machine: Machine::host(),
            text: elf::TEXT_START.min(end)..end,
            build_id: dex.content_sha1().to_vec(),
            slots,
        })
    }

    /// The substitute of a range of `length` addresses that holds `slots`: the remap range.
    ///
    /// `build_id` must change whenever the slots do, as the caller sees fit.
    ///
    /// # Errors
    /// [`Error::Substitute`] if a slot is empty or not within the range, the names take more than 64 MB, or the
    /// build-id is not 1 to 64 bytes long.
    pub fn remap(
        slots: impl IntoIterator<Item = Slot>,
        length: u64,
        build_id: &[u8],
    ) -> Result<Self> {
        let refuse = |problem: String| Err(Error::Substitute { problem });
        if !(1..=64).contains(&build_id.len()) {
            return refuse(format!("a build-id of {} bytes", build_id.len()));
        }
        let mut budget = Budget::default();
        let mut slots: Vec<Slot> = slots.into_iter().collect();
        slots.sort_by_key(|slot| slot.offset);
        for slot in &slots {
            let end = slot.offset.checked_add(slot.size);
            if slot.size == 0 || end.is_none_or(|end| end > length) {
                return refuse(format!(
                    "slot `{}` at {:#x} of {} bytes does not lie within {length:#x} bytes",
                    slot.name, slot.offset, slot.size
                ));
            }
            budget.spend(slot.name.len())?;
        }
        Ok(Self {
            machine: Machine::host(),
            // The headers lie over the first addresses, as they do over a dex file's.
            text: 0..length.max(elf::TEXT_START),
            build_id: build_id.to_vec(),
            slots,
        })
    }

    /// The same for another machine than the one this program runs on: readers expect the recorded one's.
    #[must_use]
    pub fn for_machine(mut self, machine: Machine) -> Self {
        self.machine = machine;
        self
    }

    /// The build-id.
    #[must_use]
    pub fn build_id(&self) -> &[u8] {
        &self.build_id
    }

    /// The symbols, by ascending address.
    #[must_use]
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Writes the file, sparse, replacing what has that name only when it is whole.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written, [`Error::Substitute`] if it would not be a valid ELF file.
    pub fn write(&self, path: &Path) -> Result<()> {
        atomic::write(path, |file| {
            let mut sparse = Sparse::new(file);
            elf::write(self, &mut sparse)?;
            sparse.finish().map_err(Error::io("write", path))
        })
    }
}

/// Calls `visit` with `dex` and, if it is the first of a container, those that follow.
pub(super) fn for_each_dex(
    dex: &DexFile<'_>,
    mut visit: impl FnMut(&DexFile<'_>) -> Result<()>,
) -> Result<()> {
    visit(dex)?;
    let mut next = dex.next_header();
    while let Some(header) = next {
        let following = DexFile::parse_at(dex.bytes(), header)?;
        visit(&following)?;
        next = following.next_header();
    }
    Ok(())
}

/// What is left for names: a small file can claim that a million methods share the longest one.
#[derive(Debug, Default)]
pub(super) struct Budget {
    spent: usize,
}

impl Budget {
    /// Counts a name that has been made; none if it is broken, which is counted as the longest.
    pub(super) fn take(&mut self, name: Result<String>) -> Result<Option<String>> {
        let name = name.ok().map(text::printable);
        self.spend(name.as_ref().map_or(MAX_NAME, String::len))?;
        Ok(name)
    }

    pub(super) fn spend(&mut self, bytes: usize) -> Result<()> {
        self.spent = self.spent.saturating_add(bytes);
        if self.spent > MAX_NAMES {
            return Err(Error::Substitute {
                problem: format!("the names take more than {} MB", MAX_NAMES >> 20),
            });
        }
        Ok(())
    }
}

/// A file written from start to end in which zeros become holes.
pub(super) struct Sparse<'f> {
    out: io::BufWriter<&'f File>,
    len: usize,
    skipped: u64,
    error: Option<io::Error>,
}

impl<'f> Sparse<'f> {
    fn new(file: &'f File) -> Self {
        Self {
            out: io::BufWriter::with_capacity(1 << 18, file),
            len: 0,
            skipped: 0,
            error: None,
        }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.skipped > 0 {
            let hole = i64::try_from(self.skipped).map_err(io::Error::other)?;
            self.out.seek(SeekFrom::Current(hole))?;
            self.skipped = 0;
        }
        self.out.write_all(bytes)
    }

    /// Writes out what is left; the first error that any write met.
    fn finish(mut self) -> io::Result<()> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }
}

impl object::write::WritableBuffer for Sparse<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn reserve(&mut self, _size: usize) -> Result<(), ()> {
        Ok(())
    }

    fn resize(&mut self, len: usize) {
        const ZEROS: [u8; 64] = [0; 64];
        let zeros = len.saturating_sub(self.len);
        match ZEROS.get(..zeros) {
            // Few zeros are padding: a seek would flush the buffer.
            Some(padding) => self.write_bytes(padding),
            None => {
                self.len = len;
                self.skipped = self.skipped.saturating_add(zeros as u64);
            }
        }
    }

    fn write_bytes(&mut self, bytes: &[u8]) {
        self.len = self.len.saturating_add(bytes.len());
        if self.error.is_none() && !bytes.is_empty() {
            self.error = self.put(bytes).err();
        }
    }
}
