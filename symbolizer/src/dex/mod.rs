//! Reads dex files: the method and source line at an offset, and the disassembly of instructions.
//!
//! Reads standard dex files, versions 035 to 041, and compact ones (`cdex001`), from a file or from a VM's mapping. Bytes after the end of
//! the file are ignored, and checksums are not verified. Nothing is copied until a name is requested. Section names in the documentation
//! here are those of the dex format's own documentation (<https://source.android.com/docs/core/runtime/dex-format>).
//!
//! Compact files were tested only with files that this project's tests make from ART's description of the layout; ART 11's own reader gives
//! the same results for them. No compact file from a phone was tested, and no container (version 041) from a compiler.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use varid_symbolizer::dex::{DexFile, MethodIndex};
//!
//! let dex = DexFile::from_vec(std::fs::read("classes.dex")?)?;
//! let index = MethodIndex::new(&dex)?;
//! if let Some(method) = index.lookup(0x1c4) {
//!     println!("{}", dex.method_name(method.index)?); // org.example.Balls.draw
//!     for row in dex.lines(method)?.rows() {
//!         println!("{:#x}: line {}", row.offset, row.line);
//!     }
//!     for instruction in dex.disassemble(method) {
//!         println!("{}", instruction?); // invoke-direct {v0}, Ljava/lang/Object;.<init>:()V // method@0002
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod bytecode;
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

pub use bytecode::DexBytecode;
pub use code::CodeItem;
pub use disasm::{Instruction, Instructions};
pub use file::DexFile;
pub use index::MethodIndex;
pub use lines::{LineRow, LineTable};
pub use method::{DexMethod, DexMethodId, DexMethods};
pub use mutf8::decode as decode_modified_utf8;
pub use names::{class_name, type_name};
pub use opcodes::{Dialect, Format, Index, Opcode};
pub use tries::{CatchHandler, TryRange};

pub use crate::bytecode::{MethodCode, split_shared_name};

/// The longest name in bytes: the limit of a constant in a class file.
const MAX_NAME: usize = 65_535;
