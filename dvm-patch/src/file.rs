//! Opens a file of the VM's: the one that it has mapped, and no other.
//!
//! The VM publishes the descriptor at which it has the file open. That is tried first, then the mapping itself (which needs
//! CAP_SYS_ADMIN). The opened file must be the one that the memory map shows at the address, with the published size and name, and
//! must have no path. So its creator also wrote its contents, and files of other users are never accessed, whatever the VM
//! publishes. Nothing is mapped, so that no process can make a reader fault. Before a file is opened, its device is checked,
//! because reading from some devices may block: see [`is_served_here`].

use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::sync::OnceLock;

use nix::libc::{O_NOCTTY, O_NONBLOCK};
use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::TunnelError;
use crate::abi::{self, VmFile};
use varid_model::Pid;
use varid_model::{Device, maps_entries};

/// The files that a VM's tunnel names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The control page, to be written.
    Control,
    /// The counts of calls, to be read.
    Calls,
}

impl Kind {
    /// The file's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Control => abi::CONTROL_NAME,
            Self::Calls => abi::CALLS_NAME,
        }
    }
}

/// Opens a file of a process.
pub fn open(pid: Pid, file: &VmFile, kind: Kind) -> Result<File, TunnelError> {
    let name = kind.name();
    let failed = |reason: String| TunnelError::File { pid, name, reason };
    let maps =
        std::fs::read(format!("/proc/{pid}/maps")).map_err(|error| failed(error.to_string()))?;
    let mapped = Mapped::find(&maps, file, name)
        .ok_or_else(|| failed(format!("nothing of that name at {:#x}", file.address)))?;
    if !is_served_here(mapped.device) {
        return Err(failed(
            "it is on a file system that somebody may serve who never answers".to_owned(),
        ));
    }
    if kind == Kind::Control && !mapped.is_shared {
        return Err(failed(
            "the VM would not see what is written there: it is not mapped shared and writable"
                .to_owned(),
        ));
    }
    let paths = [
        format!("/proc/{pid}/fd/{}", file.fd),
        format!("/proc/{pid}/map_files/{}", mapped.range),
    ];
    let mut problem = String::new();
    for path in paths {
        match open_as(&path, &mapped, file.size, kind == Kind::Control) {
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

/// Returns true if a VM's tunnel and its files may be on this device: in memory or, for a VM that may not or cannot make a memfd,
/// on a disk. The kernel serves these itself. A page of a file system in user space (FUSE) or on the network may never arrive, and
/// its reader would block in the kernel.
pub fn is_served_here(device: Device) -> bool {
    static MEMFD: OnceLock<Option<Device>> = OnceLock::new();
    let of_memfd = MEMFD.get_or_init(|| {
        let memfd = memfd_create(c"varid-device", MFdFlags::MFD_CLOEXEC).ok()?;
        let number = nix::sys::stat::fstat(&memfd).ok()?.st_dev;
        Some(Device::of_number(number as u64))
    });
    device.major != 0 || *of_memfd == Some(device) || is_tmpfs(device)
}

/// Returns true if the device is that of a tmpfs that is mounted here.
fn is_tmpfs(device: Device) -> bool {
    let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let number = format!("{}:{}", device.major, device.minor);
    mounts.split(|byte| *byte == b'\n').any(|mount| {
        let mut words = mount.split(|byte| *byte == b' ');
        words.nth(2) == Some(number.as_bytes())
            && words.skip_while(|word| *word != b"-").nth(1) == Some(b"tmpfs")
    })
}

/// A mapping in the memory map.
struct Mapped {
    /// The name in map_files.
    range: String,
    device: Device,
    inode: u64,
    /// A shared mapping: every process that has mapped the file sees and may make changes.
    is_shared: bool,
}

impl Mapped {
    /// Finds the mapping that starts at the file's address and has its size and this name.
    fn find(maps: &[u8], file: &VmFile, name: &str) -> Option<Self> {
        let is_it = |path: &[u8]| {
            let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
            let called = path
                .strip_prefix(b"/memfd:")
                .or_else(|| path.rsplit(|byte| *byte == b'/').next());
            called.is_some_and(|called| {
                called
                    .strip_prefix(name.as_bytes())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
            })
        };
        let mapping = maps_entries(maps).find(|mapping| {
            let size = mapping.range.end.offset_from(mapping.range.start);
            mapping.range.start.get() == file.address
                && size.is_some_and(|size| size >= file.size)
                && is_it(mapping.path)
        })?;
        let range = &mapping.range;
        Some(Self {
            range: format!("{:x}-{:x}", range.start, range.end),
            device: mapping.device,
            inode: mapping.inode,
            is_shared: mapping.mode.shared && mapping.mode.write,
        })
    }

    fn is(&self, found: &Metadata, size: u64) -> Result<(), String> {
        if Device::of_number(found.dev()) != self.device || found.ino() != self.inode {
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
    // Checked before the file is opened: opening a device may have side effects.
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

    const MAPS: &[u8] = b"\
7f0000000000-7f0000001000 rw-s 00000000 00:01 77 /memfd:varid-control (deleted)
7f0000002000-7f0000003000 rw-p 00000000 08:02 9 /home/x/varid-control.0000004711 (deleted)
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
        let device = |major, minor| Device { major, minor };
        assert_eq!((found.device, found.inode), (device(0, 1), 77));
        let on_disk = find(0x7f00_0000_2000, 4096).unwrap();
        assert!(on_disk.device == device(8, 2) && !on_disk.is_shared);
        assert!(found.is_shared);
        assert!(find(0x7f00_0000_4000, 4096).is_none(), "another name");
        assert!(find(0x7f00_0000_0000, 4097).is_none(), "too small");
        assert!(find(0x7f00_0000_1000, 4096).is_none(), "elsewhere");
    }

    #[test]
    fn a_file_that_is_not_the_mapped_one_is_not_opened() {
        let pid = Pid::new(std::process::id());
        let lie = |address| open(pid, &file(address, 4096), Kind::Control);
        assert!(matches!(lie(0x1000), Err(TunnelError::File { .. })));
        let mapped = Mapped {
            range: String::new(),
            device: Device::default(),
            inode: 1,
            is_shared: true,
        };
        for path in ["/dev/null", "/proc/self/exe", "/dev/tty"] {
            assert!(open_as(path, &mapped, 1, true).is_err(), "{path}");
        }
    }

    #[test]
    fn files_of_the_kernel_are_recognised_by_their_device() {
        let memfd = memfd_create(c"x", MFdFlags::MFD_CLOEXEC).unwrap();
        let number = nix::sys::stat::fstat(&memfd).unwrap().st_dev;
        assert!(is_served_here(Device::of_number(number as u64)));
        // A disk, an anonymous device, and none.
        for (major, minor, served) in [(8, 1, true), (0, 0xffff, false), (0, 0, false)] {
            assert_eq!(
                is_served_here(Device { major, minor }),
                served,
                "{major}:{minor}"
            );
        }
    }
}
