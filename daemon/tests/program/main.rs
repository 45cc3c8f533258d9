//! Does the program do what its command line says?
#![allow(missing_docs)]

mod configuration;
mod control;
mod device;
mod outputs;
mod packs;
mod symbols;
