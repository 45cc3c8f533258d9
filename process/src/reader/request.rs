//! The helper's requests, and how they are carried out.
//!
//! Everything here may block in the kernel as long as a profiled process likes: a page of its memory, or any path in its root, may be on a
//! file system that the process serves itself.

use super::batch::Batch;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use varid_model::{Device, Pid};
use varid_tunnel::abi::VmFile;
use varid_tunnel::file::Kind;
use varid_tunnel::{Memory, ProcessMemory};

/// The most bytes of an answer in one packet.
pub(super) const PART: usize = 1 << 16;
/// The most bytes of a request. The longest is that of a batch.
pub(super) const MAX_REQUEST: usize = 1 << 16;
/// Bytes of a file in /proc that are read at a time: the kernel returns a few thousand.
const CHUNK: usize = 1 << 13;
/// The most bytes that are read of a file in /proc. The memory map of a process with as many mappings as Linux allows by default has a
/// tenth of them.
const MAX_CONTENTS: usize = 1 << 27;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    /// The memory of a process.
    Memory {
        /// The process.
        pid: Pid,
        /// The first address.
        address: u64,
        /// Size in bytes.
        len: u64,
    },
    /// Pieces of the memory of a process.
    Batch(Pid, Batch),
    /// The contents of a file in /proc.
    Contents(PathBuf),
    /// A handle of a file or folder.
    Open(Open),
    /// Bytes of the file whose handle is sent with the request. Fewer at its end.
    Read {
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// A file to which a process's tunnel leads.
    VmFile {
        /// The process.
        pid: Pid,
        /// Its location according to the tunnel: address, size and descriptor.
        file: (u64, u64, u32),
        /// The kind of file.
        kind: Kind,
    },
}

/// A file or folder to be opened as a handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// The path: absolute, or relative to a folder that is sent with the request.
    pub path: PathBuf,
    /// What it must be.
    pub what: PathTarget,
}

/// What a path may lead to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathTarget {
    /// Any mapped regular file. The path is the kernel's link to it.
    Mapped,
    /// The regular file with this inode on this device, not through a link.
    Same(Device, u64),
    /// A regular file, not through a link.
    Regular,
    /// A folder, as a starting point for paths.
    Folder,
}

