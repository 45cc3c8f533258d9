//! How a VM describes itself to a profiler, and how the profiler reads that.
//!
//! A VM with `dim` in it publishes a *tunnel*: a sealed memfd that says how its frames
//! are linked, where its interpreter is and which dex files it executes.
//!
//! - [`abi`]: the structures of the tunnel, as `include/varid_tunnel.h` defines them.
//! - [`control`]: what varid tells the VM, and the lease under which that holds.
//! - [`calls`]: how often methods were called.
//! - [`mod@file`]: the files in which control and calls are.
//! - [`reader`]: a process's tunnel, read from outside and doubted.
//! - [`builds`]: the same facts for VM builds that are known without a tunnel.
//! - [`method`]: from a VM's method pointer to a method of a dex file.
//! - [`layout`]: whether a frame layout can be used.
//!
//! The other half, `dim/` and the VMs' adapters, runs inside the VM and is C. Callers
//! need the right to read the process's memory (as its owner, or CAP_SYS_PTRACE), and find
//! the tunnel in its memory map: a mapping of [`abi::NAME`].

//!
//! What is known of a VM without a tunnel, by its build-id:
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
pub use memory::{ByteMemory, Memory, ProcessMemory};
