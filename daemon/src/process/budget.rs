//! How much memory do the dex files of the profiled processes take?
//!
//! Their sizes are what the processes say; none of them may take the profiler's memory, or what others need.

use std::sync::atomic::{AtomicU64, Ordering};

/// Most bytes for all processes' dex files.
const MAX: u64 = 1 << 30;
/// Most bytes for those of one process.
const MAX_PER_PROCESS: u64 = 1 << 28;

/// Bytes of all dex files that are kept.
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// Memory that a dex file may take until this is dropped.
#[derive(Debug)]
pub struct Claim {
    of: &'static AtomicU64,
    bytes: u64,
}

impl Claim {
    /// Memory for a dex file of a process whose other ones take `taken` bytes; or why there is none.
    pub fn new(bytes: u64, taken: u64) -> Result<Self, String> {
        if taken.saturating_add(bytes) > MAX_PER_PROCESS {
            return Err(format!(
                "with its {bytes} bytes the process's dex files would take more than {MAX_PER_PROCESS}"
            ));
        }
        Self::of(&TAKEN, MAX, bytes)
    }

    fn of(of: &'static AtomicU64, max: u64, bytes: u64) -> Result<Self, String> {
        let sum = |taken: u64| taken.checked_add(bytes).filter(|sum| *sum <= max);
        of.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum)
            .map(|_| Self { of, bytes })
            .map_err(|taken| {
                format!("its {bytes} bytes are more than the {max} for all processes' dex files leave after {taken}")
            })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.of.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_process_takes_more_than_its_part() {
        assert!(Claim::new(MAX_PER_PROCESS + 1, 0).is_err());
        assert!(Claim::new(2, MAX_PER_PROCESS - 1).is_err());
        assert!(Claim::new(1, u64::MAX).is_err());
        assert!(Claim::new(2, MAX_PER_PROCESS - 2).is_ok());
    }

    #[test]
    fn what_is_dropped_can_be_claimed_again() {
        static TAKEN: AtomicU64 = AtomicU64::new(0);
        let claim = |bytes| Claim::of(&TAKEN, 100, bytes);
        let first = claim(60).unwrap();
        assert!(claim(41).is_err() && claim(u64::MAX).is_err());
        let second = claim(40).unwrap();
        drop(first);
        assert!(claim(60).is_ok());
        drop(second);
        assert_eq!(TAKEN.load(Ordering::Relaxed), 0);
    }
}