impl Request {
    /// Carries out the request. `inside`: the folder that a path is relative to, or the file that is read. `part` receives the answer's
    /// bytes, part by part; an error from it ends the request.
    pub(super) fn carry_out(
        &self,
        inside: Option<&OwnedFd>,
        part: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<Option<OwnedFd>> {
        match self {
            Self::Memory { pid, address, len } => {
                let memory = ProcessMemory::new(*pid);
                let mut bytes = vec![0; usize::try_from(*len).unwrap_or(PART).min(PART)];
                let mut read = 0;
                while read < *len {
                    let left = usize::try_from(len.saturating_sub(read)).unwrap_or(PART);
                    let piece = bytes.get_mut(..left.min(PART)).unwrap_or_default();
                    memory
                        .read(address.wrapping_add(read), piece)
                        .map_err(io::Error::other)?;
                    part(piece)?;
                    read = read.saturating_add(piece.len() as u64);
                }
                Ok(None)
            }
            Self::Batch(pid, batch) => {
                let answer = batch.carry_out(&ProcessMemory::new(*pid));
                part(&answer.map_err(io::Error::other)?.encode())?;
                Ok(None)
            }
            Self::Contents(path) => {
                let mut file = File::open(path)?;
                let mut bytes = [0; CHUNK];
                let mut read = 0usize;
                while read < MAX_CONTENTS {
                    let here = file.read(&mut bytes)?;
                    if here == 0 {
                        break;
                    }
                    part(bytes.get(..here).unwrap_or_default())?;
                    read = read.saturating_add(here);
                }
                Ok(None)
            }
            Self::Open(open) => open.carry_out(inside).map(Some),
            Self::Read { offset, len } => {
                let file = inside.ok_or(io::ErrorKind::InvalidInput)?;
                read(&File::open(own_descriptor(file))?, *offset, *len, part).map(|()| None)
            }
            Self::VmFile { pid, file, kind } => {
                let (address, size, fd) = *file;
                let file = VmFile {
                    address,
                    size,
                    fd,
                    ..VmFile::default()
                };
                varid_tunnel::file::open(*pid, &file, *kind)
                    .map(|file| Some(file.into()))
                    .map_err(io::Error::other)
            }
        }
    }
}

/// Reads a number of bytes from an offset on.
fn read(
    file: &File,
    offset: u64,
    len: u64,
    part: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let size = |left: u64| usize::try_from(left).unwrap_or(PART).min(PART);
    let mut bytes = vec![0; size(len)];
    let mut read = 0u64;
    while read < len {
        let left = size(len.saturating_sub(read));
        let piece = bytes.get_mut(..left).unwrap_or_default();
        let here = file.read_at(piece, offset.saturating_add(read))?;
        if here == 0 {
            break;
        }
        part(piece.get(..here).unwrap_or_default())?;
        read = read.saturating_add(here as u64);
    }
    Ok(())
}

impl Open {
    /// Opens the path as a handle, and checks it: opening a device or a pipe may have side effects.
    fn carry_out(&self, inside: Option<&OwnedFd>) -> io::Result<OwnedFd> {
        let path = match inside {
            Some(folder) => PathBuf::from(own_descriptor(folder)).join(&self.path),
            None if self.path.is_absolute() => self.path.clone(),
            None => return Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        let flags = match self.what {
            PathTarget::Mapped => libc::O_PATH,
            PathTarget::Same(..) | PathTarget::Regular => libc::O_PATH | libc::O_NOFOLLOW,
            PathTarget::Folder => libc::O_PATH | libc::O_NOFOLLOW | libc::O_DIRECTORY,
        };
        let handle = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(path)?;
        if self.what == PathTarget::Folder {
            return Ok(handle.into());
        }
        let meta = handle.metadata()?;
        if !meta.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        if let PathTarget::Same(device, inode) = self.what
            && (meta.ino() != inode || !is_on(&handle, meta.dev(), device))
        {
            return Err(io::Error::other("the path leads to another file by now"));
        }
        Ok(handle.into())
    }
}

/// Returns the path of an open file of this program.
fn own_descriptor(file: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Returns true if a file, whose `st_dev` is given, is on the device that memory maps show for it. A btrfs gives each of its subvolumes its
/// own number, but memory maps show the device of the mount.
fn is_on(file: &File, number: u64, device: Device) -> bool {
    Device::of_number(number) == device || device_of_mount(file) == Some(device)
}

fn device_of_mount(file: &File) -> Option<Device> {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).ok()?;
    let id = info
        .lines()
        .find_map(|line| line.strip_prefix("mnt_id:"))?
        .trim();
    let mounts = std::fs::read("/proc/self/mountinfo").ok()?;
    let mounts = String::from_utf8_lossy(&mounts);
    let mount = mounts
        .lines()
        .find(|mount| mount.split(' ').next() == Some(id))?;
    let (major, minor) = mount.split(' ').nth(2)?.split_once(':')?;
    Some(Device {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
    })
}

// The format on the socket: both ends are the same program, so numbers have the byte order of this machine.

impl Request {
    /// Encodes the request for the socket.
    pub(super) fn encode(&self) -> Vec<u8> {
        let of_batch;
        let (numbers, rest): (&[u64], &[u8]) = match self {
            Self::Memory { pid, address, len } => (&[0, u64::from(pid.get()), *address, *len], &[]),
            Self::Batch(pid, batch) => {
                let mut numbers = vec![4, u64::from(pid.get())];
                batch.encode(&mut numbers);
                of_batch = numbers;
                (&of_batch, &batch.unless)
            }
            Self::Contents(path) => (&[1], path.as_os_str().as_bytes()),
            Self::Open(open) => {
                let (what, device, inode) = match open.what {
                    PathTarget::Mapped => (0, Device::default(), 0),
                    PathTarget::Same(device, inode) => (1, device, inode),
                    PathTarget::Regular => (2, Device::default(), 0),
                    PathTarget::Folder => (3, Device::default(), 0),
                };
                let (major, minor) = (u64::from(device.major), u64::from(device.minor));
                let path = open.path.as_os_str().as_bytes();
                (&[2, what, major, minor, inode], path)
            }
            Self::VmFile {
                pid,
                file: (address, size, fd),
                kind,
            } => {
                let is_control = u64::from(*kind == Kind::Control);
                let (pid, fd) = (u64::from(pid.get()), u64::from(*fd));
                (&[3, pid, *address, *size, fd, is_control], &[])
            }
            Self::Read { offset, len } => (&[5, *offset, *len], &[]),
        };
        let numbers = numbers.iter().flat_map(|number| number.to_ne_bytes());
        numbers.chain(rest.iter().copied()).collect()
    }

