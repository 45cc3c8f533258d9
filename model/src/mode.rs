//! The access mode of a mapping.

use std::fmt;

/// A mapping's mode. It is displayed as in `/proc/PID/maps`: `r-xp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[allow(clippy::struct_excessive_bools)] // four questions, each with its own answer
pub struct Mode {
    /// It may be read.
    pub read: bool,
    /// It may be written.
    pub write: bool,
    /// It may be executed.
    pub execute: bool,
    /// Writes are visible to all processes that map it.
    pub shared: bool,
}

const PROT_READ: u32 = 1;
const PROT_WRITE: u32 = 2;
const PROT_EXEC: u32 = 4;
const MAP_SHARED: u32 = 1;

impl Mode {
    /// Makes the mode from the protection and flags of mmap(2).
    #[must_use]
    pub const fn from_mmap(prot: u32, flags: u32) -> Self {
        Self {
            read: prot & PROT_READ != 0,
            write: prot & PROT_WRITE != 0,
            execute: prot & PROT_EXEC != 0,
            shared: flags & MAP_SHARED != 0,
        }
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
    fn a_mode_looks_as_in_proc() {
        let code = Mode::from_mmap(PROT_READ | PROT_EXEC, 2);
        assert_eq!(code.to_string(), "r-xp");
        let data = Mode::from_mmap(PROT_READ | PROT_WRITE, MAP_SHARED);
        assert_eq!(data.to_string(), "rw-s");
    }
}
