//! How a VM describes itself to a profiler, and how the profiler reads that.
//!
//! A VM with `dim` in it publishes a *tunnel*: a sealed memfd that says how its frames
//! are linked, where its interpreter is and which dex files it executes.
//!
//! - [`abi`]: the structures of the tunnel, as `include/varid_tunnel.h` defines them.
//! - [`builds`]: the same facts for VM builds that are known without a tunnel.

#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

pub mod abi;
pub mod builds;
mod error;

pub use error::Error;
