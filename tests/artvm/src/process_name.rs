//! Under which name does the process run? /proc/PID/cmdline and comm, set as Android's Zygote sets them.

use std::ffi::CString;
use std::ptr;

use crate::error::Error;

/// The memory that the kernel shows as this process's command line.
#[derive(Debug)]
pub struct ProcessName {
    start: *mut u8,
    /// Bytes of the original arguments.
    arguments: usize,
    /// Bytes of the arguments and of the environment behind them.
    total: usize,
}

impl ProcessName {
    /// Finds the memory, and copies the environment away from it.
    ///
    /// To be called once, before other threads are started.
    pub fn claim() -> Result<Self, Error> {
        let fail = |reason: String| Error::CommandLine {
            name: String::new(),
            reason,
        };
        let stat = std::fs::read_to_string("/proc/self/stat")
            .map_err(|error| fail(format!("/proc/self/stat: {error}")))?;
        // Fields count from 1; the second is in brackets and may hold anything.
        let (_, rest) = stat
            .rsplit_once(')')
            .ok_or_else(|| fail("/proc/self/stat: no command".to_owned()))?;
        let field = |number: usize| {
            rest.split_ascii_whitespace()
                .nth(number.saturating_sub(3))
                .and_then(|text| text.parse::<usize>().ok())
        };
        let (Some(arg_start), Some(arg_end), Some(env_start), Some(env_end)) =
            (field(48), field(49), field(50), field(51))
        else {
            return Err(fail("/proc/self/stat: no arg_start (field 48)".to_owned()));
        };
        let end = if env_start == arg_end && env_end >= env_start {
            env_end
        } else {
            arg_end
        };
        let (Some(arguments), Some(total)) =
            (arg_end.checked_sub(arg_start), end.checked_sub(arg_start))
        else {
            return Err(fail(format!("arguments at {arg_start:#x}..{arg_end:#x}")));
        };
        if arguments < 2 {
            return Err(fail("the process was started without arguments".to_owned()));
        }
        copy_environment();
        Ok(Self {
            start: ptr::with_exposed_provenance_mut(arg_start),
            arguments,
            total,
        })
    }

    /// Makes `/proc/self/cmdline` read exactly `name`, and comm its end, as Zygote does.
    pub fn set(&self, name: &str) -> Result<(), Error> {
        let fail = |reason: &str| Error::CommandLine {
            name: name.to_owned(),
            reason: reason.to_owned(),
        };
        if name.is_empty() || name.contains('\0') || name.len() >= self.total {
            return Err(fail(
                "it is empty, has a NUL byte, or is longer than the arguments and the environment",
            ));
        }
        // SAFETY: the kernel laid these bytes out, writable, for arguments and environment; nothing points into the
        // environment any more, and the arguments were copied before (std's iterator is not used again).
        unsafe {
            ptr::write_bytes(self.start, 0, self.total);
            ptr::copy_nonoverlapping(name.as_ptr(), self.start, name.len());
            // The kernel shows the area up to the first NUL if its last byte is not NUL (and goes on into the
            // environment then); else the whole area, NULs and all.
            if name.len() + 1 < self.arguments {
                self.start.add(self.arguments - 1).write(b'.');
            }
        }
        let comm = CString::new(comm(name)).map_err(|_| fail("it has a NUL byte"))?;
        // SAFETY: the string ends in NUL; the kernel copies at most 16 bytes.
        unsafe { libc::prctl(libc::PR_SET_NAME, comm.as_ptr()) };
        Ok(())
    }
}

/// The 15 bytes of a name that Android shows as comm: the end of a package's name, the start of any other.
fn comm(name: &str) -> &[u8] {
    let bytes = name.as_bytes();
    let excess = bytes.len().saturating_sub(15);
    if excess > 0 && name.contains('.') && !name.contains('@') {
        return bytes.get(excess..).unwrap_or(bytes);
    }
    bytes.get(..15).unwrap_or(bytes)
}

/// Moves the environment's strings to memory of their own, for good.
fn copy_environment() {
    let mut copies: Vec<*mut libc::c_char> = Vec::new();
    // SAFETY: environ is null or an array of strings that ends in null; no other thread runs yet. The copies live
    // as long as the process.
    unsafe {
        let mut next = environ;
        while !next.is_null() && !(*next).is_null() {
            copies.push(std::ffi::CStr::from_ptr(*next).to_owned().into_raw());
            next = next.add(1);
        }
        copies.push(ptr::null_mut());
        environ = Box::leak(copies.into_boxed_slice()).as_mut_ptr();
    }
}

unsafe extern "C" {
    static mut environ: *mut *mut libc::c_char;
}

#[cfg(test)]
mod tests {
    use super::comm;

    #[test]
    fn comm_keeps_the_end_of_a_package() {
        assert_eq!(comm("org.example.math.long"), b"ample.math.long");
        assert_eq!(comm("zygote64"), b"zygote64");
        assert_eq!(comm("a-name-without-any-dot"), b"a-name-without-");
    }
}
