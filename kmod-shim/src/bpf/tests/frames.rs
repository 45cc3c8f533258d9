//! The program finds the frames in a thread's memory, wherever pages are absent.

use super::*;
use crate::abi::{flags, frame_flags::OUTERMOST};
use crate::record::CapturedSample;
use std::arch::asm;
use std::cell::Cell;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::{Duration, Instant};
use varid_tunnel::abi::{LAYOUT_ON_NATIVE_STACK, Layout, RULE_LIST, Rule};

const PAGE: usize = 4096;
const PAGES: usize = 64;
/// Records of each arrangement of frames. The first of them finds what was learnt of the previous arrangement.
const RECORDS: usize = 6;
/// Records arrive every 50 microseconds, or not at all.
const HANGS: Duration = Duration::from_secs(120);
/// Offset from the frame to the pc that it has exported.
const PC: usize = 24;
const WINDOW: usize = 64;

thread_local! {
    /// Where the thread stores its base.
    static BASE: Cell<u64> = const { Cell::new(0) };
}

/// The value that the kernel uses as the base of thread-locals.
fn thread_pointer() -> u64 {
    let value: u64;
    // SAFETY: reads a register, or the word that x86-64's ABI keeps there, and changes nothing.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("mov {}, fs:0", out(reg) value, options(nostack, readonly));
        #[cfg(target_arch = "aarch64")]
        asm!("mrs {}, tpidr_el0", out(reg) value, options(nostack, nomem));
    }
    value
}

/// A perf event of this thread, or of its output: `config` is the kernel's PERF_COUNT_SW_*.
pub(super) fn event(config: u64, period: u64) -> OwnedFd {
    let mut attr = [0u64; 16]; // struct perf_event_attr, 128 bytes
    attr[0] = 1 | 128 << 32; // PERF_TYPE_SOFTWARE, its size
    attr[1] = config;
    attr[2] = period;
    attr[3] = 1 << 10; // PERF_SAMPLE_RAW
    attr[5] = 1; // disabled
    // SAFETY: the kernel reads 128 bytes at `attr`; the rest are numbers.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, attr.as_ptr(), 0, -1, -1, 0) };
    assert!(fd >= 0, "{}", io::Error::last_os_error());
    // SAFETY: a new descriptor, which nothing else owns.
    unsafe { OwnedFd::from_raw_fd(fd as i32) }
}

/// Pages with frames in them, some of which may be absent.
struct Memory {
    start: usize,
    thread: Box<[u64; 64]>,
}

impl Memory {
    fn new() -> Self {
        // SAFETY: a new mapping at an address of the kernel's choice; it is never unmapped.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                PAGE * PAGES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            )
        };
        assert_ne!(start, libc::MAP_FAILED);
        let mut thread = Box::new([0; 64]);
        // SAFETY: gettid takes nothing and cannot fail.
        thread[2] = unsafe { libc::gettid() } as u64;
        Self {
            start: start as usize,
            thread,
        }
    }

    fn protect(&self, page: usize, protection: i32) {
        // SAFETY: the page is part of the mapping, and no reference points into it.
        let result =
            unsafe { libc::mprotect((self.start + page * PAGE) as *mut _, PAGE, protection) };
        assert_eq!(result, 0);
    }

    /// Writes frames at these places, each with its own pc. The link of the last one is `last`.
    fn put(&mut self, places: &[usize], last: u64) -> Vec<(u64, u64)> {
        let at = |place: usize| (self.start + place) as u64;
        let frames: Vec<_> = places
            .iter()
            .map(|place| (at(*place), at(*place) ^ 0x5a5a))
            .collect();
        let links = places.iter().skip(1).map(|place| at(*place)).chain([last]);
        for (place, ((_, pc), link)) in places.iter().zip(frames.iter().zip(links)) {
            let frame = (self.start + place) as *mut u8;
            // SAFETY: the words lie in present pages of the mapping, 8-byte aligned.
            unsafe {
                frame.cast::<u64>().write_volatile(link);
                frame.add(PC).cast::<u64>().write_volatile(*pc);
            }
        }
        self.thread[(0xb8 + 16) / 8] = frames[0].0;
        frames
    }
}

