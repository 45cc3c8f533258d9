//! The file whose first word says whether calls are counted now. All VMs of a command share it, and whoever switches them writes it: varid, or
//! the program by the runtime class.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::Path,
};

use varid_instrument::SwitchAddress;

use crate::mapping::{Place, map};

/// The file's name, in the folder of the options.
pub const SWITCH: &str = "switch";
/// Length of the file in bytes: a page, so that all of what is mapped exists.
const LENGTH: u64 = 4096;

/// Whether calls are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// They are not.
    Off,
    /// They are.
    On,
}

impl Counting {
    /// Returns the other one.
    #[must_use]
    pub const fn toggled(self) -> Self {
        match self {
            Self::Off => Self::On,
            Self::On => Self::Off,
        }
    }

    const fn word(self) -> u64 {
        match self {
            Self::Off => 0,
            Self::On => 1,
        }
    }
}

/// Makes the file in a folder.
///
/// # Errors
///
/// It exists, or cannot be written.
pub fn create_switch(folder: &Path, counting: Counting) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create_new(true)
        .open(folder.join(SWITCH))?;
    file.set_len(LENGTH)?;
    write(&file, counting)
}

/// Returns what an existing file says.
///
/// # Errors
///
/// It cannot be read, or [`create_switch`] has not made it.
pub fn read_switch(path: &Path) -> io::Result<Counting> {
    let mut word = [0; size_of::<u64>()];
    open(path)?.read_exact_at(&mut word, 0)?;
    Ok(match u64::from_le_bytes(word) {
        0 => Counting::Off,
        _ => Counting::On,
    })
}

/// Switches the VMs that share an existing file.
///
/// # Errors
///
/// It cannot be written, or [`create_switch`] has not made it.
pub fn write_switch(path: &Path, counting: Counting) -> io::Result<()> {
    write(&open(path)?, counting)
}

/// Maps the file of a folder. Returns the address of its word.
pub(crate) fn map_switch(folder: &Path) -> io::Result<SwitchAddress> {
    let file = open(&folder.join(SWITCH))?;
    let length = usize::try_from(LENGTH).map_err(|_| invalid())?;
    let mapped = map(&Place::Anywhere, length, Some(&file))?;
    Ok(SwitchAddress(mapped.as_ptr().expose_provenance() as u64))
}

fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let metadata = file.metadata()?;
    match metadata.is_file() && metadata.len() == LENGTH {
        true => Ok(file),
        false => Err(invalid()),
    }
}

/// Writes the word at once: VMs see the old one or the new one.
fn write(file: &File, counting: Counting) -> io::Result<()> {
    file.write_all_at(&counting.word().to_le_bytes(), 0)
}

fn invalid() -> io::Error {
    io::Error::from(io::ErrorKind::InvalidData)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_word_follows_the_file() {
        let folder = std::env::temp_dir().join(format!("varid-switch-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        create_switch(&folder, Counting::Off).unwrap();
        let address = map_switch(&folder).unwrap().0;
        let word = std::ptr::with_exposed_provenance::<std::sync::atomic::AtomicU64>(
            usize::try_from(address).unwrap(),
        );
        // SAFETY: the file is mapped until the process ends.
        let value = || unsafe { (*word).load(std::sync::atomic::Ordering::Acquire) };
        assert_eq!(value(), 0);
        let path = folder.join(SWITCH);
        write_switch(&path, Counting::Off.toggled()).unwrap();
        assert_eq!(value(), 1);
        assert_eq!(read_switch(&path).unwrap(), Counting::On);
        // Another file is not written.
        let other = folder.join("other");
        std::fs::write(&other, "text").unwrap();
        assert!(write_switch(&other, Counting::On).is_err());
        assert_eq!(std::fs::read(&other).unwrap(), b"text");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
