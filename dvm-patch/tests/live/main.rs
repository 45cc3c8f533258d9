//! Do the halves of the tunnel meet? dim in live processes, read from outside.

mod art;
mod dim;
mod shadowvm;
mod support;
