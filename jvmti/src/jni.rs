//! The functions of JNI.

use std::{
    ffi::{CStr, c_char, c_void},
    ptr::{self, NonNull},
};

use crate::table::{RawTable, function};

/// A JNI environment as the VM passes it.
pub type RawJni = RawTable;

/// Numbers of functions of JNI.
mod number {
    pub const DEFINE_CLASS: usize = 5;
    pub const FIND_CLASS: usize = 6;
    pub const EXCEPTION_CLEAR: usize = 17;
    pub const DELETE_LOCAL_REF: usize = 23;
    pub const IS_SAME_OBJECT: usize = 24;
    pub const GET_FIELD_ID: usize = 94;
    pub const GET_LONG_FIELD: usize = 101;
    pub const SET_LONG_FIELD: usize = 110;
    pub const GET_STATIC_FIELD_ID: usize = 144;
    pub const SET_STATIC_BOOLEAN_FIELD: usize = 155;
    pub const GET_ARRAY_LENGTH: usize = 171;
    pub const NEW_BYTE_ARRAY: usize = 176;
    pub const GET_BYTE_ARRAY_REGION: usize = 200;
    pub const SET_BYTE_ARRAY_REGION: usize = 208;
    pub const EXCEPTION_CHECK: usize = 228;
}

/// A function of JNI that an agent can replace. The value is its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum JniFunction {
    /// `GetMethodID`, of type [`GetMethodId`].
    GetMethodId = 33,
    /// `GetStaticMethodID`, of type [`GetMethodId`].
    GetStaticMethodId = 113,
}

/// Finds a method of a class by its name and its descriptor, both in modified UTF-8. It initialises the class.
pub type GetMethodId =
    unsafe extern "system" fn(RawJni, *mut c_void, *const c_char, *const c_char) -> *mut c_void;

/// A handle of an object. It is valid in the thread and the call that got it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle(NonNull<c_void>);

impl Handle {
    /// Returns the handle, or None if it is null.
    #[must_use]
    pub fn new(raw: *mut c_void) -> Option<Self> {
        NonNull::new(raw).map(Self)
    }

    /// Returns the handle as JNI has it.
    #[must_use]
    pub const fn as_raw(self) -> *mut c_void {
        self.0.as_ptr()
    }
}

/// A field of a class. It is valid while the class is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldId(NonNull<c_void>);

// SAFETY: the specification lets any thread use the id of a field.
unsafe impl Send for FieldId {}
// SAFETY: as above.
unsafe impl Sync for FieldId {}

/// The JNI environment of a thread.
#[derive(Debug, Clone, Copy)]
pub struct Jni(RawJni);

impl Jni {
    /// Makes an environment of the pointer that the VM passed. None if it is null.
    ///
    /// # Safety
    ///
    /// The VM passed it to this thread.
    #[must_use]
    pub unsafe fn new(environment: RawJni) -> Option<Self> {
        (!environment.is_null()).then_some(Self(environment))
    }

    /// Defines a class of the boot loader. None if the VM refuses it; the exception is cleared.
    #[must_use]
    pub fn define_boot_class(self, name: &CStr, bytes: &[u8]) -> Option<Handle> {
        type Define = unsafe extern "system" fn(
            RawJni,
            *const c_char,
            *mut c_void,
            *const u8,
            i32,
        ) -> *mut c_void;
        let length = i32::try_from(bytes.len()).ok()?;
        // SAFETY: the environment is this thread's, the name ends with a zero, and a null loader is the boot loader.
        let class = unsafe {
            let define = function::<Define>(self.0, number::DEFINE_CLASS);
            define(
                self.0,
                name.as_ptr(),
                ptr::null_mut(),
                bytes.as_ptr(),
                length,
            )
        };
        self.clear_exception();
        Handle::new(class)
    }

    /// Finds a class of the boot loader. None if there is none; the exception is cleared.
    #[must_use]
    pub fn find_class(self, name: &CStr) -> Option<Handle> {
        type Find = unsafe extern "system" fn(RawJni, *const c_char) -> *mut c_void;
        // SAFETY: the environment is this thread's, and the name ends with a zero.
        let class = unsafe { function::<Find>(self.0, number::FIND_CLASS)(self.0, name.as_ptr()) };
        self.clear_exception();
        Handle::new(class)
    }

    /// Finds a `long` field of the objects of a class. None if there is none; the exception is cleared.
    ///
    /// # Safety
    ///
    /// `class` is a handle of a class, valid in this thread.
    #[must_use]
    pub unsafe fn long_field(self, class: Handle, name: &CStr) -> Option<FieldId> {
        type Find = unsafe extern "system" fn(
            RawJni,
            *mut c_void,
            *const c_char,
            *const c_char,
        ) -> *mut c_void;
        // SAFETY: the environment is this thread's, the caller promises the class, and the texts end with a zero.
        let field = unsafe {
            let find = function::<Find>(self.0, number::GET_FIELD_ID);
            find(self.0, class.as_raw(), name.as_ptr(), c"J".as_ptr())
        };
        self.clear_exception();
        NonNull::new(field).map(FieldId)
    }

    /// Returns true if two handles are of the same object.
    ///
    /// # Safety
    ///
    /// Both are valid in this thread.
    #[must_use]
    pub unsafe fn is_same(self, one: Handle, other: Handle) -> bool {
        type IsSame = unsafe extern "system" fn(RawJni, *mut c_void, *mut c_void) -> u8;
        // SAFETY: the environment is this thread's, and the caller promises the handles.
        unsafe {
            let is_same = function::<IsSame>(self.0, number::IS_SAME_OBJECT);
            is_same(self.0, one.as_raw(), other.as_raw()) != 0
        }
    }

