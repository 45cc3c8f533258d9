//! Limits on the memory, the open files and the time that profiled processes may cost.
//!
//! A process decides how many files it maps and how large they are. So each process has limits below those for all processes.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The most bytes of bytecode files and compiled code of all processes.
const MAX: u64 = 1 << 30;
/// The most bytes of those of one process.
const MAX_PER_PROCESS: u64 = 1 << 28;

/// The bytes that those of all processes take.
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// The memory of such a file, counted until this is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    of: &'static AtomicU64,
    bytes: u64,
}

impl Claim {
    /// Claims memory for a file of a process whose other files take `taken` bytes. The error says why it is refused.
    pub(crate) fn new(bytes: u64, taken: u64) -> Result<Self, String> {
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

/// The most open files for the mappings of all processes, if RLIMIT_NOFILE allows it.
const MAX_FILES: u64 = 1 << 16;
/// The most open files for the mappings of one process.
const MAX_FILES_PER_PROCESS: u64 = 1 << 11;

/// Open files for the mappings of all processes.
static OPEN: AtomicU64 = AtomicU64::new(0);

/// Returns the most open files for mappings: half of RLIMIT_NOFILE. The rest is for events, sessions and clients.
fn max_files() -> u64 {
    static MAX: OnceLock<u64> = OnceLock::new();
    *MAX.get_or_init(|| {
        let (limit, _) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((1 << 10, 0));
        #[allow(clippy::useless_conversion)] // Half as wide on ARMv7.
        MAX_FILES.min(u64::from(limit) / 2)
    })
}

/// Raises the limit of open files to the hard limit: an event takes a file for each processor or thread.
pub fn raise_limit_of_files() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // If that fails, the limit stays as it is.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// An open file, counted until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenFile {
    of_process: Rc<Cell<u64>>,
}

impl OpenFile {
    /// Counts an open file of a process that has `of_process` of them. None if a limit is reached.
    fn new(of_process: &Rc<Cell<u64>>) -> Option<Self> {
        let most = max_files();
        if of_process.get() >= MAX_FILES_PER_PROCESS.min(most / 2) {
            return None;
        }
        let next = |open: u64| open.checked_add(1).filter(|open| *open <= most);
        OPEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
            .ok()?;
        of_process.set(of_process.get().saturating_add(1));
        Some(Self {
            of_process: of_process.clone(),
        })
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
        self.of_process.set(self.of_process.get().saturating_sub(1));
    }
}

/// The most mapped files of a process that may be opened at once.
const LOOKS: u32 = 1 << 12;
/// Mapped files that may be opened per second beyond that.
const LOOKS_PER_SECOND: u32 = 1 << 10;

/// How often the memory map of a process may be read because of a mapping, as for each part of its text that a process copies.
const MAPS: u32 = 1 << 8;

/// The budget for opening mapped files of one process.
#[derive(Debug, Default)]
pub(crate) struct LookBudget {
    code: Looks,
    data: Looks,
    open: Rc<Cell<u64>>,
    /// How often its memory map was read because of a mapping.
    maps: Cell<u32>,
    /// Mappings that were not added, or whose files were not opened.
    pub left_out: Cell<u64>,
}

impl LookBudget {
    /// Returns true if one more mapped file may be opened. Code and data have separate budgets.
    pub(crate) fn look(&self, executable: bool) -> bool {
        let looks = if executable { &self.code } else { &self.data };
        looks.take(Instant::now()) || self.leave_out()
    }

    /// Returns true if the memory map may be read once more because of a mapping.
    pub(crate) fn read_maps(&self) -> bool {
        let read = self.maps.get();
        self.maps.set(read.saturating_add(1));
        read < MAPS || self.leave_out()
    }

    /// Counts an open file. None if a limit is reached.
    pub(crate) fn reserve_open_file(&self) -> Option<OpenFile> {
        OpenFile::new(&self.open)
    }

    /// Counts a mapping that is left out. Returns false.
    pub(crate) fn leave_out(&self) -> bool {
        self.left_out.set(self.left_out.get().saturating_add(1));
        false
    }
}

/// A token bucket: the number of files that may be opened now, and when it was updated.
#[derive(Debug)]
struct Looks(Cell<(u32, Option<Instant>)>);

impl Default for Looks {
    fn default() -> Self {
        Self(Cell::new((LOOKS, None)))
    }
}

impl Looks {
    fn take(&self, now: Instant) -> bool {
        let (mut left, mut at) = self.0.get();
        let since = now.saturating_duration_since(at.unwrap_or(now));
        let more = since
            .as_millis()
            .saturating_mul(u128::from(LOOKS_PER_SECOND))
            / 1000;
        if more > 0 || at.is_none() {
            left = left
                .saturating_add(u32::try_from(more).unwrap_or(LOOKS))
                .min(LOOKS);
            at = Some(now);
        }
        self.0.set((left.saturating_sub(1), at));
        left > 0
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
    fn dropping_a_claim_frees_its_budget() {
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

    #[test]
    fn no_process_keeps_more_files_open_than_its_part() {
        let of_process = Rc::default();
        let most = MAX_FILES_PER_PROCESS.min(max_files() / 2);
        let mut open: Vec<_> = (0..most)
            .map(|_| OpenFile::new(&of_process).unwrap())
            .collect();
        assert!(OpenFile::new(&of_process).is_none());
        assert!(OpenFile::new(&Rc::default()).is_some(), "another's part");
        open.pop();
        assert!(OpenFile::new(&of_process).is_some());
    }

    #[test]
    fn looks_come_back_with_time() {
        let looks = Looks::default();
        let now = Instant::now();
        let taken = |at| (0..10 * LOOKS).take_while(|_| looks.take(at)).count() as u32;
        assert_eq!(taken(now), LOOKS);
        let second = std::time::Duration::from_secs(1);
        assert_eq!(taken(now + second), LOOKS_PER_SECOND);
        assert_eq!(taken(now + 100 * second), LOOKS);
    }

    #[test]
    fn data_costs_code_no_look() {
        let budget = LookBudget::default();
        let data = (0..2 * LOOKS).filter(|_| budget.look(false)).count();
        assert!(data < 2 * LOOKS as usize && budget.left_out.get() > 0);
        assert!(budget.look(true));
    }
}
