//! Compares names with binutils and llvm, and tests that no name does harm.
#![allow(missing_docs)]

mod hostile;
mod notation;
mod references;
