//! Checks that a packed session is unchanged elsewhere, and that a hostile pack can only write a session.

use std::{fs, io::Write, path::Path};

use crate::common::native::{Native, lines, lines_by_addr2line, options};
use flate2::{Compression, write::GzEncoder};
use varid_recording::SessionReader;
use varid_report::{NameOptions, PackError, Profile, pack, unpack};

fn lines_of_all() -> NameOptions {
    NameOptions {
        inlined: true,
        lines: true,
        ..NameOptions::default()
    }
}

#[test]
fn a_packed_session_has_the_names_of_files_that_are_elsewhere() {
    let native = Native::new(true);
    fs::create_dir_all(native.recorded.parent().unwrap()).unwrap();
    fs::copy(&native.library, &native.recorded).unwrap();
    let session = SessionReader::open(&native.fixture.session).unwrap();
    let mut file = Vec::new();
    let packed = pack(&session, &NameOptions::default(), &mut file).unwrap();
    let here = lines(&native.profile(lines_of_all()));
    let missing: Vec<_> = packed
        .missing
        .iter()
        .map(|(path, _)| path.clone())
        .collect();
    assert!(missing.contains(&"/nonexistent/libskia.so".into()));
    assert!(!missing.contains(&native.recorded));
    // The machine of the recording is gone, and so is the session.
    fs::remove_file(&native.recorded).unwrap();
    fs::remove_dir_all(&native.fixture.session).unwrap();
    let folder = native.fixture.dir.path().join("elsewhere");
    unpack(&*file, file.len() as u64, &folder).unwrap();
    let session = SessionReader::open(&folder).unwrap();
    let there = Profile::from_session(&session, &options(lines_of_all())).unwrap();
    assert_eq!(lines(&there), here);
    assert_eq!(here, lines_by_addr2line(&native.library, &native.addresses));
    // Pack it again: symbols that it already has are not searched.
    let mut second = Vec::new();
    let again = pack(&session, &NameOptions::default(), &mut second).unwrap();
    assert_eq!(again.named, packed.named);
    // A file with this name and content that is not listed, as for another path. It is packed once.
    let manifest = folder.join("session.json");
    let mut listed: serde_json::Value =
        serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    listed["kept"] = serde_json::json!([]);
    fs::write(&manifest, listed.to_string()).unwrap();
    fs::copy(&native.library, &native.recorded).unwrap();
    let session = SessionReader::open(&folder).unwrap();
    let mut third = Vec::new();
    pack(&session, &NameOptions::default(), &mut third).unwrap();
    let folder = native.fixture.dir.path().join("third");
    unpack(&*third, third.len() as u64, &folder).unwrap();
}

/// An entry of a pack: its name, type and content, and the size that it claims to have.
type Entry<'e> = (&'e str, tar::EntryType, &'e [u8], Option<u64>);

fn packed(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    for (name, kind, content, size) in entries {
        let mut header = tar::Header::new_ustar();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(size.unwrap_or(content.len() as u64));
        header.set_mode(0o777);
        header.as_ustar_mut().unwrap().linkname[..6].copy_from_slice(b"/etc/x");
        header.set_cksum();
        out.write_all(header.as_bytes()).unwrap();
        out.write_all(content).unwrap();
        out.write_all(&vec![0; content.len().wrapping_neg() % 512])
            .unwrap();
    }
    out.write_all(&[0; 1024]).unwrap();
    out.finish().unwrap()
}

fn refused(folder: &Path, pack: &[u8]) -> PackError {
    let _ = fs::remove_dir_all(folder);
    unpack(pack, pack.len() as u64, folder).unwrap_err()
}

#[test]
fn a_hostile_pack_writes_no_file_that_a_session_does_not_have() {
    use tar::EntryType as Kind;
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("session");
    let manifest = ("session/session.json", Kind::Regular, &b"{}"[..], None);
    for foreign in [
        ("session/../x", Kind::Regular),
        ("/etc/x", Kind::Regular),
        ("session//etc/x", Kind::Regular),
        ("session/symbols/../../x", Kind::Regular),
        ("session/symbols/a/b/c", Kind::Regular),
        ("session/symbols/.x", Kind::Regular),
        ("session/notes", Kind::Regular),
        ("other/session.json", Kind::Regular),
        ("session/symbols/a", Kind::Symlink),
        ("session/symbols/a", Kind::Link),
        ("session/symbols/a", Kind::Fifo),
        ("session/symbols/a", Kind::Char),
        // A name for the next entry, of any size.
        ("././@LongLink", Kind::GNULongName),
        ("session/pax", Kind::XHeader),
        ("session/symbols/a", Kind::GNUSparse),
    ] {
        let pack = packed(&[(foreign.0, foreign.1, b"x", None), manifest]);
        let error = refused(&folder, &pack);
        assert!(
            matches!(error, PackError::Foreign(_)),
            "{foreign:?}: {error}"
        );
        let written = fs::read_dir(&folder).unwrap().count();
        assert_eq!(written, 0, "{foreign:?}");
    }
    assert!(!dir.path().join("x").exists());
    // The same file twice: the first one is kept.
    let twice = packed(&[
        manifest,
        ("session/session.json", Kind::Regular, b"other", None),
    ]);
    assert!(matches!(refused(&folder, &twice), PackError::Write { .. }));
    assert_eq!(fs::read(folder.join("session.json")).unwrap(), b"{}");
    let without = packed(&[("session/perf.data", Kind::Regular, b"x", None)]);
    assert!(matches!(refused(&folder, &without), PackError::NoSession));
    // The folder entry alone is harmless.
    let whole = packed(&[("session/", Kind::Directory, b"", None), manifest]);
    fs::remove_dir_all(&folder).unwrap();
    unpack(&*whole, whole.len() as u64, &folder).unwrap();
}

#[test]
fn a_small_pack_fills_neither_memory_nor_the_disk() {
    use tar::EntryType as Kind;
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("session");
    let size = Some(1 << 40);
    let claims = packed(&[("session/perf.data", Kind::Regular, b"x", size)]);
    assert!(matches!(refused(&folder, &claims), PackError::TooLarge(_)));
    // Zeros that expand to a gigabyte.
    let mut out = GzEncoder::new(Vec::new(), Compression::best());
    let mut header = tar::Header::new_ustar();
    header.set_path("session/perf.data").unwrap();
    header.set_size(1 << 30);
    header.set_cksum();
    out.write_all(header.as_bytes()).unwrap();
    let zeros = vec![0; 1 << 20];
    for _ in 0..1 << 10 {
        out.write_all(&zeros).unwrap();
    }
    let bomb = out.finish().unwrap();
    assert!(matches!(refused(&folder, &bomb), PackError::TooLarge(_)));
    let part = |pack: &[u8]| pack.get(..pack.len() / 2).unwrap().to_vec();
    let content = vec![7; 1 << 12];
    let cut = part(&packed(&[(
        "session/perf.data",
        Kind::Regular,
        &content,
        None,
    )]));
    assert!(matches!(refused(&folder, &cut), PackError::Damaged(_)));
    assert!(matches!(
        refused(&folder, b"no pack"),
        PackError::Damaged(_)
    ));
}
