//! Makes a session folder with files from a fuzz target.

use std::path::Path;
use varid_model::{MonotonicNs, Rate};
use varid_recording::{
    EventDesc, Manifest, SampleSource, SessionReader, SessionTarget, SessionWriter, TargetKind,
};

/// Returns the manifest of all sessions.
pub fn manifest() -> Manifest {
    let event = EventDesc::new("cpu-clock", Rate::Frequency(997), 1, 0);
    Manifest::new(
        event,
        SampleSource::Bpf,
        SessionTarget {
            kind: TargetKind::All,
            value: String::new(),
        },
        MonotonicNs::ZERO,
    )
}

/// A complete session without records, whose other files a target writes, and its writer.
pub fn finished_session() -> (tempfile::TempDir, SessionWriter) {
    let folder = tempfile::tempdir().expect("a folder for the session");
    let mut writer = SessionWriter::create(folder.path(), manifest()).expect("an empty session");
    writer.finish().expect("a complete session");
    (folder, writer)
}

thread_local! {
    static FOLDER: tempfile::TempDir = {
        let folder = tempfile::tempdir().expect("a folder for the session");
        let mut writer = SessionWriter::create(folder.path(), manifest()).expect("an empty session");
        writer.finish().expect("a complete session");
        // Without this file, a report reads the running kernel's symbols.
        let kernel = "ffffffff81000000\t40\tschedule\t\nffffffffc0000000\t10\text4_read\text4\n";
        std::fs::write(writer.symbols().join("kernel.sym"), kernel).expect("the kernel's symbols");
        folder
    };
}

/// Calls `visit` with a session in which these files have these contents.
pub fn with_session(files: &[(&str, &[u8])], visit: impl FnOnce(&SessionReader)) {
    FOLDER.with(|folder| {
        let path: &Path = folder.path();
        for (name, bytes) in files {
            std::fs::write(path.join(name), bytes).expect("room for the file");
        }
        visit(&SessionReader::open(path).expect("the session"));
    });
}
