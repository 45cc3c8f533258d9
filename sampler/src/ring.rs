//! A perf ring buffer: mapped, drained record by record.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use varid_model::perf::{DATA_HEAD, DATA_TAIL, RECORD_HEADER};

/// A record's size is less than that of its header, or exceeds the data in the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImpossibleSize;

/// A perf ring buffer mapping: the kernel writes it, varid reads it.
#[derive(Debug)]
pub struct Ring {
    base: NonNull<u8>,
    page: usize,
    data_len: usize,
    record: Vec<u8>,
}

// SAFETY: this value is the only owner of the mapping, which moves with it; the kernel's side is accessed through atomics.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring of an event, with `pages` (a power of two) pages of data.
    pub fn map(event: BorrowedFd<'_>, pages: usize) -> io::Result<Self> {
        Self::map_nth(event, pages, 0)
    }

    /// Maps one of several consecutive rings behind a descriptor.
    pub fn map_nth(event: BorrowedFd<'_>, pages: usize, nth: usize) -> io::Result<Self> {
        let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE)?
            .map_or(4096, |page| page as usize);
        let data_len = page.saturating_mul(pages);
        let len = page.saturating_add(data_len);
        let offset = libc::off_t::try_from(len.saturating_mul(nth)).map_err(io::Error::other)?;
        // SAFETY: a new mapping at an address of the kernel's choice does not touch existing memory.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                // Without MAP_POPULATE, the first record in each page would cost a page fault.
                libc::MAP_SHARED | libc::MAP_POPULATE,
                event.as_raw_fd(),
                offset,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base =
            NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mmap gave a null ring"))?;
        Ok(Self {
            base,
            page,
            data_len,
            record: Vec::new(),
        })
    }

    /// The size of the ring's data area, in bytes.
    pub fn capacity(&self) -> usize {
        self.data_len
    }

    /// Passes every complete record to `each`, then releases its space to the kernel.
    ///
    /// # Errors
    ///
    /// A record has an impossible size. It and the data after it are discarded.
    pub fn drain(&mut self, mut each: impl FnMut(&[u8])) -> Result<(), ImpossibleSize> {
        let mut drained = Ok(());
        let head = self.head().load(Ordering::Acquire);
        let mut tail = self.tail().load(Ordering::Relaxed);
        while tail < head {
            let mut header = [0; RECORD_HEADER];
            self.copy(tail, &mut header);
            let [.., low, high] = header;
            let size = usize::from(u16::from_le_bytes([low, high]));
            if size < header.len() || size as u64 > head.wrapping_sub(tail) {
                // The kernel writes whole records; nothing after this one can be trusted.
                drained = Err(ImpossibleSize);
                tail = head;
                break;
            }
            match self.in_one_piece(tail, size) {
                Some(record) => each(record),
                None => {
                    let mut record = std::mem::take(&mut self.record);
                    record.resize(size, 0);
                    self.copy(tail, &mut record);
                    each(&record);
                    self.record = record;
                }
            }
            tail = tail.wrapping_add(size as u64);
        }
        self.tail().store(tail, Ordering::Release);
        drained
    }

    /// Returns the offset in the data area of a position in the stream.
    fn place(&self, position: u64) -> usize {
        position.checked_rem(self.data_len as u64).unwrap_or(0) as usize
    }

    /// Returns a record that does not wrap around.
    fn in_one_piece(&self, position: u64, size: usize) -> Option<&[u8]> {
        let start = self.place(position);
        if start.checked_add(size)? > self.data_len {
            return None;
        }
        // SAFETY: the slice is within the `data_len` bytes of the data area at `base + page`. The kernel does not write between
        // tail and head, and nothing else uses the mapping.
        Some(unsafe {
            std::slice::from_raw_parts(self.base.as_ptr().add(self.page).add(start), size)
        })
    }

    /// Copies data from a position in the stream, including data that wraps around.
    fn copy(&self, position: u64, to: &mut [u8]) {
        let start = self.place(position);
        let first = to.len().min(self.data_len.saturating_sub(start));
        // SAFETY: the data area is `data_len` bytes from `base + page`; `start < data_len`, `first <= data_len - start`, and `to`
        // is at most a record, which is smaller than the ring. The kernel does not write between tail and head.
        unsafe {
            let data = self.base.as_ptr().add(self.page);
            std::ptr::copy_nonoverlapping(data.add(start), to.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(
                data,
                to.as_mut_ptr().add(first),
                to.len().saturating_sub(first),
            );
        }
    }

    fn head(&self) -> &AtomicU64 {
        self.control(DATA_HEAD)
    }

    fn tail(&self) -> &AtomicU64 {
        self.control(DATA_TAIL)
    }

    fn control(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the control page is mapped as long as `self`, and both fields are aligned
        // 64-bit words that the kernel accesses atomically.
        unsafe { &*self.base.as_ptr().add(offset).cast() }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this length and nothing borrows from it.
        unsafe {
            libc::munmap(
                self.base.as_ptr().cast(),
                self.page.saturating_add(self.data_len),
            )
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    const PAGE: u64 = 4096;

    /// Makes a file with the layout of a perf ring and these records, each given by its size field and its actual length.
    fn ring(records: &[(u16, usize)]) -> (File, Ring) {
        let file = tempfile::tempfile().unwrap();
        file.set_len(2 * PAGE).unwrap();
        let mut head = 0u64;
        for (size, len) in records {
            let mut record = vec![0; *len];
            record[6..8].copy_from_slice(&size.to_le_bytes());
            file.write_all_at(&record, PAGE + head).unwrap();
            head += *len as u64;
        }
        file.write_all_at(&head.to_le_bytes(), DATA_HEAD as u64)
            .unwrap();
        let ring = Ring::map(file.as_fd(), 1).unwrap();
        (file, ring)
    }

    #[test]
    fn a_record_of_impossible_size_is_an_error_and_empties_the_ring() {
        for impossible in [0, 7, 4096] {
            let (_file, mut ring) = ring(&[(16, 16), (impossible, 16), (16, 16)]);
            let mut sizes = Vec::new();
            let drained = ring.drain(|record| sizes.push(record.len()));
            assert_eq!((drained, sizes), (Err(ImpossibleSize), vec![16]));
            assert_eq!(ring.drain(|_| panic!("it is empty")), Ok(()));
        }
        let (_file, mut ring) = ring(&[(16, 16), (24, 24)]);
        let mut sizes = Vec::new();
        assert_eq!(ring.drain(|record| sizes.push(record.len())), Ok(()));
        assert_eq!(sizes, [16, 24]);
    }
}
