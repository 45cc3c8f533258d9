//! Limits the manifest's entries for files of recorded processes.

/// Maximum size of the files' entries in bytes of JSON. A manifest may have 64 MB, and has other contents, too.
const MAX_BYTES: usize = 40 << 20;
/// Maximum size of an entry without its path and its build-id, in bytes.
const ENTRY: usize = 1 << 10;
/// Maximum number of bytes of JSON per byte of a path: a control character is written as six.
const BYTE: usize = 6;

/// The space in the manifest for entries of files, whose paths a process chooses.
#[derive(Debug, Default)]
pub struct ManifestRoom {
    taken: usize,
    /// Number of entries for which there was no space.
    left_out: usize,
}

impl ManifestRoom {
    /// Reserves the space for an entry of a file. Returns false, and counts the entry, if there is none left.
    pub fn take(&mut self, path: &str, build_id: &str) -> bool {
        let size = path.len().saturating_mul(BYTE);
        let size = size.saturating_add(build_id.len()).saturating_add(ENTRY);
        let taken = self.taken.saturating_add(size);
        let has_room = taken <= MAX_BYTES;
        match has_room {
            true => self.taken = taken,
            false => self.left_out = self.left_out.saturating_add(1),
        }
        has_room
    }

    /// Returns a note on missing entries.
    pub fn note(&self) -> Option<String> {
        let Self { left_out, .. } = self;
        (*left_out > 0).then(|| {
            format!("the manifest has no room for {left_out} entries of mapped files: their paths are too long or too many")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_model::{Layer, MonotonicNs, Rate};
    use varid_recording::{
        EventDesc, ImageKind, KeptFile, Manifest, RecordedFile, SampleSource, SessionImage,
        SessionTarget, SessionWriter, TargetKind,
    };

    /// With any paths of files, a session with all entries that fit can be finished.
    #[test]
    fn a_manifest_that_is_full_of_hostile_paths_is_written() {
        let build_id = "0a".repeat(1 << 8);
        let name = "x".repeat(128);
        for path in ["/\u{1}".repeat(2047), String::new()] {
            let event = EventDesc::new("cpu-clock", Rate::Frequency(997), 1, 0);
            let target = SessionTarget {
                kind: TargetKind::All,
                value: String::new(),
            };
            let mut manifest = Manifest::new(event, SampleSource::Bpf, target, MonotonicNs::ZERO);
            let mut room = ManifestRoom::default();
            let mut entries = 0;
            while room.take(&path, &build_id) {
                let (path, build_id) = (path.clone(), build_id.clone());
                match entries % 3 {
                    0 => manifest.images.push(SessionImage {
                        path,
                        build_id,
                        kind: ImageKind::Elf,
                        layer: Layer::Native,
                        substitute: Some(name.clone()),
                        location: None,
                    }),
                    1 => manifest.kept.push(KeptFile {
                        path,
                        build_id,
                        file: name.clone(),
                    }),
                    _ => {
                        let version = (u64::MAX, i64::MIN, i64::MIN);
                        let file = RecordedFile::of_version(path, u64::MAX, version);
                        manifest.files.push(file);
                    }
                }
                entries += 1;
            }
            assert!(entries > 1_000, "{entries}");
            let note = room.note().unwrap();
            assert!(note.contains("no room for 1 entries"), "{note}");
            let folder = tempfile::tempdir().unwrap();
            let session = folder.path().join("session");
            let mut writer = SessionWriter::create(session, manifest).unwrap();
            writer.save_manifest().unwrap();
        }
    }
}
