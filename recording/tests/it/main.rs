//! Does a reader find in a session what its writer was given?
#![allow(missing_docs)]

mod common;
mod compressed;
mod events;
mod perf;
mod session;
