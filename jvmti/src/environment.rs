//! The functions of JVMTI.

use std::{
    ffi::{CStr, CString, c_char, c_void},
    ptr,
};

use crate::{
    capability::Capabilities,
    error::{JvmtiError, Result},
    event::{Callbacks, Event},
    jni::{Handle, Jni, JniFunction},
    table::{RawTable, function},
};

/// Numbers of functions of JVMTI, which counts from 1.
mod number {
    pub const SET_EVENT_NOTIFICATION_MODE: usize = 2;
    pub const GET_THREAD_INFO: usize = 9;
    pub const GET_CURRENT_THREAD: usize = 18;
    pub const ALLOCATE: usize = 46;
    pub const DEALLOCATE: usize = 47;
    pub const GET_METHOD_NAME: usize = 64;
    pub const SET_JNI_FUNCTION_TABLE: usize = 120;
    pub const GET_JNI_FUNCTION_TABLE: usize = 121;
    pub const SET_EVENT_CALLBACKS: usize = 122;
    pub const GET_SYSTEM_PROPERTY: usize = 131;
    pub const GET_POTENTIAL_CAPABILITIES: usize = 140;
    pub const ADD_CAPABILITIES: usize = 142;
}

/// The number of `GetEnv` in the table of a VM.
const GET_ENV: usize = 6;
/// The version of JVMTI that is asked for: 11, which JDK 11 and later have.
const VERSION: i32 = 0x300b_0000;
/// The version of JNI that is asked for: 1.6.
const JNI_VERSION: i32 = 0x0001_0006;

/// A VM as it loads an agent.
#[derive(Debug, Clone, Copy)]
pub struct JavaVm(RawTable);

impl JavaVm {
    /// Makes a VM of the pointer that `Agent_OnLoad` or `JNI_OnLoad` receives.
    ///
    /// # Safety
    ///
    /// `vm` is that pointer.
    #[must_use]
    pub const unsafe fn new(vm: RawTable) -> Self {
        Self(vm)
    }

    /// Returns a new JVMTI environment. None if the VM does not have this version.
    #[must_use]
    pub fn jvmti(self) -> Option<Jvmti> {
        self.environment(VERSION).map(Jvmti)
    }

    /// Returns the JNI environment of this thread. None if the VM does not know the thread.
    #[must_use]
    pub fn jni(self) -> Option<Jni> {
        let environment = self.environment(JNI_VERSION)?;
        // SAFETY: the VM has given it to this thread.
        unsafe { Jni::new(environment) }
    }

    fn environment(self, version: i32) -> Option<RawTable> {
        type GetEnv = unsafe extern "system" fn(RawTable, *mut RawTable, i32) -> i32;
        let mut environment = ptr::null_mut();
        // SAFETY: `new` was given a valid VM, and the result has room for a pointer.
        let code =
            unsafe { function::<GetEnv>(self.0, GET_ENV)(self.0, &raw mut environment, version) };
        (code == 0 && !environment.is_null()).then_some(environment)
    }
}

/// A JVMTI environment. It can be used on any thread.
#[derive(Debug, Clone, Copy)]
pub struct Jvmti(RawTable);

// SAFETY: the specification lets any attached thread use an environment.
unsafe impl Send for Jvmti {}
// SAFETY: as above.
unsafe impl Sync for Jvmti {}

/// What is known of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadInfo {
    /// Its name.
    pub name: String,
}

/// `jvmtiThreadInfo`.
#[repr(C)]
struct RawThreadInfo {
    name: *mut c_char,
    priority: i32,
    is_daemon: u8,
    group: *mut c_void,
    loader: *mut c_void,
}

impl Jvmti {
    /// Returns the function with a number.
    ///
    /// # Safety
    ///
    /// The number is above 0, and that function is of type `F`.
    unsafe fn function<F: Copy>(self, number: usize) -> F {
        // SAFETY: the VM made the environment, which has all functions of version 11, and the caller promises the type.
        unsafe { function(self.0, number.wrapping_sub(1)) }
    }

    /// Adds capabilities.
    ///
    /// # Errors
    ///
    /// The VM does not have one of them, or not in this phase.
    pub fn add_capabilities(self, capabilities: &Capabilities) -> Result<()> {
        type Add = unsafe extern "system" fn(RawTable, *const Capabilities) -> i32;
        // SAFETY: the environment is valid, and the set is laid out as the VM expects it.
        JvmtiError::check(unsafe {
            self.function::<Add>(number::ADD_CAPABILITIES)(self.0, capabilities)
        })
    }

