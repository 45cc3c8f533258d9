//! Checks the table of sampled VM frames.

use super::*;

pub fn by_dim() -> View {
    View {
        table: ReportTable::VM_FRAMES,
        ..View::default()
    }
}

/// Collects the frames with their lines.
pub fn dim_options() -> Options {
    let mut options = Options {
        sampled_frames: true,
        ..Options::default()
    };
    options.names.lines = true;
    options
}

#[test]
fn frames_of_threads_in_text() {
    let fixture = Fixture::full();
    insta::assert_snapshot!(fixture.render(&dim_options(), &by_dim(), OutputFormat::Text));
}

#[test]
fn frames_of_threads_in_csv() {
    let fixture = Fixture::full();
    let view = View {
        limit: Some(6),
        ..by_dim()
    };
    insta::assert_snapshot!(fixture.render(&dim_options(), &view, OutputFormat::Csv));
}

#[test]
fn each_sample_is_in_one_row_by_dim() {
    let fixture = Fixture::full();
    let report = json(&fixture, &dim_options(), &by_dim());
    let rows = report["rows"].as_array().unwrap();
    let samples: u64 = rows.iter().map(|row| row["total"].as_u64().unwrap()).sum();
    assert_eq!(samples, report["samples"]);
    let of = |method: &str| rows.iter().find(|row| row["method"] == method).unwrap();
    // A native method is a caller of the leaf, and its slot is not code.
    let blit = of("nativeBlit");
    assert_eq!((&blit["line"], &blit["self"]), (&(-2).into(), &0.into()));
    assert_eq!(blit["vma"], format!("{JNI:#x}"));
    let draw = of("draw");
    assert_eq!(draw["vma"], format!("{DRAW:#x}"));
    assert_eq!((&draw["pc"], &draw["line"]), (&8.into(), &(-1).into()));
    assert_eq!(draw["class"], "Lorg/example/Balls;");
    assert_eq!(draw["depth"], 2);
    assert_eq!(draw["uid"], 10_001);
    assert_eq!(draw["map"]["mode"], "r--p");
}
