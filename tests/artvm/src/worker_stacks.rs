//! What if libart's worker threads bring a stack that glibc finds too small? They get one of glibc's own.
//!
//! libart 11 allocates 64 KB for a worker and aborts if pthread_attr_setstack refuses it, as it does on arm64, where
//! glibc's minimum is 128 KB. This executable's function comes before glibc's in libart's lookup.

use std::ffi::{c_int, c_void};

use libc::pthread_attr_t;

type SetStack = unsafe extern "C" fn(*mut pthread_attr_t, *mut c_void, usize) -> c_int;

/// `pthread_attr_setstack`, where a stack below the minimum only asks for the minimum.
///
/// # Safety
/// As of glibc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_attr_setstack(
    attributes: *mut pthread_attr_t,
    stack: *mut c_void,
    size: usize,
) -> c_int {
    // SAFETY: the name ends in NUL, and sysconf takes any number.
    let (next, minimum) = unsafe {
        let next = libc::dlsym(libc::RTLD_NEXT, c"pthread_attr_setstack".as_ptr());
        (next, libc::sysconf(libc::_SC_THREAD_STACK_MIN))
    };
    let minimum = usize::try_from(minimum).unwrap_or(0);
    // SAFETY: the caller's arguments go on to glibc's functions of the same types.
    unsafe {
        if size < minimum {
            return libc::pthread_attr_setstacksize(attributes, minimum);
        }
        if next.is_null() {
            return libc::ENOSYS;
        }
        std::mem::transmute::<*mut c_void, SetStack>(next)(attributes, stack, size)
    }
}

#[cfg(test)]
mod tests {
    use super::pthread_attr_setstack;

    #[test]
    fn a_stack_below_the_minimum_is_replaced_and_others_are_glibc_s_business() {
        // SAFETY: an attribute object that is initialised first; glibc only records the stack's address.
        unsafe {
            let mut attributes = std::mem::zeroed();
            assert_eq!(libc::pthread_attr_init(&mut attributes), 0);
            let stack = std::ptr::without_provenance_mut(0x10000);
            assert_eq!(pthread_attr_setstack(&mut attributes, stack, 1), 0);
            let mut size = 0;
            assert_eq!(libc::pthread_attr_getstacksize(&attributes, &mut size), 0);
            assert_eq!(
                size as libc::c_long,
                libc::sysconf(libc::_SC_THREAD_STACK_MIN)
            );
            assert_eq!(pthread_attr_setstack(&mut attributes, stack, 1 << 20), 0);
            assert_eq!(libc::pthread_attr_getstacksize(&attributes, &mut size), 0);
            assert_eq!(size, 1 << 20);
            libc::pthread_attr_destroy(&mut attributes);
        }
    }
}
