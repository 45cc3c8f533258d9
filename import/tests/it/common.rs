//! Helpers for the tests of imports.

use std::{
    io::{Seek, Write},
    path::{Path, PathBuf},
    time::SystemTime,
};

use tempfile::TempDir;
use varid_import::{ImportFormat, ImportRequest, ImportSummary, Input, import};
use varid_recording::SessionReader;
use varid_report::{ExportFormat, ExportRequest, Options, Profile, export};

/// A session that was imported.
pub struct Imported {
    folder: TempDir,
    pub summary: ImportSummary,
}

/// A frame of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub symbol: String,
    pub image: String,
    pub layer: String,
    pub line: Option<u64>,
}

/// A sample of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    pub time: u64,
    pub period: u64,
    pub thread: String,
    /// The frames, leaf first.
    pub frames: Vec<Frame>,
}

impl Sample {
    pub fn symbols(&self) -> Vec<&str> {
        self.frames
            .iter()
            .map(|frame| frame.symbol.as_str())
            .collect()
    }

    pub fn layers(&self) -> Vec<&str> {
        self.frames
            .iter()
            .map(|frame| frame.layer.as_str())
            .collect()
    }
}

/// The fixture with this name.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// A source with these bytes.
pub fn input(bytes: &[u8]) -> varid_import::Result<Input> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    Input::of_file("source".into(), file, SystemTime::now())
}

/// A request to import a source into a folder.
pub fn request(input: Input, output: &Path) -> ImportRequest {
    ImportRequest {
        input,
        output: output.to_owned(),
        without_names: false,
        first_is_frame: false,
    }
}

/// Imports a source into a temporary folder.
pub fn import_with(
    input: Input,
    change: impl FnOnce(&mut ImportRequest),
) -> varid_import::Result<Imported> {
    let folder = tempfile::tempdir().unwrap();
    let mut request = request(input, &folder.path().join("session"));
    change(&mut request);
    let summary = import(request, None)?;
    Ok(Imported { folder, summary })
}

/// Imports bytes, with the format detected or given by its name.
pub fn import_bytes(bytes: &[u8], format: Option<&str>) -> varid_import::Result<Imported> {
    let folder = tempfile::tempdir().unwrap();
    let request = request(input(bytes)?, &folder.path().join("session"));
    let format = format.map(|name| ImportFormat::named(name).unwrap());
    let summary = import(request, format)?;
    Ok(Imported { folder, summary })
}

impl Imported {
    /// The session's folder.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().join("session")
    }

    pub fn session(&self) -> SessionReader {
        SessionReader::open(self.folder()).unwrap()
    }

    fn profile(&self) -> Profile {
        let mut options = Options {
            sample_table: true,
            ..Options::default()
        };
        options.names.lines = true;
        Profile::from_session(&self.session(), &options).unwrap()
    }

    /// The samples of an export, by time.
    pub fn samples(&self) -> Vec<Sample> {
        let text = self.export(ExportFormat::named("jsonl").unwrap());
        let lines = text.lines().skip(1);
        let text = |value: &serde_json::Value| value.as_str().unwrap_or("").to_owned();
        let sample = |line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let frame = |frame: &serde_json::Value| Frame {
                symbol: text(&frame["symbol"]),
                image: text(&frame["image"]),
                layer: text(&frame["layer"]),
                line: frame["line"].as_u64(),
            };
            Sample {
                time: line["time_ns"].as_u64().unwrap(),
                period: line["period"].as_u64().unwrap(),
                thread: text(&line["thread"]),
                frames: line["frames"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(frame)
                    .collect(),
            }
        };
        lines.map(sample).collect()
    }

    pub fn export(&self, format: &ExportFormat) -> String {
        let mut out = Vec::new();
        export(&self.profile(), &ExportRequest::default(), format, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }
}
