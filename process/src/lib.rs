//! A process as seen from outside: its mappings, its memory, the files that are mapped into it.
//!
//! All of this is hostile input. A process may write anything into its files, change them while they are read, and make a read block. So
//! reads that may block are made by a helper process ([`reader`]), and sizes and counts are limited (`budget`).
//!
//! ```
//! use varid_model::Pid;
//! use varid_process::{Images, Process, ProcessImage};
//!
//! // This program, as another one sees it.
//! let mut process = Process::new(Pid::new(std::process::id()));
//! process.read_maps(&mut Images::default());
//! let function = std::process::id as fn() -> u32;
//! let mapping = process.space.at(function as usize as u64).expect("code is mapped");
//! let ProcessImage::Elf(elf) = &mapping.image else {
//!     panic!("a program is an ELF file")
//! };
//! assert_eq!(elf.path, std::env::current_exe().unwrap());
//! assert!(elf.contents().is_some());
//! ```
//!
//! | question | file |
//! |---|---|
//! | what is known of a process | [`Process`] |
//! | what is mapped where | [`AddressSpace`] |
//! | where are the copies of instructions that methods share | `copies` |
//! | what does a mapping show | [`ProcessImage`], [`ElfImage`], [`CodeImage`] |
//! | which files are bytecode | [`BytecodeFormat`] |
//! | which file is behind a mapping | [`KernelMapping`], [`FileKey`] |
//! | which mappings are there, and which are new | `maps` |
//! | which text of an ELF file is mapped as memory | `remapped_text` |
//! | which images are open already | [`Images`] |
//! | which dex files are in anonymous memory | `anonymous` |
//! | which code does the process generate | [`JitCode`] |
//! | how is the frame of the code at an address unwound | [`MappedCode`] |
//! | which user does it belong to | [`Status`] |
//! | which ids do its threads have for it | [`own_tids`] |
//! | how are the files opened that a VM shares with varid | `vm_files` |
//! | how much may reading it cost | `budget` |
#![cfg_attr(not(test), deny(unreachable_pub))]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod anonymous;
mod budget;
pub mod clock;
mod code;
mod copies;
mod file;
mod format;
mod image;
mod images;
mod jit;
mod mapping_id;
mod maps;
mod process;
pub mod reader;
mod remapped_text;
mod space;
mod status;
#[cfg(test)]
mod testing;
mod threads;
mod vm_files;

pub use budget::raise_limit_of_files;
pub use code::MappedCode;
pub use file::{FileKey, KernelMapping, read as read_file};
pub use format::{BytecodeFormat, Formats};
pub use image::{CodeImage, ElfImage, FilePlace, LoadedBytes, ProcessImage};
pub use images::Images;
pub use jit::{JitCode, JitFile, MissingNames, ReadBudget};
pub use mapping_id::MappingId;
pub use maps::NewMapping;
pub use process::Process;
pub use space::{AddressSpace, ProcessMapping};
pub use status::Status;
pub use threads::own_tids;
pub use vm_files::{open_calls, take_control};
