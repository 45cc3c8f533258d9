//! The interface through which methods of a bytecode file are sampled, named and shown by other tools.
//!
//! [`BytecodeImage`] is that interface. [`crate::dex::DexBytecode`] implements it for dex files. Code that attributes samples, fills the
//! remap table or writes substitute ELF files takes `&dyn BytecodeImage` and knows no format. A new format is one `impl`:
//!
//! ```
//! use varid_symbolizer::bytecode::{BytecodeImage, CodeLine, MethodCode};
//! use varid_symbolizer::elf::{DebugFiles, ElfSource};
//! use varid_symbolizer::substitute::Substitute;
//!
//! /// Two methods of a class, of 4 and 6 bytes, each a line of its own.
//! #[derive(Debug)]
//! struct Toy {
//!     bytes: Vec<u8>,
//!     methods: Vec<MethodCode>,
//! }
//!
//! impl BytecodeImage for Toy {
//!     fn content_id(&self) -> [u8; 20] {
//!         [7; 20]
//!     }
//!     fn bytes(&self) -> &[u8] {
//!         &self.bytes
//!     }
//!     fn code_unit(&self) -> u8 {
//!         1
//!     }
//!     fn methods(&self) -> &[MethodCode] {
//!         &self.methods
//!     }
//!     fn method_count(&self) -> u32 {
//!         2
//!     }
//!     fn class_name(&self, _: u32) -> Option<String> {
//!         Some("toy.Box".to_owned())
//!     }
//!     fn simple_name(&self, index: u32) -> Option<String> {
//!         Some(["open", "shut"].get(index as usize)?.to_string())
//!     }
//!     fn descriptor(&self, _: u32) -> Option<String> {
//!         Some("()V".to_owned())
//!     }
//!     fn source_file(&self, _: &MethodCode) -> Option<String> {
//!         Some("Box.toy".to_owned())
//!     }
//!     fn lines(&self, method: &MethodCode) -> Option<Vec<CodeLine>> {
//!         let offset = method.code.start;
//!         Some(vec![CodeLine { offset, line: 10 + method.index, source: Some(0) }])
//!     }
//!     fn line_source(&self, method: &MethodCode, _: u32) -> Option<String> {
//!         self.source_file(method)
//!     }
//!     fn instruction_before(&self, _: u32, _: u8) -> Option<u32> {
//!         None
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let method = |index, code| MethodCode { code, index, others: 0, access_flags: 1, class: 0 };
//! let toy = Toy { bytes: vec![0; 200], methods: vec![method(0, 160..164), method(1, 164..170)] };
//! let image: &dyn BytecodeImage = &toy;
//! assert_eq!(image.frame(166).unwrap().function, "toy.Box.shut");
//!
//! // perf, gdb and addr2line find the same in the substitute ELF file.
//! let path = std::env::temp_dir().join(format!("toy-{}.elf", std::process::id()));
//! Substitute::of_bytecode(image).write(&path)?;
//! let elf = ElfSource::open(&path, &DebugFiles::none());
//! std::fs::remove_file(&path)?;
//! let elf = elf?;
//! let [frame] = &elf.frames(166)[..] else { panic!("one method") };
//! assert_eq!(frame.function, "toy.Box.shut");
//! assert_eq!(frame.location.as_ref().unwrap().line, 11);
//! # Ok(())
//! # }
//! ```

mod copies;
mod image;
mod invoked;
mod line;
mod method;
mod names;

pub use copies::{CodeCopies, CodeCopy};
pub use image::BytecodeImage;
pub use invoked::{Dispatch, Invoked};
pub use line::CodeLine;
pub(crate) use line::row_at;
pub use method::MethodCode;
pub(crate) use method::method_at;
pub use names::split_shared_name;
pub(crate) use names::{NO_CLASS, shared_name, unqualified};