    /// Returns the capabilities that can be added in this phase.
    ///
    /// # Errors
    ///
    /// The VM does not tell.
    pub fn potential_capabilities(self) -> Result<Capabilities> {
        type Get = unsafe extern "system" fn(RawTable, *mut Capabilities) -> i32;
        let mut found = Capabilities::default();
        // SAFETY: the environment is valid, and the set is laid out as the VM expects it.
        JvmtiError::check(unsafe {
            self.function::<Get>(number::GET_POTENTIAL_CAPABILITIES)(self.0, &raw mut found)
        })?;
        Ok(found)
    }

    /// Sets the receivers of events.
    ///
    /// # Errors
    ///
    /// It is not possible in this phase.
    pub fn set_callbacks(self, callbacks: &Callbacks) -> Result<()> {
        type Set = unsafe extern "system" fn(RawTable, *const Callbacks, i32) -> i32;
        // The structure has some 300 bytes.
        let size = i32::try_from(size_of::<Callbacks>()).unwrap_or(0);
        // SAFETY: the environment is valid, and the VM copies as many bytes as there are.
        JvmtiError::check(unsafe {
            self.function::<Set>(number::SET_EVENT_CALLBACKS)(self.0, callbacks, size)
        })
    }

    /// Enables an event on all threads.
    ///
    /// # Errors
    ///
    /// The VM does not have the event, or the agent lacks its capability.
    pub fn enable(self, event: Event) -> Result<()> {
        type SetMode = unsafe extern "C" fn(RawTable, i32, i32, *mut c_void, ...) -> i32;
        const ENABLE: i32 = 1;
        // SAFETY: the environment is valid. A null thread means all threads.
        JvmtiError::check(unsafe {
            let set_mode = self.function::<SetMode>(number::SET_EVENT_NOTIFICATION_MODE);
            set_mode(self.0, ENABLE, event as i32, ptr::null_mut())
        })
    }

