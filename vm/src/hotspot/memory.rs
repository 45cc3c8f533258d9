//! Reads the VM's structures in bulk: a description takes thousands of small values, most of them beside each other.

use super::error::{JvmError, Result};
use super::member::{Member, Width};
use super::pages::{PAGE, PageError, Pages};
use std::rc::Rc;
use varid_model::Address;
use varid_tunnel::Memory;

/// Bytes that are read at once. A multiple of [`PAGE`].
const CHUNK: u64 = 1 << 16;
/// The most bytes that are read. A JVM's description takes one megabyte.
const MAX_BYTES: u64 = 1 << 24;

/// Memory of a process that is read in chunks, each once: later changes are not seen.
pub(super) struct PagedMemory<'m> {
    pages: Pages<'m>,
}

impl<'m> PagedMemory<'m> {
    /// Memory of which nothing has been read yet.
    pub(super) fn new(memory: &'m dyn Memory) -> Self {
        let pages = Pages::new(memory, CHUNK, MAX_BYTES);
        Self { pages }
    }

    /// Forgets what has been read, but not how much that was.
    pub(super) fn forget(&self) {
        self.pages.forget();
    }

    /// Fills `out` with the bytes at an address. `what`: what an error is about.
    pub(super) fn read(&self, what: &'static str, address: Address, out: &mut [u8]) -> Result<()> {
        let read = self.pages.read(address.get(), out);
        read.map_err(|error| about(what, error))
    }

    /// Returns the page that starts at an address.
    fn page(&self, what: &'static str, start: u64) -> Result<Rc<[u8]>> {
        self.pages.page(start).map_err(|error| about(what, error))
    }

    /// Reads an unsigned number.
    pub(super) fn number(&self, what: &'static str, address: Address, width: Width) -> Result<u64> {
        let mut bytes = [0; 8];
        let len = width.bytes() as usize;
        self.read(what, address, bytes.get_mut(..len).unwrap_or_default())?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Reads a pointer.
    pub(super) fn pointer(&self, what: &'static str, address: Address) -> Result<Address> {
        self.number(what, address, Width::Eight).map(Address::new)
    }

    /// Reads the member of a structure at an address, an unsigned number.
    pub(super) fn member(&self, what: &'static str, of: Address, member: Member) -> Result<u64> {
        self.number(what, member.offset.from(of), member.width)
    }

    /// Reads the member of a structure at an address, a pointer.
    pub(super) fn pointer_in(
        &self,
        what: &'static str,
        of: Address,
        member: Member,
    ) -> Result<Address> {
        self.member(what, of, member).map(Address::new)
    }

    /// Reads a string of C of at most `most` bytes. Bytes that are not UTF-8 are replaced.
    pub(super) fn string(
        &self,
        what: &'static str,
        address: Address,
        most: usize,
    ) -> Result<String> {
        let mut found = Vec::new();
        while found.len() <= most {
            let at = address.wrapping_add(found.len() as u64).get();
            let start = at & !PAGE.wrapping_sub(1);
            let page = self.page(what, start)?;
            let within = usize::try_from(at.wrapping_sub(start)).unwrap_or(usize::MAX);
            let from = page.get(within..).unwrap_or_default();
            if let Some(end) = from.iter().position(|byte| *byte == 0) {
                found.extend_from_slice(from.get(..end).unwrap_or_default());
                if found.len() > most {
                    break;
                }
                return Ok(String::from_utf8_lossy(&found).into_owned());
            }
            found.extend_from_slice(from);
        }
        Err(JvmError::EndlessString {
            what,
            address,
            most,
        })
    }
}

fn about(what: &'static str, error: PageError) -> JvmError {
    match error {
        PageError::Memory(error) => JvmError::Memory { what, error },
        PageError::TooMuch { most } => JvmError::TooMuch { what, most },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use varid_tunnel::{ByteMemory, TunnelError};

    const WHAT: &str = "the test's bytes";

    /// Counts reads.
    struct Counted<'a>(ByteMemory<'a>, Cell<usize>);

    impl Memory for Counted<'_> {
        fn read(&self, address: u64, out: &mut [u8]) -> std::result::Result<(), TunnelError> {
            self.1.set(self.1.get() + 1);
            self.0.read(address, out)
        }
    }

