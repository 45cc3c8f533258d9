//! How a file of the VM's is opened: the one that it has mapped, and no other.
//!
//! The VM says at which descriptor it has the file open. That is tried, then the mapping itself
//! (which takes CAP_SYS_ADMIN); what is opened must be the file that the memory map shows at the
//! address, of the size and the name that were said, and have no path: then whoever made it wrote it
//! himself, and nobody else's file is touched whatever the VM claims. Nothing is mapped, so that
//! nobody can make a reader of it fault.

use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};

use nix::libc::{O_NOCTTY, O_NONBLOCK};
use nix::sys::stat::{major, minor};

use crate::Error;
use crate::abi::VmFile;

/// Opens a file of the process's; `writable`: else it is only read.
pub fn open(pid: u32, file: &VmFile, name: &'static str, writable: bool) -> Result<File, Error> {
    let failed = |reason: String| Error::File { pid, name, reason };
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))
        .map_err(|error| failed(error.to_string()))?;
    let mapped = Mapped::find(&maps, file, name)
        .ok_or_else(|| failed(format!("nothing of that name at {:#x}", file.address)))?;
    let paths = [
        format!("/proc/{pid}/fd/{}", file.fd),
        format!("/proc/{pid}/map_files/{}", mapped.range),
    ];
    let mut problem = String::new();
    for path in paths {
        match open_as(&path, &mapped, file.size, writable) {
            Ok(opened) => return Ok(opened),
            Err(reason) => {
                if !problem.is_empty() {
                    problem.push_str("; ");
                }
                problem.push_str(&format!("{path}: {reason}"));
            }
        }
    }
    Err(failed(problem))
}

/// What the memory map says of it.
struct Mapped {
    /// As map_files names it.
    range: String,
    device: (u64, u64),
    inode: u64,
}

impl Mapped {
    /// The mapping that starts at the file's address, has its size and is called by this name.
    fn find(maps: &str, file: &VmFile, name: &str) -> Option<Self> {
        maps.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            let range = words.next()?;
            let (start, end) = range.split_once('-')?;
            let hex = |text: &str| u64::from_str_radix(text, 16).ok();
            let (start, end) = (hex(start)?, hex(end)?);
            if start != file.address || end.checked_sub(start)? < file.size {
                return None;
            }
            let (device, inode) = (words.nth(2)?, words.next()?);
            let (device_major, device_minor) = device.split_once(':')?;
            let path = words.next()?;
            let called = path
                .strip_prefix("/memfd:")
                .or_else(|| path.rsplit('/').next())?;
            (called == name || called.strip_prefix(name)?.starts_with('.')).then_some(())?;
            Some(Self {
                range: format!("{start:x}-{end:x}"),
                device: (hex(device_major)?, hex(device_minor)?),
                inode: inode.parse().ok()?,
            })
        })
    }

    fn is(&self, found: &Metadata, size: u64) -> Result<(), String> {
        if (major(found.dev()), minor(found.dev())) != self.device || found.ino() != self.inode {
            return Err("another file than the one that is mapped".to_owned());
        }
        if !found.file_type().is_file() || found.file_type().is_fifo() || found.nlink() != 0 {
            return Err("no nameless file".to_owned());
        }
        if found.len() < size {
            return Err(format!("{} bytes of {size}", found.len()));
        }
        Ok(())
    }
}

fn open_as(path: &str, mapped: &Mapped, size: u64, writable: bool) -> Result<File, String> {
    // Looked at before it is opened: opening a device may do something.
    let before = std::fs::metadata(path).map_err(|error| error.to_string())?;
    mapped.is(&before, size)?;
    let file = OpenOptions::new()
        .read(true)
        .write(writable)
        .custom_flags(O_NONBLOCK | O_NOCTTY)
        .open(path)
        .map_err(|error| error.to_string())?;
    let after = file.metadata().map_err(|error| error.to_string())?;
    mapped.is(&after, size)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
7f0000000000-7f0000001000 rw-s 00000000 00:01 77 /memfd:varid-control (deleted)
7f0000002000-7f0000003000 rw-s 00000000 08:02 9 /home/x/varid-control.0000004711 (deleted)
7f0000004000-7f0000005000 rw-s 00000000 08:02 9 /home/x/varid-controlled
";

    fn file(address: u64, size: u64) -> VmFile {
        VmFile {
            address,
            size,
            ..VmFile::default()
        }
    }

    #[test]
    fn a_mapping_is_found_by_its_address_size_and_name() {
        let find = |address, size| Mapped::find(MAPS, &file(address, size), "varid-control");
        let found = find(0x7f00_0000_0000, 4096).unwrap();
        assert_eq!(found.range, "7f0000000000-7f0000001000");
        assert_eq!((found.device, found.inode), ((0, 1), 77));
        assert_eq!(find(0x7f00_0000_2000, 4096).unwrap().device, (8, 2));
        assert!(find(0x7f00_0000_4000, 4096).is_none(), "another name");
        assert!(find(0x7f00_0000_0000, 4097).is_none(), "too small");
        assert!(find(0x7f00_0000_1000, 4096).is_none(), "elsewhere");
    }

    #[test]
    fn a_file_that_is_not_the_mapped_one_is_not_opened() {
        let pid = std::process::id();
        let lie = |address| open(pid, &file(address, 4096), "varid-control", true);
        assert!(matches!(lie(0x1000), Err(Error::File { .. })));
        let mapped = Mapped {
            range: String::new(),
            device: (0, 0),
            inode: 1,
        };
        for path in ["/dev/null", "/proc/self/exe", "/dev/tty"] {
            assert!(open_as(path, &mapped, 1, true).is_err(), "{path}");
        }
    }
}
