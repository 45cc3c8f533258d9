//! Finds the dex files in a file of any kind, their names and their positions.
//!
//! | file | recognised by | dex files | read from real files |
//! |---|---|---|---|
//! | dex, compact dex | `dex\n`, `cdex` | itself | dex: yes; compact: no |
//! | ZIP: APK, JAR, AAR, and such files in it | `PK` | entries named `*.dex` | yes, of build tools and of Python |
//! | .vdex of Android 8 and later | `vdex` | all of them | 010, of Android 8.1; 021: Android 11's libart finds the same files in the output of our own writer, including compact ones; the others: only our own writer's |
//! | oat (.odex, .oat) of Android 5 to 7 | ELF, symbol `oatdata` | all of them | only our own writer's; a file of Android 8.1 is distinguished from them |
//! | Dalvik's optimized dex (.odex) | `dey\n` | the one in it | only our own writer's |
//!
//! [`entries`] reads only directories and headers. It accepts anything that implements [`object::ReadRef`]: bytes, or a file of any size.
//! [`dex_files`] also reads archives within archives, and inflates.
//!
//! Entries are checked one by one. A broken entry is an [`crate::Error::Container`] in its place, and the others stay usable.

mod input;
mod oat;
mod vdex;
pub mod zip;

use crate::Result;
use crate::dex::DexFile;
use input::Input;
use object::ReadRef;
use std::borrow::Cow;

/// The most bytes to which one dex file, or one archive in an archive, is inflated.
const MAX_INFLATED: u64 = 1 << 28;
/// The most bytes to which all entries of a file together are inflated.
const MAX_INFLATED_IN_ALL: u64 = 1 << 30;
/// The limit for a small file: this many bytes, plus [`INFLATED_RATIO`] for each byte of the file. Dex files inflate to two to five times
/// their size.
const INFLATED_AT_LEAST: u64 = 16 << 20;
const INFLATED_RATIO: u64 = 64;
/// The maximum depth of nested archives: a bundle of APKs, an APK, a library in it.
const MAX_DEPTH: u32 = 3;

/// A part of a file: its position and compression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerEntry {
    /// The entry's name in an archive, the path that an oat file has recorded, or `classes.dex`, `classes2.dex` and so on in files without
    /// names.
    pub name: String,
    /// Offset of its first byte in the file.
    pub offset: u64,
    /// Number of its bytes in the file.
    pub len: u64,
    /// How many of these bytes are only its own. Compact dex files share the data after the last of them.
    pub own_len: u64,
    /// None if it is stored uncompressed.
    pub compression: Option<Compression>,
    /// It is an archive in an archive, by its name, and may hold dex files.
    pub is_archive: bool,
}

/// What a ZIP archive's directory says of a deflated entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compression {
    /// Bytes after inflation.
    pub size: u64,
    /// Checksum of the inflated bytes.
    crc32: u32,
}

/// A dex file. From version 041 on it may be a container of several.
#[derive(Debug, Clone)]
pub struct DexEntry<'d> {
    /// [`ContainerEntry::name`]. In an archive within an archive, it is `inner.jar!classes.dex`.
    pub name: String,
    /// Its offset in the file. None if it is compressed there.
    pub offset: Option<u64>,
    /// The dex file. A compact one includes the data that it shares with others.
    pub bytes: Cow<'d, [u8]>,
}

impl ContainerEntry {
    fn plain(name: String, offset: u64, len: u64) -> Self {
        Self {
            name,
            offset,
            len,
            own_len: len,
            compression: None,
            is_archive: false,
        }
    }

    /// Reads the entry's bytes, and inflates them if they are compressed.
    ///
    /// Allocates by the bytes that are present, not by the size that is claimed, and no more than 256 MB.
    ///
    /// # Errors
    /// [`crate::Error::Container`] if the file is shorter, or the content does not match its directory.
    pub fn read<'d, R: ReadRef<'d>>(&self, file: &str, data: R) -> Result<Cow<'d, [u8]>> {
        let input = Input { file, data };
        let bytes = input.bytes("entry", self.offset, self.len)?;
        let Some(Compression { size, crc32 }) = self.compression else {
            return Ok(Cow::Borrowed(bytes));
        };
        let bad = |field, problem: String| {
            let problem = format!("entry '{}': {problem}", self.name);
            Err(input.bad(field, self.offset, problem))
        };
        let limit = match usize::try_from(size) {
            Ok(limit) if size <= MAX_INFLATED => limit,
            _ => {
                return bad(
                    "uncompressed size",
                    format!("{size} bytes are more than are read"),
                );
            }
        };
        let inflated = match miniz_oxide::inflate::decompress_to_vec_with_limit(bytes, limit) {
            Ok(inflated) => inflated,
            Err(error) => return bad("deflated data", error.to_string()),
        };
        if inflated.len() != limit {
            let problem = format!("{size} bytes, though there are {}", inflated.len());
            return bad("uncompressed size", problem);
        }
        if rawzip::crc32(&inflated) != crc32 {
            return bad("crc-32", "the content is damaged".to_owned());
        }
        Ok(Cow::Owned(inflated))
    }
}

