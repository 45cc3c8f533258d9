//! The reader refuses what a hostile or dying VM may leave in its tunnel.

use std::cell::Cell;

use super::*;
use crate::ByteMemory;
use crate::abi::{NO_REG, NO_RULE, RANGE_INTERPRETER, RULE_SHADOW, VERSION, VM_OTHER};

const START: u64 = 0x7f00_0000_0000;
const PID: u32 = 4711;
const HEADER: usize = size_of::<abi::TunnelHeader>();
const RANGES: usize = 576;
const CODES: usize = RANGES + 4 * size_of::<CodeRange>();
const THREADS: usize = CODES + 4 * size_of::<abi::Code>();
const TRACES: usize = THREADS + 4 * size_of::<Thread>();
const SIZE: usize = TRACES + 4 * size_of::<Trace>();

/// A tunnel with two ranges, two dex files (with a free slot in between) and one thread.
fn tunnel() -> Vec<u8> {
    let mut bytes = vec![0; SIZE];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &MAGIC);
    put(8, &VERSION.to_le_bytes());
    put(12, &(HEADER as u32).to_le_bytes());
    put(16, &(SIZE as u64).to_le_bytes());
    put(24, &99u64.to_le_bytes());
    put(32, &VM_OTHER.to_le_bytes());
    put(36, &PID.to_le_bytes());
    let layout = offset_of!(abi::TunnelHeader, layout);
    put(layout, &62u16.to_le_bytes());
    put(layout + 2, &[8, 0, 1, NO_RULE]);
    put(layout + 16, &(-8i64).to_le_bytes());
    put(layout + 48, &[RULE_SHADOW, NO_REG, NO_REG]);
    for (at, offset, entry, count) in [
        (
            offset_of!(abi::TunnelHeader, ranges),
            RANGES,
            size_of::<CodeRange>(),
            2u32,
        ),
        (
            offset_of!(abi::TunnelHeader, codes),
            CODES,
            size_of::<abi::Code>(),
            3,
        ),
        (
            offset_of!(abi::TunnelHeader, threads),
            THREADS,
            size_of::<Thread>(),
            2,
        ),
        (
            offset_of!(abi::TunnelHeader, traces),
            TRACES,
            size_of::<Trace>(),
            4,
        ),
    ] {
        put(at, &(offset as u32).to_le_bytes());
        put(at + 4, &(entry as u32).to_le_bytes());
        put(at + 8, &4u32.to_le_bytes());
        put(at + 12, &count.to_le_bytes());
    }
    for (index, (start, end)) in [(0x5000u64, 0x6000u64), (0x1000, 0x5000)]
        .iter()
        .enumerate()
    {
        let at = RANGES + index * size_of::<CodeRange>();
        put(at, &start.to_le_bytes());
        put(at + 8, &end.to_le_bytes());
        put(at + 16, &RANGE_INTERPRETER.to_le_bytes());
    }
    for (index, size) in [0x100u64, 0, 0x200].iter().enumerate() {
        let at = CODES + index * size_of::<abi::Code>();
        put(at, &(0x9000 - index as u64 * 0x1000).to_le_bytes());
        put(at + 8, &size.to_le_bytes());
        put(at + 24, &abi::CODE_DEX.to_le_bytes());
        put(at + 32, b"app.dex\0rest");
    }
    put(THREADS + size_of::<Thread>(), &0x8000u64.to_le_bytes());
    put(THREADS + size_of::<Thread>() + 8, &77u32.to_le_bytes());
    for (index, (start, pc)) in [
        (0xb000u64, 0x7010u64),
        (0xa000, 0),
        (0xa800, 0x7020),
        (0xb000, 0x7030),
    ]
    .iter()
    .enumerate()
    {
        let at = TRACES + index * size_of::<Trace>();
        put(at, &start.to_le_bytes());
        put(at + 8, &pc.to_le_bytes());
    }
    bytes
}

fn read(bytes: &[u8]) -> Result<Description, TunnelError> {
    let memory = ByteMemory {
        start: START,
        bytes,
    };
    read_tunnel(&memory, START, bytes.len() as u64, Pid::new(PID))
}

fn read_spoiled(at: usize, value: &[u8]) -> Result<Description, TunnelError> {
    let mut bytes = tunnel();
    bytes[at..at + value.len()].copy_from_slice(value);
    read(&bytes)
}

#[test]
fn a_whole_tunnel_is_copied_sorted_and_without_free_slots() {
    let description = read(&tunnel()).unwrap();
    assert_eq!(description.vm, VM_OTHER);
    assert_eq!(description.layout.tls_offset, -8);
    let starts: Vec<u64> = description.ranges.iter().map(|range| range.start).collect();
    assert_eq!(starts, [0x1000, 0x5000]);
    let codes: Vec<(u64, u64, &str)> = description
        .codes
        .iter()
        .map(|code| (code.start, code.size, code.location.as_str()))
        .collect();
    assert_eq!(
        codes,
        [(0x7000, 0x200, "app.dex"), (0x9000, 0x100, "app.dex")]
    );
    assert_eq!(description.threads.len(), 1);
    assert_eq!(description.threads[0].tid, 77);
    let trace = |start, pc| Trace { start, pc };
    assert_eq!(
        description.traces,
        [trace(0xa800, 0x7020), trace(0xb000, 0x7010)]
    );
    assert!(!description.inherited);
}

