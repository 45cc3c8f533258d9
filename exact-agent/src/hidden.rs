//! Hidden classes, such as those of lambdas. The VM does not show their bytes to agents, so the function that defines them is replaced.

use std::{ffi::c_void, sync::OnceLock};

use varid_jvmti::{Handle, Jni, RawJni};

use crate::agent::{Agent, LoadedClass, guarded};

/// The native method of `java.lang.ClassLoader` that defines hidden classes, from JDK 15 on. `Unsafe` has another one of this name.
const DEFINE_CLASS: (&str, &str) = (
    "defineClass0",
    "(Ljava/lang/ClassLoader;Ljava/lang/Class;Ljava/lang/String;[BIILjava/security/ProtectionDomain;ZILjava/lang/Object;)Ljava/lang/Class;",
);

/// `ClassLoader.defineClass0`: JNI, the class; the loader, the class that looks it up, its name; the bytes, the first of them and their
/// number; the protection domain, whether the class is initialised, flags, data.
type DefineClass = unsafe extern "system" fn(
    RawJni,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    i32,
    i32,
    *mut c_void,
    u8,
    i32,
    *mut c_void,
) -> *mut c_void;

static REPLACED: OnceLock<DefineClass> = OnceLock::new();

/// Returns the function that replaces that of a native method, if it is the one that defines hidden classes.
///
/// # Safety
///
/// `method` and `function` are those of an event `NativeMethodBind`.
pub(crate) unsafe fn replacement(
    agent: &Agent,
    method: *mut c_void,
    function: *const c_void,
) -> Option<*const c_void> {
    // SAFETY: the caller promises the method.
    let (name, descriptor) = unsafe { agent.jvmti.method_name(method) }?;
    if (name.as_str(), descriptor.as_str()) != DEFINE_CLASS {
        return None;
    }
    // SAFETY: this is the type of the function of a static native method with this descriptor.
    let function = unsafe { std::mem::transmute::<*const c_void, DefineClass>(function) };
    REPLACED.set(function).ok()?;
    let replacement: DefineClass = define_class;
    Some(replacement as *const c_void)
}

#[allow(clippy::too_many_arguments)]
unsafe extern "system" fn define_class(
    jni: RawJni,
    class: *mut c_void,
    loader: *mut c_void,
    lookup: *mut c_void,
    name: *mut c_void,
    bytes: *mut c_void,
    start: i32,
    length: i32,
    domain: *mut c_void,
    is_initialized: u8,
    flags: i32,
    data: *mut c_void,
) -> *mut c_void {
    let Some(define) = REPLACED.get() else {
        // This cannot happen: the function is known before the VM has this one.
        return std::ptr::null_mut();
    };
    let (mut array, mut first, mut count) = (bytes, start, length);
    let mut rewritten = None;
    guarded(|agent| {
        // SAFETY: the VM passes the environment of this thread.
        let Some((jni, original)) = unsafe { Jni::new(jni) }.zip(Handle::new(bytes)) else {
            return;
        };
        // SAFETY: the VM passes a handle of a byte array.
        let Some(original) = (unsafe { jni.array_bytes(original, start, length) }) else {
            return;
        };
        let class = LoadedClass {
            is_boot: loader.is_null(),
            name: None,
            bytes: &original,
        };
        let new = agent.rewrite(&class);
        let new = new.and_then(|new| Some((jni.new_array(&new)?, i32::try_from(new.len()).ok()?)));
        if let Some((new, length)) = new {
            (array, first, count) = (new.as_raw(), 0, length);
            rewritten = Some((jni, new));
        }
    });
    // SAFETY: the arguments are those of the VM, but for the bytes, which are an array of that length.
    let defined = unsafe {
        define(
            jni,
            class,
            loader,
            lookup,
            name,
            array,
            first,
            count,
            domain,
            is_initialized,
            flags,
            data,
        )
    };
    if let Some((jni, new)) = rewritten {
        // SAFETY: the handle is a local one of this thread, and is not used any more. An exception may be pending: that is allowed.
        unsafe { jni.delete(new) };
    }
    defined
}
