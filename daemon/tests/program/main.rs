//! The program does what its command line specifies.
#![allow(missing_docs)]

mod configuration;
mod control;
mod device;
mod outputs;
mod packs;
mod symbols;
