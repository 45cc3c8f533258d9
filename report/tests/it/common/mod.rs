//! A recording with every kind of frame, made by the writer.

pub mod java;
pub mod native;

use std::{fs, path::Path};

use varid_model::{
    Address, Layer, Marker, Mode, MonotonicNs, Period, Pid, Precision, Rate, Reason, Tid,
};
use varid_recording::remap::address_of;
use varid_recording::{
    CpuMode, EventDesc, ImageKind, Manifest, MappingRecord, REMAP_BASE, REMAP_SIZE, Sample,
    SampleSource, SessionImage, SessionReader, SessionRecord, SessionTarget, SessionWriter,
    TargetKind, remap,
};
use varid_report::{Options, OutputFormat, Profile, View, render};
use varid_symbolizer::substitute::{Slot, Substitute};

pub const APP: u64 = 0x7000_0000_0000;
pub const FRAMEWORK: u64 = 0x7100_0000_0000;
pub const LIBART: u64 = 0x7200_0000_0000;
pub const LIBSKIA: u64 = 0x7300_0000_0000;
pub const LIBFOO: u64 = 0x7400_0000_0000;
pub const KERNEL: u64 = 0xffff_ffff_8100_0000;

/// Leaf addresses. A caller is a return address: `+ 1`.
pub const DRAW: u64 = APP + 0x1010;
pub const RUN: u64 = APP + 0x1110;
pub const FIB: u64 = APP + 0x1210;
pub const SQRT: u64 = FRAMEWORK + 0x1010;
pub const ATTACH: u64 = LIBART + 0x1010;
pub const BLIT: u64 = LIBSKIA + 0x4321;
pub const FOO: u64 = LIBFOO + 0x1010;
pub const JNI: u64 = remap::FIRST_METHOD;
pub const READ: u64 = KERNEL + 0x110;

pub const APP_ID: [u8; 20] = [0xaa; 20];
const FRAMEWORK_ID: [u8; 20] = [0xbb; 20];
const LIBART_ID: [u8; 20] = [0xcc; 20];

pub struct Fixture {
    pub dir: tempfile::TempDir,
    pub session: std::path::PathBuf,
    pub writer: SessionWriter,
    pub time: u64,
    /// That of the next samples.
    pub precision: Precision,
}

pub fn slot(offset: u64, name: &str) -> Slot {
    let name = name.to_owned();
    Slot {
        offset,
        size: 0x100,
        name,
    }
}

pub fn elf(path: &Path, build_id: &[u8], slots: Vec<Slot>) {
    Substitute::remap(slots, 0x4000, build_id)
        .unwrap()
        .write(path)
        .unwrap();
}

pub fn manifest() -> Manifest {
    let event = EventDesc::new("cpu-clock", Rate::Frequency(997), 1, 0);
    let target = SessionTarget {
        kind: TargetKind::App,
        value: "org.example.balls".into(),
    };
    let mut manifest = Manifest::new(
        event,
        SampleSource::Bpf,
        target,
        MonotonicNs::new(1_000_000),
    );
    manifest.wall_start = "2024-02-29T12:00:00Z".into();
    manifest.duration_ns = 2_500_000_000;
    manifest.host.kernel = "6.1.0-recorded".into();
    manifest.host.machine = "another".into();
    manifest
}

impl Fixture {
    /// A session with the names and mappings of two processes, 100 and 200, and without samples.
    pub fn new() -> Self {
        Self::with(manifest())
    }

