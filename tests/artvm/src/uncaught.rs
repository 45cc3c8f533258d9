//! What is said of an exception that nobody caught? Its class, message and stack; the process ends with 1.

use std::io::Write;

use jni_sys::{JNIEnv, jobject};

use crate::error::Error;
use crate::vm::{Env, Native};

/// How many causes are followed: a cycle of them must end.
const MAX_CAUSES: usize = 8;

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

/// A throwable as Java prints it: class, message, stack and causes, without a newline at the end.
pub fn describe(env: Env, thrown: jobject) -> String {
    let mut text = String::new();
    let mut next = thrown;
    for count in 0..MAX_CAUSES {
        if next.is_null() {
            break;
        }
        if count > 0 {
            text.push_str("\nCaused by: ");
        }
        describe_one(env, next, &mut text);
        next = env.object_field(next, c"cause", c"Ljava/lang/Throwable;");
    }
    text
}

/// A throwable without its causes.
fn describe_one(env: Env, thrown: jobject, text: &mut String) {
    let class = env.call_object(thrown, c"getClass", c"()Ljava/lang/Class;");
    let name = if class.is_null() {
        class
    } else {
        env.call_object(class, c"getName", c"()Ljava/lang/String;")
    };
    text.push_str(
        env.string(name)
            .as_deref()
            .unwrap_or("an exception whose class has no name"),
    );
    if let Some(message) =
        env.string(env.object_field(thrown, c"detailMessage", c"Ljava/lang/String;"))
    {
        text.push_str(": ");
        text.push_str(&message);
    }
    let stack = env.call_object(
        thrown,
        c"getStackTrace",
        c"()[Ljava/lang/StackTraceElement;",
    );
    for element in env.elements(stack) {
        let field = |name| env.string(env.object_field(element, name, c"Ljava/lang/String;"));
        let class = field(c"declaringClass").unwrap_or_default();
        let method = field(c"methodName").unwrap_or_default();
        let line = env.int_field(element, c"lineNumber");
        let place = match field(c"fileName") {
            Some(file) if line >= 0 => format!("{file}:{line}"),
            Some(file) => file,
            None => "Unknown Source".to_owned(),
        };
        text.push_str(&format!("\n\tat {class}.{method}({place})"));
    }
}

/// `Throwable.printStackTrace()`.
extern "system" fn print_stack_trace(env: *mut JNIEnv, thrown: jobject) {
    // SAFETY: called by the VM as a native method.
    let env = unsafe { Env::of_native(env) };
    say(&describe(env, thrown));
}

/// `Thread.dispatchUncaughtException(Throwable)`: Android's default handler kills the process.
extern "system" fn dispatch_uncaught_exception(env: *mut JNIEnv, thread: jobject, thrown: jobject) {
    // SAFETY: called by the VM as a native method.
    let env = unsafe { Env::of_native(env) };
    let name = env
        .string(env.object_field(thread, c"name", c"Ljava/lang/String;"))
        .unwrap_or_default();
    say(&uncaught(&name, &describe(env, thrown)));
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
