//! Which method is at this offset of a dex file?
//!
//! Reads standard dex files, versions 035 to 041, from a file or as a VM has mapped
//! them (bytes after the file's own are ignored). Nothing is copied until a name is
//! asked for. Section names in the documentation here are those of the dex format's
//! own documentation (<https://source.android.com/docs/core/runtime/dex-format>).
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use varid_symbolizer::dex::{DexFile, MethodIndex};
//!
//! let dex = DexFile::from_vec(std::fs::read("classes.dex")?)?;
//! let index = MethodIndex::new(&dex)?;
//! if let Some(method) = index.lookup(0x1c4) {
//!     println!("{}", dex.method_name(method.index)?); // org.example.Balls.draw
//! }
//! # Ok(())
//! # }
//! ```

mod code;
mod disasm;
mod file;
mod header;
mod index;
mod lines;
mod method;
mod mutf8;
mod names;
mod opcodes;
mod printf;
mod read;
mod tries;

pub use code::CodeItem;
pub use disasm::{Instruction, Instructions};
pub use file::DexFile;
pub use index::{MethodCode, MethodIndex};
pub use lines::{LineRow, LineTable};
pub use method::{Method, MethodId, Methods};
pub use names::{class_name, type_name};
pub use opcodes::Dialect;
pub use tries::{CatchHandler, TryRange};

/// The longest name that is made, in bytes: what a class file can hold in one constant.
pub const MAX_NAME: usize = 65_535;