#[test]
fn frames_are_found_up_to_where_memory_ends() {
    if !can_load() {
        return;
    }
    let mut shim = Shim::load(64).unwrap();
    let mut memory = Memory::new();
    BASE.set(memory.thread.as_ptr() as u64);
    let slot = BASE.with(|base| base.as_ptr() as u64);
    let list = Rule {
        kind: RULE_LIST,
        frame_method: 8,
        frame_pc: PC as u16,
        frame_insns: 32,
        frame_index: 52,
        ..Rule::default()
    };
    let layout = Layout {
        word: 8,
        tls_offset: slot.wrapping_sub(thread_pointer()) as i64,
        thread_tid: 16,
        thread_fragment: 0xb8,
        fragment_link: 8,
        fragment_top: 16,
        ..Layout::with_rules(&[list])
    };
    let target = Target {
        layout,
        flags: target_flags::READY,
        rules: layout.rule_bits(),
        ..Target::default()
    };
    shim.set_target(std::process::id(), &target).unwrap();
    let clock = event(0, 50_000);
    let output = event(10, 1);
    shim.attach(0, clock.as_fd(), output.as_fd()).unwrap();

    let dense: Vec<_> = (0..60).map(|n| 100 * 8 + n * 416).collect();
    let sparse: Vec<_> = (0..60).map(|n| n * 2000).collect();
    // The last window ends where the absent page starts, or reaches into it.
    let up_to_the_end = [0, 1000, 40 * PAGE - WINDOW];
    let across_the_end = [0, 1000, 40 * PAGE - WINDOW + 8];
    // More than is copied for one sample: the rest is read frame by frame.
    let far: Vec<_> = (0..250).map(|n| n * 640).collect();
    let first_page_only: Vec<_> = (0..9).map(|n| n * 416).chain([40 * PAGE]).collect();
    let cases: [(&str, &[usize], u64, Option<usize>); 10] = [
        ("dense", &dense, 0, None),
        ("sparse", &sparse, 0, None),
        ("dense, where sparse was", &dense, 0, None),
        (
            "one that links to itself",
            &dense[..7],
            memory.start as u64,
            Some(6),
        ),
        (
            "a link to an odd address of the kernel",
            &dense[..20],
            u64::MAX - 6,
            Some(20),
        ),
        ("one that ends with its page", &up_to_the_end, 0, None),
        (
            "one that its page does not hold",
            &across_the_end,
            0,
            Some(2),
        ),
        ("one in an absent page", &first_page_only, 0, Some(9)),
        ("a far way", &far, 0, None),
        ("dense again", &dense, 0, None),
    ];
    for (what, places, last, torn) in cases {
        memory.protect(40, libc::PROT_READ | libc::PROT_WRITE);
        let mut frames = memory.put(places, last);
        memory.protect(40, libc::PROT_NONE);
        frames.truncate(torn.unwrap_or(usize::MAX));
        for record in records(&mut shim, &clock, what) {
            assert_eq!(found(&record), frames, "{what}");
            assert_eq!(record.has(flags::TORN), torn.is_some(), "{what}");
            assert!(!record.has(flags::LINKED_ONLY), "{what}");
            let outermost = record
                .frames
                .iter()
                .filter(|frame| frame.flags == OUTERMOST);
            assert_eq!(outermost.count(), usize::from(torn.is_none()), "{what}");
        }
    }
    // The program for the other frames is not loaded, and may never be.
    let others = Rule {
        kind: RULE_AT_SP,
        ..Rule::default()
    };
    let rules = Layout::with_rules(&[list, others]);
    let layout = Layout {
        rules: rules.rules,
        rule_count: rules.rule_count,
        flags: LAYOUT_ON_NATIVE_STACK,
        ..layout
    };
    let target = Target {
        layout,
        rules: layout.rule_bits(),
        ..target
    };
    assert!(target.needs_walker());
    shim.set_target(std::process::id(), &target).unwrap();
    let frames = memory.put(&dense, 0);
    for record in records(&mut shim, &clock, "linked frames") {
        assert_eq!(found(&record), frames);
        assert!(record.has(flags::LINKED_ONLY), "{record:?}");
        // The registers are those of the thread itself.
        assert!(!record.has(flags::INTERRUPTED), "{record:?}");
        assert_ne!(record.regs.ip(), Some(0));
        // The other frames may be anywhere in the copy.
        assert!(!record.stack.is_empty(), "{record:?}");
    }
    // None of the frames is linked, or the leaf is not in the list.
    let none_linked = Target {
        layout: Layout {
            rules: Layout::with_rules(&[others]).rules,
            ..layout
        },
        ..target.clone()
    };
    let leaves = Target {
        flags: target.flags | target_flags::NO_STACK,
        ..target
    };
    for target in [none_linked, leaves] {
        shim.set_target(std::process::id(), &target).unwrap();
        for record in records(&mut shim, &clock, "no frames") {
            assert!(record.has(flags::NO_WALK), "{record:?}");
            assert_eq!(found(&record), []);
        }
    }
    assert_eq!(shim.counters().unwrap().no_space, 0);
}

