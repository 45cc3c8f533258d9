//! Does an annotation have each instruction's and each line's samples, and is what it shows harmless?

mod bytecode;
mod hostile;
mod native;
mod page;
mod shared;

use std::{
    fs,
    path::{Path, PathBuf},
};

use varid_model::{Address, Layer, Period, Pid, Precision, Tid};
use varid_recording::{
    CpuMode, ImageKind, MappingRecord, NO_UID, Sample, SessionImage, SessionRecord,
};
use varid_report::{
    AnnotateRequest, Annotated, Annotation, AnnotationText, NameOptions, Options, annotate,
    write_annotation_json, write_annotation_text, write_candidates,
};
use varid_symbolizer::{dex::DexFile, substitute::Substitute};

use crate::common::Fixture;

/// Made by items.sh beside it.
const DEX: &[u8] = include_bytes!("../../../../symbolizer/tests/fixtures/items.dex");
const CODE: u64 = 0x7500_0000_0000;
/// Instructions of `steps`: at lines 100, 116, 116, 117 and 119.
const STEPS: u64 = CODE + 0x1134;
const LATER: u64 = STEPS + 2 * 4;
const SECOND: u64 = STEPS + 2 * 9;
const END: u64 = STEPS + 2 * 0x34;
/// The first instruction of `arrays`.
const ARRAYS: u64 = CODE + 0x1278;

/// The lines of the source file of `steps`.
fn source() -> String {
    let line = |number: u32| match number {
        94 => "    static void steps() {".to_owned(),
        95..=119 => format!("        step{number}(); // of this method"),
        120 => "    }".to_owned(),
        _ => format!("    // line {number}"),
    };
    let lines: Vec<_> = (1..=130).map(line).collect();
    lines.join("\n") + "\n"
}

/// A recording of `steps`, which `arrays` called and which called itself.
struct Bytecode {
    fixture: Fixture,
    /// Where the dex file was recorded.
    dex: PathBuf,
    /// A folder with its source.
    sources: PathBuf,
}

impl Bytecode {
    fn new() -> Self {
        let mut fixture = Fixture::new();
        let dir = fixture.dir.path().to_owned();
        let dex = dir.join("items.dex");
        fs::write(&dex, DEX).unwrap();
        let sources = dir.join("sources");
        let folder = sources.join("src/main/java/org/example/corpus");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("Lines.java"), source()).unwrap();
        map(&mut fixture, &dex);
        for (count, precision, user) in [
            (50, Precision::Exact, &[LATER, ARRAYS + 1][..]),
            (20, Precision::Exact, &[SECOND, ARRAYS + 1]),
            (4, Precision::Approximate, &[STEPS, ARRAYS + 1]),
            // A recursion: each sample counts once for a line, and once for an instruction.
            (
                6,
                Precision::Exact,
                &[END, LATER + 1, LATER + 1, SECOND + 1, ARRAYS + 1],
            ),
            (20, Precision::Exact, &[ARRAYS]),
        ] {
            samples(&mut fixture, count, precision, user);
        }
        fixture.writer.finish().unwrap();
        Self {
            fixture,
            dex,
            sources,
        }
    }

    /// The annotation of a method.
    fn annotated(&self, method: &str) -> Annotation {
        self.annotate(&self.request(method))
    }

    fn request(&self, method: &str) -> AnnotateRequest {
        AnnotateRequest {
            method: Some(method.to_owned()),
            sources: vec![self.sources.clone()],
            context: 2,
            ..AnnotateRequest::default()
        }
    }

    fn annotate(&self, request: &AnnotateRequest) -> Annotation {
        one(annotate(
            &self.fixture.profile(&options(NameOptions::default())),
            request,
        )
        .unwrap())
    }

    /// The text, without the folder's name of this run.
    fn text(&self, annotation: &Annotation, look: AnnotationText) -> String {
        let folder = self.fixture.dir.path().to_str().unwrap();
        text(annotation, look).replace(folder, "DIR")
    }
}

/// What an annotation needs of a profile.
fn options(names: NameOptions) -> Options {
    Options {
        names: NameOptions {
            inlined: true,
            lines: true,
            ..names
        },
        sampled_addresses: true,
        ..Options::default()
    }
}

/// Maps the substitute of the dex file, which was recorded at a path.
fn map(fixture: &mut Fixture, recorded: &Path) {
    let path = fixture.writer.symbols().join("items.elf");
    let dex = DexFile::parse(DEX).unwrap();
    Substitute::of_dex(&dex).unwrap().write(&path).unwrap();
    fixture.writer.manifest_mut().images.push(SessionImage {
        path: recorded.to_str().unwrap().to_owned(),
        build_id: String::new(),
        kind: ImageKind::Dex,
        layer: Layer::App,
        substitute: Some("symbols/items.elf".to_owned()),
        location: None,
    });
    let time = fixture.tick();
    fixture.write(&SessionRecord::Mapping(MappingRecord {
        time,
        pid: Pid::new(100),
        tid: Tid::new(100),
        start: Address::new(CODE),
        len: 0x4000,
        pgoff: 0,
        kernel: false,
        mode: None,
        path,
        build_id: dex.content_sha1().to_vec(),
    }));
}

fn samples(fixture: &mut Fixture, count: u64, precision: Precision, user: &[u64]) {
    samples_of(fixture, 0, (count, precision), user);
}

fn samples_of(
    fixture: &mut Fixture,
    event: usize,
    (count, precision): (u64, Precision),
    user: &[u64],
) {
    for _ in 0..count {
        let time = fixture.tick();
        fixture.write(&SessionRecord::Sample(Sample {
            event,
            time,
            pid: Pid::new(100),
            tid: Tid::new(100),
            cpu: 0,
            period: Period::new(1_000_000),
            original_ip: Address::new(0x1234),
            interrupt: None,
            mode: CpuMode::User,
            uid: NO_UID,
            frame: None,
            precision,
            kernel: Vec::new(),
            user: user.iter().copied().map(Address::new).collect(),
        }));
    }
}

fn one(annotated: Annotated) -> Annotation {
    match annotated {
        Annotated::Method(annotation) => *annotation,
        Annotated::Candidates(candidates) => panic!("{candidates:?}"),
    }
}

fn text(annotation: &Annotation, look: AnnotationText) -> String {
    let mut out = Vec::new();
    write_annotation_text(annotation, look, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn json(annotation: &Annotation) -> serde_json::Value {
    let mut out = Vec::new();
    write_annotation_json(annotation, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

/// A terminal of so many columns.
fn columns(width: usize) -> AnnotationText {
    AnnotationText {
        width: Some(width),
        colour: false,
    }
}