    /// Copies bytes of an array from `start` on. None if the array has fewer.
    ///
    /// # Safety
    ///
    /// `array` is a handle of a byte array, valid in this thread.
    #[must_use]
    pub unsafe fn array_bytes(self, array: Handle, start: i32, length: i32) -> Option<Vec<u8>> {
        type Length = unsafe extern "system" fn(RawJni, *mut c_void) -> i32;
        type Get = unsafe extern "system" fn(RawJni, *mut c_void, i32, i32, *mut u8);
        // SAFETY: the environment is this thread's, and the caller promises the array.
        let all =
            unsafe { function::<Length>(self.0, number::GET_ARRAY_LENGTH)(self.0, array.as_raw()) };
        let fits = start.checked_add(length).is_some_and(|end| end <= all);
        if start < 0 || length < 0 || !fits {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        // SAFETY: the array has these bytes, and the copy has room for them.
        unsafe {
            let get = function::<Get>(self.0, number::GET_BYTE_ARRAY_REGION);
            get(self.0, array.as_raw(), start, length, bytes.as_mut_ptr());
        }
        Some(bytes)
    }

    /// Makes an array of bytes. None if there is no memory; the exception is cleared.
    #[must_use]
    pub fn new_array(self, bytes: &[u8]) -> Option<Handle> {
        type New = unsafe extern "system" fn(RawJni, i32) -> *mut c_void;
        type Set = unsafe extern "system" fn(RawJni, *mut c_void, i32, i32, *const u8);
        let length = i32::try_from(bytes.len()).ok()?;
        // SAFETY: the environment is this thread's.
        let array = unsafe { function::<New>(self.0, number::NEW_BYTE_ARRAY)(self.0, length) };
        self.clear_exception();
        let array = Handle::new(array)?;
        // SAFETY: the array is new and has room for all bytes.
        unsafe {
            let set = function::<Set>(self.0, number::SET_BYTE_ARRAY_REGION);
            set(self.0, array.as_raw(), 0, length, bytes.as_ptr());
        }
        Some(array)
    }

    /// Returns the value of a `long` field of an object.
    ///
    /// # Safety
    ///
    /// `object` is a handle of an object, valid in this thread, of the class that has the field.
    #[must_use]
    pub unsafe fn long_value(self, object: Handle, field: FieldId) -> i64 {
        type Get = unsafe extern "system" fn(RawJni, *mut c_void, *mut c_void) -> i64;
        // SAFETY: the environment is this thread's, and the caller promises the object and the field.
        unsafe {
            let get = function::<Get>(self.0, number::GET_LONG_FIELD);
            get(self.0, object.as_raw(), field.0.as_ptr())
        }
    }

    /// Sets the value of a `long` field of an object.
    ///
    /// # Safety
    ///
    /// `object` is a handle of an object, valid in this thread, of the class that has the field.
    pub unsafe fn set_long_value(self, object: Handle, field: FieldId, value: i64) {
        type Set = unsafe extern "system" fn(RawJni, *mut c_void, *mut c_void, i64);
        // SAFETY: the environment is this thread's, and the caller promises the object and the field.
        unsafe {
            let set = function::<Set>(self.0, number::SET_LONG_FIELD);
            set(self.0, object.as_raw(), field.0.as_ptr(), value);
        }
    }

    /// Sets a static `boolean` field of a class to true, and initialises the class. Returns false if there is no such field; the exception
    /// is cleared.
    ///
    /// # Safety
    ///
    /// `class` is a handle of a class, valid in this thread.
    #[must_use]
    pub unsafe fn set_static(self, class: Handle, name: &CStr) -> bool {
        type Find = unsafe extern "system" fn(
            RawJni,
            *mut c_void,
            *const c_char,
            *const c_char,
        ) -> *mut c_void;
        type Set = unsafe extern "system" fn(RawJni, *mut c_void, *mut c_void, u8);
        // SAFETY: the environment is this thread's, the caller promises the class, and the texts end with a zero.
        let field = unsafe {
            let find = function::<Find>(self.0, number::GET_STATIC_FIELD_ID);
            find(self.0, class.as_raw(), name.as_ptr(), c"Z".as_ptr())
        };
        self.clear_exception();
        if field.is_null() {
            return false;
        }
        // SAFETY: as above, and the field is the class's.
        unsafe {
            let set = function::<Set>(self.0, number::SET_STATIC_BOOLEAN_FIELD);
            set(self.0, class.as_raw(), field, 1);
        }
        true
    }

    /// Deletes a local handle.
    ///
    /// # Safety
    ///
    /// It is a local handle of this thread that is not used any more.
    pub unsafe fn delete(self, handle: Handle) {
        type Delete = unsafe extern "system" fn(RawJni, *mut c_void);
        // SAFETY: the environment is this thread's, and the caller promises the handle.
        unsafe { function::<Delete>(self.0, number::DELETE_LOCAL_REF)(self.0, handle.as_raw()) }
    }

    fn clear_exception(self) {
        type Check = unsafe extern "system" fn(RawJni) -> u8;
        type Clear = unsafe extern "system" fn(RawJni);
        // SAFETY: the environment is this thread's.
        unsafe {
            if function::<Check>(self.0, number::EXCEPTION_CHECK)(self.0) != 0 {
                function::<Clear>(self.0, number::EXCEPTION_CLEAR)(self.0);
            }
        }
    }
}
