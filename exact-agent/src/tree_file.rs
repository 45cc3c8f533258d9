//! The file of counts: a header, and nodes that the rewritten classes add.
//!
//! [`varid_instrument::node`] has the layout. The agent makes the header, and the roots of the threads that start while calls are counted;
//! the calls of such a root are the thread's number in the system. The rewritten classes make those of threads that ran before, whose calls
//! are 0.

use std::{
    fs::{File, OpenOptions},
    io,
    os::fd::AsRawFd,
    path::Path,
    ptr::NonNull,
    sync::atomic::{AtomicU64, Ordering},
};

use varid_instrument::{
    node::{self, header},
    runtime::order,
};

use crate::mapping::{Place, map};

/// The root of a thread, by addresses as the tree has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Root {
    /// The root.
    pub(crate) node: u64,
    /// Its slot 0.
    pub(crate) slot: u64,
}

/// A chunk of events of the call order, by its offset in the file. It has the layout of [`varid_instrument::runtime::order`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk(u64);

/// The words of a chunk's events.
const EVENT_WORDS: u64 = order::EVENTS_LENGTH / node::WORD;

/// The mapped file. It stays mapped until the process ends.
#[derive(Debug)]
pub(crate) struct TreeFile {
    base: NonNull<u8>,
    /// The address of the header, as the tree has addresses.
    address: u64,
    /// Bytes of the header and the arena.
    length: usize,
}

// SAFETY: all access to the mapping is by atomic words.
unsafe impl Send for TreeFile {}
// SAFETY: as above.
unsafe impl Sync for TreeFile {}

impl TreeFile {
    /// Makes the file and maps it. Its arena has `bytes` bytes, or less if the disk has no room for it: a page without room would end the
    /// VM when it is written.
    pub(crate) fn create(path: &Path, bytes: u64, place: &Place) -> io::Result<Self> {
        let too_large = || io::Error::from(io::ErrorKind::InvalidInput);
        let length = bytes.checked_add(node::HEADER).ok_or_else(too_large)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        let length = reserve(&file, length)?;
        let bytes = length.saturating_sub(node::HEADER);
        let length = usize::try_from(length).map_err(|_| too_large())?;
        let base = map(place, length, Some(&file))?;
        let address = (base.as_ptr().addr() as u64).saturating_sub(place.origin());
        let tree = Self {
            base,
            address,
            length,
        };
        for (offset, value) in [
            (header::ADDRESS, address),
            (header::ARENA_LENGTH, bytes),
            (header::VERSION, node::VERSION),
            (header::MAGIC, node::MAGIC),
        ] {
            if let Some(word) = tree.word(offset) {
                word.store(value, Ordering::Release);
            }
        }
        Ok(tree)
    }

    /// Returns the address of the header: that in this process, or its distance from the start of the [place](Place::Within).
    pub(crate) const fn address(&self) -> u64 {
        self.address
    }

    /// Returns a word of the file by its offset in bytes. None if it is not in the file.
    pub(crate) fn word(&self, offset: u64) -> Option<&AtomicU64> {
        let offset = usize::try_from(offset).ok()?;
        let end = offset.checked_add(size_of::<AtomicU64>())?;
        let is_word = end <= self.length && offset.is_multiple_of(size_of::<AtomicU64>());
        // SAFETY: the word is aligned and in the mapping, which lasts as long as the process.
        is_word.then(|| unsafe { &*self.base.as_ptr().add(offset).cast() })
    }

