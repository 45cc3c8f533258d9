//! Fetches the device's libraries that a session needs for names.
//!
//! They are stored in the host's cache by build-id, in the layout of debuggers: `.build-id/ab/cdef…`. Every library is pulled once,
//! whichever sessions name it.

use super::adb::Device;
use super::error::{DeviceError, Result};
use crate::paths;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use varid_recording::{SYMBOLS, SessionReader, SessionRecord};
use varid_symbolizer::elf::{self, DebugFiles, ElfSource};
use varid_symbolizer::hex;

/// Pulls the files that a session names and the cache does not have.
pub fn pull(device: &Device, session: &Path) -> Result<()> {
    let cache = paths::device_symbols();
    let mut pulled = 0u32;
    for (build_id, path) in named(session) {
        let Some(kept) = place_of(&cache, &build_id) else {
            continue;
        };
        if kept.is_file() {
            continue;
        }
        match fetch(device, &path, &build_id, &kept) {
            Ok(()) => pulled = pulled.saturating_add(1),
            Err(error @ DeviceError::Lost { .. }) => return Err(error),
            // The report lists missing files, and explains how to get them.
            Err(error) => tracing::debug!("{error}"),
        }
    }
    if pulled > 0 {
        tracing::info!(
            "{}: {pulled} libraries pulled for their names",
            device.serial
        );
    }
    Ok(())
}

/// Returns libraries by build-id, with their paths on the device. Substitutes are in the session.
fn named(session: &Path) -> BTreeMap<Vec<u8>, String> {
    let records = SessionReader::open(session).and_then(|session| session.records());
    let mut found = BTreeMap::new();
    for record in records.into_iter().flatten().map_while(Result::ok) {
        let SessionRecord::Mapping(mapping) = record else {
            continue;
        };
        // `symbols/NAME` and `symbols/ID/NAME`.
        let mut folders = mapping.path.ancestors().skip(1).take(2);
        let is_own = folders.any(|folder| folder.file_name() == Some(SYMBOLS.as_ref()));
        if !mapping.kernel
            && !mapping.build_id.is_empty()
            && !is_own
            && let Some(path) = mapping.path.to_str().filter(|path| path.starts_with('/'))
        {
            found.insert(mapping.build_id, path.to_owned());
        }
    }
    found
}

/// Returns the path of a file with this build-id in the cache.
fn place_of(cache: &Path, build_id: &[u8]) -> Option<PathBuf> {
    let digits = hex(build_id);
    let (folder, file) = digits
        .split_at_checked(2)
        .filter(|(_, file)| !file.is_empty())?;
    Some(cache.join(".build-id").join(folder).join(file))
}

fn fetch(device: &Device, path: &str, build_id: &[u8], kept: &Path) -> Result<()> {
    let folder = kept.parent().unwrap_or(kept);
    paths::make_private(folder).map_err(DeviceError::io("create", folder))?;
    let new = kept.with_extension(format!("new.{}", std::process::id()));
    // A library that is mapped from an APK is stored separately.
    let (file, library) = match path.rsplit_once('!') {
        Some((archive, library)) if archive.ends_with(".apk") => (archive, Some(library)),
        _ => (path, None),
    };
    let fetched = device
        .pull(file, &new)
        .and_then(|()| match library {
            Some(library) => extract(&new, library),
            None => Ok(()),
        })
        .and_then(|()| is_it(device, path, &new, build_id))
        .and_then(|()| std::fs::rename(&new, kept).map_err(DeviceError::io("create", kept)));
    if fetched.is_err() {
        // The file may not exist.
        let _ = std::fs::remove_file(&new);
    }
    fetched
}

/// Replaces an archive by one of its libraries.
fn extract(file: &Path, library: &str) -> Result<()> {
    let unreadable = |error: varid_symbolizer::Error| {
        DeviceError::io("read", file)(std::io::Error::other(error.to_string()))
    };
    let bytes = elf::library_in(file, library).map_err(unreadable)?;
    std::fs::write(file, bytes).map_err(DeviceError::io("write", file))
}

/// Checks the build-id. A file with another one was replaced after the recording and must not be used.
fn is_it(device: &Device, path: &str, file: &Path, build_id: &[u8]) -> Result<()> {
    let found = ElfSource::open(file, &DebugFiles::none());
    let found = found.map_err(|error| device.failed(&format!("use {path}"), &error.to_string()))?;
    if found.symbols().build_id() == Some(build_id) {
        Ok(())
    } else {
        Err(device.failed(&format!("use {path}"), "it has been replaced since"))
    }
}
