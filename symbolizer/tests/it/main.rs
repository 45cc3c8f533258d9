//! Tests that names and lines are those in the files, and that hostile files do no harm.
#![cfg(test)] // for the switches of clippy.toml
#![allow(missing_docs, clippy::arithmetic_side_effects)]

mod addr2line;
mod bytecode;
mod common;
mod container;
mod container_hostile;
mod dex;
mod dex_items;
mod elf;
mod elf_tables;
mod go;
mod hostile;
mod jit;
mod kernel;
mod native;
mod native_hostile;
mod retrace;
mod retrace_hostile;
mod substitute;
mod substitute_cache;
mod symbol_file;
mod vmlinux;