impl DexEntry<'_> {
    /// The dex files in these bytes, with their names. There is one, except in a container of version 041, where the others are called
    /// `classes.dex!classes2.dex` and so on, as in ART.
    pub fn dex_files(&self) -> impl Iterator<Item = (String, Result<DexFile<'_>>)> {
        let mut next = Some(0);
        (0u64..).map_while(move |index| {
            let dex = DexFile::parse_at(&self.bytes, next.take()?);
            next = dex.as_ref().ok().and_then(DexFile::next_header);
            let name = match index {
                0 => self.name.clone(),
                _ => format!("{}!{}", self.name, classes_dex(index)),
            };
            Some((name, dex))
        })
    }
}

/// The name that build tools give the dex file with this index.
fn classes_dex(index: u64) -> String {
    match index {
        0 => "classes.dex".to_owned(),
        _ => format!("classes{}.dex", index.saturating_add(1)),
    }
}

fn has_suffix(name: &str, suffixes: &[&str]) -> bool {
    name.rsplit_once('.')
        .is_some_and(|(_, suffix)| suffixes.iter().any(|one| suffix.eq_ignore_ascii_case(one)))
}

fn is_archive(name: &str) -> bool {
    const ARCHIVES: [&str; 9] = [
        "apk", "jar", "aar", "zip", "apks", "xapk", "vdex", "odex", "oat",
    ];
    has_suffix(name, &ARCHIVES)
}

/// Returns true if a file that starts with these bytes may hold dex files elsewhere than at its start.
#[must_use]
pub fn is_container(first: &[u8]) -> bool {
    const MAGICS: [&[u8]; 4] = [b"PK\x03\x04", b"vdex", b"dey\n", b"\x7fELF"];
    MAGICS.iter().any(|magic| first.starts_with(magic))
}

/// Finds a file's dex files, and the archives in an archive.
///
/// # Errors
/// [`crate::Error::Container`] if the file's format cannot hold dex files, or its own header is broken.
pub fn entries<'d, R: ReadRef<'d>>(file: &str, data: R) -> Result<Vec<Result<ContainerEntry>>> {
    let input = Input { file, data };
    let first = input.bytes("magic", 0, 4)?;
    match first {
        b"dex\n" | b"cdex" => Ok(vec![Ok(ContainerEntry::plain(
            classes_dex(0),
            0,
            input.len(),
        ))]),
        b"dey\n" => Ok(vec![Ok(optimized(&input)?)]),
        b"vdex" => vdex::entries(&input),
        b"\x7fELF" => oat::entries(&input),
        // Any bytes may precede an archive: it is found from its end.
        _ => zip::entries(file, data, |name| {
            has_suffix(name, &["dex"]) || is_archive(name)
        })
        .map_err(|error| match first {
            [b'P', b'K', ..] => error,
            _ => input.bad("magic", 0, "not a file that holds dex files"),
        }),
    }
}

/// The dex file within one that Dalvik has optimized.
fn optimized<'d, R: ReadRef<'d>>(input: &Input<'_, R>) -> Result<ContainerEntry> {
    if input.bytes("dey magic", 0, 8)? != b"dey\n036\0" {
        return Err(input.bad("dey magic", 0, "not version 036"));
    }
    let offset = u64::from(input.u32("dexOffset", 8)?);
    let len = u64::from(input.u32("dexLength", 12)?);
    if offset < 40 {
        return Err(input.bad("dexOffset", 8, "lies within the header"));
    }
    let extent = input.dex(offset, offset.saturating_add(len))?;
    Ok(ContainerEntry::plain(classes_dex(0), offset, extent.whole))
}

