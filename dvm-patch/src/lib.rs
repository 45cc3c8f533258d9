//! A VM's description of itself, and how the profiler reads it.
//!
//! A VM with `dim` publishes a *tunnel*: a sealed memfd that describes how its frames are linked, where its interpreter is and
//! which dex files it executes.
//!
//! - [`abi`]: the structures of the tunnel, as `include/varid_tunnel.h` defines them.
//! - [`control`]: varid's orders to the VM, which are valid while varid holds a lock.
//! - [`calls`]: the number of calls of each method.
//! - [`mod@file`]: the files of control and calls.
//! - [`reader`]: reads the tunnel of a process, and validates it.
//! - [`builds`]: the same data for VM builds that are known without a tunnel.
//! - [`method`]: resolves a VM's method pointer to a method of a dex file.
//! - [`layout`]: checks whether a frame layout can be used.
//!
//! The other half, `dim/` and the VMs' adapters, runs inside the VM and is C. Callers need permission to read the process's memory
//! (as its owner, or CAP_SYS_PTRACE), and find the tunnel in its memory map: a mapping named [`abi::NAME`].

//!
//! The layout of a VM without a tunnel, by its build-id:
//!
//! ```
//! use varid_tunnel::abi::RULE_LIST;
//! use varid_tunnel::{builds, layout};
//!
//! let build = builds::all().next().expect("a known build");
//! // The dynamic linker has put the offset from the thread pointer into this word of the process.
//! let word = |_address| Some((-8i64) as u64);
//! let found = build.layout(0x7f00_0000_0000, word)?;
//! layout::check(&found)?;
//! assert!(found.has_rule(RULE_LIST) && found.tls_offset == -8);
//! # Ok::<(), varid_tunnel::TunnelError>(())
//! ```

#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

pub mod abi;
pub mod builds;
mod bytes;
pub mod calls;
pub mod control;
mod description;
mod error;
pub mod file;
pub mod layout;
mod memory;
pub mod method;
pub mod reader;

pub use description::{BytecodeKind, Description, PublishedBytecode};
pub use error::TunnelError;
pub use memory::{ByteMemory, Memory, MemoryPart, ProcessMemory};
