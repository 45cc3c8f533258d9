//! Reads and writes the parts of a dex file.

mod annotations;
mod classes;
mod cursor;
mod header;
mod output;
mod pools;
mod values;

pub(crate) use annotations::{Annotated, Annotations};
pub(crate) use classes::{ClassData, ClassDef, MemberMethod, MembersLeft, NO_INDEX};
pub(crate) use cursor::Cursor;
pub(crate) use header::Header;
pub(crate) use output::{HEADER_SIZE, Kind, Output, TablePlace, put_sleb, put_uleb};
pub(crate) use pools::{FieldId, MethodId, Order, Pools, Remap};
pub(crate) use values::{Arrays, copy_annotation};
