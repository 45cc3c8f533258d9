//! The system calls of a guest: those of newlib and of small programs for Linux, by Linux's numbers for RISC-V.
//!
//! An error of the host's file system is the guest's `errno`. A call that is not in the table ends the program: its result could only be
//! guessed.

mod files;

use std::{io, path::Path};

use nix::errno::Errno;
use varid_processor::Cycles;
use varid_riscv::Register;

use crate::{hart::Hart, memory::Memory};
use files::{Files, Whence};

pub use files::Streams;

/// A system call that the machine does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("ecall {number}{}: the machine does not have this system call", named(*.number))]
pub struct UnknownCall {
    /// Its number, in a7.
    pub number: u32,
}

/// The result of a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// What a0 gets: a value, or a negated `errno`.
    Value(u32),
    /// The program ends with this status.
    Exit(i32),
}

/// The system calls (`asm-generic/unistd.h`; `machine/syscall.h` of newlib's libgloss has those from 1024 on).
mod number {
    pub const IOCTL: u32 = 29;
    pub const OPENAT: u32 = 56;
    pub const CLOSE: u32 = 57;
    pub const LSEEK: u32 = 62;
    pub const READ: u32 = 63;
    pub const WRITE: u32 = 64;
    pub const READV: u32 = 65;
    pub const WRITEV: u32 = 66;
    pub const FSTAT: u32 = 80;
    pub const EXIT: u32 = 93;
    pub const EXIT_GROUP: u32 = 94;
    pub const SET_TID_ADDRESS: u32 = 96;
    pub const CLOCK_GETTIME: u32 = 113;
    pub const GETTIMEOFDAY: u32 = 169;
    pub const GETPID: u32 = 172;
    pub const BRK: u32 = 214;
    pub const CLOCK_GETTIME64: u32 = 403;
    pub const OPEN: u32 = 1024;
    pub const TIME: u32 = 1062;
}

/// Calls that programs may make and the machine does not have, with their names.
const UNSUPPORTED: [(u32, &str); 14] = [
    (17, "getcwd"),
    (25, "fcntl"),
    (35, "unlinkat"),
    (48, "faccessat"),
    (98, "futex"),
    (129, "kill"),
    (134, "rt_sigaction"),
    (153, "times"),
    (160, "uname"),
    (215, "munmap"),
    (220, "clone"),
    (222, "mmap"),
    (1026, "unlink"),
    (1038, "stat"),
];

fn named(number: u32) -> String {
    let found = UNSUPPORTED.iter().find(|(known, _)| *known == number);
    found.map_or_else(String::new, |(_, name)| format!(" ({name})"))
}

/// The environment of a guest: its files, the end of its heap, its clock.
#[derive(Debug)]
pub struct System {
    files: Files,
    heap: Heap,
    clock_hz: u64,
}

/// The part of memory that `brk` gives out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Heap {
    /// Its first byte.
    pub start: u32,
    /// The current end.
    pub end: u32,
    /// The end that it cannot exceed.
    pub limit: u32,
}

impl System {
    /// Makes an environment.
    ///
    /// `folder` has the files that the guest may open; without one, it can open none. `clock_hz` is how many cycles a second has.
    ///
    /// # Errors
    ///
    /// The folder cannot be opened.
    pub fn new(
        streams: Streams,
        folder: Option<&Path>,
        heap: Heap,
        clock_hz: u64,
    ) -> io::Result<Self> {
        Ok(Self {
            files: Files::new(streams, folder)?,
            heap,
            clock_hz: clock_hz.max(1),
        })
    }

    /// Returns true if the system call that the registers describe needs the time.
    #[must_use]
    pub fn reads_clock(hart: &Hart) -> bool {
        let number = hart.get(Register::A7);
        matches!(
            number,
            number::CLOCK_GETTIME | number::CLOCK_GETTIME64 | number::GETTIMEOFDAY | number::TIME
        )
    }