/// Returns records of this thread, taken while the clock runs.
fn records(shim: &mut Shim, clock: &OwnedFd, what: &str) -> Vec<CapturedSample> {
    run(clock, true);
    let (mut records, started) = (Vec::new(), Instant::now());
    while records.len() < RECORDS {
        assert!(started.elapsed() < HANGS, "{what}: no records");
        shim.drain(|bytes| records.push(CapturedSample::decode(bytes).unwrap()));
    }
    run(clock, false);
    shim.drain(|_| ());
    records
}

/// Starts or stops an event.
pub(super) fn run(clock: &OwnedFd, on: bool) {
    // SAFETY: the request takes no memory.
    let result = unsafe { libc::ioctl(clock.as_raw_fd(), if on { 0x2400 } else { 0x2401 }, 0) };
    assert_eq!(result, 0);
}

/// The addresses and pcs of a record's frames.
fn found(record: &CapturedSample) -> Vec<(u64, u64)> {
    let frames = record.frames.iter();
    frames.map(|frame| (frame.addr, frame.pc)).collect()
}

#[test]
fn a_drain_ends_though_records_come_faster_than_they_are_taken() {
    if !can_load() {
        return;
    }
    let mut shim = Shim::load(1).unwrap();
    let target = Target {
        flags: target_flags::NO_STACK,
        ..Target::default()
    };
    shim.set_target(std::process::id(), &target).unwrap();
    let (clock, output) = (event(0, 50_000), event(10, 1));
    shim.attach(0, clock.as_fd(), output.as_fd()).unwrap();
    // SAFETY: the request takes no memory.
    let switch =
        |on| unsafe { libc::ioctl(clock.as_raw_fd(), if on { 0x2400 } else { 0x2401 }, 0) };
    assert_eq!(switch(true), 0);
    let (most, mut taken) = (2 * shim.capacity, 0);
    let started = Instant::now();
    while taken == 0 {
        assert!(started.elapsed() < HANGS, "no records");
        shim.drain(|bytes| {
            taken += bytes.len();
            if taken > most {
                switch(false);
            }
            // Wait for at least one more record.
            let since = Instant::now();
            while since.elapsed() < Duration::from_micros(500) {}
        });
    }
    assert_eq!(switch(false), 0);
    assert!(
        taken <= most,
        "{taken} bytes of a ring of {}",
        shim.capacity
    );
}
