//! Unpacks the session of a pack, once, into the user's cache.

use crate::paths;
use anyhow::Context;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use varid_recording::SESSION_JSON;
use varid_report::{PackError, is_pack, unpack};

/// Number of sessions that stay unpacked, the most recently used ones.
const KEPT: usize = 8;
/// Age after which an incompletely unpacked folder is removed: no process is unpacking it any more.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Returns the folder of a pack's session, or None if the file is not a pack.
///
/// # Errors
///
/// The pack cannot be unpacked.
pub fn folder(pack: &Path) -> anyhow::Result<Option<PathBuf>> {
    let Some(file) = open(pack) else {
        return Ok(None);
    };
    let meta = file.metadata()?;
    let packs = paths::cache().join("packs");
    make_own(&packs, pack)?;
    let unpacked = packs.join(name(&meta));
    if unpacked.join(SESSION_JSON).is_file() {
        let _ = File::open(&unpacked).and_then(|folder| folder.set_modified(SystemTime::now()));
        return Ok(Some(unpacked));
    }
    let new = packs.join(format!(".{}", std::process::id()));
    unpack_into(&new, pack, meta.len())?;
    if fs::rename(&new, &unpacked).is_err() {
        // Another process was faster.
        remove(&new)?;
    }
    if let Err(error) = remove_old(&packs, &unpacked) {
        tracing::debug!(%error, "an unpacked session stays");
    }
    Ok(Some(unpacked))
}

/// Opens a file if it is a pack.
fn open(path: &Path) -> Option<File> {
    let mut file = File::open(path).ok()?;
    let mut start = [0; 2];
    file.read_exact(&mut start).ok()?;
    is_pack(&start).then_some(file)
}

/// Creates the folder of unpacked sessions. Fails if others can change it.
fn make_own(packs: &Path, pack: &Path) -> anyhow::Result<()> {
    paths::make_private(packs).with_context(|| format!("cannot create {}", packs.display()))?;
    let about = fs::symlink_metadata(packs)?;
    let is_own = about.uid() == nix::unistd::geteuid().as_raw() && about.mode() & 0o022 == 0;
    anyhow::ensure!(
        is_own && about.is_dir(),
        "{} is a folder that others can change: {} is not unpacked there",
        packs.display(),
        pack.display()
    );
    Ok(())
}

/// Returns the name of a pack's folder. Another version of the file is a different pack.
fn name(pack: &Metadata) -> String {
    format!(
        "{:x}-{:x}-{:x}-{:x}.{:x}",
        pack.dev(),
        pack.ino(),
        pack.len(),
        pack.mtime(),
        pack.mtime_nsec()
    )
}

/// Unpacks a pack of this length into a new folder.
fn unpack_into(new: &Path, pack: &Path, len: u64) -> anyhow::Result<()> {
    let shown = pack.display();
    remove(new)?;
    let file = File::open(pack).with_context(|| format!("cannot read {shown}"))?;
    let Err(error) = unpack(file, len, new) else {
        return Ok(());
    };
    remove(new)?;
    match error {
        // Another file that is compressed with gzip.
        PackError::Foreign(_) | PackError::NoSession | PackError::Damaged(_) => {
            anyhow::bail!("{shown} is no session that 'varid pack' has written: {error}")
        }
        error => Err(error).with_context(|| format!("cannot unpack {shown}")),
    }
}

/// Removes the least recently used sessions.
fn remove_old(packs: &Path, current: &Path) -> anyhow::Result<()> {
    let mut found: Vec<(SystemTime, PathBuf)> = fs::read_dir(packs)?
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .filter(|(_, path)| path != current)
        .collect();
    // Folders that were not completely unpacked.
    let is_begun = |path: &Path| {
        let name = path.file_name().unwrap_or_default();
        name.as_encoded_bytes().starts_with(b".")
    };
    for (modified, path) in found.extract_if(.., |(_, path)| is_begun(path)) {
        if modified.elapsed().is_ok_and(|age| age > ABANDONED) {
            remove(&path)?;
        }
    }
    found.sort();
    let surplus = found.len().saturating_sub(KEPT.saturating_sub(1));
    found
        .iter()
        .take(surplus)
        .try_for_each(|(_, path)| remove(path))
}

fn remove(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}
