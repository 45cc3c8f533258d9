//! The guest's memory: a few regions of a 32-bit address space, each bounded.

use std::{collections::HashMap, fmt, ops::Range};

use varid_model::Address;

/// How an instruction uses memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryAccess {
    /// It reads.
    Load,
    /// It writes.
    Store,
    /// It is fetched.
    Fetch,
}

/// An access that memory refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MemoryFault {
    /// No region has all bytes.
    #[error("{access:?} of {bytes} bytes at {address}: there is no memory")]
    Unmapped {
        /// The access.
        access: MemoryAccess,
        /// The first byte.
        address: Address,
        /// The number of bytes.
        bytes: u32,
    },
    /// A store to a segment that the program's file declares as read-only.
    #[error("Store of {bytes} bytes at {address}: the segment is read-only")]
    ReadOnly {
        /// The first byte.
        address: Address,
        /// The number of bytes.
        bytes: u32,
    },
}

/// A range of addresses with its bytes.
struct Region {
    start: u32,
    bytes: Vec<u8>,
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}+{:#x}", self.start, self.bytes.len())
    }
}

impl Region {
    fn offset(&self, address: u32, count: usize) -> Option<Range<usize>> {
        let start = address.wrapping_sub(self.start) as usize;
        let end = start.checked_add(count)?;
        (end <= self.bytes.len()).then_some(start..end)
    }
}

/// What a store has done beside writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// Nothing.
    Data,
    /// It has changed bytes, from this address on, that may have been decoded as code: see [`Memory::watch_code`].
    Code(u32),
}

/// The memory of a guest.
///
/// Addresses wrap at 2^32, as those of a 32-bit processor do. An access lies in one region as a whole.
#[derive(Debug, Default)]
pub struct Memory {
    regions: Vec<Region>,
    /// The parts of regions that must not be written.
    read_only: Vec<Range<u32>>,
    /// The half-words that were decoded: a bit for each one of a page, by the page's number.
    code: HashMap<u32, [u64; 32]>,
    /// A range that includes `read_only` and `code`: stores elsewhere need no further check.
    guarded: Range<u32>,
}

impl Memory {
    /// Adds a region of zeros. The caller bounds the size.
    ///
    /// None: it overlaps another one, or exceeds the address space.
    pub fn add_region(&mut self, start: u32, size: u32) -> Option<()> {
        let end = u64::from(start).checked_add(size.into())?;
        let is_free = self.regions.iter().all(|region| {
            let known_start = u64::from(region.start);
            let known_end = known_start.saturating_add(region.bytes.len() as u64);
            end <= known_start || known_end <= u64::from(start)
        });
        if end > 1 << 32 || !is_free {
            return None;
        }
        let bytes = vec![0; size as usize];
        self.regions.push(Region { start, bytes });
        Some(())
    }

    /// Makes a range read-only for stores of the guest.
    pub fn protect(&mut self, range: Range<u32>) {
        self.guard(&range);
        self.read_only.push(range);
    }

    /// Reports later stores to this range as [`Stored::Code`].
    pub fn watch_code(&mut self, range: &Range<u32>) {
        for address in range.clone().step_by(2) {
            let bits = self.code.entry(address >> 12).or_default();
            if let Some(word) = bits.get_mut(word_of(address)) {
                *word |= bit_of(address);
            }
        }
        self.guard(range);
    }

    fn is_code(&self, address: u32) -> bool {
        let bits = self.code.get(&(address >> 12));
        let word = bits.and_then(|bits| bits.get(word_of(address)));
        word.is_some_and(|word| word & bit_of(address) != 0)
    }

    fn guard(&mut self, range: &Range<u32>) {
        self.guarded = union(&self.guarded, range);
    }

    fn region(&self, address: u32, count: usize) -> Option<(&Region, Range<usize>)> {
        let mut regions = self.regions.iter();
        regions.find_map(|region| Some((region, region.offset(address, count)?)))
    }

    /// Returns bytes.
    ///
    /// # Errors
    ///
    /// They are not in one region.
    pub fn bytes(&self, address: u32, count: u32) -> Result<&[u8], MemoryFault> {
        let found = self.region(address, count as usize);
        let bytes = found.and_then(|(region, range)| region.bytes.get(range));
        bytes.ok_or_else(|| unmapped(MemoryAccess::Load, address, count))
    }

    /// Returns the bytes from an address to the end of its region, at most `most`. Empty: there is no memory.
    #[must_use]
    pub fn up_to(&self, address: u32, most: usize) -> &[u8] {
        let found = self.region(address, 1);
        let bytes = found.and_then(|(region, range)| region.bytes.get(range.start..));
        let bytes = bytes.unwrap_or_default();
        bytes.get(..most).unwrap_or(bytes)
    }

