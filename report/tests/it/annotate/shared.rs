//! Are the instructions of a method that shares them shown where its own copy of them is?

use super::*;
use varid_symbolizer::bytecode::BytecodeImage;
use varid_symbolizer::dex::DexBytecode;

/// Made by shared.sh beside it.
const SHARED: &[u8] = include_bytes!("../../../../symbolizer/tests/fixtures/shared.cdex");

#[test]
fn a_copy_s_samples_stand_beside_the_instructions_that_it_is_of() {
    let mut fixture = Fixture::new();
    let recorded = fixture.dir.path().join("shared.dex");
    fs::write(&recorded, SHARED).unwrap();
    let image = DexBytecode::new(DexFile::parse(SHARED).unwrap()).unwrap();
    let path = fixture.writer.symbols().join("shared.elf");
    Substitute::of_bytecode(&image).write(&path).unwrap();
    fixture.writer.manifest_mut().images.push(SessionImage {
        path: recorded.to_str().unwrap().to_owned(),
        build_id: String::new(),
        kind: ImageKind::Dex,
        layer: Layer::App,
        substitute: Some("symbols/shared.elf".to_owned()),
        location: None,
    });
    let copies = image.copies().range();
    let time = fixture.tick();
    fixture.write(&SessionRecord::Mapping(MappingRecord {
        time,
        pid: Pid::new(100),
        tid: Tid::new(100),
        start: Address::new(CODE),
        len: 0x1000,
        pgoff: copies.start.into(),
        kernel: false,
        mode: None,
        path,
        build_id: image.content_id().to_vec(),
    }));
    for (name, count) in [("One", 3), ("Two", 5)] {
        let name = format!("org.example.shared.{name}.turn");
        let is_its = |index| image.method_name(index).as_ref() == Some(&name);
        let mut all = image.copies().iter();
        let copy = all.find(|copy| is_its(copy.method.index)).unwrap();
        let second = copy.code.start - copies.start + 4;
        let user = [CODE + u64::from(second)];
        samples(&mut fixture, count, Precision::Exact, &user);
    }
    fixture.writer.finish().unwrap();
    let profile = fixture.profile(&options(NameOptions::default()));
    for (name, lines, count) in [("One", ["11", "12"], "3"), ("Two", ["21", "22"], "5")] {
        let request = AnnotateRequest {
            method: Some(format!("org.example.shared.{name}.turn")),
            ..AnnotateRequest::default()
        };
        let shown = text(&one(annotate(&profile, &request).unwrap()), columns(120));
        for part in [
            lines[0],
            lines[1],
            "0000:      add-int/lit8 v0, v1",
            "0002:      return v0",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(shown.contains(&format!("{count} of 8 samples")), "{shown}");
        let sampled = shown.lines().find(|line| line.contains("return v0"));
        assert!(sampled.unwrap().contains("100.00"), "{shown}");
    }
}
