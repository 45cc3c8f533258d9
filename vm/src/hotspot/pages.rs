//! Which memory has been read already? A read of a process costs more than the bytes, and the VM's structures lie beside each other.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use varid_tunnel::{Memory, TunnelError};

/// The unit in which memory is kept. No machine has smaller pages.
pub(super) const PAGE: u64 = 1 << 12;

/// Memory of which each page is read once.
pub(super) struct Pages<'m> {
    memory: &'m dyn Memory,
    /// Bytes that are read at once: a multiple of [`PAGE`].
    chunk: u64,
    /// The most bytes that are read.
    most: u64,
    pages: RefCell<HashMap<u64, Rc<[u8]>>>,
    read: Cell<u64>,
}

/// Why there is no such page.
#[derive(Debug)]
pub(super) enum PageError {
    /// It cannot be read.
    Memory(TunnelError),
    /// So many bytes were read already, or would be.
    TooMuch {
        /// The most bytes.
        most: u64,
    },
}

impl<'m> Pages<'m> {
    /// Memory of which nothing has been read yet.
    pub(super) fn new(memory: &'m dyn Memory, chunk: u64, most: u64) -> Self {
        Self {
            memory,
            chunk,
            most,
            pages: RefCell::default(),
            read: Cell::new(0),
        }
    }

    /// Forgets what has been read, but not how much that was.
    pub(super) fn forget(&self) {
        self.pages.borrow_mut().clear();
    }

    /// Fills `out` with the bytes at an address.
    pub(super) fn read(&self, address: u64, out: &mut [u8]) -> Result<(), PageError> {
        let mut at = address;
        let mut rest = out;
        while !rest.is_empty() {
            let start = at & !PAGE.wrapping_sub(1);
            let page = self.page(start)?;
            let within = usize::try_from(at.wrapping_sub(start)).unwrap_or(usize::MAX);
            let from = page.get(within..).unwrap_or_default();
            let len = from.len().min(rest.len());
            let (to, behind) = rest.split_at_mut_checked(len).unwrap_or_default();
            to.copy_from_slice(from.get(..len).unwrap_or_default());
            rest = behind;
            at = at.wrapping_add(len as u64);
        }
        Ok(())
    }

    /// Returns the page that starts at an address.
    pub(super) fn page(&self, start: u64) -> Result<Rc<[u8]>, PageError> {
        if let Some(known) = self.pages.borrow().get(&start) {
            return Ok(known.clone());
        }
        let first = start & !self.chunk.wrapping_sub(1);
        // Some pages around may be missing.
        if self.chunk > PAGE
            && let Ok(chunk) = self.bytes(first, self.chunk)
        {
            let starts = (first..).step_by(PAGE as usize);
            let pages = starts.zip(chunk.chunks(PAGE as usize).map(Rc::from));
            self.pages.borrow_mut().extend(pages);
        } else {
            let page = Rc::from(self.bytes(start, PAGE)?);
            self.pages.borrow_mut().insert(start, page);
        }
        let pages = self.pages.borrow();
        Ok(pages.get(&start).cloned().unwrap_or_default())
    }

    fn bytes(&self, address: u64, len: u64) -> Result<Vec<u8>, PageError> {
        let read = self.read.get().saturating_add(len);
        if read > self.most {
            return Err(PageError::TooMuch { most: self.most });
        }
        let mut bytes = vec![0; len as usize];
        let outcome = self.memory.read(address, &mut bytes);
        outcome.map_err(PageError::Memory)?;
        self.read.set(read);
        Ok(bytes)
    }
}
