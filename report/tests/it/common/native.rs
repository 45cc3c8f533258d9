//! A session with samples in a library with known source, and the results of addr2line for them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use varid_model::{Address, Pid, Tid};
use varid_recording::{MappingRecord, SessionRecord};
use varid_report::{GroupBy, NameOptions, Options, OutputFormat, Profile, ReportTable, View};

use super::{Fixture, RUN};

/// The address at which the library of these tests is mapped.
pub const NATIVE: u64 = 0x7500_0000_0000;

/// Functions that are inlined into others, one that calls, and a recursive one.
pub const SOURCE: &str = "\
static volatile int sink;
static inline __attribute__((always_inline)) void store(int n) {
    sink = n;
}
static inline __attribute__((always_inline)) int twice(int n) {
    store(n);
    return n * 2;
}
__attribute__((noinline)) int leaf(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += twice(i);
    return sum;
}
static __attribute__((noinline)) int hidden(int n) {
    sink = n;
    return n ? hidden(n - 1) + leaf(n) : 0;
}
int entry(int n) {
    return hidden(twice(n));
}
";

/// Runs a tool. These tests need a C compiler and binutils.
pub fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// A session with a sample at each byte of the library's functions. The library is not at its recorded path.
pub struct Native {
    pub fixture: Fixture,
    /// The library, with debug information.
    pub library: PathBuf,
    /// The recorded path of the library.
    pub recorded: PathBuf,
    pub addresses: Vec<u64>,
}

impl Native {
    pub fn new(with_build_id: bool) -> Self {
        Self::recorded_as("gone/libnative.so", with_build_id)
    }

    /// Records the library at this path below the fixture's folder.
    pub fn recorded_as(path: &str, with_build_id: bool) -> Self {
        let mut fixture = Fixture::new();
        let dir = fixture.dir.path().to_owned();
        let (source, library) = (dir.join("native.c"), dir.join("built.so"));
        fs::write(&source, SOURCE).unwrap();
        run(Command::new("cc")
            .args(["-O2", "-g", "-fPIC", "-shared", "-Wl,--build-id=sha1", "-o"])
            .args([&library, &source]));
        let recorded = dir.join(path);
        let build_id = run(Command::new("readelf").arg("-n").arg(&library))
            .lines()
            .find_map(|line| Some(line.split_once("Build ID: ")?.1.trim().to_owned()))
            .unwrap();
        let build_id: Vec<u8> = (0..build_id.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&build_id[at..at + 2], 16).unwrap())
            .collect();
        let time = fixture.tick();
        fixture.write(&SessionRecord::Mapping(MappingRecord {
            time,
            pid: Pid::new(100),
            tid: Tid::new(100),
            start: Address::new(NATIVE),
            len: 0x10_0000,
            pgoff: 0,
            kernel: false,
            mode: None,
            path: recorded.clone(),
            build_id: if with_build_id { build_id } else { Vec::new() },
        }));
        // Text is mapped at its file offset, so addresses equal offsets here.
        let addresses: Vec<u64> = run(Command::new("nm").arg("-S").arg(&library))
            .lines()
            .filter_map(|line| {
                let words: Vec<_> = line.split_whitespace().collect();
                let [start, size, _, "leaf" | "hidden" | "entry"] = words[..] else {
                    return None;
                };
                let hex = |word| u64::from_str_radix(word, 16).unwrap();
                Some(hex(start)..hex(start) + hex(size))
            })
            .flatten()
            .collect();
        assert!(addresses.len() > 60);
        for address in &addresses {
            fixture.samples(1, (100, 100), &[NATIVE + address, RUN + 1]);
        }
        fixture.writer.finish().unwrap();
        Self {
            fixture,
            library,
            recorded,
            addresses,
        }
    }

    pub fn profile(&self, names: NameOptions) -> Profile {
        self.fixture.profile(&options(names))
    }
}

pub fn options(names: NameOptions) -> Options {
    Options {
        names,
        ..Options::default()
    }
}

pub fn by(by: GroupBy) -> View {
    View {
        table: ReportTable::by(by),
        ..View::default()
    }
}

pub fn json(profile: &Profile, view: &View) -> serde_json::Value {
    let mut out = Vec::new();
    varid_report::render(profile, view, OutputFormat::Json, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

/// By symbol, whether it is inlined, file and line: own and total samples.
pub type Lines = BTreeMap<(String, bool, String, u64), (u64, u64)>;

/// The rows of the library.
pub fn lines(profile: &Profile) -> Lines {
    lines_of(profile, "libnative.so")
}

/// The rows of an image.
pub fn lines_of(profile: &Profile, image: &str) -> Lines {
    let report = json(profile, &by(GroupBy::Line));
    let rows = report["rows"].as_array().unwrap().iter();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    rows.filter(|row| row["image"] == image)
        .map(|row| {
            let key = (
                text(&row["symbol"]),
                row["inlined"] == true,
                text(&row["file"]),
                row["line"].as_u64().unwrap_or(0),
            );
            let share = (
                row["self"].as_u64().unwrap(),
                row["total"].as_u64().unwrap(),
            );
            (key, share)
        })
        .collect()
}

/// The results of addr2line for the same addresses.
pub fn lines_by_addr2line(library: &Path, addresses: &[u64]) -> Lines {
    let mut found = Lines::new();
    for address in addresses {
        let printed = run(Command::new("addr2line")
            .args(["-fie"])
            .arg(library)
            .arg(format!("{address:#x}")));
        let printed: Vec<_> = printed.lines().collect();
        let frames = printed.len() / 2;
        for (depth, frame) in printed.chunks(2).enumerate() {
            let (file, line) = frame[1].split_once(':').unwrap();
            // 12 (discriminator 3)
            let line = line.split(' ').next().unwrap().parse().unwrap();
            let key = (
                frame[0].to_owned(),
                depth + 1 < frames,
                file.to_owned(),
                line,
            );
            let share = found.entry(key).or_default();
            share.0 += u64::from(depth == 0);
            share.1 += 1;
        }
    }
    found
}

pub fn all(symbols: &Path) -> NameOptions {
    NameOptions {
        symbols: vec![symbols.to_owned()],
        inlined: true,
        lines: true,
        ..NameOptions::default()
    }
}
