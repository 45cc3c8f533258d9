//! Finds the function at an address of the kernel.
//!
//! | question | look in |
//! |---|---|
//! | which function, of the kernel, a module or a BPF program | [`KernelSymbols`] |
//! | which source line, and what was inlined there | [`Vmlinux`] |

mod symbols;
mod vmlinux;

pub use symbols::{KernelSymbol, KernelSymbols, KernelText};
pub use vmlinux::{TextSymbol, Vmlinux};