    /// Returns all words of the file.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        let count = self.length.checked_div(size_of::<AtomicU64>()).unwrap_or(0);
        // SAFETY: the mapping has these words, is aligned to a page, and lasts as long as the process. All access is by atomic words.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().cast(), count) }
    }

    /// Takes so many bytes of the arena, which are zero. Returns their offset in the file. None if there is no room.
    pub(crate) fn allocate(&self, bytes: u64) -> Option<u64> {
        let arena = (self.length as u64).checked_sub(node::HEADER)?;
        let allocated = self.word(header::ALLOCATED)?;
        let take = |taken: u64| taken.checked_add(bytes).filter(|end| *end <= arena);
        let taken = allocated.fetch_update(Ordering::AcqRel, Ordering::Acquire, take);
        node::HEADER.checked_add(taken.ok()?)
    }

    /// Adds a root for the thread with this number: slot 0, and `words` words from the root upwards. None if there is no room.
    pub(crate) fn add_root(&self, tid: u32, words: u32) -> Option<Root> {
        let words = u64::from(words.max(node::WORDS)).checked_add(1)?;
        let slot = self.allocate(words.checked_mul(node::WORD)?)?;
        let root = slot.checked_add(node::WORD)?;
        let word = |offset: i64| self.word(root.checked_add_signed(offset)?);
        word(node::CALLS)?.store(tid.into(), Ordering::Relaxed);
        let first = self.word(header::ROOTS)?;
        let address = self.address().checked_add(root)?;
        let mut head = first.load(Ordering::Acquire);
        loop {
            word(node::NEXT)?.store(head, Ordering::Relaxed);
            match first.compare_exchange_weak(head, address, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    return Some(Root {
                        node: address,
                        slot: address.checked_sub(node::WORD)?,
                    });
                }
                Err(found) => head = found,
            }
        }
    }
}

/// The chunks of the call order.
impl TreeFile {
    /// Adds a chunk of no thread. None if there is no room.
    pub(crate) fn add_chunk(&self) -> Option<Chunk> {
        let chunk = self.allocate(order::EVENTS.checked_add(order::EVENTS_LENGTH)?)?;
        let address = self.address().checked_add(chunk)?;
        let last = self.word(header::CHUNKS)?;
        let mut before = last.load(Ordering::Acquire);
        loop {
            let word = self.word(chunk.checked_add(order::BEFORE)?)?;
            word.store(before, Ordering::Relaxed);
            match last.compare_exchange_weak(before, address, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(Chunk(chunk)),
                Err(found) => before = found,
            }
        }
    }

    /// Returns the chunk that ends at an address. None: there is no room for one.
    pub(crate) fn chunk_at(&self, end: u64) -> Option<Chunk> {
        let end = end.checked_sub(self.address())?;
        let chunk = end
            .checked_sub(order::EVENTS_LENGTH)?
            .checked_sub(order::EVENTS)?;
        (chunk >= node::HEADER).then_some(Chunk(chunk))
    }

    /// Returns the address of a chunk's first event.
    pub(crate) fn events_address(&self, chunk: Chunk) -> u64 {
        let offset = chunk.0.saturating_add(order::EVENTS);
        self.address().saturating_add(offset)
    }

    fn chunk_word(&self, chunk: Chunk, offset: u64) -> Option<&AtomicU64> {
        self.word(chunk.0.checked_add(offset)?)
    }

    fn event_words(&self, chunk: Chunk) -> impl Iterator<Item = &AtomicU64> {
        let offset = |word: u64| {
            word.saturating_mul(node::WORD)
                .saturating_add(order::EVENTS)
        };
        (0..EVENT_WORDS).filter_map(move |word| self.chunk_word(chunk, offset(word)))
    }

    /// Returns the address of a chunk's root, and the number of its filling.
    pub(crate) fn filling_of(&self, chunk: Chunk) -> (u64, u64) {
        let value = |offset| {
            let word = self.chunk_word(chunk, offset);
            word.map_or(0, |word| word.load(Ordering::Relaxed))
        };
        (value(order::THREAD), value(order::FILLING))
    }

    /// Returns the events of a chunk of this thread.
    pub(crate) fn events_of(&self, chunk: Chunk) -> Vec<u32> {
        let words = self.event_words(chunk);
        let values = words.map(|word| word.load(Ordering::Relaxed).to_le_bytes());
        let events = values.flat_map(|[a, b, c, d, e, f, g, h]| {
            [[a, b, c, d], [e, f, g, h]].map(u32::from_le_bytes)
        });
        events.take_while(|event| *event != 0).collect()
    }

