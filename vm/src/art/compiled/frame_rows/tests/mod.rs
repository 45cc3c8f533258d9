//! Are the frames of compiled methods followed at each instruction?

mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;