    /// Writes bytes, also to what is read-only for the guest.
    ///
    /// # Errors
    ///
    /// They are not in one region.
    pub fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), MemoryFault> {
        let mut regions = self.regions.iter_mut();
        let found = regions.find_map(|region| {
            let range = region.offset(address, bytes.len())?;
            region.bytes.get_mut(range)
        });
        let count = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let found = found.ok_or_else(|| unmapped(MemoryAccess::Store, address, count))?;
        found.copy_from_slice(bytes);
        Ok(())
    }

    /// Returns the region of an address: its start and its bytes, which stay where they are.
    pub fn region_mut(&mut self, address: u32) -> Option<(u32, &mut [u8])> {
        let mut regions = self.regions.iter_mut();
        let region = regions.find(|region| region.offset(address, 1).is_some())?;
        Some((region.start, &mut region.bytes))
    }

    /// A range of addresses outside of which stores need no further check than that there is memory.
    #[must_use]
    pub fn guarded(&self) -> Range<u32> {
        self.guarded.clone()
    }

    /// Loads a value of `N` bytes.
    ///
    /// # Errors
    ///
    /// The bytes are not in one region.
    #[inline]
    pub fn load<const N: usize>(&self, address: u32) -> Result<[u8; N], MemoryFault> {
        for region in &self.regions {
            let start = address.wrapping_sub(region.start) as usize;
            let found = region.bytes.get(start..start.wrapping_add(N));
            if let Some(found) = found.and_then(|found| found.first_chunk::<N>()) {
                return Ok(*found);
            }
        }
        Err(unmapped(MemoryAccess::Load, address, N as u32))
    }

    /// Stores a value of `N` bytes.
    ///
    /// # Errors
    ///
    /// The bytes are not in one region, or read-only.
    #[inline]
    pub fn store<const N: usize>(
        &mut self,
        address: u32,
        value: [u8; N],
    ) -> Result<Stored, MemoryFault> {
        let mut stored = Stored::Data;
        if address < self.guarded.end
            && u64::from(address).wrapping_add(N as u64) > self.guarded.start.into()
        {
            stored = self.check_store(address, N as u32)?;
        }
        for region in &mut self.regions {
            let start = address.wrapping_sub(region.start) as usize;
            let found = region.bytes.get_mut(start..start.wrapping_add(N));
            if let Some(found) = found.and_then(|found| found.first_chunk_mut::<N>()) {
                *found = value;
                return Ok(stored);
            }
        }
        Err(unmapped(MemoryAccess::Store, address, N as u32))
    }

    /// Checks a store of the guest.
    ///
    /// # Errors
    ///
    /// The bytes are read-only.
    pub fn check_store(&self, address: u32, count: u32) -> Result<Stored, MemoryFault> {
        let end = u64::from(address).saturating_add(count.into());
        let overlaps = |range: &Range<u32>| address < range.end && end > range.start.into();
        if self.read_only.iter().any(overlaps) {
            let address = Address::new(address.into());
            return Err(MemoryFault::ReadOnly {
                address,
                bytes: count,
            });
        }
        let mut bytes = (0..count).map(|offset| address.wrapping_add(offset));
        Ok(match bytes.any(|byte| self.is_code(byte)) {
            true => Stored::Code(address),
            false => Stored::Data,
        })
    }
}

/// The word of a page's bits in which that of an address is.
const fn word_of(address: u32) -> usize {
    (address as usize & 0xfff) >> 7
}

const fn bit_of(address: u32) -> u64 {
    1_u64.wrapping_shl(address >> 1)
}

/// Returns the smallest range that includes both. An empty one includes nothing.
fn union(one: &Range<u32>, other: &Range<u32>) -> Range<u32> {
    match (one.is_empty(), other.is_empty()) {
        (true, _) => other.clone(),
        (_, true) => one.clone(),
        _ => one.start.min(other.start)..one.end.max(other.end),
    }
}

fn unmapped(access: MemoryAccess, address: u32, bytes: u32) -> MemoryFault {
    let address = Address::new(address.into());
    MemoryFault::Unmapped {
        access,
        address,
        bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Memory {
        let mut memory = Memory::default();
        memory.add_region(0x1000, 0x1000).unwrap();
        memory.add_region(0xffff_f000, 0x1000).unwrap();
        memory
    }

    #[test]
    fn an_access_beyond_a_region_is_a_fault_with_its_address() {
        let memory = memory();
        assert_eq!(memory.load::<4>(0x1ffc), Ok([0; 4]));
        let error = memory.load::<4>(0x1ffd).unwrap_err().to_string();
        assert_eq!(error, "Load of 4 bytes at 0x1ffd: there is no memory");
        assert!(memory.load::<1>(0xfff).is_err());
    }

    #[test]
    fn the_last_byte_of_the_address_space_is_memory() {
        let mut memory = memory();
        assert_eq!(memory.store(0xffff_ffff, [7]), Ok(Stored::Data));
        assert_eq!(memory.load::<1>(0xffff_ffff), Ok([7]));
        assert!(memory.load::<2>(0xffff_ffff).is_err());
    }

    #[test]
    fn stores_to_code_are_reported_and_read_only_ones_refused() {
        let mut memory = memory();
        memory.watch_code(&(0x1100..0x1104));
        memory.protect(0x1800..0x1900);
        assert_eq!(memory.store(0x1103, [1, 2]), Ok(Stored::Code(0x1103)));
        assert_eq!(memory.store(0x1104, [1, 2]), Ok(Stored::Data));
        assert_eq!(memory.store(0x1900, [1]), Ok(Stored::Data));
        assert!(memory.store(0x18ff, [1, 2]).is_err());
    }

    #[test]
    fn regions_do_not_overlap() {
        let mut memory = memory();
        assert_eq!(memory.add_region(0x1fff, 1), None);
        assert_eq!(memory.add_region(0xffff_0000, 0xf001), None);
        assert_eq!(memory.add_region(0x2000, 1), Some(()));
    }
}