#[test]
fn a_childs_tunnel_is_distinguished_from_its_parents() {
    let description = read_spoiled(36, &1u32.to_le_bytes()).unwrap();
    assert!(description.inherited);
    assert_eq!(description.pid.get(), 1);
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = tunnel();
    for len in 0..bytes.len() {
        assert!(read(&bytes[..len]).is_err(), "{len} bytes");
        // The mapping is complete, but the file is shorter.
        let memory = ByteMemory {
            start: START,
            bytes: &bytes[..len],
        };
        let read = read_tunnel(&memory, START, SIZE as u64, Pid::new(PID));
        assert!(read.is_err() || len >= TRACES + 4 * size_of::<Trace>());
    }
}

#[test]
fn lies_about_sizes_are_named() {
    let parts = [
        offset_of!(abi::TunnelHeader, ranges),
        offset_of!(abi::TunnelHeader, codes),
        offset_of!(abi::TunnelHeader, threads),
    ];
    for part in parts {
        for (field, lie) in [
            (0, 0u32),         // inside the header
            (0, 0xffff_fff0),  // beyond the end
            (0, SIZE as u32),  // no space
            (4, 0),            // entries of size zero
            (4, 8),            // small entries
            (8, 0xffff_ffff),  // a capacity that overflows
            (8, 1),            // less than the count
            (12, 5),           // more than the capacity
            (12, 0xffff_ffff), // a count that overflows
        ] {
            let read = read_spoiled(part + field, &lie.to_le_bytes());
            assert!(
                matches!(read, Err(TunnelError::Malformed { offset, .. }) if offset == part as u64),
                "{part} + {field} = {lie:#x}: {read:?}"
            );
        }
    }
    // The codes' table overlaps the ranges'.
    let overlapping = (RANGES as u32 + 8).to_le_bytes();
    let read = read_spoiled(offset_of!(abi::TunnelHeader, codes), &overlapping);
    assert!(
        matches!(read, Err(TunnelError::Malformed { .. })),
        "{read:?}"
    );
    for size in [0u64, HEADER as u64 - 1, SIZE as u64 + 1, u64::MAX] {
        let read = read_spoiled(16, &size.to_le_bytes());
        assert!(
            matches!(read, Err(TunnelError::Size { .. })),
            "{size:#x}: {read:?}"
        );
    }
}

#[test]
fn other_magic_version_and_header_are_refused() {
    assert!(matches!(
        read_spoiled(0, b"x"),
        Err(TunnelError::Magic { .. })
    ));
    assert!(matches!(
        read_spoiled(8, &[3]),
        Err(TunnelError::Version { found: 3, .. })
    ));
    assert!(matches!(
        read_spoiled(12, &[8]),
        Err(TunnelError::Version { .. })
    ));
}

#[test]
fn overlapping_or_reversed_ranges_and_code_are_refused() {
    let ends = RANGES + size_of::<CodeRange>() + 8;
    assert!(read_spoiled(ends, &0x5001u64.to_le_bytes()).is_err());
    assert!(read_spoiled(ends, &0x1000u64.to_le_bytes()).is_err());
    assert!(read_spoiled(ends + 8, &9u32.to_le_bytes()).is_err());
    assert!(read_spoiled(CODES, &0x7100u64.to_le_bytes()).is_err());
    assert!(read_spoiled(CODES, &u64::MAX.to_le_bytes()).is_err());
    assert!(read_spoiled(CODES + 24, &9u32.to_le_bytes()).is_err());
}

/// Memory whose generation changes while it is read.
struct Restless {
    bytes: Vec<u8>,
    reads: Cell<u32>,
    step: u32,
    calm_after: u32,
}

impl Memory for Restless {
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), TunnelError> {
        ByteMemory {
            start: START,
            bytes: &self.bytes,
        }
        .read(address, out)?;
        let reads = self.reads.get();
        self.reads.set(reads + 1);
        if address == START && reads < self.calm_after {
            let generation = (self.step * reads).to_le_bytes();
            out[40..44].copy_from_slice(&generation);
        }
        Ok(())
    }
}

#[test]
fn a_writer_at_work_is_waited_for_but_not_for_ever() {
    for (step, calm_after, readable) in [(2, u32::MAX, false), (1, u32::MAX, false), (2, 20, true)]
    {
        let memory = Restless {
            bytes: tunnel(),
            reads: Cell::new(1),
            step,
            calm_after,
        };
        let read = read_tunnel(&memory, START, SIZE as u64, Pid::new(PID));
        match read {
            Ok(_) => assert!(readable, "step {step}"),
            Err(error) => assert!(
                !readable && matches!(error, TunnelError::Changing { .. }),
                "{error}"
            ),
        }
        assert!(memory.reads.get() < 1000);
    }
    // A writer that died during an event.
    let mut bytes = tunnel();
    bytes[40] = 1;
    assert!(matches!(
        read(&bytes),
        Err(TunnelError::Changing { generation: 1, .. })
    ));
}

#[test]
fn random_bytes_and_random_damage_never_panic() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let whole = tunnel();
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..200_000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + random() % 8 {
            let at = random() as usize % bytes.len();
            bytes[at] = random() as u8;
        }
        match read(&bytes) {
            Ok(description) => {
                assert!(description.ranges.len() <= 4 && description.codes.len() <= 4);
                accepted += 1;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
        }
    }
    assert!(accepted > 1000 && refused > 1000, "{accepted} {refused}");
    for _ in 0..20_000 {
        let mut bytes: Vec<u8> = (0..SIZE).map(|_| random() as u8).collect();
        assert!(read(&bytes).is_err());
        bytes[..40].copy_from_slice(&whole[..40]);
        assert!(read(&bytes).is_err());
    }
}
