//! The kernel's records are decoded, and malformed ones are refused.

use super::*;
use proptest::prelude::*;

const SHIM: u64 = 1;
const RAW: u64 = 2;
const COPY: u64 = 3;
const RAW_OF_GROUP: u64 = 4;
const COPY_AT_PERIOD: u64 = 5;
const TIME: u64 = 0x1122_3344_5566;

fn origin(id: u64) -> Option<Origin> {
    let kind = match id {
        SHIM => SampleKind::Shim,
        RAW | RAW_OF_GROUP => SampleKind::Raw,
        COPY | COPY_AT_PERIOD => SampleKind::StackCopy,
        _ => return None,
    };
    Some(Origin {
        event: id as usize,
        kind,
        period: (id == COPY_AT_PERIOD).then_some(Period::new(100)),
        reads: id == RAW_OF_GROUP,
    })
}

/// The bytes of a record under construction.
#[derive(Clone)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn new(kind: u32, misc: u16) -> Self {
        let mut bytes = Self(Vec::new());
        bytes.0.extend(kind.to_le_bytes());
        bytes.0.extend(misc.to_le_bytes());
        bytes.0.extend([0; 2]);
        bytes
    }

    fn u32(mut self, values: &[u32]) -> Self {
        self.0
            .extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self
    }

    fn u64(mut self, values: &[u64]) -> Self {
        self.0
            .extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self
    }

    /// Appends a string with the kernel's padding.
    fn text(mut self, text: &[u8]) -> Self {
        self.0.extend(text);
        self.0.resize((self.0.len() + 1).next_multiple_of(8), 0);
        self
    }

    /// Appends the fields at the end of every record except samples.
    fn identified(self) -> Self {
        self.u32(&[10, 11]).u64(&[TIME]).u32(&[1, 0]).u64(&[COPY])
    }

    /// Returns None for a record that is not used or is malformed.
    fn decode(&self) -> Option<Stamped> {
        let (stamped, _) = decode(&self.0, origin, &mut SamplePool::default())?;
        (stamped.event != RingEvent::Malformed).then_some(stamped)
    }

    fn is_malformed(&self) -> bool {
        let decoded = decode(&self.0, origin, &mut SamplePool::default());
        decoded.is_some_and(|(stamped, _)| stamped.event == RingEvent::Malformed)
    }
}

fn event(bytes: Bytes) -> RingEvent {
    let stamped = bytes.identified().decode().unwrap();
    assert_eq!(stamped.time.get(), TIME);
    stamped.event
}

fn mmap() -> Bytes {
    Bytes::new(perf::PERF_RECORD_MMAP2, 0)
        .u32(&[10, 11])
        .u64(&[0x7000, 0x2000, 0x1000])
        .u32(&[8, 1])
        .u64(&[1234, 99])
        .u32(&[5, 2])
        .text(b"/system/lib64/libart.so")
}

#[test]
fn a_mapping_has_its_place_and_its_file() {
    let RingEvent::Mmap(mapped) = event(mmap()) else {
        panic!("a mapping")
    };
    let expected = Mmap {
        pid: Pid::new(10),
        tid: Tid::new(11),
        start: Address::new(0x7000),
        len: 0x2000,
        pgoff: 0x1000,
        device: Device { major: 8, minor: 1 },
        inode: 1234,
        mode: Mode::from_mmap(5, 2),
        path: "/system/lib64/libart.so".into(),
    };
    assert_eq!(*mapped, expected);
}

#[test]
fn an_exec_is_distinguished_from_a_rename() {
    let comm = |misc| {
        event(
            Bytes::new(perf::PERF_RECORD_COMM, misc)
                .u32(&[10, 11])
                .text(b"main \xff"),
        )
    };
    let named = |exec| RingEvent::Comm {
        pid: Pid::new(10),
        tid: Tid::new(11),
        exec,
        name: "main \u{fffd}".to_owned(),
    };
    assert_eq!(comm(perf::PERF_RECORD_MISC_COMM_EXEC), named(true));
    assert_eq!(comm(perf::PERF_RECORD_MISC_USER), named(false));
}

#[test]
fn forks_and_exits_name_parent_and_child() {
    let task = |kind| event(Bytes::new(kind, 0).u32(&[20, 10, 21, 11]).u64(&[TIME - 1]));
    assert_eq!(
        task(perf::PERF_RECORD_FORK),
        RingEvent::Fork {
            pid: Pid::new(20),
            ppid: Pid::new(10),
            tid: Tid::new(21),
            ptid: Tid::new(11)
        }
    );
    assert_eq!(
        task(perf::PERF_RECORD_EXIT),
        RingEvent::Exit {
            pid: Pid::new(20),
            ppid: Pid::new(10),
            tid: Tid::new(21),
            ptid: Tid::new(11)
        }
    );
}

