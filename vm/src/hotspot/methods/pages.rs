//! Which memory has been read already? A read of a process costs more than the bytes, and a method's structures lie beside those of others.

use crate::hotspot::pages::{PAGE, Pages};
use varid_tunnel::{Memory, TunnelError};

/// Reads of more bytes are not kept.
const MAX_KEPT: usize = 1 << 13;
/// The most bytes that are kept.
const MAX_BYTES: u64 = PAGE << 10;

/// Memory of which each page is read once. It is used for as long as what was read may be old: while a compiled method is read.
pub(super) struct ReadPages<'m> {
    memory: &'m dyn Memory,
    pages: Pages<'m>,
}

impl<'m> ReadPages<'m> {
    /// Memory of which nothing has been read.
    pub(super) fn of(memory: &'m dyn Memory) -> Self {
        let pages = Pages::new(memory, PAGE, MAX_BYTES);
        Self { memory, pages }
    }
}

impl Memory for ReadPages<'_> {
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), TunnelError> {
        if out.len() <= MAX_KEPT && self.pages.read(address, out).is_ok() {
            return Ok(());
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
