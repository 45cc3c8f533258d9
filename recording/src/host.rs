//! Describes the machine of a recording.

use std::fs;

use serde::{Deserialize, Serialize};
use sha1_smol::Sha1;

/// The machine of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: String,
    /// The machine's architecture, as `uname -m` prints it.
    pub arch: String,
    /// The machine's identity as 40 hexadecimal digits that reveal nothing else about it. A machine without machine-id(5) has one for each
    /// boot. Empty in sessions from before this field existed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// The number of CPUs that were online.
    pub cpus: u32,
}

impl Host {
    /// Describes this machine. What it does not say stays empty.
    #[must_use]
    pub fn this_machine() -> Self {
        Self {
            kernel: first_line("/proc/sys/kernel/osrelease"),
            arch: uname_machine(),
            machine: machine(),
            cpus: std::thread::available_parallelism()
                .ok()
                .and_then(|cpus| u32::try_from(cpus.get()).ok())
                .unwrap_or(0),
        }
    }
}

/// Returns the running kernel's GNU build-id, empty if the kernel does not show it.
#[must_use]
pub fn kernel_build_id() -> Vec<u8> {
    fs::read("/sys/kernel/notes")
        .ok()
        .and_then(|notes| build_id_in_notes(&notes))
        .unwrap_or_default()
}

/// Returns this machine's name, empty if the kernel does not show it.
pub(crate) fn hostname() -> String {
    first_line("/proc/sys/kernel/hostname")
}

fn first_line(path: &str) -> String {
    fs::read_to_string(path)
        .ok()
        .and_then(|text| text.lines().next().map(str::to_owned))
        .unwrap_or_default()
}

/// Returns the hash of this machine's id. machine-id(5) demands that the id itself is not published.
fn machine() -> String {
    let files = ["/etc/machine-id", "/proc/sys/kernel/random/boot_id"];
    // An image that has not been booted yet says "uninitialized".
    let mut ids = files.map(first_line).into_iter();
    ids.find(|id| id.len() >= 32)
        .map(|id| Sha1::from(format!("varid {id}")).digest().to_string())
        .unwrap_or_default()
}

/// Returns the machine as `uname -m` names it: as the kernel says it (6.1 and later), else the architecture that this program was built
/// for.
fn uname_machine() -> String {
    let told = first_line("/proc/sys/kernel/arch");
    if told.is_empty() {
        match std::env::consts::ARCH {
            "arm" => "armv7l".to_owned(),
            "x86" => "i686".to_owned(),
            arch => arch.to_owned(),
        }
    } else {
        told
    }
}

/// Finds the NT_GNU_BUILD_ID note (elf.h) in a sequence of ELF notes.
fn build_id_in_notes(notes: &[u8]) -> Option<Vec<u8>> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let mut rest = notes;
    loop {
        let (name_len, after) = rest.split_first_chunk::<4>()?;
        let (desc_len, after) = after.split_first_chunk::<4>()?;
        let (kind, after) = after.split_first_chunk::<4>()?;
        let name_len = usize::try_from(u32::from_le_bytes(*name_len)).ok()?;
        let desc_len = usize::try_from(u32::from_le_bytes(*desc_len)).ok()?;
        let name = after.get(..name_len)?;
        let after = after.get(name_len.checked_next_multiple_of(4)?..)?;
        let desc = after.get(..desc_len)?;
        if name == b"GNU\0" && u32::from_le_bytes(*kind) == NT_GNU_BUILD_ID && desc_len <= 20 {
            return Some(desc.to_vec());
        }
        rest = after.get(desc_len.checked_next_multiple_of(4)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_id_is_found_behind_another_note_and_absent_from_cut_ones() {
        let mut notes = Vec::new();
        notes.extend([6, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0]);
        notes.extend(b"Linux\0\0\0");
        notes.extend([0; 4]);
        notes.extend([4, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0]);
        notes.extend(b"GNU\0");
        notes.extend([0xab, 0xcd, 0xef, 0]);
        assert_eq!(build_id_in_notes(&notes), Some(vec![0xab, 0xcd, 0xef]));
        for len in 0..notes.len() - 1 {
            assert_eq!(build_id_in_notes(&notes[..len]), None, "{len} bytes");
        }
    }
}
