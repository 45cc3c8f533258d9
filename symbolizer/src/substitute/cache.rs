//! A cache of substitutes, so that a bytecode file is read and written only once, not in every session.
//!
//! The key of a substitute is its content id, the version of the written format, and the machine. A session gets a copy, so that it
//! contains all its files, and can be moved, changed and given away.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, FileTimes, Metadata, Permissions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use object::read::elf::FileHeader;
use object::{Endianness, Object, ObjectSection, ReadCache};

use super::machine::TargetMachine;
use super::table::{Substitute, text_of};
use super::{atomic, text};
use crate::bytecode::BytecodeImage;
use crate::{Error, Result, hex};

/// Must be increased whenever different bytes are written for the same file.
const VERSION: u32 = 5;

/// A user's own folder of substitutes.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    /// The opened folder, which was checked to be the user's. Its name may lead elsewhere later.
    opened: File,
    owner: u32,
    limit: u64,
}

/// Where a substitute comes from.
#[derive(Debug)]
pub struct Provided {
    /// True if everything was copied from the cache.
    pub reused: bool,
    /// The error because of which the next session has to write it again.
    pub not_stored: Option<Error>,
}

impl Cache {
    /// Opens the cache in `folder`. The folder is created if necessary, and made inaccessible to users other than `owner`, the effective
    /// user. Its files take at most `limit` bytes of the disk: the least recently used ones are removed.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be created. [`Error::Substitute`] if it belongs to another user, or others can write to its
    /// parent folder.
    pub fn open(folder: &Path, owner: u32, limit: u64) -> Result<Self> {
        let create = |path: &Path, recursive| {
            let mut builder = DirBuilder::new();
            builder.recursive(recursive).mode(0o700);
            match builder.create(path) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    Err(Error::io("create", path)(error))
                }
                _ => Ok(()),
            }
        };
        let refused = |path: &Path, what: &str| Error::Substitute {
            problem: format!("the cache {} is not used: {what}", path.display()),
        };
        let own = |path: &Path| match fs::symlink_metadata(path) {
            Err(error) => Err(Error::io("read", path)(error)),
            Ok(found) if found.is_dir() && found.uid() == owner => Ok(found),
            Ok(_) => Err(refused(
                path,
                &format!("it is not a folder of user {owner}: remove it"),
            )),
        };
        let folder = std::path::absolute(folder).map_err(Error::io("find", folder))?;
        let parent = folder.parent().unwrap_or(&folder);
        create(parent, true)?;
        // Create nothing through another user's link.
        if own(parent)?.mode() & 0o022 != 0 {
            return Err(refused(parent, "others can write to it: chmod go-w"));
        }
        create(&folder, false)?;
        let found = own(&folder)?;
        let opened = File::open(&folder).map_err(Error::io("open", &folder))?;
        let metadata = opened.metadata().map_err(Error::io("read", &folder))?;
        if (found.dev(), found.ino()) != (metadata.dev(), metadata.ino()) {
            return Err(refused(&folder, "it was replaced just now"));
        }
        if metadata.mode() & 0o077 != 0 {
            opened
                .set_permissions(Permissions::from_mode(0o700))
                .map_err(Error::io("close to others", &folder))?;
        }
        Ok(Self {
            folder,
            opened,
            owner,
            limit,
        })
    }

    /// A path of the opened folder that stays valid if the folder is renamed.
    fn here(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.opened.as_raw_fd()))
    }

    /// Writes the substitute of `image`, for this machine, to `elf` and its text form to `sym`.
    ///
    /// # Errors
    /// As for [`Substitute::write`] and [`super::write_sym`]. Problems of the cache are not errors.
    pub fn provide(&self, image: &dyn BytecodeImage, elf: &Path, sym: &Path) -> Result<Provided> {
        let machine = TargetMachine::host();
        let build_id = &image.content_id();
        let stem = hex(build_id);
        let entry = |kind| {
            self.here()
                .join(format!("{stem}-{machine:?}.{VERSION}.{kind}"))
        };
        let end = text_of(image).end;
        let mut provided = Provided {
            reused: true,
            not_stored: None,
        };
        let (stored, whole) = (entry("elf"), |path: &Path| {
            is_substitute(path, build_id, end)
        });
        if !self.reuse(&stored, elf, whole) {
            Substitute::of_bytecode(image).write(elf)?;
            provided.missed(self.store(elf, &stored));
        }
        let (stored, whole) = (entry("sym"), |path: &Path| is_text(path, build_id));
        if !self.reuse(&stored, sym, whole) {
            text::write_sym(image, sym)?;
            provided.missed(self.store(sym, &stored));
        }
        Ok(provided)
    }

    /// Copies an entry to `target`, if it exists and can be trusted.
    fn reuse(&self, entry: &Path, target: &Path, whole: impl Fn(&Path) -> Option<bool>) -> bool {
        let own = |file: &Metadata| {
            file.is_file() && file.uid() == self.owner && file.mode() & 0o022 == 0
        };
        let trusted = fs::symlink_metadata(entry).is_ok_and(|file| own(&file))
            && whole(entry) == Some(true)
            && atomic::copy(entry, target).is_ok();
        if trusted {
            // If this fails, the entry is removed earlier than it should be.
            let now = FileTimes::new().set_accessed(SystemTime::now());
            let _ = File::open(entry).and_then(|file| file.set_times(now));
        }
        trusted
    }

    /// Stores the file at `written` as an entry. Removes old entries until the total is within the limit.
    fn store(&self, written: &Path, entry: &Path) -> Result<()> {
        atomic::copy(written, entry)?;
        let io = || Error::io("make room in", &self.folder);
        let mut files = Vec::new();
        for file in fs::read_dir(self.here()).map_err(io())? {
            let file = file.map_err(io())?;
            // Another varid process has just removed it.
            let Ok(metadata) = file.metadata() else {
                continue;
            };
            if metadata.is_file() && is_ours(&file.file_name()) {
                let size = metadata.blocks().saturating_mul(512);
                files.push((metadata.accessed().ok(), size, file.path()));
            }
        }
        files.sort();
        let mut total = files
            .iter()
            .fold(0u64, |total, (_, size, _)| total.saturating_add(*size));
        for (_, size, path) in files {
            if total <= self.limit {
                break;
            }
            fs::remove_file(&path).map_err(io())?;
            total = total.saturating_sub(size);
        }
        Ok(())
    }
}

