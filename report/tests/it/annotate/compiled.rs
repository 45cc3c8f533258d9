//! Checks the instructions of compiled code beneath the bytecode of Java methods.

use super::java::{BRANCHES, CLASS, branches};
use super::*;
use crate::views::schema::valid;
use varid_model::Machine;
use varid_recording::RecordedCode;

/// The address of the code.
const CODE: u64 = 0x7f00_0000_1000;
/// `cdq; idiv ecx; mov eax, edx; jmp` to the first instruction; `nop; ret`.
const BYTES: &[u8] = b"\x99\xf7\xf9\x89\xd0\xeb\xf9\x90\xc3";
/// Other code at the same addresses: `ret`, nine times.
const LATER: &[u8] = &[0xc3; 9];

/// Samples at `irem` in two pieces of code, one of which takes the place of the other, and at `iinc_w` in code that is not kept.
fn recorded() -> Fixture {
    let mut fixture = Fixture::java(&[branches()], &[]);
    let mut codes = fixture.writer.create_compiled_code().unwrap();
    let mut keep = |fixture: &mut Fixture, id: u32, bytes: &[u8]| {
        let code = RecordedCode {
            pid: Pid::new(100),
            since: fixture.tick(),
            start: Address::new(CODE),
            machine: Machine::X86_64,
            name: format!("compilation {id} (tier 4) of org.example.corpus.Opcodes.branches"),
            bytes: bytes.to_vec(),
        };
        assert!(codes.add(&code).unwrap());
        codes.flush().unwrap();
    };
    keep(&mut fixture, 7, BYTES);
    sampled(&mut fixture, 30, BRANCHES + 12, CODE + 1);
    sampled(&mut fixture, 10, BRANCHES + 12, CODE + 3);
    // A leaf in native code, and one outside of all code that is kept.
    sampled(&mut fixture, 3, crate::common::java::LIBJVM, CODE);
    sampled(&mut fixture, 2, BRANCHES + 27, CODE + 9);
    keep(&mut fixture, 8, LATER);
    sampled(&mut fixture, 5, BRANCHES + 12, CODE + 1);
    fixture.writer.finish().unwrap();
    fixture
}

fn sampled(fixture: &mut Fixture, count: u64, leaf: u64, instruction: u64) {
    for _ in 0..count {
        let time = fixture.tick();
        fixture.write(&SessionRecord::Sample(Sample {
            event: 0,
            time,
            pid: Pid::new(100),
            tid: Tid::new(100),
            cpu: 0,
            period: Period::new(1_000_000),
            original_ip: Address::new(instruction),
            interrupt: None,
            mode: CpuMode::User,
            uid: NO_UID,
            frame: None,
            precision: Precision::Approximate,
            kernel: Vec::new(),
            user: vec![Address::new(leaf)],
        }));
    }
}

fn annotated(fixture: &Fixture, class_path: &[PathBuf]) -> Annotation {
    let request = AnnotateRequest {
        method: Some("Opcodes.branches(int".to_owned()),
        class_path: class_path.to_vec(),
        context: 2,
        ..AnnotateRequest::default()
    };
    one(annotate(&fixture.profile(&options(NameOptions::default())), &request).unwrap())
}

fn classes(fixture: &Fixture) -> PathBuf {
    let classes = fixture.dir.path().join("classes");
    let folder = classes.join("org/example/corpus");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("Opcodes.class"), CLASS).unwrap();
    classes
}

#[test]
fn instructions_of_compiled_code_are_beneath_their_bytecode_with_the_code_of_their_time() {
    let fixture = recorded();
    let found = annotated(&fixture, &[classes(&fixture)]);
    let shown = text(&found, AnnotationText::default());
    for part in [
        "A: compilation 7 (tier 4) of org.example.corpus.Opcodes.branches, 40 samples, x86-64",
        "B: compilation 8 (tier 4) of org.example.corpus.Opcodes.branches, 5 samples, x86-64",
        "A+5:          jmp A+0",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let lines = found.files.iter().flat_map(|file| &file.lines);
    let with_code: Vec<_> = lines
        .flat_map(|line| &line.instructions)
        .filter(|instruction| !instruction.compiled.is_empty())
        .collect();
    let [irem] = with_code[..] else {
        panic!("{with_code:?}");
    };
    assert!(irem.text.starts_with("irem"));
    let compiled: Vec<_> = irem
        .compiled
        .iter()
        .map(|one| (one.code, one.offset, one.text.as_str(), one.own.get(0)))
        .collect();
    assert_eq!(
        compiled,
        [
            ('A', 0, "cdq", 0),
            ('A', 1, "idiv ecx", 30),
            ('A', 3, "mov eax, edx", 10),
            ('A', 5, "jmp A+0", 0),
            ('A', 7, "nop", 0),
            ('B', 0, "ret", 0),
            ('B', 1, "ret", 5),
            ('B', 2, "ret", 0),
            ('B', 3, "ret", 0),
        ]
    );
}

#[test]
fn without_bytecode_instructions_of_compiled_code_are_beneath_their_line() {
    let fixture = recorded();
    let found = annotated(&fixture, &[]);
    assert_eq!(found.method.code, None);
    let lines = found.files.iter().flat_map(|file| &file.lines);
    let own = lines
        .flat_map(|line| &line.compiled)
        .map(|one| one.own.get(0));
    assert_eq!(own.sum::<u64>(), 45);
    let shown = text(&found, AnnotationText::default());
    assert!(shown.contains("A+1:          idiv ecx"), "{shown}");
}

#[test]
fn the_json_of_compiled_code_fits_its_schema() {
    let fixture = recorded();
    let found = annotated(&fixture, &[classes(&fixture)]);
    let json = json(&found);
    let schema = include_str!("../../../schema/annotate.schema.json");
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    valid(&schema, &schema, &json).unwrap();
    assert_eq!(json["method"]["compiled"][0]["self"], 40);
}

#[test]
fn damaged_compiled_code_is_a_note() {
    let fixture = recorded();
    let path = fixture
        .writer
        .dir()
        .join(varid_recording::COMPILED_CODE_DATA);
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.last_mut().unwrap();
    *last ^= 1;
    fs::write(&path, bytes).unwrap();
    let profile = fixture.profile(&options(NameOptions::default()));
    let notes = &profile.recording.notes;
    let note = notes
        .iter()
        .find(|note| note.contains("compiled code behind that is not shown"));
    assert!(note.is_some(), "{notes:?}");
}