    fn memory(bytes: &[u8]) -> Counted<'_> {
        let start = 0x10_0000;
        Counted(ByteMemory { start, bytes }, Cell::new(0))
    }

    #[test]
    fn adjacent_values_take_one_read() {
        let bytes: Vec<u8> = (0..2 * CHUNK).map(|at| (at >> 8) as u8).collect();
        let counted = memory(&bytes);
        let paged = PagedMemory::new(&counted);
        for at in 0..CHUNK / 8 {
            let address = Address::new(0x10_0000 + at * 8);
            let number = paged.number(WHAT, address, Width::Two).unwrap();
            let from = usize::try_from(at * 8).unwrap();
            let two = [bytes[from], bytes[from + 1]];
            assert_eq!(number, u64::from(u16::from_le_bytes(two)));
        }
        assert_eq!(counted.1.get(), 1);
        // A value across the end of what was read.
        let across = Address::new(0x10_0000 + CHUNK - 4);
        let number = paged.number(WHAT, across, Width::Eight).unwrap();
        assert_eq!(number, 0x0000_0000_ffff_ffff);
        assert_eq!(counted.1.get(), 2);
    }

    #[test]
    fn a_page_is_read_where_those_around_it_are_missing() {
        let bytes = vec![7; PAGE as usize];
        let counted = memory(&bytes);
        let paged = PagedMemory::new(&counted);
        let last = Address::new(0x10_0000 + PAGE - 1);
        assert_eq!(paged.number(WHAT, last, Width::One), Ok(7));
        assert_eq!(counted.1.get(), 2);
        let beyond = paged.number(WHAT, last, Width::Two);
        assert!(matches!(beyond, Err(JvmError::Memory { what: WHAT, .. })));
    }

    #[test]
    fn no_more_is_read_than_a_description_takes() {
        struct Zeros;
        impl Memory for Zeros {
            fn read(&self, _: u64, out: &mut [u8]) -> std::result::Result<(), TunnelError> {
                out.fill(0);
                Ok(())
            }
        }
        let paged = PagedMemory::new(&Zeros);
        let reads = (0..=MAX_BYTES / CHUNK)
            .map(|chunk| paged.number(WHAT, Address::new(chunk * CHUNK), Width::Eight));
        let reads: Vec<_> = reads.collect();
        let (last, before) = reads.split_last().unwrap();
        assert!(before.iter().all(Result::is_ok));
        assert!(matches!(last, Err(JvmError::TooMuch { .. })), "{last:?}");
    }

    #[test]
    fn a_string_ends_within_its_limit() {
        let mut bytes = vec![b'x'; 2 * PAGE as usize];
        bytes[PAGE as usize + 10] = 0;
        let counted = memory(&bytes);
        let paged = PagedMemory::new(&counted);
        let string = |at: u64, most| paged.string(WHAT, Address::new(0x10_0000 + at), most);
        // Across pages.
        assert_eq!(string(PAGE - 2, 12), Ok("x".repeat(12)));
        for (at, most) in [(PAGE - 2, 11), (0, 100), (PAGE + 11, 100)] {
            let found = string(at, most);
            assert!(
                matches!(found, Err(JvmError::EndlessString { .. })),
                "{found:?}"
            );
        }
        assert_eq!(string(PAGE + 10, 0), Ok(String::new()));
        let outside = string(2 * PAGE - 5, 100);
        assert!(
            matches!(outside, Err(JvmError::Memory { .. })),
            "{outside:?}"
        );
    }
}
