//! Counting starts when a native launcher looks for the program's main method.
//!
//! `java` and programs that embed a VM find it by `GetStaticMethodID`, or `GetMethodID` for an instance's, and call it next. Both
//! initialise the class, which counts as the program's. On that thread no method runs then.

use std::{
    ffi::{CStr, c_char, c_void},
    sync::OnceLock,
};

use varid_jvmti::{GetMethodId, Jni, JniFunction, Jvmti, RawJni};

use crate::agent::{Agent, guarded};

/// The functions that [`find_method`] and [`find_static_method`] stand for.
static REPLACED: OnceLock<[GetMethodId; 2]> = OnceLock::new();

/// The name of the method with which a program starts.
const MAIN: &CStr = c"main";

/// Watches for the search of the main method.
pub(crate) fn watch(jvmti: Jvmti) -> varid_jvmti::Result<()> {
    let functions: [(_, GetMethodId); 2] = [
        (JniFunction::GetMethodId, find_method),
        (JniFunction::GetStaticMethodId, find_static_method),
    ];
    let functions = functions.map(|(number, new)| (number, new as *const c_void));
    // SAFETY: both functions have the type of those that they replace, and call them.
    let replaced = unsafe { jvmti.replace_jni_functions(functions) }?;
    // SAFETY: JNI gives both functions this type.
    let replaced =
        replaced.map(|raw| unsafe { std::mem::transmute::<*const c_void, GetMethodId>(raw) });
    // The functions are replaced once.
    let _ = REPLACED.set(replaced);
    Ok(())
}

unsafe extern "system" fn find_method(
    jni: RawJni,
    class: *mut c_void,
    name: *const c_char,
    descriptor: *const c_char,
) -> *mut c_void {
    // SAFETY: the arguments are those of the caller of JNI.
    unsafe { find(0, jni, class, name, descriptor) }
}

unsafe extern "system" fn find_static_method(
    jni: RawJni,
    class: *mut c_void,
    name: *const c_char,
    descriptor: *const c_char,
) -> *mut c_void {
    // SAFETY: the arguments are those of the caller of JNI.
    unsafe { find(1, jni, class, name, descriptor) }
}

/// Starts counting if the method is called `main`, and finds it.
///
/// # Safety
///
/// The arguments are those of a call of the function of JNI.
unsafe fn find(
    function: usize,
    jni: RawJni,
    class: *mut c_void,
    name: *const c_char,
    descriptor: *const c_char,
) -> *mut c_void {
    // SAFETY: a caller of JNI passes a zero-terminated name.
    if !name.is_null() && unsafe { CStr::from_ptr(name) } == MAIN {
        guarded(|agent| {
            // SAFETY: the caller passes the environment of this thread.
            if let Some(jni) = unsafe { Jni::new(jni) } {
                begin(agent, jni);
            }
        });
    }
    let replaced = REPLACED.get().and_then(|replaced| replaced.get(function));
    match replaced {
        // SAFETY: the arguments are those of the caller.
        Some(find) => unsafe { find(jni, class, name, descriptor) },
        // This cannot happen: the functions are known before another thread can call JNI.
        None => std::ptr::null_mut(),
    }
}

/// Counts this thread, and those that start later.
fn begin(agent: &Agent, jni: Jni) {
    let Some(thread) = agent.jvmti.current_thread() else {
        return;
    };
    if agent.begin(jni) {
        agent.count_thread(jni, thread);
    }
    // SAFETY: the handle is a local one of this thread, and is not used any more.
    unsafe { jni.delete(thread) };
}
