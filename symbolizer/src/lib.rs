//! Turns addresses into names, and writes the ELF files that let other tools do so.
//!
//! | question | look in |
//! |---|---|
//! | what does a bytecode file provide, whatever its format | [`bytecode`] |
//! | how does Java name a method's parameters | [`class`] |
//! | which dex files are in this APK, .vdex or .odex file | [`container`] |
//! | which method and line is at this offset of a dex file, what do its instructions read like | [`dex`] |
//! | which function is at this address of a library | [`elf`] |
//! | which function is at this address of the kernel | [`kernel`] |
//! | what is a class of Java called, and is it one of the JDK | [`java`] |
//! | which function did a program generate at run time | [`jit`] |
//! | how do perf, gdb and addr2line learn a method's name | [`substitute`] |
//! | how is another program run within limits | [`program`] |
//! | what was this method called before R8 or ProGuard renamed it | [`retrace`] |
//!
//! Everything here is a pure function of bytes, except the functions that take a path. All input is untrusted: a parser returns an
//! [`Error`] with the field and the offset, never panics, and never allocates a size that the input merely claims.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod build_id_note;
pub mod bytecode;
pub mod class;
pub mod container;
pub mod dex;
pub mod elf;
mod elf_file;
mod error;
mod frame;
mod hex;
pub mod java;
pub mod jit;
pub mod kernel;
pub mod program;
mod regular;
pub mod retrace;
pub mod substitute;

pub use elf_file::{ElfFileError, parse_elf};
pub use error::Error;
pub use frame::{Frame, Location};
pub use hex::hex;

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;