#[test]
fn what_the_kernel_lost_or_held_back_is_counted() {
    assert_eq!(
        event(Bytes::new(perf::PERF_RECORD_LOST, 0).u64(&[5, 42])),
        RingEvent::Lost(42)
    );
    assert_eq!(
        event(Bytes::new(perf::PERF_RECORD_LOST_SAMPLES, 0).u64(&[43])),
        RingEvent::Lost(43)
    );
    assert_eq!(
        event(Bytes::new(perf::PERF_RECORD_THROTTLE, 0).u64(&[TIME, 1, 2])),
        RingEvent::Throttle
    );
    let unthrottle = Bytes::new(perf::PERF_RECORD_UNTHROTTLE, 0)
        .u64(&[TIME, 1, 2])
        .identified();
    assert!(unthrottle.decode().is_none() && !unthrottle.is_malformed());
}

/// Starts a sample: its identifier, and its ip unless it is the shim's.
fn sample(id: u64) -> Bytes {
    sample_of_mode(perf::PERF_RECORD_MISC_USER, id)
}

fn sample_of_mode(misc: u16, id: u64) -> Bytes {
    let bytes = Bytes::new(perf::PERF_RECORD_SAMPLE, misc).u64(&[id]);
    let bytes = if id == SHIM {
        bytes
    } else {
        bytes.u64(&[0x401000])
    };
    bytes.u32(&[10, 11]).u64(&[TIME]).u32(&[3, 0])
}

#[test]
fn the_shims_record_comes_with_its_own_time() {
    let mut record = vec![0u8; 224];
    record[..8].copy_from_slice(&77u64.to_le_bytes());
    record[8..12].copy_from_slice(&10u32.to_le_bytes());
    let mut bytes = sample(SHIM).u32(&[record.len() as u32]);
    bytes.0.extend(&record);
    let Some(Stamped {
        time,
        event: RingEvent::Sample(found),
    }) = bytes.decode()
    else {
        panic!("a sample")
    };
    assert_eq!(time, found.record.time);
    assert_eq!(
        (found.event, found.record.pid.get(), found.record.time.get()),
        (SHIM as usize, 10, 77)
    );
    // Records whose size field exceeds the available bytes.
    for cut in 1..=record.len() {
        let short = Bytes(bytes.0[..bytes.0.len() - cut].to_vec());
        assert!(short.is_malformed(), "{cut}");
    }
}

#[test]
fn a_raw_sample_is_passed_on_unchanged() {
    let bytes = sample(RAW).u64(&[1000, 0, 0]);
    let stamped = bytes.decode().unwrap();
    assert_eq!(
        (stamped.time, stamped.event),
        (
            MonotonicNs::new(TIME),
            RingEvent::Raw {
                tid: Tid::new(11),
                ip: Address::new(0x401000),
                event: RAW as usize,
                bytes: bytes.0
            }
        )
    );
}

#[test]
fn the_values_of_a_group_come_with_its_leaders_sample() {
    let bytes = sample(RAW_OF_GROUP).u64(&[1000, 2, 50, 40, 7_000, 21, 9_000, 22]);
    let (_, values) = decode(&bytes.0, origin, &mut SamplePool::default()).unwrap();
    assert_eq!(values, [(21, 7_000), (22, 9_000)]);
    let of_more = sample(RAW_OF_GROUP).u64(&[1000, u64::MAX, 50, 40, 7_000, 21]);
    assert!(of_more.is_malformed());
    assert!(sample(99).u64(&[1000]).is_malformed(), "nobody's");
}

/// Makes a sample with a callchain, registers in the order of perf's bits, and a stack.
fn copy(chain: &[u64], size: u64, used: u64) -> Bytes {
    copy_of_mode(perf::PERF_RECORD_MISC_USER, chain, size, used)
}

fn copy_of_mode(misc: u16, chain: &[u64], size: u64, used: u64) -> Bytes {
    let bytes = sample_of_mode(misc, COPY)
        .u64(&[997, chain.len() as u64])
        .u64(chain)
        .u64(&[2]);
    let perf: Vec<u64> = (0..64).filter(|bit| regs_mask() >> bit & 1 == 1).collect();
    let mut bytes = bytes
        .u64(&perf.iter().map(|bit| 0x1000 + bit).collect::<Vec<_>>())
        .u64(&[size]);
    bytes.0.extend((0..size).map(|at| at as u8));
    if size == 0 { bytes } else { bytes.u64(&[used]) }
}

fn copied(bytes: &Bytes) -> CapturedSample {
    let Some(Stamped {
        time,
        event: RingEvent::Sample(sampled),
    }) = bytes.decode()
    else {
        panic!("a sample")
    };
    assert_eq!(time.get(), TIME);
    assert_eq!(sampled.event, COPY as usize);
    sampled.record
}

#[test]
fn a_sample_does_not_say_a_fixed_period() {
    let bytes = sample(COPY_AT_PERIOD).u64(&[1, 0x40, 0, 0]);
    let Some(RingEvent::Sample(sampled)) = bytes.decode().map(|stamped| stamped.event) else {
        panic!("a sample")
    };
    assert_eq!(sampled.record.period.get(), 100);
    assert_eq!(sampled.event, COPY_AT_PERIOD as usize);
}

