//! A session's counts of calls are never believed: they are refused, or read again as they are written; a report of them is made.

use crate::{bounded, manifest, with_session};
use std::io::sink;
use varid_recording::{CALLS_TSV, PERF_DATA, SessionReader, SessionWriter};
use varid_report::{Options, OutputFormat, Profile, View, render};

/// A line of 14 bytes becomes a count of 48; a list that grows has twice its size.
const PER_BYTE: usize = 16;

/// What the counts are of.
const SESSION: &[u8] = include_bytes!("../../seeds/report/session");

thread_local! {
    static COPY: (tempfile::TempDir, SessionWriter) = {
        let folder = tempfile::tempdir().expect("a folder for the session");
        let mut writer = SessionWriter::create(folder.path(), manifest()).expect("an empty session");
        writer.finish().expect("a complete session");
        (folder, writer)
    };
}

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    with_session(&[(PERF_DATA, SESSION), (CALLS_TSV, bytes)], |session| {
        let Ok(counts) = bounded(bytes, PER_BYTE, || session.calls()) else {
            return;
        };
        let lines = bytes.split(|byte| *byte == b'\n').count();
        assert!(counts.len() < lines, "more counts than lines");
        COPY.with(|(folder, writer)| {
            writer.save_calls(&counts).expect("room for the counts");
            let copy = SessionReader::open(folder.path()).expect("the copy");
            assert_eq!(copy.calls().expect("counts"), counts);
        });
        let profile = Profile::from_session(session, &Options::default()).expect("a profile");
        for format in [OutputFormat::Text, OutputFormat::Json, OutputFormat::Csv] {
            render(&profile, &View::default(), format, &mut sink())
                .expect("a sink takes everything");
        }
    });
}
