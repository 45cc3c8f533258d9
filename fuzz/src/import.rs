//! Imports an input and checks the resulting session.

use std::io::{Seek, Write};
use std::time::SystemTime;

use varid_import::{Error, ImportFormat, ImportRequest, Input, import};
use varid_recording::{SessionReader, SessionRecord};

thread_local! {
    static FOLDER: tempfile::TempDir = tempfile::tempdir().expect("a folder for the session");
}

/// Imports a source of the format with this name and reads the session. It must have the imported samples.
pub fn imported(bytes: &[u8], format: &str) {
    let format = ImportFormat::named(format).expect("a format that is imported");
    FOLDER.with(|folder| {
        let output = folder.path().join("session");
        let mut file = tempfile::tempfile().expect("a file for the source");
        file.write_all(bytes).expect("room for the source");
        file.rewind()
            .expect("a file that can be read from its start");
        let Ok(input) = Input::of_file("source".into(), file, SystemTime::UNIX_EPOCH) else {
            return;
        };
        let request = ImportRequest {
            input,
            output: output.clone(),
            without_names: false,
            first_is_frame: false,
        };
        match import(request, Some(format)) {
            Ok(summary) => {
                let session = SessionReader::open(&output).expect("a session");
                let records = session.records().expect("records");
                let samples = records
                    .map(|record| record.expect("a whole record"))
                    .filter(|record| matches!(record, SessionRecord::Sample(_)));
                assert_eq!(samples.count() as u64, summary.samples);
            }
            Err(Error::Io { .. } | Error::Recording(_) | Error::Symbols(_)) => {
                panic!("a source makes no difference to what can be written")
            }
            Err(_) => {}
        }
    });
}
