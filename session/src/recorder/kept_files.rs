//! Keeps the symbols of ELF files that reports could not find.
//!
//! Reports find a file by its path. The path may not lead to the mapped file: it is in another mount namespace, was deleted or replaced, or
//! is memory. The file would be lost, so the session keeps its symbols. This is decided when the file is first sampled, and its mapping is
//! recorded as one of the session's file. If a path no longer leads to the file at the end of the session, the manifest contains the kept
//! file.

use super::RecorderError;
use crate::request::KeepSymbols;
use std::collections::HashMap;
use std::fmt::Display;
use std::io::Write;
use std::path::Path;
use std::rc::{Rc, Weak};
use std::time::Duration;
use varid_model::Pid;
use varid_process::{ElfImage, FilePlace};
use varid_recording::{KeptFile, SessionWriter};
use varid_symbolizer::elf::SymbolFileLimits;
use varid_symbolizer::hex;

/// Maximum number of files that are checked. Further ones have their own paths.
const MAX_FILES: usize = 1 << 14;
/// Maximum number of files with kept symbols.
const MAX_KEPT: usize = 1 << 12;
/// The factor by which reads and writes may exceed the session's limit, because some of the results may be kept already.
const COPIES: u64 = 2;
/// Maximum total time that the end of a session waits for files.
const PATIENCE: Duration = Duration::from_secs(1);

/// Limits of the kept symbols, in bytes.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// For one file.
    file: SymbolFileLimits,
    /// For all files.
    session: u64,
}

impl Limits {
    const fn of(kept: KeepSymbols) -> Self {
        let (names, debug, session) = match kept {
            KeepSymbols::OfUnreachable => (64 << 20, 16 << 20, 256 << 20),
            KeepSymbols::OfAll => (256 << 20, 256 << 20, 2 << 30),
        };
        Self {
            file: SymbolFileLimits { names, debug },
            session,
        }
    }
}

/// The files whose symbols are kept.
#[derive(Debug, Default)]
pub struct KeptFiles {
    of: KeepSymbols,
    /// By the address of the image. The weak reference ensures that the address is not reused.
    seen: HashMap<*const ElfImage, SeenFile>,
    /// The number of files seen.
    sampled: u64,
    kept: Kept,
    missing: Missing,
}

/// The kept symbols.
#[derive(Debug, Default)]
struct Kept {
    files: usize,
    /// Bytes in the session.
    bytes: u64,
    /// Bytes that were read and written for it, including those of files that were kept already.
    copied: u64,
}

/// Files whose symbols are missing.
#[derive(Debug, Default)]
struct Missing {
    /// Files with some of their symbols missing.
    cut: usize,
    /// Files that cannot be found, and of which nothing is kept.
    lost: usize,
    /// Files of which it is not known whether they can be found.
    unknown: usize,
}

/// A file that was sampled.
#[derive(Debug)]
struct SeenFile {
    /// The order of the first samples, in which files are kept.
    number: u64,
    image: Weak<ElfImage>,
    /// A process that has mapped it.
    pid: Pid,
    recorded: RecordedAs,
}

/// The path in the records of a file's mappings.
#[derive(Debug)]
enum RecordedAs {
    /// The file's own path.
    Original(FilePlace),
    /// The path of the session's file, relative to the session.
    Kept(String),
    /// The file's own path, which does not lead to it.
    Lost,
}

impl KeptFiles {
    /// Starts without files.
    pub fn new(of: KeepSymbols) -> Self {
        Self {
            of,
            ..Self::default()
        }
    }

    /// Returns the path of the session's file, relative to its folder, that is recorded for the mappings of a file in a process. None if the
    /// file's own path is recorded.
    pub fn file_of(
        &mut self,
        elf: &Rc<ElfImage>,
        pid: Pid,
        writer: &SessionWriter,
    ) -> Option<String> {
        let key = Rc::as_ptr(elf);
        if let Some(seen) = self.seen.get(&key) {
            return match &seen.recorded {
                RecordedAs::Kept(file) => Some(file.clone()),
                RecordedAs::Original(_) | RecordedAs::Lost => None,
            };
        }
        let place = elf.place()?;
        if self.seen.len() >= MAX_FILES {
            self.forget_closed();
        }
        if self.seen.len() >= MAX_FILES {
            self.missing.unknown = self.missing.unknown.saturating_add(1);
            return None;
        }
        let (recorded, kept) = match place.leads_to_file(pid, Some(elf)) {
            true => (RecordedAs::Original(place), None),
            false => match self.keep(elf, writer) {
                Some(file) => (RecordedAs::Kept(file.clone()), Some(file)),
                None => (RecordedAs::Lost, None),
            },
        };
        let seen = SeenFile {
            number: self.sampled,
            image: Rc::downgrade(elf),
            pid,
            recorded,
        };
        self.sampled = self.sampled.saturating_add(1);
        self.seen.insert(key, seen);
        kept
    }

