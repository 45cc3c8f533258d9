//! How is a function of libart replaced? A jump is written over its first instructions.

use std::ffi::{CStr, c_void};
use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::error::Error;
use crate::libart::Libart;

/// A function of libart, to be replaced before the VM is created.
#[derive(Debug)]
pub struct Function {
    name: &'static CStr,
    start: *mut c_void,
    memory: File,
}

impl Function {
    /// The function that libart exports by this name.
    pub fn of(libart: &Libart, name: &'static CStr) -> Result<Self, Error> {
        Self::at(name, libart.symbol(name)?)
    }

    /// The function of this name at this address.
    fn at(name: &'static CStr, start: *mut c_void) -> Result<Self, Error> {
        // The kernel writes to a private copy of a page, whatever its protection, and the mapping stays whole.
        let memory = File::options()
            .read(true)
            .write(true)
            .open("/proc/self/mem")
            .map_err(|source| Error::File {
                path: "/proc/self/mem".into(),
                source,
                hint: "",
            })?;
        Ok(Self {
            name,
            start,
            memory,
        })
    }

    /// The address behind its first instructions, which must be these.
    pub fn after(&self, instructions: &[u8]) -> Result<*mut c_void, Error> {
        let mut found = vec![0; instructions.len()];
        self.memory
            .read_exact_at(&mut found, self.start.expose_provenance() as u64)
            .map_err(|source| self.error(source.to_string()))?;
        if found != instructions {
            return Err(self.error(format!(
                "it begins with {found:02x?}, not with {instructions:02x?}"
            )));
        }
        Ok(self.start.wrapping_byte_add(instructions.len()))
    }

    /// Lets each call go to `other` instead.
    pub fn replace(&self, other: *const c_void) -> Result<(), Error> {
        let mut jump = JUMP.to_vec();
        jump.extend(other.expose_provenance().to_ne_bytes());
        self.memory
            .write_all_at(&jump, self.start.expose_provenance() as u64)
            .map_err(|source| self.error(source.to_string()))
    }

    fn error(&self, reason: String) -> Error {
        Error::Repair {
            function: self.name.to_string_lossy().into_owned(),
            reason,
        }
    }
}

/// Jumps to the address that follows.
#[cfg(target_arch = "x86_64")]
const JUMP: [u8; 6] = [0xff, 0x25, 0, 0, 0, 0]; // jmp [rip]

/// Jumps to the address that follows.
#[cfg(target_arch = "aarch64")]
const JUMP: [u8; 12] = [
    0x5f, 0x24, 0x03, 0xd5, // bti c
    0x50, 0x00, 0x00, 0x58, // ldr x16, [pc, #8]
    0x00, 0x02, 0x1f, 0xd6, // br x16
];

#[cfg(test)]
mod tests {
    use std::arch::naked_asm;
    use std::ffi::c_void;
    use std::hint::black_box;

    use super::Function;

    #[cfg(target_arch = "x86_64")]
    #[unsafe(naked)]
    extern "C" fn one() -> u32 {
        naked_asm!("mov eax, 1", "ret", ".space 16")
    }

    #[cfg(target_arch = "aarch64")]
    #[unsafe(naked)]
    extern "C" fn one() -> u32 {
        naked_asm!("mov w0, #1", "ret", ".space 16")
    }

    extern "C" fn two() -> u32 {
        2
    }

    #[test]
    fn calls_of_a_replaced_function_go_to_the_other() {
        let function = Function::at(c"one", one as *mut c_void).unwrap();
        assert_eq!(black_box(one as extern "C" fn() -> u32)(), 1);
        function.replace(two as *const c_void).unwrap();
        assert_eq!(black_box(one as extern "C" fn() -> u32)(), 2);
    }

    #[test]
    fn a_function_that_begins_otherwise_is_refused() {
        let function = Function::at(c"two", two as *mut c_void).unwrap();
        let error = function.after(&[0; 16]).unwrap_err();
        assert!(error.to_string().contains("two"), "{error}");
    }
}
