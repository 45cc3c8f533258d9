//! Is it told which lines are near the one that compiled code was at?

use super::dim::{by_dim, dim_options};
use super::schema::valid;
use super::*;
use crate::common::{BLIT, READ};
use varid_model::{Period, Precision, Tid};
use varid_recording::{
    CpuMode, ImageKind, MappingRecord, NO_UID, Sample, SessionImage, SessionRecord,
};
use varid_symbolizer::{dex::DexFile, substitute::Substitute};

/// Made by items.sh beside it.
const DEX: &[u8] = include_bytes!("../../../../symbolizer/tests/fixtures/items.dex");
const CODE: u64 = 0x7500_0000_0000;
/// Instructions of methods of it: of `steps` the first and another one, of `arrays` the first.
const STEPS: u64 = CODE + 0x1134;
const LATER: u64 = STEPS + 16;
const ARRAYS: u64 = CODE + 0x1278;

/// A recording of the methods: exact samples of an interpreter, and approximate ones of compiled code.
pub fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    let path = fixture.writer.symbols().join("items.elf");
    let substitute = Substitute::of_dex(&DexFile::parse(DEX).unwrap()).unwrap();
    substitute.write(&path).unwrap();
    fixture.writer.manifest_mut().images.push(SessionImage {
        path: "/data/app/items.dex".to_owned(),
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
        build_id: Vec::new(),
    }));
    for (count, precision, kernel, user) in [
        (5, Precision::Exact, &[][..], &[STEPS, ARRAYS + 1][..]),
        (20, Precision::Approximate, &[], &[STEPS, ARRAYS + 1]),
        (4, Precision::Approximate, &[], &[LATER, ARRAYS + 1]),
        // What has been called has no instructions that a method is known by.
        (
            3,
            Precision::Approximate,
            &[],
            &[BLIT, STEPS + 1, ARRAYS + 1],
        ),
        (2, Precision::Approximate, &[READ], &[STEPS + 1, ARRAYS + 1]),
        (1, Precision::Exact, &[READ], &[STEPS + 1, ARRAYS + 1]),
    ] {
        for _ in 0..count {
            let time = fixture.tick();
            fixture.write(&SessionRecord::Sample(Sample {
                event: 0,
                time,
                pid: Pid::new(100),
                tid: Tid::new(100),
                cpu: 0,
                period: Period::new(1_000_000),
                original_ip: Address::new(0x1234),
                interrupt: None,
                mode: match kernel {
                    [] => CpuMode::User,
                    _ => CpuMode::Kernel,
                },
                uid: NO_UID,
                frame: None,
                precision,
                kernel: kernel.iter().copied().map(Address::new).collect(),
                user: user.iter().copied().map(Address::new).collect(),
            }));
        }
    }
    fixture.writer.finish().unwrap();
    fixture
}

#[test]
fn approximate_lines_are_marked_and_explained_in_text() {
    let text = fixture().render(&dim_options(), &by(GroupBy::Line), OutputFormat::Text);
    insta::assert_snapshot!(text);
}

#[test]
fn frames_of_threads_at_approximate_lines_are_marked_in_text() {
    let text = fixture().render(&dim_options(), &by_dim(), OutputFormat::Text);
    insta::assert_snapshot!(text);
}

#[test]
fn a_line_is_one_row_with_the_number_of_its_approximate_samples() {
    let fixture = fixture();
    let schema = include_str!("../../../schema/report.schema.json");
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    let report = json(&fixture, &dim_options(), &by(GroupBy::Line));
    valid(&schema, &schema, &report).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let of = |line: u64| {
        let mut rows = rows.iter().filter(|row| row["line"] == line);
        let row = rows.next().unwrap();
        assert!(rows.next().is_none(), "{report}");
        (
            row["self"].as_u64(),
            row["total"].as_u64(),
            row["approximate"].as_u64(),
        )
    };
    let (all, total) = (35, Some(31));
    assert_eq!(report["samples"], all);
    assert_eq!(of(100), (Some(25), total, Some(25)));
    // A caller's line is exact.
    assert_eq!(of(10), (Some(0), Some(all), None));
    let marked: u64 = rows
        .iter()
        .filter_map(|row| row["approximate"].as_u64())
        .sum();
    assert_eq!(marked, 29);
    let report = json(&fixture, &dim_options(), &by_dim());
    valid(&schema, &schema, &report).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let marked: u64 = rows
        .iter()
        .filter_map(|row| row["approximate"].as_u64())
        .sum();
    assert_eq!(marked, 29);
}

#[test]
fn without_lines_nothing_is_marked() {
    let fixture = fixture();
    let text = fixture.render(&Options::default(), &View::default(), OutputFormat::Text);
    assert!(!text.contains("approximate"), "{text}");
    let report = json(&fixture, &Options::default(), &by(GroupBy::Symbol));
    let rows = report["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["approximate"].is_null()));
    assert_eq!(
        shares(&report, "rows", "symbol")["org.example.corpus.Lines.steps"],
        (29, 35)
    );
}
