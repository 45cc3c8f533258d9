//! The events that an agent receives.

use std::ffi::{c_char, c_void};

use crate::{jni::RawJni, table::RawTable};

/// An event by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Event {
    /// The VM is initialised: objects, threads and all functions can be used.
    VmInit = 50,
    /// A thread starts. It is sent on that thread, before the thread's first method.
    ThreadStart = 52,
    /// A thread has executed its last method. It is sent on that thread.
    ThreadEnd = 53,
    /// The bytes of a class are about to be parsed.
    ClassFileLoadHook = 54,
    /// JNI can be used.
    VmStart = 57,
    /// The VM has found the function of a native method.
    NativeMethodBind = 67,
    /// A virtual thread starts. From JDK 21 on.
    VirtualThreadStart = 87,
}

/// The receiver of [`Event::VmStart`].
pub type VmStart = unsafe extern "system" fn(RawTable, RawJni);

/// The receiver of [`Event::VmInit`], [`Event::ThreadStart`], [`Event::ThreadEnd`] and [`Event::VirtualThreadStart`]. The last argument is the thread.
pub type ThreadEvent = unsafe extern "system" fn(RawTable, RawJni, *mut c_void);

/// The receiver of [`Event::ClassFileLoadHook`]: JVMTI, JNI (null before `VMStart`), the class that is redefined or null, its loader or
/// null for the boot loader, its name in modified UTF-8 or null, its protection domain or null, the length of its bytes, the bytes; the
/// length and the bytes that replace them.
pub type ClassFileLoadHook = unsafe extern "system" fn(
    RawTable,
    RawJni,
    *mut c_void,
    *mut c_void,
    *const c_char,
    *mut c_void,
    i32,
    *const u8,
    *mut i32,
    *mut *mut u8,
);

/// The receiver of [`Event::NativeMethodBind`]: JVMTI, JNI, the thread or null, the method, its function; the function that replaces it.
pub type NativeMethodBind = unsafe extern "system" fn(
    RawTable,
    RawJni,
    *mut c_void,
    *mut c_void,
    *const c_void,
    *mut *const c_void,
);

/// The receivers of events, laid out as `jvmtiEventCallbacks` up to number 87.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Callbacks {
    /// Number 50.
    pub vm_init: Option<ThreadEvent>,
    number_51: Option<VmStart>,
    /// Number 52.
    pub thread_start: Option<ThreadEvent>,
    /// Number 53.
    pub thread_end: Option<ThreadEvent>,
    /// Number 54.
    pub class_file_load_hook: Option<ClassFileLoadHook>,
    numbers_55_to_56: [Option<VmStart>; 2],
    /// Number 57.
    pub vm_start: Option<VmStart>,
    numbers_58_to_66: [Option<VmStart>; 9],
    /// Number 67.
    pub native_method_bind: Option<NativeMethodBind>,
    numbers_68_to_86: [Option<VmStart>; 19],
    /// Number 87.
    pub virtual_thread_start: Option<ThreadEvent>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn a_receiver_stands_at_its_number() {
        let number = |offset: usize| 50 + offset / size_of::<usize>();
        let numbers = [
            offset_of!(Callbacks, vm_init),
            offset_of!(Callbacks, thread_start),
            offset_of!(Callbacks, thread_end),
            offset_of!(Callbacks, class_file_load_hook),
            offset_of!(Callbacks, vm_start),
            offset_of!(Callbacks, native_method_bind),
            offset_of!(Callbacks, virtual_thread_start),
        ]
        .map(number);
        assert_eq!(numbers, [50, 52, 53, 54, 57, 67, 87]);
    }
}