/// Makes an entry that overlaps an earlier one an error.
fn refuse_overlaps<'d, R: ReadRef<'d>>(
    input: &Input<'_, R>,
    mut entries: Vec<Result<ContainerEntry>>,
) -> Vec<Result<ContainerEntry>> {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    let range = |entries: &[Result<ContainerEntry>], index: usize| match entries.get(index) {
        Some(Ok(entry)) => (entry.offset, entry.len),
        _ => (0, 0),
    };
    order.sort_by_key(|index| range(&entries, *index));
    let mut taken = 0;
    for index in order {
        let (offset, len) = range(&entries, index);
        if len != 0 && offset < taken {
            if let Some(entry) = entries.get_mut(index) {
                *entry = Err(input.bad("entry", offset, "overlaps the entry before it"));
            }
            continue;
        }
        taken = taken.max(offset.saturating_add(len));
    }
    entries
}

/// Reads every dex file in `bytes`, the content of a file of any kind, including those in nested archives.
///
/// `file` is the name that errors give.
///
/// # Errors
/// As for [`entries`]. An entry that cannot be read is an error in its place.
pub fn dex_files<'d>(file: &str, bytes: &'d [u8]) -> Result<Vec<Result<DexEntry<'d>>>> {
    let mut left = INFLATED_RATIO
        .saturating_mul(bytes.len() as u64)
        .saturating_add(INFLATED_AT_LEAST)
        .min(MAX_INFLATED_IN_ALL);
    dex_entries(file, bytes, 0, &mut left)
}

/// `left` is the number of bytes that may still be inflated.
fn dex_entries<'d>(
    file: &str,
    bytes: &'d [u8],
    depth: u32,
    left: &mut u64,
) -> Result<Vec<Result<DexEntry<'d>>>> {
    let input = Input { file, data: bytes };
    let mut found = Vec::new();
    for entry in entries(file, bytes)? {
        let read = entry.and_then(|entry| {
            let size = entry.compression.map_or(0, |compression| compression.size);
            spend(left, size, &input, entry.offset)?;
            Ok((entry.read(file, bytes)?, entry))
        });
        let (content, entry) = match read {
            Ok(read) => read,
            Err(error) => {
                found.push(Err(error));
                continue;
            }
        };
        if !entry.is_archive {
            found.push(Ok(DexEntry {
                offset: entry.compression.is_none().then_some(entry.offset),
                name: entry.name,
                bytes: content,
            }));
            continue;
        }
        match nested_dex_entries(&input, &entry, content, depth, left) {
            Ok(inner) => found.extend(
                inner
                    .into_iter()
                    .map(|dex| dex.map(|dex| dex.within(&entry))),
            ),
            Err(error) => found.push(Err(error)),
        }
    }
    Ok(found)
}

/// Reads the dex files in `content`, which is that of an archive in an archive. A file of another kind has none.
fn nested_dex_entries<'d>(
    input: &Input<'_, &[u8]>,
    entry: &ContainerEntry,
    content: Cow<'d, [u8]>,
    depth: u32,
    left: &mut u64,
) -> Result<Vec<Result<DexEntry<'d>>>> {
    if !is_container(&content) {
        return Ok(Vec::new());
    }
    if depth == MAX_DEPTH {
        let problem = "archives in archives, deeper than is looked";
        return Err(input.bad("entry", entry.offset, problem));
    }
    let file = format!("{}!{}", input.file, entry.name);
    let depth = depth.saturating_add(1);
    match content {
        Cow::Borrowed(content) => dex_entries(&file, content, depth, left),
        Cow::Owned(content) => dex_entries(&file, &content, depth, left).map(|inner| {
            let mut own = |dex: DexEntry<'_>| {
                // Compact files may all claim the same data, so it is counted for each.
                spend(left, dex.bytes.len() as u64, input, entry.offset)?;
                Ok(dex.into_owned())
            };
            inner
                .into_iter()
                .map(|dex| dex.and_then(&mut own))
                .collect()
        }),
    }
}

/// Takes `size` from the bytes that may still be inflated.
fn spend(left: &mut u64, size: u64, input: &Input<'_, &[u8]>, offset: u64) -> Result<()> {
    *left = left.checked_sub(size).ok_or_else(|| {
        let problem = "more dex files than are inflated";
        input.bad("uncompressed size", offset, problem)
    })?;
    Ok(())
}

impl<'d> DexEntry<'d> {
    /// Returns the same entry with bytes and names of its own. It has been inflated, so it has no offset.
    fn into_owned<'o>(self) -> DexEntry<'o> {
        DexEntry {
            name: self.name,
            offset: None,
            bytes: Cow::Owned(self.bytes.into_owned()),
        }
    }

    /// Returns the same entry as seen from the outer file that holds the archive.
    fn within(self, archive: &ContainerEntry) -> Self {
        Self {
            name: format!("{}!{}", archive.name, self.name),
            offset: self
                .offset
                .map(|offset| offset.saturating_add(archive.offset)),
            bytes: self.bytes,
        }
    }
}