    /// Copies bytes to memory that the VM frees.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub fn copy(self, bytes: &[u8]) -> Result<*mut u8> {
        type Allocate = unsafe extern "system" fn(RawTable, i64, *mut *mut u8) -> i32;
        let mut memory = ptr::null_mut();
        // A slice has at most `isize::MAX` bytes.
        let length = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        // SAFETY: the environment is valid, and the result has room for a pointer.
        JvmtiError::check(unsafe {
            self.function::<Allocate>(number::ALLOCATE)(self.0, length, &raw mut memory)
        })?;
        // SAFETY: the VM has allocated as many bytes as the slice has, and nobody else has them.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), memory, bytes.len()) };
        Ok(memory)
    }

    /// Frees memory that the VM has allocated.
    ///
    /// # Safety
    ///
    /// The memory is of a function of this environment, and is not used any more.
    unsafe fn free(self, memory: *mut c_void) {
        type Deallocate = unsafe extern "system" fn(RawTable, *mut c_void) -> i32;
        // SAFETY: the caller promises that the memory is the VM's and unused. An error would only mean that it leaks.
        let _ = unsafe { self.function::<Deallocate>(number::DEALLOCATE)(self.0, memory) };
    }

    /// Returns the text that the VM has allocated, and frees it. Bytes that are not UTF-8 are replaced.
    ///
    /// # Safety
    ///
    /// `text` is null, or a zero-terminated text of a function of this environment that is not used any more.
    unsafe fn take_text(self, text: *mut c_char) -> String {
        if text.is_null() {
            return String::new();
        }
        // SAFETY: the caller promises a zero-terminated text.
        let copy = unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned();
        // SAFETY: the caller promises that it is unused, and the copy is ours.
        unsafe { self.free(text.cast()) };
        copy
    }

    /// Returns a system property of the VM. None if it is not set.
    #[must_use]
    pub fn system_property(self, name: &str) -> Option<String> {
        type Get = unsafe extern "system" fn(RawTable, *const c_char, *mut *mut c_char) -> i32;
        let name = CString::new(name).ok()?;
        let mut value = ptr::null_mut();
        // SAFETY: the environment is valid, the name ends with a zero, and the result has room for a pointer.
        let code = unsafe {
            self.function::<Get>(number::GET_SYSTEM_PROPERTY)(self.0, name.as_ptr(), &raw mut value)
        };
        JvmtiError::check(code).ok()?;
        // SAFETY: the VM has allocated the value for this call.
        Some(unsafe { self.take_text(value) })
    }

    /// Returns what is known of a thread.
    ///
    /// # Errors
    ///
    /// The thread has ended, or the VM is not initialised.
    ///
    /// # Safety
    ///
    /// `thread` is a handle of a thread, valid in this thread.
    pub unsafe fn thread_info(self, thread: Handle) -> Result<ThreadInfo> {
        type Get = unsafe extern "system" fn(RawTable, *mut c_void, *mut RawThreadInfo) -> i32;
        let mut info = RawThreadInfo {
            name: ptr::null_mut(),
            priority: 0,
            is_daemon: 0,
            group: ptr::null_mut(),
            loader: ptr::null_mut(),
        };
        // SAFETY: the environment is valid, the caller promises the handle, and the result is laid out as the VM expects it.
        JvmtiError::check(unsafe {
            self.function::<Get>(number::GET_THREAD_INFO)(self.0, thread.as_raw(), &raw mut info)
        })?;
        // SAFETY: the VM has allocated the name for this call.
        let name = unsafe { self.take_text(info.name) };
        Ok(ThreadInfo { name })
    }

    /// Returns a handle of this thread. None before the VM has an object for it.
    #[must_use]
    pub fn current_thread(self) -> Option<Handle> {
        type Get = unsafe extern "system" fn(RawTable, *mut *mut c_void) -> i32;
        let mut thread = ptr::null_mut();
        // SAFETY: the environment is valid, and the result has room for a handle.
        let code =
            unsafe { self.function::<Get>(number::GET_CURRENT_THREAD)(self.0, &raw mut thread) };
        JvmtiError::check(code).ok()?;
        Handle::new(thread)
    }

    /// Returns the name and the descriptor of a method. None before `VMStart`.
    ///
    /// # Safety
    ///
    /// `method` is the id of a method that the VM passed.
    #[must_use]
    pub unsafe fn method_name(self, method: *mut c_void) -> Option<(String, String)> {
        type Get = unsafe extern "system" fn(
            RawTable,
            *mut c_void,
            *mut *mut c_char,
            *mut *mut c_char,
            *mut *mut c_char,
        ) -> i32;
        let (mut name, mut descriptor) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the environment is valid, the caller promises the method, and null means that its generic type is not wanted.
        let code = unsafe {
            self.function::<Get>(number::GET_METHOD_NAME)(
                self.0,
                method,
                &raw mut name,
                &raw mut descriptor,
                ptr::null_mut(),
            )
        };
        JvmtiError::check(code).ok()?;
        // SAFETY: the VM has allocated both texts for this call.
        Some(unsafe { (self.take_text(name), self.take_text(descriptor)) })
    }

    /// Replaces functions of JNI for all threads. Returns the functions that were replaced, in the same order.
    ///
    /// # Errors
    ///
    /// The VM has not started, or has no memory.
    ///
    /// # Safety
    ///
    /// Each function has the type that JNI gives to the function that it replaces, and does what that one does.
    pub unsafe fn replace_jni_functions<const N: usize>(
        self,
        functions: [(JniFunction, *const c_void); N],
    ) -> Result<[*const c_void; N]> {
        type Get = unsafe extern "system" fn(RawTable, *mut *mut *const c_void) -> i32;
        type Set = unsafe extern "system" fn(RawTable, *const *const c_void) -> i32;
        let mut table: *mut *const c_void = ptr::null_mut();
        // SAFETY: the environment is valid, and the result has room for a pointer.
        JvmtiError::check(unsafe {
            self.function::<Get>(number::GET_JNI_FUNCTION_TABLE)(self.0, &raw mut table)
        })?;
        let replaced = functions.map(|(number, new)| {
            // SAFETY: the VM has made a copy of the whole table, which has all functions of the enum.
            let entry = unsafe { &mut *table.add(number as usize) };
            std::mem::replace(entry, new)
        });
        // SAFETY: the table is whole, and the caller promises that its new functions have the right types.
        let code = unsafe { self.function::<Set>(number::SET_JNI_FUNCTION_TABLE)(self.0, table) };
        // SAFETY: the VM has copied the table.
        unsafe { self.free(table.cast()) };
        JvmtiError::check(code)?;
        Ok(replaced)
    }
}