    /// Decodes a request. None if the bytes are not a request.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let mut number = || {
            let (number, behind) = rest.split_first_chunk()?;
            rest = behind;
            Some(u64::from_ne_bytes(*number))
        };
        let narrow = |number: u64| u32::try_from(number).ok();
        match number()? {
            0 => Some(Self::Memory {
                pid: Pid::new(narrow(number()?)?),
                address: number()?,
                len: number()?,
            }),
            1 => Some(Self::Contents(path(rest))),
            2 => {
                let what = number()?;
                let device = Device {
                    major: narrow(number()?)?,
                    minor: narrow(number()?)?,
                };
                let inode = number()?;
                let what = match what {
                    0 => PathTarget::Mapped,
                    1 => PathTarget::Same(device, inode),
                    2 => PathTarget::Regular,
                    3 => PathTarget::Folder,
                    _ => return None,
                };
                let path = path(rest);
                Some(Self::Open(Open { path, what }))
            }
            3 => Some(Self::VmFile {
                pid: Pid::new(narrow(number()?)?),
                file: (number()?, number()?, narrow(number()?)?),
                kind: match number()? {
                    0 => Kind::Calls,
                    _ => Kind::Control,
                },
            }),
            4 => {
                let pid = Pid::new(narrow(number()?)?);
                let batch = Batch::decode(&mut number)?;
                let unless = rest.to_vec();
                Some(Self::Batch(pid, Batch { unless, ..batch }))
            }
            5 => Some(Self::Read {
                offset: number()?,
                len: number()?,
            }),
            _ => None,
        }
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    OsString::from_vec(bytes.to_vec()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(request: &Request, inside: Option<&OwnedFd>) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
        let mut answer = Vec::new();
        let decoded = Request::decode(&request.encode()).unwrap();
        assert_eq!(&decoded, request);
        let file = decoded.carry_out(inside, &mut |part| {
            answer.extend_from_slice(part);
            Ok(())
        })?;
        Ok((answer, file))
    }

    fn open(path: impl Into<PathBuf>, what: PathTarget) -> Request {
        let path = path.into();
        Request::Open(Open { path, what })
    }

    #[test]
    fn memory_is_read_whole_or_not_at_all() {
        let bytes: Vec<u8> = (0..3 * PART + 5).map(|at| at as u8).collect();
        let of = |address, len| Request::Memory {
            pid: Pid::new(std::process::id()),
            address,
            len,
        };
        let all = of(bytes.as_ptr() as u64, bytes.len() as u64);
        assert_eq!(ask(&all, None).unwrap().0, bytes);
        assert!(ask(&of(16, 8), None).is_err());
    }

    #[test]
    fn a_file_of_another_type_than_requested_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "x").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let meta = std::fs::metadata(&file).unwrap();
        let (device, inode) = (Device::of_number(meta.dev()), meta.ino());
        let elsewhere = Device {
            minor: device.minor ^ 1,
            ..device
        };
        for (path, what, opens) in [
            (&file, PathTarget::Same(device, inode), true),
            (&file, PathTarget::Same(elsewhere, inode), false),
            (&file, PathTarget::Same(device, inode + 1), false),
            (&link, PathTarget::Same(device, inode), false),
            (&file, PathTarget::Regular, true),
            (&link, PathTarget::Regular, false),
            (&link, PathTarget::Mapped, true),
            (&file, PathTarget::Folder, false),
        ] {
            let request = open(path, what);
            assert_eq!(ask(&request, None).is_ok(), opens, "{request:?}");
        }
        assert!(ask(&open("/dev/null", PathTarget::Regular), None).is_err());
        let (_, opened) = ask(&open(folder.path(), PathTarget::Folder), None).unwrap();
        let inside = opened.unwrap();
        assert!(ask(&open("file", PathTarget::Regular), Some(&inside)).is_ok());
        assert!(ask(&open("file", PathTarget::Regular), None).is_err());
    }

    #[test]
    fn a_handle_is_read_as_far_as_its_file_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "content").unwrap();
        let (_, handle) = ask(&open(&path, PathTarget::Regular), None).unwrap();
        let handle = handle.unwrap();
        // Closing it asks no file system, and neither can it be read.
        assert!(
            File::from(handle.try_clone().unwrap())
                .read(&mut [0])
                .is_err()
        );
        let read = |offset, len| {
            let (bytes, _) = ask(&Request::Read { offset, len }, Some(&handle)).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!([read(0, 3), read(3, 99), read(9, 1)], ["con", "tent", ""]);
        assert!(ask(&Request::Read { offset: 0, len: 1 }, None).is_err());
    }

    #[test]
    fn a_file_without_text_for_a_name_is_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let name = OsString::from_vec(b"\xff\n\x80".to_vec());
        std::fs::write(folder.path().join(&name), "x").unwrap();
        assert!(ask(&open(folder.path().join(name), PathTarget::Regular), None).is_ok());
    }

    #[test]
    fn the_kernels_files_are_read_whole() {
        let maps = Request::Contents("/proc/self/maps".into());
        let (read, _) = ask(&maps, None).unwrap();
        assert!(varid_model::maps_entries(&read).count() > 5);
    }

    #[test]
    fn what_is_no_request_is_none() {
        let request = open("/x", PathTarget::Regular).encode();
        for len in 0..5 * 8 {
            assert_eq!(Request::decode(&request[..len]), None, "{len}");
        }
        assert_eq!(Request::decode(&9u64.to_ne_bytes()), None);
    }
}
