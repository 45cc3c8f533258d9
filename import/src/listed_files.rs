//! The files that a manifest lists: those without a build-id, and those of another layer than native code.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
};

use varid_model::Layer;
use varid_recording::{ImageKind, Manifest, RecordedFile, SessionImage};

use crate::{layers, limits::ListRoom};

/// The most files in each list.
const MAX_FILES: usize = 1 << 12;

/// The files of a session.
pub(crate) struct ListedFiles {
    /// Files whose layer is not native code, by path.
    layered: HashMap<PathBuf, SessionImage>,
    layered_room: ListRoom,
    /// Files without a build-id.
    files: HashSet<RecordedFile>,
    files_room: ListRoom,
    /// Number of mappings of files for which the lists have no room.
    unlisted: u64,
}

impl ListedFiles {
    /// No files yet.
    pub(crate) fn new() -> Self {
        Self {
            layered: HashMap::new(),
            layered_room: ListRoom::new(MAX_FILES),
            files: HashSet::new(),
            files_room: ListRoom::new(MAX_FILES),
            unlisted: 0,
        }
    }

    /// Records which file a path led to.
    pub(crate) fn add(&mut self, file: RecordedFile, manifest: &mut Manifest) {
        if self.files.contains(&file) {
            return;
        }
        if !self.files_room.take(file.path.len()) {
            self.unlisted = self.unlisted.saturating_add(1);
            return;
        }
        self.files.insert(file.clone());
        manifest.files.push(file);
    }

    /// Records the layer of a file, if it is another one than native code.
    pub(crate) fn add_layer(&mut self, path: &Path, shown: &str, build_id: &[u8]) {
        let layer = layers::of_image(shown);
        if layer == Layer::Native || self.layered.contains_key(path) {
            return;
        }
        if !self.layered_room.take(shown.len()) {
            self.unlisted = self.unlisted.saturating_add(1);
            return;
        }
        let image = SessionImage {
            path: shown.to_owned(),
            build_id: varid_symbolizer::hex(build_id),
            kind: ImageKind::Elf,
            layer,
            substitute: None,
            location: None,
        };
        self.layered.insert(path.to_owned(), image);
    }

    /// Returns a note on mappings of files that are in no list.
    pub(crate) fn note(&self) -> Option<String> {
        (self.unlisted > 0).then(|| {
            format!(
                "the recording maps more files than a session lists: of {} mappings it does not say which file or layer they are of",
                self.unlisted
            )
        })
    }

    /// Returns the images of files with a layer, by path.
    pub(crate) fn into_images(self) -> Vec<SessionImage> {
        let mut images: Vec<_> = self.layered.into_values().collect();
        images.sort_by(|a, b| a.path.cmp(&b.path));
        images
    }
}
