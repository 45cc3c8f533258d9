//! Maps memory, anywhere or in a range of addresses.

use std::{
    fs::File,
    io,
    ops::Range,
    os::fd::AsRawFd,
    ptr::{self, NonNull},
};

/// Where memory is mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Where the system puts it.
    Anywhere,
    /// Between these addresses. Those in a tree are distances from the first one.
    Within(Range<u64>),
}

impl Place {
    /// Returns the address from which addresses in a tree that is mapped there are distances.
    pub(crate) const fn origin(&self) -> u64 {
        match self {
            Self::Anywhere => 0,
            Self::Within(range) => range.start,
        }
    }
}

/// The distance of the addresses that are tried.
const STEP: u64 = 64 << 20;
/// The first address that is tried: a VM with references of 32 bits has its heap below.
const FIRST: u64 = 4 << 30;

/// Maps a file, or memory that is zero, until the process ends.
///
/// # Errors
///
/// The place has no room for it, or the system refuses it.
pub(crate) fn map(place: &Place, length: usize, file: Option<&File>) -> io::Result<NonNull<u8>> {
    let range = match place {
        Place::Anywhere => return map_at(0, length, file),
        Place::Within(range) => range,
    };
    let mut address = range.start.max(FIRST).next_multiple_of(STEP);
    let mut last = io::Error::from(io::ErrorKind::OutOfMemory);
    while address
        .checked_add(length as u64)
        .is_some_and(|end| end <= range.end)
    {
        match map_at(address, length, file) {
            Err(error) => last = error,
            mapped => return mapped,
        }
        address = address.saturating_add(STEP);
    }
    Err(last)
}

/// Maps at an address, or anywhere if it is 0.
fn map_at(address: u64, length: usize, file: Option<&File>) -> io::Result<NonNull<u8>> {
    let out_of_memory = || io::Error::from(io::ErrorKind::OutOfMemory);
    let address = usize::try_from(address).map_err(|_| out_of_memory())?;
    let mut flags = libc::MAP_NORESERVE;
    if address != 0 {
        flags |= libc::MAP_FIXED_NOREPLACE;
    }
    flags |= match file {
        Some(_) => libc::MAP_SHARED,
        None => libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    };
    // SAFETY: the mapping is new and replaces no other one.
    let mapped = unsafe {
        libc::mmap(
            ptr::without_provenance_mut(address),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            file.map_or(-1, AsRawFd::as_raw_fd),
            0,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    if address != 0 && mapped.addr() != address {
        // Kernels before 4.17 take the address as a hint.
        // SAFETY: nothing uses the new mapping.
        unsafe { libc::munmap(mapped, length) };
        return Err(out_of_memory());
    }
    NonNull::new(mapped.cast()).ok_or_else(out_of_memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_mapped_within_a_range_until_that_is_full() {
        let range = 16 * FIRST..16 * FIRST + 2 * STEP;
        let place = Place::Within(range.clone());
        for _ in 0..2 {
            let mapped = map(&place, 4096, None).unwrap().as_ptr().addr() as u64;
            assert!(range.contains(&mapped));
        }
        assert!(map(&place, 4096, None).is_err());
    }
}
