//! What do the tests of recordings share?

use std::{path::Path, process::Command};

use varid_model::{Address, MonotonicNs, Period, Pid, Precision, Rate, Tid};
use varid_recording::{
    CpuMode, EventDesc, Manifest, MappingRecord, Sample, SampleSource, SessionRecord,
    SessionTarget, TargetKind,
};

/// Where the tests' dex file lies in the tests' process.
pub const DEX: u64 = 0x7000_0000_0000;

pub const BUILD_ID: [u8; 20] = *b"varid-test-build-id!";

pub fn manifest() -> Manifest {
    Manifest::new(
        EventDesc::new("cpu-clock", Rate::Frequency(997), 1, 0),
        SampleSource::Bpf,
        SessionTarget {
            kind: TargetKind::App,
            value: "org.example.math".into(),
        },
        MonotonicNs::new(1_000),
    )
}

pub fn comm(time: u64, pid: u32, name: &str) -> SessionRecord {
    SessionRecord::Comm {
        time: MonotonicNs::new(time),
        pid: Pid::new(pid),
        tid: Tid::new(pid),
        exec: false,
        name: name.into(),
    }
}

/// The tests' dex file in a process, served by this ELF file.
pub fn dex_mapping(time: u64, pid: u32, path: &Path) -> SessionRecord {
    SessionRecord::Mapping(MappingRecord {
        time: MonotonicNs::new(time),
        pid: Pid::new(pid),
        tid: Tid::new(pid),
        start: Address::new(DEX),
        len: 0x1000,
        pgoff: 0,
        kernel: false,
        mode: None,
        path: path.to_owned(),
        build_id: BUILD_ID.to_vec(),
    })
}

pub fn user_sample(time: u64, pid: u32, user: &[u64]) -> SessionRecord {
    SessionRecord::Sample(Sample {
        event: 0,
        time: MonotonicNs::new(time),
        pid: Pid::new(pid),
        tid: Tid::new(pid),
        cpu: 1,
        period: Period::new(1_003_009),
        original_ip: Address::new(0x1234_5678),
        interrupt: None,
        mode: CpuMode::User,
        uid: 1000,
        frame: None,
        precision: Precision::Exact,
        kernel: vec![],
        user: user.iter().copied().map(Address::new).collect(),
    })
}

/// Runs perf and returns what it prints.
pub fn perf(args: &[&str], data: &Path) -> String {
    let (program, verb) = ("perf", args.first().expect("a verb"));
    let output = Command::new(program)
        .arg(verb)
        .arg("-i")
        .arg(data)
        .args(args.get(1..).unwrap_or(&[]))
        .output()
        .expect("these tests need perf: install the package linux-perf");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "perf {args:?}: {errors}");
    assert!(
        !errors.contains("WARNING") && !errors.contains("failed"),
        "perf {args:?}: {errors}"
    );
    String::from_utf8(output.stdout).expect("perf prints UTF-8")
}

/// A shared object over `size` bytes with these functions (name, address, size), in the shape
/// that perf takes: one PT_LOAD at 0, a build-id note, a symbol table.
pub fn tiny_elf(size: u64, functions: &[(&str, u64, u64)]) -> Vec<u8> {
    const EHDR: usize = 64;
    const PHDR: usize = 56;
    const MACHINE: u16 = if cfg!(target_arch = "aarch64") {
        183
    } else {
        62
    };
    let mut elf = vec![0; usize::try_from(size).expect("a small ELF file")];
    let append = |elf: &mut Vec<u8>, bytes: &[u8]| {
        elf.resize(elf.len().next_multiple_of(8), 0);
        let at = elf.len() as u64;
        elf.extend(bytes);
        (at, bytes.len() as u64)
    };
    let words = |words: &[u64]| {
        words
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .collect::<Vec<_>>()
    };

    let mut note = [4u32, 20, 3]
        .iter()
        .flat_map(|w| w.to_le_bytes())
        .collect::<Vec<_>>();
    note.extend(b"GNU\0");
    note.extend(BUILD_ID);
    let note = append(&mut elf, &note);

    let (mut strings, mut symbols) = (vec![0], vec![0; 24]);
    for (name, address, size) in functions {
        let name_at = u32::try_from(strings.len()).expect("few names");
        symbols.extend(name_at.to_le_bytes());
        symbols.extend([0x12, 0, 1, 0]); // GLOBAL FUNC, default, section 1
        symbols.extend(words(&[*address, *size]));
        strings.extend(name.bytes().chain([0]));
    }
    let symbols = append(&mut elf, &symbols);
    let strings = append(&mut elf, &strings);
    let names = b"\0.text\0.note.gnu.build-id\0.symtab\0.strtab\0.shstrtab\0";
    let names = append(&mut elf, names);
    let phdrs = {
        let mut bytes = [1u32, 5]
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .collect::<Vec<_>>();
        bytes.extend(words(&[0, 0, 0, size, size, 0x1000]));
        bytes.extend([4u32, 4].iter().flat_map(|w| w.to_le_bytes()));
        bytes.extend(words(&[note.0, note.0, note.0, note.1, note.1, 4]));
        append(&mut elf, &bytes).0
    };
    let text = EHDR as u64;
    let mut shdrs = vec![0; 64];
    // name, type, flags, address, (offset, size), link, info, entry size
    for (name, kind, flags, address, (at, len), link, info, entry) in [
        (1u32, 1u32, 6, text, (text, size - text), 0u32, 0u32, 0),
        (7, 7, 2, note.0, note, 0, 0, 0),
        (26, 2, 0, 0, symbols, 4, 1, 24),
        (34, 3, 0, 0, strings, 0, 0, 0),
        (42, 3, 0, 0, names, 0, 0, 0),
    ] {
        shdrs.extend([name, kind].iter().flat_map(|w| w.to_le_bytes()));
        shdrs.extend(words(&[flags, address, at, len]));
        shdrs.extend([link, info].iter().flat_map(|w| w.to_le_bytes()));
        shdrs.extend(words(&[8, entry]));
    }
    let shdrs = append(&mut elf, &shdrs).0;

    let mut ehdr = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    ehdr.extend([3, MACHINE, 1, 0].iter().flat_map(|h| h.to_le_bytes()));
    ehdr.extend(words(&[0, phdrs, shdrs]));
    ehdr.extend([0; 4]);
    let halves = [EHDR, PHDR, 2, 64, 6, 5];
    ehdr.extend(halves.iter().flat_map(|&h| (h as u16).to_le_bytes()));
    elf.splice(..EHDR, ehdr);
    elf
}
