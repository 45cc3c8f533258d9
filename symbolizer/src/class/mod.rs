//! Java's class files: methods with their bytecode and lines, as a disassembler needs them. Nothing else of them is read.
//!
//! | question | file |
//! |---|---|
//! | which types does a method's descriptor name | `descriptor` |
//! | which class is it, which methods does it have, where is their bytecode | `file` |
//! | what does an instruction's index refer to | `constants` |
//! | which instructions does bytecode have, what do they read like | `instruction`, `opcodes` |
//! | how are numbers read | `read` |
//!
//! The format is that of the Java Virtual Machine Specification, chapter 4. A class file is not trusted: tables take memory in proportion to
//! its bytes, references may lead anywhere, and an instruction is decoded when it is asked for.
//!
//! ```
//! use varid_symbolizer::class::ClassFile;
//!
//! # fn instructions(bytes: &[u8]) -> Result<(), varid_symbolizer::Error> {
//! let class = ClassFile::parse(bytes)?;
//! if let Some(code) = class.method("mul", "(I)D").and_then(|method| method.code.as_ref()) {
//!     for instruction in class.instructions(code) {
//!         println!("{:4}: {instruction}", instruction.bci);
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod constants;
mod descriptor;
mod file;
mod instruction;
mod opcodes;
mod read;
#[cfg(test)]
mod tests;

pub use descriptor::parameters;
pub use file::{ClassFile, ClassMethod, CodeAttribute, LineStart};
pub use instruction::{Instruction, Instructions};
pub use opcodes::java_mnemonic;
