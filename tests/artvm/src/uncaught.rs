//! What is said of an exception that nobody caught? Its class, message and stack; the process ends with 1.

use std::io::Write;

use jni_sys::{JNIEnv, jobject};

use crate::error::Error;
use crate::vm::{Env, Native};

/// Binds the natives of java.lang.Throwable and java.lang.Thread that print.
pub fn register(env: Env) -> Result<(), Error> {
    env.register(
        "java/lang/Throwable",
        &[Native {
            name: c"printStackTrace",
            signature: c"()V",
            function: print_stack_trace as *mut _,
        }],
    )?;
    env.register(
        "java/lang/Thread",
        &[Native {
            name: c"dispatchUncaughtException",
            signature: c"(Ljava/lang/Throwable;)V",
            function: dispatch_uncaught_exception as *mut _,
        }],
    )
}

/// `Throwable.printStackTrace()`.
extern "system" fn print_stack_trace(env: *mut JNIEnv, thrown: jobject) {
    // SAFETY: called by the VM as a native method.
    let env = unsafe { Env::of_native(env) };
    say(&env.describe(thrown));
}

/// `Thread.dispatchUncaughtException(Throwable)`: Android's default handler kills the process.
extern "system" fn dispatch_uncaught_exception(env: *mut JNIEnv, thread: jobject, thrown: jobject) {
    // SAFETY: called by the VM as a native method.
    let env = unsafe { Env::of_native(env) };
    let name = env
        .string(env.object_field(thread, c"name", c"Ljava/lang/String;"))
        .unwrap_or_default();
    say(&uncaught(&name, &env.describe(thrown)));
    // SAFETY: ends the process at once: other threads of the VM are running and must not see destructors.
    unsafe { libc::_exit(1) }
}

/// The line for an uncaught exception.
pub fn uncaught(thread: &str, description: &str) -> String {
    format!("Exception in thread \"{thread}\" {description}")
}

/// Writes to standard error; where that is closed there is nobody to tell.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
