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
    pub const NEW_GLOBAL_REF: usize = 21;
    pub const DELETE_LOCAL_REF: usize = 23;
    pub const ALLOC_OBJECT: usize = 27;
    pub const GET_FIELD_ID: usize = 94;
    pub const GET_OBJECT_FIELD: usize = 95;
    pub const GET_LONG_FIELD: usize = 101;
    pub const SET_OBJECT_FIELD: usize = 104;
    pub const SET_LONG_FIELD: usize = 110;
    pub const GET_STATIC_METHOD_ID: usize = 113;
    pub const CALL_STATIC_VOID_METHOD_A: usize = 143;
    pub const CALL_STATIC_OBJECT_METHOD_A: usize = 116;
    pub const CALL_STATIC_INT_METHOD_A: usize = 131;
    pub const GET_STATIC_FIELD_ID: usize = 144;
    pub const SET_STATIC_OBJECT_FIELD: usize = 154;
    pub const GET_ARRAY_LENGTH: usize = 171;
    pub const NEW_BYTE_ARRAY: usize = 176;
    pub const NEW_LONG_ARRAY: usize = 180;
    pub const GET_BYTE_ARRAY_REGION: usize = 200;
    pub const GET_LONG_ARRAY_REGION: usize = 204;
    pub const SET_BYTE_ARRAY_REGION: usize = 208;
    pub const REGISTER_NATIVES: usize = 215;
    pub const GET_PRIMITIVE_ARRAY_CRITICAL: usize = 222;
    pub const RELEASE_PRIMITIVE_ARRAY_CRITICAL: usize = 223;
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

/// A native method and its function: `JNINativeMethod`.
#[derive(Debug)]
#[repr(C)]
pub struct NativeMethod {
    name: *const c_char,
    descriptor: *const c_char,
    function: *const c_void,
}

impl NativeMethod {
    /// Names a method, its descriptor, and the function.
    #[must_use]
    pub const fn new(
        name: &'static CStr,
        descriptor: &'static CStr,
        function: *const c_void,
    ) -> Self {
        Self {
            name: name.as_ptr(),
            descriptor: descriptor.as_ptr(),
            function,
        }
    }
}

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

/// A handle of an object that any thread can use, until the VM ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GlobalHandle(Handle);

impl GlobalHandle {
    /// Returns the handle.
    #[must_use]
    pub const fn get(self) -> Handle {
        self.0
    }
}

