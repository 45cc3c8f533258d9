//! Writes classes of version 49, whose code needs no stack maps.
//!
//! ```
//! use varid_instrument::assemble::{ClassBuilder, ClassKind, Limits, Member, access};
//!
//! let mut class = ClassBuilder::new("org/example/Seven");
//! let method = Member {
//!     access: access::PUBLIC | access::STATIC,
//!     name: "seven",
//!     descriptor: "()I",
//!     annotation: None,
//! };
//! class.method(&method, Limits { stack: 1, locals: 0 }, |code| {
//!     code.to.int(7)?;
//!     code.to.op(172); // ireturn
//!     Ok(())
//! })?;
//! let file = class.finish(ClassKind::Final(&[]))?;
//! assert_eq!(file[..8], [0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 49]);
//! # Ok::<(), varid_instrument::NotRewritten>(())
//! ```

pub use crate::assembler::{Assembler, Constant, Local};
pub use crate::class_builder::{
    Annotation, ClassBuilder, ClassKind, CodeBuilder, Label, Limits, Member, access,
};
