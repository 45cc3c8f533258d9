//! Are names those of binutils and llvm, and does no name do harm?
#![allow(missing_docs)]

mod hostile;
mod notation;
mod references;