impl Provided {
    fn missed(&mut self, stored: Result<()>) {
        self.reused = false;
        self.not_stored = self.not_stored.take().or(stored.err());
    }
}

/// Returns true if a file's name is that of an entry of any version, or of an entry's temporary file:
/// `HEX-MACHINE.VERSION.KIND[.PID-N.tmp]`.
fn is_ours(name: &OsStr) -> bool {
    let mut parts = name.to_str().unwrap_or_default().split('.');
    let id = parts.next().and_then(|stem| stem.split_once('-'));
    let is_id = |id: &str| id.len() == 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    id.is_some_and(|(id, _)| is_id(id))
        && parts.next().is_some_and(|it| it.parse::<u32>().is_ok())
        && matches!(parts.next(), Some("elf" | "sym"))
        && match (parts.next(), parts.next()) {
            (None, None) => true,
            (Some(_), Some("tmp")) => parts.next().is_none(),
            _ => false,
        }
}

/// Returns true if a file is a complete substitute for that content, whose text ends at `end`. None if it is not an ELF file.
fn is_substitute(path: &Path, build_id: &[u8], end: u64) -> Option<bool> {
    let file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let cache = ReadCache::new(file);
    let file = crate::parse_elf(&cache).ok()?;
    let headers_end_at = match &file {
        object::File::Elf32(file) => headers_end(file.elf_header()),
        object::File::Elf64(file) => headers_end(file.elf_header()),
        _ => None,
    };
    let text = file.section_by_name(".text")?;
    Some(
        headers_end_at == Some(length)
            && file.build_id().ok()? == Some(build_id)
            && text.address().checked_add(text.size()) == Some(end),
    )
}

/// The end of the section headers, which are the last bytes of a substitute.
fn headers_end<Elf: FileHeader<Endian = Endianness>>(header: &Elf) -> Option<u64> {
    let endian = header.endian().ok()?;
    let size = u64::from(header.e_shentsize(endian));
    let start: u64 = header.e_shoff(endian).into();
    start.checked_add(size.checked_mul(header.e_shnum(endian).into())?)
}

/// Returns true if a file is a complete text form: its last line has the content id.
fn is_text(path: &Path, build_id: &[u8; 20]) -> Option<bool> {
    let end = text::last_line(build_id);
    let mut file = File::open(path).ok()?;
    let length = i64::try_from(end.len()).ok()?;
    file.seek(SeekFrom::End(length.checked_neg()?)).ok()?;
    let mut last = String::new();
    file.read_to_string(&mut last).ok()?;
    Some(last == end)
}
