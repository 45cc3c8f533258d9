//! Tests that no container makes its reader panic, run for too long or allocate too much.

use crate::common;
use varid_testing::containers;

use proptest::prelude::*;
use varid_symbolizer::container::{dex_files, entries};

/// Calls everything that reads a container, and checks that the results are bounded.
fn exercise(bytes: &[u8]) {
    let Ok(found) = dex_files("x", bytes) else {
        return;
    };
    let mut owned = 0;
    for entry in found.iter().flatten() {
        match entry.offset {
            Some(offset) => assert!(bytes[offset as usize..].starts_with(&entry.bytes)),
            None => owned += entry.bytes.len(),
        }
        // The headers of a 041 container can form a chain no longer than its bytes.
        assert!(entry.dex_files().take(1_000_000).count() < 1_000_000);
    }
    // Deflate expands a byte to at most 1032 bytes.
    assert!(owned <= bytes.len() * 1032);
    for place in entries("x", bytes).unwrap().into_iter().flatten() {
        assert!(place.offset + place.len <= bytes.len() as u64);
    }
}

/// One file of each kind.
fn samples() -> Vec<Vec<u8>> {
    let dex = std::fs::read(common::fixtures().join("names.dex")).unwrap();
    let shared = [0x5a; 64];
    let files: [(&str, &[u8]); 2] = [("a.apk", &dex), ("a.apk:classes2.dex", &dex)];
    let mut all = vec![containers::optimized(&dex)];
    all.push(containers::vdex("006", &[&dex, &dex], &[]));
    for version in ["019", "021", "027"] {
        let compact = containers::compact(&dex, (dex.len() + 8, 16));
        all.push(containers::vdex(version, &[&dex, &compact], &shared));
    }
    for version in ["039", "088"] {
        all.push(containers::oat(version, &files));
    }
    all.push(include_bytes!("../fixtures/container/small.jar").to_vec());
    all
}

#[test]
fn a_broken_container_is_an_error() {
    let mut numbers = common::Numbers(0x2545_f491_4f6c_dd1d);
    for original in samples() {
        assert!(dex_files("x", &original).unwrap().iter().all(Result::is_ok));
        for length in (0..original.len()).step_by(7) {
            exercise(&original[..length]);
        }
        for _ in 0..8_000 {
            let mut bytes = original.clone();
            for _ in 0..=numbers.below(4) {
                // Headers are at the start. An archive's directory and an ELF file's symbols are at the end.
                let near = numbers.below(bytes.len() as u64) as usize;
                let at = match numbers.below(3) {
                    0 => near,
                    1 => near % 256,
                    _ => bytes.len() - 1 - near % 512.min(bytes.len()),
                };
                let value = [0x00, 0x01, 0x7f, 0x80, 0xff, near as u8][numbers.below(6) as usize];
                for byte in bytes
                    .iter_mut()
                    .skip(at)
                    .take([1, 2, 4, 8][numbers.below(4) as usize])
                {
                    *byte = value;
                }
            }
            exercise(&bytes);
        }
    }
}

/// A few bytes claim four billion dex files, and sizes to match.
#[test]
fn what_is_claimed_is_not_allocated() {
    for version in ["006", "019", "021", "027"] {
        let mut bytes = format!("vdex{version}\0").into_bytes();
        bytes.resize(4096, 0xff);
        if version != "027" {
            bytes[8..12].copy_from_slice(b"002\0");
        }
        exercise(&bytes);
    }
    let mut header = b"oat\n088\0".to_vec();
    header.resize(4096, 0);
    header[20..24].fill(0xff);
    exercise(&containers::elf(&header));
}

/// Each of the files claims all the data that follows.
#[test]
fn compact_dex_files_share_no_more_than_apps_do() {
    let (count, step) = (400u32, 0x88);
    let one = |index: u32| {
        let mut bytes = vec![0; step as usize];
        let rest = (count - index) * (step + 4) - 4;
        bytes[..8].copy_from_slice(b"cdex001\0");
        for (field, value) in [
            (0x20, step),
            (0x24, step),
            (0x28, 0x1234_5678),
            (0x68, rest - step),
            (0x6c, step),
        ] {
            bytes[field..field + 4].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    };
    let files: Vec<Vec<u8>> = (0..count).map(one).collect();
    let files: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
    let bytes = containers::vdex("019", &files, &[]);
    let found = dex_files("x.vdex", &bytes).unwrap();
    let read: usize = found.iter().flatten().map(|entry| entry.bytes.len()).sum();
    assert!(found.len() > 32 && read <= 64 * bytes.len(), "{read} bytes");
    let error = found.last().unwrap().as_ref().unwrap_err().to_string();
    assert!(error.contains("share data"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1024) })]

    #[test]
    fn files_of_any_bytes(mut bytes in proptest::collection::vec(any::<u8>(), 0..600), kind in 0usize..6) {
        let magic = [&b"vdex021\x00002\0"[..], b"vdex027\0", b"dey\n036\0", b"PK\x03\x04", b"\x7fELF\x02\x01\x01\0", b"cdex001\0"][kind];
        let length = magic.len().min(bytes.len());
        bytes[..length].copy_from_slice(&magic[..length]);
        exercise(&bytes);
    }
}
