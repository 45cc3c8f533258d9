//! A cache: which lines it holds, and which accesses miss.

use std::mem::offset_of;

use varid_model::Address;

/// The size of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// The bytes of all lines: lines × ways × sets. Each of the three is a power of two but for the ways.
    pub size: u32,
    /// The lines in which an address may be.
    pub ways: u32,
    /// The bytes of a line.
    pub line: u32,
}

impl Geometry {
    /// The number of sets.
    #[must_use]
    pub const fn sets(self) -> u32 {
        match self.size.checked_div(self.line.saturating_mul(self.ways)) {
            Some(sets) => sets,
            None => 0,
        }
    }
}

impl Geometry {
    /// The number of an address's line.
    #[must_use]
    pub const fn line_of(self, address: Address) -> u64 {
        address.get().wrapping_shr(self.line.trailing_zeros())
    }
}

/// Which line of a set is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replacement {
    /// The one that was not used for the longest time.
    Lru,
    /// The one that was filled first.
    Fifo,
}

/// What a store does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writes {
    /// It writes memory, and the line if it is there. A miss fills nothing.
    Through,
    /// It writes the line, which a miss fills. A line that was written is written back when it is replaced.
    Back,
}

/// Whether an access found its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It is in the cache.
    Hit,
    /// It was filled.
    Miss,
    /// It was filled, and the line before it was written back.
    MissAndWriteBack,
}

impl Access {
    /// Returns true unless it was a hit.
    #[must_use]
    pub const fn is_miss(self) -> bool {
        !matches!(self, Self::Hit)
    }
}

/// What a line holds. Translated code reads it, so the layout is that of C.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
struct Line {
    /// The address divided by the size of a line, plus one; 0 if it is empty.
    tag: u64,
    /// Memory does not have its contents yet.
    is_dirty: bool,
}

/// Where code that is made while varid runs finds the lines of a cache, which stay where they are. An access of the first line of a set changes
/// nothing, but that a line may become dirty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheLayout {
    /// The address of the first line in varid's memory. A line begins with a tag of 64 bits: the line's number, plus one.
    pub lines: u64,
    /// The bytes from one set to the next.
    pub set_bytes: u32,
    /// The number of sets, less one.
    pub set_mask: u32,
    /// The bits of an address within a line.
    pub line_bits: u32,
    /// Where in a line a byte is that is 1 if it is dirty.
    pub dirty: u32,
}

/// The state of a cache. All lines are empty in the beginning.
#[derive(Debug, Clone)]
pub struct Cache {
    /// By sets. In a set, the line that is replaced next is the last one.
    lines: Vec<Line>,
    ways: usize,
    line_bits: u32,
    set_mask: u64,
    replacement: Replacement,
}

impl Cache {
    /// Makes an empty cache.
    #[must_use]
    pub fn new(geometry: Geometry, replacement: Replacement) -> Self {
        let ways = geometry.ways.max(1) as usize;
        let sets = geometry.sets().max(1);
        Self {
            lines: vec![Line::default(); ways.saturating_mul(sets as usize)],
            ways,
            line_bits: geometry.line.trailing_zeros(),
            set_mask: u64::from(sets.saturating_sub(1)),
            replacement,
        }
    }

    /// Where its lines are.
    #[must_use]
    pub fn layout(&self) -> CacheLayout {
        let set_bytes = size_of::<Line>().saturating_mul(self.ways);
        CacheLayout {
            lines: self.lines.as_ptr() as u64,
            set_bytes: set_bytes as u32,
            set_mask: self.set_mask as u32,
            line_bits: self.line_bits,
            dirty: offset_of!(Line, is_dirty) as u32,
        }
    }

    /// The number of an address's line.
    #[must_use]
    pub const fn line_of(&self, address: Address) -> u64 {
        address.get().wrapping_shr(self.line_bits)
    }

    fn set(&mut self, address: Address) -> (&mut [Line], u64) {
        let line = self.line_of(address);
        let first = ((line & self.set_mask) as usize).saturating_mul(self.ways);
        let end = first.saturating_add(self.ways);
        let set = self.lines.get_mut(first..end).unwrap_or_default();
        (set, line.saturating_add(1))
    }

    /// Reads an address. A miss fills its line.
    pub fn read(&mut self, address: Address) -> Access {
        self.fill(address, false)
    }

    /// Writes to an address.
    pub fn write(&mut self, address: Address, writes: Writes) -> Access {
        match writes {
            Writes::Back => self.fill(address, true),
            Writes::Through => match self.touch(address) {
                true => Access::Hit,
                false => Access::Miss,
            },
        }
    }

    /// Makes an address's line the most recently used one. Returns false if it is not there.
    fn touch(&mut self, address: Address) -> bool {
        let is_lru = self.replacement == Replacement::Lru;
        let (set, tag) = self.set(address);
        let Some(way) = set.iter().position(|line| line.tag == tag) else {
            return false;
        };
        if is_lru && let Some(used) = set.get_mut(..=way) {
            used.rotate_right(1);
        }
        true
    }

    fn fill(&mut self, address: Address, is_written: bool) -> Access {
        let is_lru = self.replacement == Replacement::Lru;
        let (set, tag) = self.set(address);
        if let Some(way) = set.iter().position(|line| line.tag == tag) {
            if let Some(line) = set.get_mut(way) {
                line.is_dirty |= is_written;
            }
            if is_lru && let Some(used) = set.get_mut(..=way) {
                used.rotate_right(1);
            }
            return Access::Hit;
        }
        set.rotate_right(1);
        let Some(line) = set.first_mut() else {
            return Access::Miss;
        };
        let was_dirty = line.is_dirty;
        *line = Line {
            tag,
            is_dirty: is_written,
        };
        match was_dirty {
            true => Access::MissAndWriteBack,
            false => Access::Miss,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(ways: u32, replacement: Replacement) -> Cache {
        let geometry = Geometry {
            size: 64 * ways,
            ways,
            line: 32,
        };
        Cache::new(geometry, replacement)
    }

    fn misses(cache: &mut Cache, addresses: &[u64]) -> usize {
        let addresses = addresses.iter();
        let missed = addresses.filter(|at| cache.read(Address::new(**at)).is_miss());
        missed.count()
    }

    #[test]
    fn the_least_recently_used_line_is_replaced() {
        // Two sets: addresses 64 apart are in the same one.
        let addresses = [0, 64, 0, 128, 0, 64];
        assert_eq!(misses(&mut cache(2, Replacement::Lru), &addresses), 4);
        assert_eq!(misses(&mut cache(2, Replacement::Fifo), &addresses), 5);
        assert_eq!(misses(&mut cache(1, Replacement::Lru), &addresses), 6);
        assert_eq!(misses(&mut cache(1, Replacement::Lru), &[0, 31, 32, 4]), 2);
    }

    #[test]
    fn stores_fill_lines_only_if_they_are_written_back() {
        let mut through = cache(1, Replacement::Lru);
        let at = Address::new(4);
        assert_eq!(through.write(at, Writes::Through), Access::Miss);
        assert_eq!(through.read(at), Access::Miss);
        assert_eq!(through.write(at, Writes::Through), Access::Hit);
        let mut back = cache(1, Replacement::Lru);
        assert_eq!(back.write(at, Writes::Back), Access::Miss);
        assert_eq!(back.read(at), Access::Hit);
        assert_eq!(back.read(Address::new(68)), Access::MissAndWriteBack);
        assert_eq!(back.read(at), Access::Miss);
    }
}
