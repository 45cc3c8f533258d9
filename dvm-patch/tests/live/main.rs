//! Do the halves of the tunnel meet? dim in live processes, read from outside.

mod art;
mod calls;
mod dalvik;
mod dim;
mod host;
mod shadowvm;
mod support;