    /// Executes the system call that the registers describe, at a time since the program's start.
    ///
    /// # Errors
    ///
    /// The machine does not have this call.
    pub fn call(
        &mut self,
        hart: &Hart,
        memory: &mut Memory,
        now: Cycles,
    ) -> Result<Reply, UnknownCall> {
        let argument = |index: u32| hart.get(Register::integer(index.wrapping_add(10)));
        let [a0, a1, a2, a3, a4] = [0, 1, 2, 3, 4].map(argument);
        let result = match hart.get(Register::A7) {
            number::EXIT | number::EXIT_GROUP => return Ok(Reply::Exit(a0.cast_signed())),
            number::READ => self.read(memory, a0, a1, a2),
            number::WRITE => self.write(memory, a0, a1, a2),
            number::READV => self.vectors(memory, a1, a2, |system, memory, start, count| {
                system.read(memory, a0, start, count)
            }),
            number::WRITEV => self.vectors(memory, a1, a2, |system, memory, start, count| {
                system.write(memory, a0, start, count)
            }),
            number::OPENAT => self.open(memory, a1, a2, a3),
            number::OPEN => self.open(memory, a0, a1, a2),
            number::CLOSE => self.files.close(a0).map(|()| 0),
            number::LSEEK => self.seek(memory, [a0, a1, a2, a3, a4]),
            number::FSTAT => self.stat(memory, a0, a1),
            number::IOCTL => self.files.check(a0).and(Err(Errno::ENOTTY)),
            number::BRK => Ok(self.set_break(a0)),
            number::GETPID | number::SET_TID_ADDRESS => Ok(1),
            number::GETTIMEOFDAY => self.time(memory, a0, now, TimeFormat::Microseconds),
            number::CLOCK_GETTIME | number::CLOCK_GETTIME64 => {
                self.time(memory, a1, now, TimeFormat::Nanoseconds)
            }
            number::TIME => Ok(self.seconds(now) as u32),
            number => return Err(UnknownCall { number }),
        };
        let value = result.unwrap_or_else(|errno| (errno as i32).wrapping_neg().cast_unsigned());
        Ok(Reply::Value(value))
    }