    /// Removes the events of a chunk of this thread.
    pub(crate) fn clear_chunk(&self, chunk: Chunk) {
        for word in self.event_words(chunk) {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// Gives a chunk that has no events to the thread of a root.
    pub(crate) fn fill_chunk(&self, chunk: Chunk, root: u64, filling: u64) {
        for (offset, value) in [(order::FILLING, filling), (order::THREAD, root)] {
            if let Some(word) = self.chunk_word(chunk, offset) {
                word.store(value, Ordering::Release);
            }
        }
    }

    /// Returns true if events have been lost.
    pub(crate) fn has_lost_events(&self) -> bool {
        let word = self.word(header::LOST_EVENTS);
        word.is_some_and(|word| word.load(Ordering::Acquire) != 0)
    }

    /// Says that events are lost from now on.
    pub(crate) fn lose_events(&self) {
        if let Some(word) = self.word(header::LOST_EVENTS) {
            word.store(1, Ordering::Release);
        }
    }
}

/// The smallest file that is of use, in bytes.
const LEAST: u64 = 2 * node::HEADER;

/// Reserves room on the disk for a file of so many bytes, or for half of them, and so on. Returns how many it has. A file system that reserves
/// nothing gives the room when it is written.
fn reserve(file: &File, mut length: u64) -> io::Result<u64> {
    loop {
        let signed = libc::off_t::try_from(length)
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: the file is open.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, signed) } == 0 {
            return Ok(length);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EOPNOTSUPP | libc::ENOSYS) => {
                file.set_len(length)?;
                return Ok(length);
            }
            Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) if length >= 2 * LEAST => {
                // What was reserved before there was no more room is given back.
                file.set_len(0)?;
                length = (length / 2).next_multiple_of(node::WORD);
            }
            _ => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_has_the_events_up_to_the_first_that_is_missing() {
        let path = std::env::temp_dir().join(format!("varid-chunks-{}", std::process::id()));
        let tree = TreeFile::create(&path, 3 << 14, &Place::Anywhere).unwrap();
        std::fs::remove_file(&path).unwrap();
        let chunks: Vec<_> = std::iter::from_fn(|| tree.add_chunk()).collect();
        assert_eq!(chunks.len(), 3);
        let chunk = chunks[1];
        let first = tree.events_address(chunk);
        assert_eq!(tree.chunk_at(first + order::EVENTS_LENGTH), Some(chunk));
        assert_eq!(tree.chunk_at(0), None);
        tree.fill_chunk(chunk, 77, 5);
        assert_eq!(tree.filling_of(chunk), (77, 5));
        assert_eq!(tree.events_of(chunk), []);
        for (word, events) in tree.event_words(chunk).zip([7 | 9 << 32, 8]) {
            word.store(events, Ordering::Relaxed);
        }
        assert_eq!(tree.events_of(chunk), [7, 9, 8]);
        tree.clear_chunk(chunk);
        assert_eq!(tree.events_of(chunk), []);
        assert!(tree.event_words(chunk).count() as u64 == EVENT_WORDS);
    }

    #[test]
    fn roots_are_linked_and_end_where_the_arena_does() {
        let folder = std::env::temp_dir().join(format!("varid-tree-{}", std::process::id()));
        let tree = TreeFile::create(&folder, 256, &Place::Anywhere).unwrap();
        std::fs::remove_file(&folder).unwrap();
        let value = |offset| tree.word(offset).unwrap().load(Ordering::Relaxed);
        assert_eq!(value(header::ADDRESS), tree.address());
        let roots: Vec<u64> = (1..)
            .map_while(|tid| tree.add_root(tid, node::WORDS))
            .map(|root| root.node)
            .collect();
        assert_eq!(roots.len(), 6);
        assert_eq!(value(header::ALLOCATED), 240);
        let mut linked = Vec::new();
        let mut root = value(header::ROOTS);
        while root != 0 {
            linked.push(root);
            let node = (root - tree.address()).cast_signed();
            let at = |offset: i64| value((node + offset).cast_unsigned());
            assert_eq!(at(node::METHOD), node::ROOT.cast_unsigned());
            root = at(node::NEXT);
        }
        linked.reverse();
        assert_eq!(linked, roots);
    }
}
