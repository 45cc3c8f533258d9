//! Which memory has been read already? A read of a process costs more than the bytes, and a method's structures lie beside those of others.

use std::cell::RefCell;
use std::collections::HashMap;
use varid_tunnel::{Memory, TunnelError};

/// The unit in which memory is kept. No machine has smaller pages.
const PAGE: u64 = 1 << 12;
/// Reads of more bytes are not kept.
const MAX_KEPT: usize = 1 << 13;
/// The most pages that are kept.
const MAX_PAGES: usize = 1 << 10;

/// Memory of which each page is read once. It is used for as long as what was read may be old: while a compiled method is read.
pub(super) struct ReadPages<'m> {
    memory: &'m dyn Memory,
    pages: RefCell<HashMap<u64, Box<[u8]>>>,
}

impl<'m> ReadPages<'m> {
    /// Memory of which nothing has been read.
    pub(super) fn of(memory: &'m dyn Memory) -> Self {
        Self {
            memory,
            pages: RefCell::default(),
        }
    }

    /// Adds the page that starts at an address, if it can be read.
    fn add(&self, start: u64) {
        let mut pages = self.pages.borrow_mut();
        if pages.contains_key(&start) || pages.len() >= MAX_PAGES {
            return;
        }
        let mut page = vec![0; PAGE as usize];
        if self.memory.read(start, &mut page).is_ok() {
            pages.insert(start, page.into());
        }
    }

    /// Copies what is kept. Returns the number of bytes that are known, from the first one on.
    fn copy(&self, address: u64, out: &mut [u8]) -> usize {
        let pages = self.pages.borrow();
        let mut known: usize = 0;
        while let Some(rest) = out.get_mut(known..).filter(|rest| !rest.is_empty()) {
            let at = address.wrapping_add(known as u64);
            let start = at & !PAGE.wrapping_sub(1);
            let Some(page) = pages.get(&start) else {
                break;
            };
            let from = page.get(at.wrapping_sub(start) as usize..);
            let pairs = rest.iter_mut().zip(from.unwrap_or_default());
            known = known.saturating_add(pairs.len());
            pairs.for_each(|(to, byte)| *to = *byte);
        }
        known
    }
}

impl Memory for ReadPages<'_> {
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), TunnelError> {
        if out.len() <= MAX_KEPT {
            let first = address & !PAGE.wrapping_sub(1);
            let len = address.wrapping_sub(first).saturating_add(out.len() as u64);
            for offset in (0..len).step_by(PAGE as usize) {
                self.add(first.wrapping_add(offset));
            }
            if self.copy(address, out) == out.len() {
                return Ok(());
            }
        }
        self.memory.read(address, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use varid_tunnel::ByteMemory;

    struct Counted<'a>(ByteMemory<'a>, Cell<usize>);

    impl Memory for Counted<'_> {
        fn read(&self, address: u64, out: &mut [u8]) -> Result<(), TunnelError> {
            self.1.set(self.1.get() + 1);
            self.0.read(address, out)
        }
    }

    #[test]
    fn each_page_is_read_once() {
        let bytes: Vec<u8> = (0..0x3000_u32).map(|at| (at >> 4) as u8).collect();
        let start = 0x10_0000;
        let memory = ByteMemory {
            start,
            bytes: &bytes,
        };
        let counted = Counted(memory, Cell::new(0));
        let pages = ReadPages::of(&counted);
        let read = |at: usize, len: usize| {
            let mut out = vec![0; len];
            pages.read(start + at as u64, &mut out).map(|()| out)
        };
        for (at, len, reads) in [
            (8, 8, 1),
            (0xff0, 0x10, 1),
            (0xff8, 0x10, 2),
            (0, 0x2000, 2),
            // More than is kept.
            (0, 0x2001, 3),
            (0, 0, 3),
        ] {
            assert_eq!(read(at, len).unwrap(), bytes[at..at + len]);
            assert_eq!(counted.1.get(), reads, "{at:#x}");
        }
        assert!(read(0x2ff8, 0x10).is_err());
        assert!(read(0x2ff8, 8).is_ok());
    }

    #[test]
    fn memory_that_ends_within_a_page_is_read_to_its_end() {
        let bytes = [7; 100];
        let start = 0x10_0000;
        let memory = ByteMemory {
            start,
            bytes: &bytes,
        };
        let pages = ReadPages::of(&memory);
        let mut out = [0; 10];
        assert!(pages.read(start + 90, &mut out).is_ok() && out == [7; 10]);
        assert!(pages.read(start + 91, &mut out).is_err());
    }
}
