//! Writes a mapping's mode into its MMAP2 record, and reads it.

use varid_model::Mode;

const PROT_READ: u32 = 1;
const PROT_WRITE: u32 = 2;
const PROT_EXEC: u32 = 4;
const MAP_SHARED: u32 = 1;
const MAP_PRIVATE: u32 = 2;
/// Linux ignores this flag. Here it means "not executable", as PROT_EXEC is always set: perf's readers look at no other mapping.
const MAP_DENYWRITE: u32 = 0x800;
/// Linux ignores this flag, too. Here it means "executable".
const MAP_EXECUTABLE: u32 = 0x1000;

/// Returns the protection and flags of a mapping's MMAP2 record. The mode may be unknown.
pub(crate) const fn recorded(mode: Option<Mode>) -> (u32, u32) {
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

/// Returns the mode that an MMAP2 record has. `None` if it was unknown.
pub(crate) const fn of_record(prot: u32, flags: u32) -> Option<Mode> {
    if flags & (MAP_DENYWRITE | MAP_EXECUTABLE) == 0 {
        return None;
    }
    let execute = flags & MAP_EXECUTABLE != 0;
    Some(Mode {
        execute,
        ..Mode::from_mmap(prot, flags)
    })
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
            let (prot, flags) = recorded(Some(mode));
            assert_ne!(prot & PROT_EXEC, 0);
            assert_eq!(of_record(prot, flags), Some(mode), "{mode}");
        }
        let (prot, flags) = recorded(None);
        assert_ne!(prot & PROT_EXEC, 0);
        assert_eq!(of_record(prot, flags), None);
    }
}
