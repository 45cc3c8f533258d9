//! Of which ELF files does the session keep the symbols?
//!
//! Reports find a file by its path. Where the path does not lead varid to the file that is mapped (another mount namespace, a file that was
//! deleted or replaced, memory) nobody will find it later, so the session keeps its symbols. That is known when the file is first sampled, and
//! the mapping is recorded as one of the session's file; a path that leads elsewhere at the end only is noted in the manifest.

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

/// Files that are looked at. Further ones have their own paths.
const MAX_FILES: usize = 1 << 14;
/// Files of which something is kept.
const MAX_KEPT: usize = 1 << 12;
/// How many times the bytes of a session's limit are read and written: what they make may be kept already.
const COPIES: u64 = 2;
/// How long the end of a session waits for files, in all.
const PATIENCE: Duration = Duration::from_secs(1);

/// How much is kept, in bytes.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Of one file.
    file: SymbolFileLimits,
    /// Of all together.
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
    /// By the address of the image, which is of no other one while the weak reference stands.
    seen: HashMap<*const ElfImage, SeenFile>,
    /// How many files have been seen.
    sampled: u64,
    kept: Kept,
    missing: Missing,
}

/// What is kept.
#[derive(Debug, Default)]
struct Kept {
    files: usize,
    /// Bytes that the session has.
    bytes: u64,
    /// Bytes that were read and written for that, those of files that were kept already among them.
    copied: u64,
}

/// Files that are not kept as they should.
#[derive(Debug, Default)]
struct Missing {
    /// Of these not all that names addresses is kept.
    cut: usize,
    /// Of these nothing is kept, though nobody will find them.
    lost: usize,
    /// It is not known whether these can be found.
    unknown: usize,
}

/// A file that was sampled.
#[derive(Debug)]
struct SeenFile {
    /// Files are kept in the order in which they were sampled.
    number: u64,
    image: Weak<ElfImage>,
    /// A process that has it mapped.
    pid: Pid,
    recorded: RecordedAs,
}

/// The path by which mappings of a file are recorded.
#[derive(Debug)]
enum RecordedAs {
    /// The file's own.
    Original(FilePlace),
    /// That of the session's file, relative to the session.
    Kept(String),
    /// The file's own, which leads nobody to it.
    Lost,
}

impl KeptFiles {
    /// No files yet.
    pub fn new(of: KeepSymbols) -> Self {
        Self {
            of,
            ..Self::default()
        }
    }

    /// The session's file, relative to its folder, by which the mappings of a file are recorded, which a process has mapped; None: they have
    /// the file's own path.
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

    /// Forgets the files that were closed to open others.
    fn forget_closed(&mut self) {
        let unknown = &mut self.missing.unknown;
        self.seen.retain(|_, seen| {
            let is_open = seen.image.strong_count() > 0;
            let is_at_its_path = matches!(seen.recorded, RecordedAs::Original(_));
            *unknown = unknown.saturating_add(usize::from(!is_open && is_at_its_path));
            is_open
        });
    }

    /// The session ends: keeps the symbols of the files that are no longer at their paths, or of all. What the manifest says of them, and a
    /// note on what is missing. `waited`: how long this thread has waited for files of processes.
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
            // It may have been closed to open others, or rewritten: then it has other symbols than the samples.
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

    /// Keeps the symbols of a file. None: they cannot be kept, which is counted.
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

    /// Writes what is kept of a file. That there is no room for it ends no recording: the samples may have some.
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
