//! Which library is mapped at this offset of a file, which may be an APK?

use std::fs::File;
use std::path::Path;

use object::ReadCache;

use super::image::Image;
use crate::container::zip;
use crate::{Error, Result};

/// Opens the ELF file that has the byte at `offset` of a file: the file itself, or what lies
/// uncompressed in an archive, as Android maps libraries. It is then called `base.apk!lib/…/libx.so`.
pub(super) fn open_at(path: &Path, offset: u64) -> Result<Image<'static>> {
    let name = path.display().to_string();
    let open = || File::open(path).map_err(Error::io("open", path));
    let whole = Image::open(path);
    let Err(Error::Elf { .. }) = whole else {
        return whole;
    };
    let file = open()?;
    let entries = {
        let data = ReadCache::new(&file);
        zip::entries(&name, &data, |_| true)
    };
    let Ok(entries) = entries else {
        // Neither of the two: the first fault says more.
        return whole;
    };
    let holds = |start: u64, size: u64| {
        offset
            .checked_sub(start)
            .is_some_and(|within| within < size)
    };
    entries
        .into_iter()
        .flatten()
        .find(|entry| entry.compression.is_none() && holds(entry.offset, entry.len))
        .ok_or_else(|| Error::Elf {
            file: name.clone(),
            part: "archive",
            problem: format!("has no uncompressed entry at offset {offset:#x}"),
        })
        .and_then(|entry| {
            let name = format!("{name}!{}", entry.name);
            Image::from_part(file, entry.offset, entry.len, &name)
        })
}
