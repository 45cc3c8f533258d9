//! The open files of a guest.

use std::{
    fmt,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    os::{fd::AsFd, unix::ffi::OsStrExt},
    path::Path,
};

use nix::{
    errno::Errno,
    fcntl::{OFlag, OpenHow, ResolveFlag, openat2},
    sys::stat::Mode,
};

/// The most files that are open at once.
const MAX_FILES: usize = 256;
/// The most bytes of one read.
const MAX_READ: usize = 1 << 20;

/// Where the guest's standard streams lead to.
pub struct Streams {
    /// Descriptor 0.
    pub input: Box<dyn Read>,
    /// Descriptor 1.
    pub output: Box<dyn Write>,
    /// Descriptor 2.
    pub error: Box<dyn Write>,
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams").finish_non_exhaustive()
    }
}

/// An open file.
#[derive(Debug)]
enum Descriptor {
    Input,
    Output,
    Error,
    File(File),
}

/// Where a seek begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whence {
    Start,
    Current,
    End,
}

impl Whence {
    pub fn of_number(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::Start),
            1 => Some(Self::Current),
            2 => Some(Self::End),
            _ => None,
        }
    }
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Its `st_mode`.
    pub mode: u32,
    /// Its size in bytes.
    pub size: u64,
}

/// The files of a guest, by descriptor.
#[derive(Debug)]
pub struct Files {
    streams: Streams,
    folder: Option<File>,
    open: Vec<Option<Descriptor>>,
}

impl Files {
    pub fn new(streams: Streams, folder: Option<&Path>) -> io::Result<Self> {
        Ok(Self {
            streams,
            folder: folder.map(File::open).transpose()?,
            open: vec![
                Some(Descriptor::Input),
                Some(Descriptor::Output),
                Some(Descriptor::Error),
            ],
        })
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.streams.output.flush()?;
        self.streams.error.flush()
    }

    fn descriptor(&mut self, fd: u32) -> Result<(&mut Streams, &mut Descriptor), Errno> {
        let found = self.open.get_mut(fd as usize).and_then(Option::as_mut);
        Ok((&mut self.streams, found.ok_or(Errno::EBADF)?))
    }

    /// Checks that a descriptor is open.
    pub fn check(&mut self, fd: u32) -> Result<(), Errno> {
        self.descriptor(fd).map(|_| ())
    }

    /// Reads at most `most` bytes.
    pub fn read(&mut self, fd: u32, most: usize) -> Result<Vec<u8>, Errno> {
        let (streams, descriptor) = self.descriptor(fd)?;
        let mut bytes = vec![0; most.min(MAX_READ)];
        let count = match descriptor {
            // Who answers has to see what was asked.
            Descriptor::Input => streams
                .output
                .flush()
                .and_then(|()| streams.input.read(&mut bytes)),
            Descriptor::File(file) => file.read(&mut bytes),
            Descriptor::Output | Descriptor::Error => return Err(Errno::EBADF),
        };
        bytes.truncate(count.map_err(number_of)?);
        Ok(bytes)
    }

    /// Writes all bytes.
    pub fn write(&mut self, fd: u32, bytes: &[u8]) -> Result<(), Errno> {
        let (streams, descriptor) = self.descriptor(fd)?;
        let written = match descriptor {
            Descriptor::Output => streams.output.write_all(bytes),
            Descriptor::Error => streams.error.write_all(bytes),
            Descriptor::File(file) => file.write_all(bytes),
            Descriptor::Input => return Err(Errno::EBADF),
        };
        written.map_err(number_of)
    }

    /// Opens a file of the guest's folder. Its path may begin with `/`, which is the folder; no link leads out of it.
    pub fn open(&mut self, path: &[u8], flags: u32, mode: u32) -> Result<u32, Errno> {
        let folder = self.folder.as_ref().ok_or(Errno::EACCES)?;
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
        let how = OpenHow::new()
            .flags(host_flags(flags) | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)
            .mode(match host_flags(flags).contains(OFlag::O_CREAT) {
                true => Mode::from_bits_truncate(mode & 0o777),
                false => Mode::empty(),
            })
            .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
        let opened = openat2(folder.as_fd(), path, how)?;
        let free = self.open.iter().position(Option::is_none);
        let index = free.unwrap_or(self.open.len());
        if index >= MAX_FILES {
            return Err(Errno::EMFILE);
        }
        let descriptor = Some(Descriptor::File(File::from(opened)));
        match self.open.get_mut(index) {
            Some(slot) => *slot = descriptor,
            None => self.open.push(descriptor),
        }
        Ok(index as u32)
    }

    pub fn close(&mut self, fd: u32) -> Result<(), Errno> {
        self.check(fd)?;
        if let Some(slot) = self.open.get_mut(fd as usize) {
            *slot = None;
        }
        Ok(())
    }

    pub fn seek(&mut self, fd: u32, offset: i64, whence: Whence) -> Result<u64, Errno> {
        match self.descriptor(fd)?.1 {
            Descriptor::File(file) => {
                let to = match whence {
                    Whence::Start => SeekFrom::Start(offset.cast_unsigned()),
                    Whence::Current => SeekFrom::Current(offset),
                    Whence::End => SeekFrom::End(offset),
                };
                file.seek(to).map_err(number_of)
            }
            _ => Err(Errno::ESPIPE),
        }
    }

    pub fn stat(&mut self, fd: u32) -> Result<Stat, Errno> {
        match self.descriptor(fd)?.1 {
            Descriptor::File(file) => {
                let found = file.metadata().map_err(number_of)?;
                Ok(Stat {
                    mode: 0o100_644,
                    size: found.len(),
                })
            }
            _ => Ok(Stat {
                mode: 0o020_620,
                size: 0,
            }),
        }
    }
}

/// The flags of `open` in a C library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OpenFlags {
    create: u32,
    exclusive: u32,
    truncate: u32,
    append: u32,
}

/// Those of Linux (`asm-generic/fcntl.h`).
const LINUX: OpenFlags = OpenFlags {
    create: 0o100,
    exclusive: 0o200,
    truncate: 0o1000,
    append: 0o2000,
};
/// Those of newlib and picolibc (`sys/_default_fcntl.h`).
const NEWLIB: OpenFlags = OpenFlags {
    create: 0x200,
    exclusive: 0x800,
    truncate: 0x400,
    append: 0x8,
};

/// Returns the host's flags. Newlib's O_CREAT has the bit of Linux's O_TRUNC: without Linux's O_CREAT beside it, it is taken for newlib's.
fn host_flags(flags: u32) -> OFlag {
    let access = match flags & 3 {
        0 => OFlag::O_RDONLY,
        1 => OFlag::O_WRONLY,
        _ => OFlag::O_RDWR,
    };
    let is_newlib = flags & LINUX.create == 0 && flags & (NEWLIB.create | NEWLIB.append) != 0;
    let library = match is_newlib {
        true => NEWLIB,
        false => LINUX,
    };
    let table = [
        (library.create, OFlag::O_CREAT),
        (library.exclusive, OFlag::O_EXCL),
        (library.truncate, OFlag::O_TRUNC),
        (library.append, OFlag::O_APPEND),
    ];
    let set = table.iter().filter(|(bit, _)| flags & bit != 0);
    set.fold(access, |all, (_, flag)| all | *flag)
}

fn number_of(error: io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}
