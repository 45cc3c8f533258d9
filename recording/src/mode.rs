//! What may a process do with the bytes of a mapping?

use std::fmt;

/// A mapping's mode, as `/proc/PID/maps` writes it: `r-xp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[allow(clippy::struct_excessive_bools)] // four questions, each with its own answer
pub struct Mode {
    /// It may be read.
    pub read: bool,
    /// It may be written.
    pub write: bool,
    /// It may be executed.
    pub execute: bool,
    /// What is written is seen by all who map it.
    pub shared: bool,
}

const PROT_READ: u32 = 1;
const PROT_WRITE: u32 = 2;
const PROT_EXEC: u32 = 4;
const MAP_SHARED: u32 = 1;
const MAP_PRIVATE: u32 = 2;
/// Linux ignores it, and has it for "not executable" here: PROT_EXEC is added for perf's readers, who look at no other mapping.
const MAP_DENYWRITE: u32 = 0x800;
/// Linux ignores this one, too: "executable" here.
const MAP_EXECUTABLE: u32 = 0x1000;

impl Mode {
    /// What mmap(2) calls protection and flags.
    #[must_use]
    pub const fn from_mmap(prot: u32, flags: u32) -> Self {
        Self {
            read: prot & PROT_READ != 0,
            write: prot & PROT_WRITE != 0,
            execute: prot & PROT_EXEC != 0,
            shared: flags & MAP_SHARED != 0,
        }
    }

    /// Protection and flags of its MMAP2 record; it need not be known.
    pub(crate) const fn recorded(mode: Option<Self>) -> (u32, u32) {
        let Some(mode) = mode else {
            return (PROT_READ | PROT_EXEC, MAP_PRIVATE);
        };
        let mut prot = PROT_EXEC;
        if mode.read {
            prot |= PROT_READ;
        }
        if mode.write {
            prot |= PROT_WRITE;
        }
        let kind = if mode.shared { MAP_SHARED } else { MAP_PRIVATE };
        let known = if mode.execute {
            MAP_EXECUTABLE
        } else {
            MAP_DENYWRITE
        };
        (prot, kind | known)
    }

    /// The inverse.
    pub(crate) const fn of_record(prot: u32, flags: u32) -> Option<Self> {
        if flags & (MAP_DENYWRITE | MAP_EXECUTABLE) == 0 {
            return None;
        }
        let execute = flags & MAP_EXECUTABLE != 0;
        Some(Self {
            execute,
            ..Self::from_mmap(prot, flags)
        })
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = |is: bool, letter| if is { letter } else { '-' };
        let shared = if self.shared { 's' } else { 'p' };
        let (read, write) = (letter(self.read, 'r'), letter(self.write, 'w'));
        write!(out, "{read}{write}{}{shared}", letter(self.execute, 'x'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_survives_its_record_and_looks_executable_there() {
        for bits in 0..16 {
            let mode = Mode {
                read: bits & 1 != 0,
                write: bits & 2 != 0,
                execute: bits & 4 != 0,
                shared: bits & 8 != 0,
            };
            let (prot, flags) = Mode::recorded(Some(mode));
            assert_ne!(prot & PROT_EXEC, 0);
            assert_eq!(Mode::of_record(prot, flags), Some(mode), "{mode}");
        }
        let (prot, flags) = Mode::recorded(None);
        assert_ne!(prot & PROT_EXEC, 0);
        assert_eq!(Mode::of_record(prot, flags), None);
    }

    #[test]
    fn a_mode_looks_as_in_proc() {
        let code = Mode::from_mmap(PROT_READ | PROT_EXEC, MAP_PRIVATE);
        assert_eq!(code.to_string(), "r-xp");
        let data = Mode::from_mmap(PROT_READ | PROT_WRITE, MAP_SHARED);
        assert_eq!(data.to_string(), "rw-s");
    }
}
