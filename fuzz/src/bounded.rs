//! Bounds the memory that a parser allocates, as a multiple of its input's size. Sizes that the input only claims do
//! not count.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes that any parser may hold besides the multiple, for its initial tables.
const CONSTANT: usize = 1 << 20;

/// Counts the allocations of the system's allocator. In a fuzz target, one thread allocates at a time.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Counts an allocation before it is made, so that one beyond the limit is never zeroed or copied.
fn take(bytes: usize) {
    let held = HELD.fetch_add(bytes, Relaxed).wrapping_add(bytes);
    let limit = LIMIT.load(Relaxed);
    // A panic allocates for its backtrace, which does not count.
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
    // Memory from before the count may be freed during it. The count then wraps, and stays correct.
    HELD.fetch_sub(bytes, Relaxed);
}

// SAFETY: every call is passed on unchanged to the system's allocator.
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

/// Calls `parse`. The process is aborted if it ever holds more than `multiple` times the input and 1 MB.
pub fn bounded<T>(input: &[u8], multiple: usize, parse: impl FnOnce() -> T) -> T {
    bounded_by(input, multiple, CONSTANT, parse)
}

/// Like [`bounded`], with a different constant, for parsers whose documented limit is higher.
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