// SAFETY: the specification lets any thread use a global handle.
unsafe impl Send for GlobalHandle {}
// SAFETY: as above.
unsafe impl Sync for GlobalHandle {}

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

    /// Finds a class by its name, in the loader of the native method that calls this, or else in the boot loader. None if neither has it; the
    /// exception that says so is cleared.
    #[must_use]
    pub fn find_class(self, name: &CStr) -> Option<Handle> {
        type Find = unsafe extern "system" fn(RawJni, *const c_char) -> *mut c_void;
        // SAFETY: the environment is this thread's, and the name ends with a zero.
        let class = unsafe { function::<Find>(self.0, number::FIND_CLASS)(self.0, name.as_ptr()) };
        self.clear_exception();
        Handle::new(class)
    }

    /// Finds a field of the objects of a class by its name and its descriptor. None if there is none; the exception is cleared.
    ///
    /// # Safety
    ///
    /// `class` is a handle of a class, valid in this thread.
    #[must_use]
    pub unsafe fn field(self, class: Handle, name: &CStr, descriptor: &CStr) -> Option<FieldId> {
        type Find = unsafe extern "system" fn(
            RawJni,
            *mut c_void,
            *const c_char,
            *const c_char,
        ) -> *mut c_void;
        // SAFETY: the environment is this thread's, the caller promises the class, and the texts end with a zero.
        let field = unsafe {
            let find = function::<Find>(self.0, number::GET_FIELD_ID);
            find(self.0, class.as_raw(), name.as_ptr(), descriptor.as_ptr())
        };
        self.clear_exception();
        NonNull::new(field).map(FieldId)
    }

    /// Calls a static method of a class that takes and returns nothing. Returns false if there is none, or it throws; the exception is
    /// cleared.
    ///
    /// # Safety
    ///
    /// `class` is a handle of a class, valid in this thread.
    #[must_use]
    pub unsafe fn call_static(self, class: Handle, name: &CStr) -> bool {
        type Call = unsafe extern "system" fn(RawJni, *mut c_void, *mut c_void, *const c_void);
        // SAFETY: the environment is this thread's, the caller promises the class, and the texts end with a zero.
        let method = unsafe {
            let find = function::<GetMethodId>(self.0, number::GET_STATIC_METHOD_ID);
            find(self.0, class.as_raw(), name.as_ptr(), c"()V".as_ptr())
        };
        if self.clear_exception() || method.is_null() {
            return false;
        }
        // SAFETY: as above; the method is the class's, and takes no arguments.
        unsafe {
            let call = function::<Call>(self.0, number::CALL_STATIC_VOID_METHOD_A);
            call(self.0, class.as_raw(), method, ptr::null());
        }
        !self.clear_exception()
    }

    /// Calls a static method of a class that takes two `int` and returns one. None if there is no such one, or it throws; the exception is
    /// cleared.
    ///
    /// # Safety
    ///
    /// `class` is a handle of a class, valid in this thread.
    #[must_use]
    pub unsafe fn call_static_int(
        self,
        class: Handle,
        name: &CStr,
        arguments: [i32; 2],
    ) -> Option<i32> {
        type Call = unsafe extern "system" fn(RawJni, *mut c_void, *mut c_void, *const i64) -> i32;
        // SAFETY: the environment is this thread's, the caller promises the class, and the texts end with a zero.
        let method = unsafe {
            let find = function::<GetMethodId>(self.0, number::GET_STATIC_METHOD_ID);
            find(self.0, class.as_raw(), name.as_ptr(), c"(II)I".as_ptr())
        };
        if self.clear_exception() || method.is_null() {
            return None;
        }
        // A `jvalue` is a union of 8 bytes, whose first ones are the `int`.
        let arguments = arguments.map(|value| i64::from(value.cast_unsigned()).to_le());
        // SAFETY: as above; the method is the class's, and takes these arguments.
        let result = unsafe {
            let call = function::<Call>(self.0, number::CALL_STATIC_INT_METHOD_A);
            call(self.0, class.as_raw(), method, arguments.as_ptr())
        };
        (!self.clear_exception()).then_some(result)
    }

    /// Returns the object of this thread. None if the VM has none; the exception is cleared.
    #[must_use]
    pub fn current_thread(self) -> Option<Handle> {
        type Call =
            unsafe extern "system" fn(RawJni, *mut c_void, *mut c_void, *const i64) -> *mut c_void;
        let class = self.find_class(c"java/lang/Thread")?;
        let (name, descriptor) = (c"currentThread", c"()Ljava/lang/Thread;");
        // SAFETY: the environment is this thread's, the class is valid in it, and the texts end with a zero.
        let method = unsafe {
            let find = function::<GetMethodId>(self.0, number::GET_STATIC_METHOD_ID);
            find(self.0, class.as_raw(), name.as_ptr(), descriptor.as_ptr())
        };
        if self.clear_exception() || method.is_null() {
            return None;
        }
        // SAFETY: as above; the method is the class's, and takes no arguments.
        let thread = unsafe {
            let call = function::<Call>(self.0, number::CALL_STATIC_OBJECT_METHOD_A);
            call(self.0, class.as_raw(), method, ptr::null())
        };
        self.clear_exception();
        Handle::new(thread)
    }

    /// Binds native methods of a class to functions. Returns false if the class has no such ones; the exception is cleared.
    ///
    /// # Safety
    ///
    /// `class` is a handle of a class, valid in this thread, and the functions have the types of the methods.
    #[must_use]
    pub unsafe fn register_natives(self, class: Handle, methods: &[NativeMethod]) -> bool {
        type Register =
            unsafe extern "system" fn(RawJni, *mut c_void, *const NativeMethod, i32) -> i32;
        let Ok(count) = i32::try_from(methods.len()) else {
            return false;
        };
        // SAFETY: the environment is this thread's, and the caller promises the class and the functions.
        let code = unsafe {
            let register = function::<Register>(self.0, number::REGISTER_NATIVES);
            register(self.0, class.as_raw(), methods.as_ptr(), count)
        };
        !self.clear_exception() && code == 0
    }

    /// Makes an object without calling a constructor. None if there is no memory; the exception is cleared.
    ///
    /// # Safety
    ///
    /// `class` is a handle of a class that has objects, valid in this thread.
    #[must_use]
    pub unsafe fn allocate(self, class: Handle) -> Option<Handle> {
        // SAFETY: the caller promises the class.
        let object = unsafe { self.convert(number::ALLOC_OBJECT, class) };
        self.clear_exception();
        object
    }

    /// Returns a handle of the same object that any thread can use, until the VM ends. None if there is no memory.
    ///
    /// # Safety
    ///
    /// `object` is valid in this thread.
    #[must_use]
    pub unsafe fn global(self, object: Handle) -> Option<GlobalHandle> {
        // SAFETY: the caller promises the object.
        unsafe { self.convert(number::NEW_GLOBAL_REF, object) }.map(GlobalHandle)
    }

    /// Calls a function that takes and returns a handle.
    ///
    /// # Safety
    ///
    /// The function is such a one, and the handle fits it.
    unsafe fn convert(self, number: usize, handle: Handle) -> Option<Handle> {
        type Convert = unsafe extern "system" fn(RawJni, *mut c_void) -> *mut c_void;
        // SAFETY: the environment is this thread's, and the caller promises the rest.
        Handle::new(unsafe { function::<Convert>(self.0, number)(self.0, handle.as_raw()) })
    }

    /// Copies bytes of an array from `start` on. None if the array has fewer.
    ///
    /// # Safety
    ///
    /// `array` is a handle of a byte array, valid in this thread.
    #[must_use]
    pub unsafe fn array_bytes(self, array: Handle, start: i32, length: i32) -> Option<Vec<u8>> {
        type Get = unsafe extern "system" fn(RawJni, *mut c_void, i32, i32, *mut u8);
        // SAFETY: the caller promises the array.
        let all = unsafe { self.array_length(array) };
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

    /// Makes an array of `long`, all 0. None if there is no memory; the exception is cleared.
    #[must_use]
    pub fn new_long_array(self, length: i32) -> Option<Handle> {
        type New = unsafe extern "system" fn(RawJni, i32) -> *mut c_void;
        // SAFETY: the environment is this thread's.
        let array = unsafe { function::<New>(self.0, number::NEW_LONG_ARRAY)(self.0, length) };
        self.clear_exception();
        Handle::new(array)
    }

    /// Returns the length of an array.
    ///
    /// # Safety
    ///
    /// `array` is a handle of an array, valid in this thread.
    #[must_use]
    pub unsafe fn array_length(self, array: Handle) -> i32 {
        type Length = unsafe extern "system" fn(RawJni, *mut c_void) -> i32;
        // SAFETY: the environment is this thread's, and the caller promises the array.
        unsafe { function::<Length>(self.0, number::GET_ARRAY_LENGTH)(self.0, array.as_raw()) }
    }

    /// Returns an element of an array of `long`. None if the array has no such one; the exception is cleared.
    ///
    /// # Safety
    ///
    /// `array` is a handle of an array of `long`, valid in this thread.
    #[must_use]
    pub unsafe fn long_element(self, array: Handle, index: i32) -> Option<i64> {
        type Get = unsafe extern "system" fn(RawJni, *mut c_void, i32, i32, *mut i64);
        let mut value = 0;
        // SAFETY: the environment is this thread's, the caller promises the array, and the value has room for one element.
        unsafe {
            let get = function::<Get>(self.0, number::GET_LONG_ARRAY_REGION);
            get(self.0, array.as_raw(), index, 1, &raw mut value);
        }
        (!self.clear_exception()).then_some(value)
    }

    /// Returns the address of the elements of an array. None if the VM has copied them.
    ///
    /// # Safety
    ///
    /// `array` is a handle of an array of a primitive type, valid in this thread.
    #[must_use]
    pub unsafe fn elements_address(self, array: Handle) -> Option<NonNull<c_void>> {
        type Get = unsafe extern "system" fn(RawJni, *mut c_void, *mut u8) -> *mut c_void;
        type Release = unsafe extern "system" fn(RawJni, *mut c_void, *mut c_void, i32);
        let mut is_copy = 0;
        // SAFETY: the environment is this thread's, and the caller promises the array. Nothing happens until the elements are released.
        let address = unsafe {
            let get = function::<Get>(self.0, number::GET_PRIMITIVE_ARRAY_CRITICAL);
            let address = get(self.0, array.as_raw(), &raw mut is_copy);
            if !address.is_null() {
                let release = function::<Release>(self.0, number::RELEASE_PRIMITIVE_ARRAY_CRITICAL);
                release(self.0, array.as_raw(), address, 0);
            }
            address
        };
        NonNull::new(address).filter(|_| is_copy == 0)
    }

    /// Sets a static field of a class to an object. Returns false if there is no such field; the exception is cleared.
    ///
    /// # Safety
    ///
    /// `class` is a handle of a class and `value` one of an object of the field's type, both valid in this thread.
    #[must_use]
    pub unsafe fn set_static_object(
        self,
        class: Handle,
        name: &CStr,
        descriptor: &CStr,
        value: Handle,
    ) -> bool {
        type Find = unsafe extern "system" fn(
            RawJni,
            *mut c_void,
            *const c_char,
            *const c_char,
        ) -> *mut c_void;
        type Set = unsafe extern "system" fn(RawJni, *mut c_void, *mut c_void, *mut c_void);
        // SAFETY: the environment is this thread's, the caller promises the class, and the texts end with a zero.
        let field = unsafe {
            let find = function::<Find>(self.0, number::GET_STATIC_FIELD_ID);
            find(self.0, class.as_raw(), name.as_ptr(), descriptor.as_ptr())
        };
        if self.clear_exception() || field.is_null() {
            return false;
        }
        // SAFETY: as above; the field is the class's, and the caller promises the type of the value.
        unsafe {
            let set = function::<Set>(self.0, number::SET_STATIC_OBJECT_FIELD);
            set(self.0, class.as_raw(), field, value.as_raw());
        }
        true
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

    /// Returns the object in a field of an object, as a local handle. None if it is null.
    ///
    /// # Safety
    ///
    /// `object` is a handle of an object, valid in this thread, of the class that has the field, which is not of a primitive type.
    #[must_use]
    pub unsafe fn object_value(self, object: Handle, field: FieldId) -> Option<Handle> {
        type Get = unsafe extern "system" fn(RawJni, *mut c_void, *mut c_void) -> *mut c_void;
        // SAFETY: the environment is this thread's, and the caller promises the object and the field.
        Handle::new(unsafe {
            let get = function::<Get>(self.0, number::GET_OBJECT_FIELD);
            get(self.0, object.as_raw(), field.0.as_ptr())
        })
    }

    /// Sets the object in a field of an object.
    ///
    /// # Safety
    ///
    /// As for [`object_value`](Self::object_value), and `value` is of the field's type.
    pub unsafe fn set_object_value(self, object: Handle, field: FieldId, value: Handle) {
        type Set = unsafe extern "system" fn(RawJni, *mut c_void, *mut c_void, *mut c_void);
        // SAFETY: the environment is this thread's, and the caller promises the rest.
        unsafe {
            let set = function::<Set>(self.0, number::SET_OBJECT_FIELD);
            set(self.0, object.as_raw(), field.0.as_ptr(), value.as_raw());
        }
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

    /// Returns true if an exception was pending.
    fn clear_exception(self) -> bool {
        type Check = unsafe extern "system" fn(RawJni) -> u8;
        type Clear = unsafe extern "system" fn(RawJni);
        // SAFETY: the environment is this thread's.
        unsafe {
            let is_pending = function::<Check>(self.0, number::EXCEPTION_CHECK)(self.0) != 0;
            if is_pending {
                function::<Clear>(self.0, number::EXCEPTION_CLEAR)(self.0);
            }
            is_pending
        }
    }
}
