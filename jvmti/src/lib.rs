//! The part of JNI and JVMTI that an agent uses to rewrite classes as they are loaded.
//!
//! Both interfaces are tables of functions. Each function has a number that the specification fixes for all versions, so nothing is
//! generated from a header. The numbers are those of *JVM Tool Interface* version 11 and *Java Native Interface* version 9.
//!
//! | question | file |
//! |---|---|
//! | how is a function of a table called | `table` |
//! | what does a function of JVMTI say if it fails | `error` |
//! | what may an agent do | `capability` |
//! | which events are sent, to which functions | `event` |
//! | the functions of JVMTI | `environment` |
//! | the functions of JNI | `jni` |
//!
//! Each unsafe function names the rule of the specification that its caller must keep. A handle of an object is valid in the thread and
//! the call that got it, as JNI has it.

mod capability;
mod environment;
mod error;
mod event;
mod jni;
mod table;

pub use capability::{Capabilities, Capability};
pub use environment::{JavaVm, Jvmti, ThreadInfo};
pub use error::{JvmtiError, Result};
pub use event::{Callbacks, ClassFileLoadHook, Event, NativeMethodBind, ThreadEvent, VmStart};
pub use jni::{FieldId, GetMethodId, GlobalHandle, Handle, Jni, JniFunction, NativeMethod, RawJni};
pub use table::RawTable;
