//! dim in live processes, read from outside: tests of both halves of the tunnel.

mod art;
mod calls;
mod dalvik;
mod dim;
mod host;
mod shadowvm;
mod support;
