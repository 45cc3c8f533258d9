//! What is run? A static method of a class, and what became of it.

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use jni_sys::jvalue;

use crate::error::Error;
use crate::uncaught;
use crate::vm::Env;

/// The method that is called: `static long method(int)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The class, with dots.
    pub class: String,
    /// The method's name.
    pub method: String,
    /// Its argument.
    pub n: i32,
}

/// What became of a call.
#[derive(Debug)]
pub enum Outcome {
    /// It returned this.
    Returned(i64),
    /// Nobody caught this exception: class, message, stack.
    Threw(String),
}

impl Call {
    /// Calls the method on this thread.
    pub fn run(&self, env: Env) -> Result<Outcome, Error> {
        let class = env.find_class(&self.class)?;
        let method = env.static_method(class, &self.method, c"(I)J")?;
        // SAFETY: the method was looked up in this class, with this signature.
        let result = unsafe { env.call_static_long(class, method, &[jvalue { i: self.n }]) };
        Ok(match env.take_exception() {
            Some(thrown) => Outcome::Threw(env.describe(thrown)),
            None => Outcome::Returned(result),
        })
    }

    /// Calls the method so often (at least once); a line of `clock` is how many nanoseconds a call took. The last outcome.
    pub fn timed(&self, env: Env, times: u32, mut clock: impl Write) -> Result<Outcome, Error> {
        let mut call = || {
            let start = Instant::now();
            let outcome = self.run(env);
            // Where nobody listens there is nobody to tell.
            let _ = writeln!(clock, "{}", start.elapsed().as_nanos());
            outcome
        };
        for _ in 1..times {
            call()?;
        }
        call()
    }
}

impl Outcome {
    /// Writes a result to `results`, an exception to standard error; the exit code that says which it was.
    pub fn report(&self, mut results: impl Write) -> ExitCode {
        // Where nobody listens there is nobody to tell.
        match self {
            Outcome::Returned(value) => {
                let _ = writeln!(results, "{value}");
                ExitCode::SUCCESS
            }
            Outcome::Threw(description) => {
                let _ = writeln!(
                    std::io::stderr(),
                    "{}",
                    uncaught::uncaught("main", description)
                );
                ExitCode::FAILURE
            }
        }
    }
}