#[test]
fn a_copy_of_the_stack_is_a_record_to_be_walked() {
    let record = copied(&copy(&[], 32, 24));
    assert_eq!(
        (
            record.pid.get(),
            record.tid.get(),
            record.cpu,
            record.period.get(),
            record.ip.get()
        ),
        (10, 11, 3, 997, 0x401000)
    );
    assert_eq!(
        (record.flags, record.frames.len(), record.kernel.len()),
        (flags::NO_WALK, 0, 0)
    );
    for reg in Machine::NATIVE.regs() {
        assert_eq!(
            record.regs.get(reg.dwarf),
            Some(0x1000 + u64::from(reg.perf)),
            "register {}",
            reg.dwarf
        );
    }
    assert_eq!(Some(record.stack_addr.get()), record.regs.sp());
    // Bytes that the kernel could not read are not part of the stack.
    assert_eq!(record.stack, (0..24).collect::<Vec<u8>>());
    assert!(copied(&copy(&[], 0, 0)).stack.is_empty());
    // The used size exceeds the stack's size.
    assert!(copy(&[], 32, 40).is_malformed());
}

#[test]
fn kernel_addresses_of_a_callchain_are_separated_from_user_addresses() {
    let context = |number: u64| 0u64.wrapping_sub(number);
    let (kernel, user) = (context(128), context(512));
    let chain = [kernel, 0xffff_8000, 0xffff_9000, user, 0x402000];
    let in_kernel = perf::PERF_RECORD_MISC_KERNEL;
    let record = copied(&copy_of_mode(in_kernel, &chain, 0, 0));
    // A precise event has the exact instruction, and its callchain starts after it.
    assert_eq!(record.kernel, [0x401000, 0xffff_9000].map(Address::new));
    assert!(record.has(flags::IN_KERNEL | flags::NO_WALK));
    // The interrupt may arrive in the kernel although the instruction is in user code.
    let record = copied(&copy(&chain, 0, 0));
    assert!(record.kernel.is_empty() && !record.has(flags::IN_KERNEL));
    assert_eq!(record.ip, Address::new(0x401000));
    let record = copied(&copy(&[user, 0x401000, 0x402000], 0, 0));
    assert!(record.kernel.is_empty() && !record.has(flags::IN_KERNEL));
}

#[test]
fn a_kernel_thread_has_no_user_registers() {
    let bytes = sample(COPY).u64(&[997, 0, 0, 0]);
    let record = copied(&bytes);
    assert_eq!((record.regs, record.stack_addr.get()), (Regs::default(), 0));
}

#[test]
fn a_record_that_is_cut_short_is_refused() {
    let tasks = Bytes::new(perf::PERF_RECORD_FORK, 0)
        .u32(&[20, 10, 21, 11])
        .u64(&[TIME]);
    // A record is malformed if its fixed part is cut.
    for whole in [tasks, Bytes::new(perf::PERF_RECORD_LOST, 0).u64(&[5, 42])] {
        let fixed = whole.0.len();
        for len in 0..fixed.min(24) {
            assert!(
                Bytes(whole.0[..len].to_vec()).is_malformed(),
                "{len} of {fixed}"
            );
        }
    }
    let whole = copy(&[1, 2, 3], 32, 24);
    for len in 0..whole.0.len() {
        assert!(Bytes(whole.0[..len].to_vec()).is_malformed(), "{len}");
    }
}

#[test]
fn counts_that_lie_allocate_nothing() {
    assert!(sample(COPY).u64(&[997, u64::MAX]).is_malformed());
    assert!(sample(COPY).u64(&[997, 0, 0, u64::MAX]).is_malformed());
    assert!(sample(SHIM).u32(&[u32::MAX]).is_malformed());
}

proptest! {
    /// Random bytes after the header of any kind of record.
    #[test]
    fn random_bytes_are_decoded_or_refused(
        kind in 0u32..24,
        misc: u16,
        id in 0u64..5,
        words in prop::collection::vec(prop_oneof![0u64..80, any::<u64>()], 0..60),
        cut in 0usize..8,
    ) {
        let mut bytes = Bytes::new(kind, misc);
        if kind == perf::PERF_RECORD_SAMPLE {
            bytes = bytes.u64(&[id]);
        }
        bytes = bytes.u64(&words);
        bytes.0.truncate(bytes.0.len() - cut);
        if let Some(Stamped { event: RingEvent::Sample(sampled), .. }) = bytes.decode() {
            let record = &sampled.record;
            prop_assert!(record.stack.len() + 8 * record.kernel.len() + 32 * record.frames.len() <= bytes.0.len());
        }
    }

    /// A valid record with some changed bytes.
    #[test]
    fn spoilt_records_are_decoded_or_refused(
        which in 0usize..4,
        spoil in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let shim = { let mut bytes = sample(SHIM).u32(&[200]); bytes.0.extend([0; 200]); bytes };
        let mut bytes = [mmap().identified(), copy(&[1, 2], 64, 64), sample(RAW), shim][which].clone();
        for (at, value) in spoil {
            let at = at.index(bytes.0.len());
            bytes.0[at] = value;
        }
        let _ = bytes.decode();
    }
}