    /// Writes what is buffered of the guest's output.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.files.flush()
    }

    fn read(&mut self, memory: &mut Memory, fd: u32, start: u32, count: u32) -> Call {
        // As much as fits the region: the buffer that the guest names is not allocated.
        let room = memory.up_to(start, count as usize).len();
        if room == 0 && count > 0 {
            return Err(Errno::EFAULT);
        }
        let bytes = self.files.read(fd, room)?;
        store(memory, start, &bytes)?;
        Ok(bytes.len() as u32)
    }

    fn write(&mut self, memory: &mut Memory, fd: u32, start: u32, count: u32) -> Call {
        let bytes = match count {
            0 => &[],
            _ => memory.bytes(start, count).map_err(|_| Errno::EFAULT)?,
        };
        self.files.write(fd, bytes)?;
        Ok(count)
    }

    /// Executes a call for each buffer of a list of addresses and sizes.
    fn vectors(
        &mut self,
        memory: &mut Memory,
        list: u32,
        count: u32,
        mut each: impl FnMut(&mut Self, &mut Memory, u32, u32) -> Call,
    ) -> Call {
        if count > 1024 {
            return Err(Errno::EINVAL);
        }
        let mut total = 0_u32;
        for index in 0..count {
            let at = list.wrapping_add(index.wrapping_mul(8));
            let word = |at| memory.load::<4>(at).map(u32::from_le_bytes);
            let start = word(at).map_err(|_| Errno::EFAULT)?;
            let bytes = word(at.wrapping_add(4)).map_err(|_| Errno::EFAULT)?;
            let done = each(self, memory, start, bytes)?;
            total = total.saturating_add(done);
            if done < bytes {
                break;
            }
        }
        Ok(total)
    }

    fn open(&mut self, memory: &Memory, path: u32, flags: u32, mode: u32) -> Call {
        let bytes = memory.up_to(path, 4096);
        let end = bytes.iter().position(|byte| *byte == 0);
        let path = end.and_then(|end| bytes.get(..end)).ok_or(Errno::EFAULT)?;
        self.files.open(path, flags, mode)
    }

    /// `lseek` has two forms: newlib's with an offset of 32 bits, and Linux's `llseek`, which stores its result where a3 points to.
    fn seek(&mut self, memory: &mut Memory, arguments: [u32; 5]) -> Call {
        let [fd, a1, a2, result, whence] = arguments;
        if result == 0 {
            let whence = Whence::of_number(a2).ok_or(Errno::EINVAL)?;
            let at = self.files.seek(fd, a1.cast_signed().into(), whence)?;
            return u32::try_from(at).map_err(|_| Errno::EINVAL);
        }
        let whence = Whence::of_number(whence).ok_or(Errno::EINVAL)?;
        let offset = (u64::from(a1) << 32 | u64::from(a2)).cast_signed();
        let at = self.files.seek(fd, offset, whence)?;
        let stored = memory.store(result, at.to_le_bytes());
        stored.map(|_| 0).map_err(|_| Errno::EFAULT)
    }

    /// Writes a `struct stat` (`asm-generic/stat.h`; newlib's `struct kernel_stat`), with a size and a kind only.
    fn stat(&mut self, memory: &mut Memory, fd: u32, to: u32) -> Call {
        let found = self.files.stat(fd)?;
        let mut bytes = [0; 104];
        let mut put = |at: usize, value: &[u8]| {
            if let Some(field) = bytes.get_mut(at..at.saturating_add(value.len())) {
                field.copy_from_slice(value);
            }
        };
        put(16, &found.mode.to_le_bytes());
        put(20, &1_u32.to_le_bytes());
        put(48, &found.size.to_le_bytes());
        put(56, &4096_u32.to_le_bytes());
        put(64, &found.size.div_ceil(512).to_le_bytes());
        store(memory, to, &bytes).map(|()| 0)
    }

    fn set_break(&mut self, end: u32) -> u32 {
        if (self.heap.start..=self.heap.limit).contains(&end) {
            self.heap.end = end;
        }
        self.heap.end
    }

    /// The seconds since the program's start.
    fn seconds(&self, now: Cycles) -> u64 {
        now.0.checked_div(self.clock_hz).unwrap_or_default()
    }

    /// Writes the time since the program's start: seconds of 64 bits, as Linux has them for RV32, and a fraction.
    fn time(&self, memory: &mut Memory, to: u32, now: Cycles, format: TimeFormat) -> Call {
        let seconds = self.seconds(now);
        let rest = now.0.checked_rem(self.clock_hz).unwrap_or_default();
        let nanoseconds = u128::from(rest).saturating_mul(1_000_000_000);
        let nanoseconds = nanoseconds.checked_div(self.clock_hz.into());
        let nanoseconds = nanoseconds.unwrap_or_default() as u64;
        let fraction = match format {
            TimeFormat::Microseconds => nanoseconds / 1000,
            TimeFormat::Nanoseconds => nanoseconds,
        };
        let stored = memory
            .store(to, seconds.to_le_bytes())
            .and_then(|_| memory.store(to.wrapping_add(8), fraction.to_le_bytes()));
        stored.map(|_| 0).map_err(|_| Errno::EFAULT)
    }
}

/// Writes bytes where the guest may write them.
fn store(memory: &mut Memory, at: u32, bytes: &[u8]) -> Result<(), Errno> {
    let checked = memory.check_store(at, bytes.len() as u32);
    let written = checked.and_then(|_| memory.write(at, bytes));
    written.map_err(|_| Errno::EFAULT)
}

/// The unit of the fraction of a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimeFormat {
    Microseconds,
    Nanoseconds,
}

/// A value, or an error, whose numbers are the same on all machines as far as they can occur here.
type Call = Result<u32, Errno>;

#[cfg(test)]
mod tests;