    /// A session without names, mappings or samples.
    pub fn bare() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let session = dir.path().join("session");
        let writer = SessionWriter::create(&session, manifest()).unwrap();
        Self {
            dir,
            session,
            writer,
            time: 1_000_000,
            precision: Precision::Exact,
        }
    }

    /// Maps a file into a process.
    pub fn map(&mut self, pid: u32, start: u64, path: &Path, build_id: &[u8]) {
        let time = self.tick();
        self.write(&SessionRecord::Mapping(MappingRecord {
            time,
            pid: Pid::new(pid),
            tid: Tid::new(pid),
            start: Address::new(start),
            len: 0x8000,
            pgoff: 0,
            kernel: false,
            mode: Some(Mode {
                read: true,
                execute: true,
                ..Mode::default()
            }),
            path: path.to_owned(),
            build_id: build_id.to_vec(),
        }));
    }

    /// The same with another manifest.
    pub fn with(manifest: Manifest) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let session = dir.path().join("session");
        let mut writer = SessionWriter::create(&session, manifest).unwrap();
        let symbols = writer.symbols();
        elf(
            &symbols.join("app.elf"),
            &APP_ID,
            vec![
                slot(0x1000, "org.example.Balls.draw"),
                slot(0x1100, "org.example.Balls.run"),
                slot(0x1200, "org.example.Balls.fib(int)"),
            ],
        );
        elf(
            &symbols.join("framework.elf"),
            &FRAMEWORK_ID,
            vec![slot(0x1000, "java.lang.Math.sqrt")],
        );
        let mut slots: Vec<_> = Marker::all()
            .map(|marker| Slot {
                offset: address_of(marker).get() - REMAP_BASE,
                size: remap::SLOT_SIZE,
                name: marker.symbol().to_owned(),
            })
            .collect();
        slots.push(Slot {
            offset: JNI - REMAP_BASE,
            size: 16,
            name: "org.example.Balls.nativeBlit".to_owned(),
        });
        elf(&symbols.join("remap.elf"), &[1; 20], slots);
        let kernel = format!(
            "{KERNEL:x}\t100\tentry\t\n{:x}\t100\tsys_read\t\n",
            KERNEL + 0x100
        );
        fs::write(symbols.join("kernel.sym"), kernel).unwrap();
        let libart = dir.path().join("libart.so");
        elf(
            &libart,
            &LIBART_ID,
            vec![slot(0x1000, "#ZN3art6Thread6AttachEPKcbP8_jobjectb")],
        );
        // Symbols of a substitute are never mangled, but those of a library are.
        let mut bytes = fs::read(&libart).unwrap();
        let name = b"#ZN3art";
        let at = bytes.windows(name.len()).position(|found| found == name);
        bytes[at.unwrap()] = b'_';
        fs::write(&libart, bytes).unwrap();
        let libfoo = dir.path().join("libfoo.so");
        elf(&libfoo, &[0xdd; 20], vec![slot(0x1000, "foo")]);

        let image = |path: &str, kind, layer, substitute: Option<&str>, location: Option<&str>| {
            SessionImage {
                path: path.to_owned(),
                build_id: String::new(),
                kind,
                layer,
                substitute: substitute.map(str::to_owned),
                location: location.map(str::to_owned),
            }
        };
        let app = Some("symbols/app.elf");
        let framework = Some("symbols/framework.elf");
        writer.manifest_mut().images = vec![
            image(
                "/data/app/balls.apk",
                ImageKind::Dex,
                Layer::App,
                app,
                Some("balls.apk!classes.dex"),
            ),
            image(
                "/system/framework/core.dex",
                ImageKind::Dex,
                Layer::Framework,
                framework,
                None,
            ),
            image(
                "remap.elf",
                ImageKind::Remap,
                Layer::App,
                Some("symbols/remap.elf"),
                None,
            ),
            image(
                libart.to_str().unwrap(),
                ImageKind::Elf,
                Layer::Vm,
                None,
                None,
            ),
        ];

        let mut fixture = Self {
            dir,
            session,
            writer,
            time: 1_000_000,
            precision: Precision::Exact,
        };
        for (pid, tid, name) in [
            (100, 100, "balls"),
            (100, 101, "Binder:1"),
            (200, 200, "other"),
        ] {
            let time = fixture.tick();
            let name = name.to_owned();
            fixture.write(&SessionRecord::Comm {
                time,
                pid: Pid::new(pid),
                tid: Tid::new(tid),
                exec: false,
                name,
            });
        }
        for pid in [100, 200] {
            for (start, len, path, build_id) in [
                (APP, 0x4000, symbols.join("app.elf"), &APP_ID[..]),
                (
                    FRAMEWORK,
                    0x4000,
                    symbols.join("framework.elf"),
                    &FRAMEWORK_ID,
                ),
                (LIBART, 0x4000, libart.clone(), &LIBART_ID),
                (LIBSKIA, 0x8000, "/nonexistent/libskia.so".into(), &[]),
                (LIBFOO, 0x4000, libfoo.clone(), &[0xee; 20]),
                (REMAP_BASE, REMAP_SIZE, symbols.join("remap.elf"), &[1; 20]),
            ] {
                let time = fixture.tick();
                fixture.write(&SessionRecord::Mapping(MappingRecord {
                    time,
                    pid: Pid::new(pid),
                    tid: Tid::new(pid),
                    start: Address::new(start),
                    len,
                    pgoff: 0,
                    kernel: false,
                    mode: (start != REMAP_BASE).then_some(Mode {
                        read: true,
                        execute: start >= LIBART,
                        ..Mode::default()
                    }),
                    path,
                    build_id: build_id.to_vec(),
                }));
            }
        }
        fixture
    }

    pub fn tick(&mut self) -> MonotonicNs {
        self.time += 1_000_000;
        MonotonicNs::new(self.time)
    }

    pub fn write(&mut self, record: &SessionRecord) {
        self.writer.write(record).unwrap();
    }

    /// Adds `count` samples with these user frames, leaf first, callers as return addresses.
    pub fn samples(&mut self, count: u64, (pid, tid): (u32, u32), user: &[u64]) {
        self.kernel_samples(count, (pid, tid), &[], user);
    }

    pub fn kernel_samples(
        &mut self,
        count: u64,
        (pid, tid): (u32, u32),
        kernel: &[u64],
        user: &[u64],
    ) {
        for _ in 0..count {
            let time = self.tick();
            self.write(&SessionRecord::Sample(Sample {
                event: 0,
                time,
                pid: Pid::new(pid),
                tid: Tid::new(tid),
                cpu: 0,
                period: Period::new(1_000_000),
                original_ip: Address::new(0x1234),
                interrupt: None,
                mode: if kernel.is_empty() {
                    CpuMode::User
                } else {
                    CpuMode::Kernel
                },
                uid: 10_001,
                frame: Some(Address::new(0x7f00_0000_1000)),
                precision: self.precision,
                kernel: kernel.iter().copied().map(Address::new).collect(),
                user: user.iter().copied().map(Address::new).collect(),
            }));
        }
    }

    /// A recording with every layer, recursion, markers, two processes and three threads.
    pub fn full() -> Self {
        let mut fixture = Self::new();
        let main = (100, 100);
        fixture.samples(40, main, &[DRAW, RUN + 1]);
        fixture.samples(10, main, &[SQRT, DRAW + 1, RUN + 1]);
        fixture.samples(20, main, &[FIB, FIB + 1, FIB + 1, RUN + 1]);
        fixture.samples(
            5,
            (100, 101),
            &[ATTACH, address_of(Marker::Native).get(), RUN + 1],
        );
        fixture.samples(8, main, &[BLIT, JNI, DRAW + 1, RUN + 1]);
        fixture.samples(2, main, &[FOO, RUN + 1]);
        fixture.kernel_samples(
            10,
            main,
            &[READ, KERNEL + 0x11],
            &[BLIT, JNI, DRAW + 1, RUN + 1],
        );
        fixture.samples(
            3,
            main,
            &[DRAW, address_of(Marker::Reason(Reason::TornFrames)).get()],
        );
        fixture.samples(
            1,
            main,
            &[
                0xdead_0000,
                address_of(Marker::Reason(Reason::UnknownMapping)).get(),
            ],
        );
        fixture.samples(1, (200, 200), &[RUN]);
        let time = fixture.tick();
        fixture.write(&SessionRecord::Lost { time, count: 7 });
        fixture.writer.manifest_mut().counts.throttled = 2;
        fixture.writer.manifest_mut().counts.malformed = 3;
        fixture.writer.finish().unwrap();
        fixture
    }

    pub fn profile(&self, options: &Options) -> Profile {
        let session = SessionReader::open(&self.session).unwrap();
        Profile::from_session(&session, options).unwrap()
    }

    /// A view of the profile, without the name of the temporary folder.
    pub fn render(&self, options: &Options, view: &View, format: OutputFormat) -> String {
        let mut out = Vec::new();
        render(&self.profile(options), view, format, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.replace(self.dir.path().to_str().unwrap(), "DIR")
    }
}

/// Decodes an event of a page with an independent decoder, which fails if the page could run or fetch anything except
/// its own script.
pub fn decoded(page: &[u8], event: usize) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), page).unwrap();
    let decoder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/oracle/html_report.py"
    );
    let mut python = std::process::Command::new("python3");
    python.args(["-B", decoder, "--event", &event.to_string()]);
    let output = python.arg(file.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).unwrap()
}
