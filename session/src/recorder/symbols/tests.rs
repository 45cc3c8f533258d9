//! The names of substitutes, which other readers of a session show.

use super::*;
use varid_model::{MonotonicNs, Rate};
use varid_recording::{EventDesc, Manifest, SampleSource, SessionTarget, TargetKind};
use varid_symbolizer::elf::ElfSymbols;

const DEX: &[u8] = include_bytes!("../../../../symbolizer/tests/fixtures/names.dex");

fn dex(path: &str) -> Rc<CodeImage> {
    Rc::new(CodeImage::of_dex(DEX.to_vec(), Path::new(path)).unwrap())
}

fn recorder(folder: &Path) -> Recorder {
    let target = SessionTarget {
        kind: TargetKind::All,
        value: String::new(),
    };
    let manifest = Manifest::new(
        EventDesc::new("cycles", Rate::Frequency(997), 1, 0),
        SampleSource::Bpf,
        target,
        MonotonicNs::ZERO,
    );
    Recorder::create(
        &folder.join("session"),
        manifest,
        None,
        &folder.join("cache"),
    )
    .unwrap()
}

#[test]
fn a_substitute_has_the_name_of_the_first_file_with_its_content() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = recorder(folder.path());
    let first = dex("/data/app/math.dex");
    let id = hex(&first.build_id);
    let path = recorder.substitute(&first).unwrap();
    assert!(path.is_absolute() && path.ends_with(format!("session/symbols/{id}/math.dex")));
    for other in ["/data/app/other.dex", "/data/app/base.apk!classes2.dex"] {
        assert_eq!(recorder.substitute(&dex(other)).unwrap(), path);
    }
    let elf = ElfSymbols::from_bytes(&std::fs::read(&path).unwrap(), "math.dex").unwrap();
    assert_eq!(elf.build_id(), Some(&first.build_id[..]));
    let images = &recorder.writer().manifest_mut().images;
    let listed: Vec<_> = images
        .iter()
        .filter(|image| image.kind == ImageKind::Dex)
        .map(|image| (image.path.as_str(), image.substitute.as_deref().unwrap()))
        .collect();
    assert_eq!(
        listed,
        [("/data/app/math.dex", &*format!("symbols/{id}/math.dex"))]
    );
    let symbols = folder.path().join("session/symbols");
    assert!(symbols.join(format!("{id}.{SUBSTITUTE_SYM}")).is_file());
    assert_eq!(std::fs::read_dir(symbols.join(&id)).unwrap().count(), 1);
}

/// An app chooses the names of its files and memory.
#[test]
fn a_substitute_s_name_is_plain() {
    for (path, name) in [
        ("/data/app/base.apk!classes2.dex", "base.apk-classes2.dex"),
        ("/x/-rf \u{1b}[2J\n.dex", "_rf___2J_.dex"),
        ("/x/..", "_"),
        ("//anon", "anon"),
        ("[DEX data]", "DEX_data"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let found = recorder(folder.path()).substitute(&dex(path)).unwrap();
        assert_eq!(found.file_name().unwrap(), name);
        assert!(found.is_file(), "{path}");
    }
}
