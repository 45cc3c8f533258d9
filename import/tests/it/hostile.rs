//! Tests that an invalid source does no harm.

use crate::common::{fixture, import_bytes, input, request};
use varid_import::{Error, ImportFormat, import};

fn recorded() -> Vec<u8> {
    std::fs::read(fixture("simpleperf/perf.data")).unwrap()
}

/// A sequence of pseudorandom numbers, which is the same in every run (xorshift).
fn numbers() -> impl FnMut(usize) -> usize {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    }
}

#[test]
fn a_changed_file_is_imported_or_refused_and_what_is_imported_is_read() {
    let whole = recorded();
    let mut next = numbers();
    let (mut imported, mut refused) = (0, 0);
    for _ in 0..200 {
        let mut bytes = whole.clone();
        for _ in 0..=next(4) {
            let at = next(bytes.len());
            let value = [0, 1, 0x7f, 0x80, 0xff][next(5)];
            bytes[at] = value;
            // Words that can be sizes and offsets.
            if next(4) == 0 {
                let at = at / 8 * 8;
                bytes[at..at + 8].fill(value);
            }
        }
        match import_bytes(&bytes, Some("perf-data")) {
            Ok(session) => {
                imported += 1;
                let read = session.session().records().unwrap().filter(Result::is_err);
                assert_eq!(read.count(), 0);
                session.samples();
            }
            Err(Error::Data { .. } | Error::NoSamples { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(
        imported > 0 && refused > 0,
        "{imported} imported, {refused} refused"
    );
}

#[test]
fn what_a_cut_file_still_has_is_imported_with_a_note() {
    let whole = recorded();
    let all = import_bytes(&whole, None).unwrap().summary.samples;
    let cut = import_bytes(&whole[..whole.len() / 2], None).unwrap();
    let (samples, notes) = (cut.summary.samples, &cut.summary.notes);
    assert!(samples > 0 && samples < all, "{samples} of {all}");
    assert!(
        notes.iter().any(|note| note.contains("offset 0x")),
        "{notes:?}"
    );
    for len in [0, 7, 8, 100, 104, 150] {
        let error = import_bytes(&whole[..len], Some("perf-data"))
            .err()
            .unwrap();
        let known = matches!(error, Error::Data { .. } | Error::NoSamples { .. });
        assert!(known, "{len} bytes: {error}");
    }
}

#[test]
fn a_size_that_a_file_claims_is_not_allocated() {
    let whole = recorded();
    // attr_size, the size of the attributes, the size of the records.
    for at in [16, 32, 48] {
        for value in [0, 1, u64::MAX, 1 << 60] {
            let mut bytes = whole.clone();
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            match import_bytes(&bytes, None) {
                Ok(session) => assert!(session.summary.samples > 0),
                Err(error) => assert!(error.to_string().contains("offset 0x"), "{error}"),
            }
        }
    }
}

#[test]
fn a_failed_import_leaves_no_session() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("session");
    let request = request(input(b"nonsense\n").unwrap(), &output);
    let error = import(request, ImportFormat::named("folded")).unwrap_err();
    assert!(matches!(error, Error::NoSamples { .. }), "{error}");
    assert!(error.to_string().contains("1 malformed"), "{error}");
    assert!(!output.exists());
}

#[test]
fn a_session_stays_until_an_import_into_its_folder_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("session");
    let import = |bytes: &[u8]| {
        let request = request(input(bytes).unwrap(), &output);
        import(request, ImportFormat::named("folded"))
    };
    let samples = || {
        let session = varid_recording::SessionReader::open(&output).unwrap();
        let records = session.records().unwrap().map(Result::unwrap);
        let samples =
            records.filter(|record| matches!(record, varid_recording::SessionRecord::Sample(_)));
        (session.manifest().counts.samples, samples.count())
    };
    import(b"main;f 1\nmain;g 2\n").unwrap();
    let error = import(b"nonsense\n").unwrap_err();
    assert!(matches!(error, Error::NoSamples { .. }), "{error}");
    assert_eq!(samples(), (2, 2));
    import(b"main;f 1\n").unwrap();
    assert_eq!(samples(), (1, 1));
    // The session's only image file is the one of the new import.
    let files = std::fs::read_dir(output.join("symbols")).unwrap();
    assert_eq!(files.count(), 1);
}

#[test]
fn files_of_big_endian_machines_are_refused_by_name() {
    let error = import_bytes(b"2ELIFREP\0\0\0\0\0\0\0\x68", None)
        .err()
        .unwrap();
    assert!(error.to_string().contains("big-endian"), "{error}");
}