    /// Removes files that were closed to open others.
    fn forget_closed(&mut self) {
        let unknown = &mut self.missing.unknown;
        self.seen.retain(|_, seen| {
            let is_open = seen.image.strong_count() > 0;
            let is_at_its_path = matches!(seen.recorded, RecordedAs::Original(_));
            *unknown = unknown.saturating_add(usize::from(!is_open && is_at_its_path));
            is_open
        });
    }

    /// At the end of the session: keeps the symbols of all files, or of those that are no longer at their paths. Returns the manifest's
    /// entries, and a note on missing symbols. `waited`: how long this thread has waited for files of processes.
    pub fn finish(
        &mut self,
        writer: &SessionWriter,
        waited: impl Fn() -> Duration,
    ) -> (Vec<KeptFile>, Option<String>) {
        let began = waited();
        let mut kept = Vec::new();
        let mut seen: Vec<SeenFile> = std::mem::take(&mut self.seen).into_values().collect();
        seen.sort_unstable_by_key(|seen| seen.number);
        for seen in seen {
            let RecordedAs::Original(place) = &seen.recorded else {
                continue;
            };
            if waited().saturating_sub(began) >= PATIENCE {
                self.missing.unknown = self.missing.unknown.saturating_add(1);
                continue;
            }
            let image = seen.image.upgrade();
            let is_there = place.leads_to_file(seen.pid, image.as_deref());
            if is_there && self.of == KeepSymbols::OfUnreachable {
                continue;
            }
            // It may have been closed to open others, or rewritten. Then its symbols are not those of the samples.
            let image = image.filter(|image| image.place().as_ref() == Some(place));
            let Some(image) = image else {
                self.lose("it has been closed or rewritten");
                continue;
            };
            kept.extend(self.keep(&image, writer).map(|file| KeptFile {
                path: image.path.to_string_lossy().into_owned(),
                build_id: hex(image.build_id()),
                file,
            }));
        }
        kept.sort_by(|one, other| (&one.path, &one.file).cmp(&(&other.path, &other.file)));
        (kept, self.missing.note())
    }

    /// Keeps the symbols of a file. Returns None if that fails, and counts it.
    fn keep(&mut self, elf: &ElfImage, writer: &SessionWriter) -> Option<String> {
        if elf.contents().is_none() {
            return self.lose("its headers cannot be read");
        }
        if self.kept.files >= MAX_KEPT {
            return self.lose("no further files are kept");
        }
        let Limits { file, session } = Limits::of(self.of);
        let may_copy = session.saturating_mul(COPIES);
        let may_copy = may_copy.saturating_sub(self.kept.copied);
        let left = session.saturating_sub(self.kept.bytes).min(may_copy);
        let names = file.names.min(left);
        let debug = file.debug.min(left.saturating_sub(names));
        let part = match elf.symbol_file(SymbolFileLimits { names, debug }) {
            Ok(part) => part,
            Err(error) => return self.lose(error),
        };
        self.kept.copied = self.kept.copied.saturating_add(part.size());
        let file = self.write(&elf.path, writer, |out| Ok(part.write(out)?))?;
        self.missing.cut = self.missing.cut.saturating_add(usize::from(part.is_cut()));
        Some(file)
    }

    /// Writes the symbols of a file. A lack of space does not end the recording, because samples may still fit.
    fn write(
        &mut self,
        original: &Path,
        writer: &SessionWriter,
        write: impl FnOnce(&mut dyn Write) -> Result<(), RecorderError>,
    ) -> Option<String> {
        match writer.keep_file(original, write) {
            Ok((file, size)) => {
                self.kept.files = self.kept.files.saturating_add(1);
                self.kept.bytes = self.kept.bytes.saturating_add(size);
                Some(file)
            }
            Err(error) => self.lose(error),
        }
    }

    fn lose(&mut self, reason: impl Display) -> Option<String> {
        tracing::debug!("symbols that are not kept: {reason}");
        self.missing.lost = self.missing.lost.saturating_add(1);
        None
    }
}

impl Missing {
    fn note(&self) -> Option<String> {
        let counted = |what: &str, count: usize| (count > 0).then(|| format!("{what} {count}"));
        let missing = [
            counted("nothing of", self.lost),
            counted("not all of", self.cut),
            counted("perhaps nothing of", self.unknown),
        ];
        let missing: Vec<String> = missing.into_iter().flatten().collect();
        (!missing.is_empty()).then(|| {
            format!(
                "of the mapped files whose symbols the session is to keep, it has {}: they are too large or too many, or cannot be read or written",
                missing.join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests;
