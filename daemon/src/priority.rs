//! How soon the kernel runs a recorder that has something to do.

use rustix::process::{getpriority_process, setpriority_process};

/// The nice value of a recorder. Beside 500 threads that never wait, one of two processors takes samples faster than a recorder without
/// priority gets to read them. It does not need more time with it, but has it at once.
const RECORDER: i32 = -10;

/// Gives this thread, and those and the programs that it starts from now on, priority over what it records: methods of a VM must be read while
/// they are there, and samples before the rings are full.
///
/// An ordinary user may not do this, and who has started varid with a nice value of their own has decided. Then it changes nothing.
pub fn raise() {
    if getpriority_process(None) == Ok(0)
        && let Err(error) = setpriority_process(None, RECORDER)
    {
        tracing::debug!(%error, "no priority");
    }
}
