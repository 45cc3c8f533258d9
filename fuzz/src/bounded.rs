//! How much may a parser allocate for its input? A multiple of it, and not a byte that the input merely claims.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What any parser may hold beside the multiple: its first tables.
const CONSTANT: usize = 1 << 20;

/// The system's allocator, that counts. One thread allocates at a time in a fuzz target.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Counts before anything is touched: what is too much is never zeroed or copied.
fn take(bytes: usize) {
    let held = HELD.fetch_add(bytes, Relaxed).wrapping_add(bytes);
    let limit = LIMIT.load(Relaxed);
    // What a panic takes to say where it is from does not count.
    if held > limit && held < usize::MAX / 2 && !std::thread::panicking() {
        // The message allocates, too.
        LIMIT.store(usize::MAX, Relaxed);
        eprintln!(
            "an allocation of {bytes} bytes makes it {held} bytes held, {limit} are allowed for this input"
        );
        std::process::abort();
    }
}

fn give_back(bytes: usize) {
    // What was allocated before the count began may be freed within: the count wraps and is no less right.
    HELD.fetch_sub(bytes, Relaxed);
}

// SAFETY: every call goes on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        give_back(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        take(size);
        give_back(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Calls `parse`; the process is aborted if it ever holds more than `multiple` times the input and 1 MB.
pub fn bounded<T>(input: &[u8], multiple: usize, parse: impl FnOnce() -> T) -> T {
    bounded_by(input, multiple, CONSTANT, parse)
}

/// As [`bounded`], with another constant: where a documented limit allows more.
pub fn bounded_by<T>(
    input: &[u8],
    multiple: usize,
    constant: usize,
    parse: impl FnOnce() -> T,
) -> T {
    HELD.store(0, Relaxed);
    LIMIT.store(
        input
            .len()
            .saturating_mul(multiple)
            .saturating_add(constant),
        Relaxed,
    );
    let result = parse();
    LIMIT.store(usize::MAX, Relaxed);
    result
}
