//! Where the members are of HotSpot's structures that lead from a thread and a code address to methods.
//!
//! All of it comes from the tables that the VM exports. Facts that no table has are in `unexported`. Each type is named after its
//! structure in HotSpot's sources, and so is each member.
//!
//! | what | file |
//! |---|---|
//! | code heaps, code blobs, compiled methods, interpreter codelets | `code` |
//! | methods, their constants, classes, symbols | `metadata` |
//! | threads, their stacks' anchors, frames | `threads` |

mod code;
mod metadata;
mod threads;

pub(super) use code::{BlobCode, DeoptHandlers, EntryPoints, NmethodData};
pub use code::{
    CodeBlobLayout, CodeHeapLayout, CodeletLayout, NmethodLayout, PcDescLayout, StubQueueLayout,
};
pub use metadata::MetadataLayout;
pub use threads::{FrameLayout, ThreadLayout, ThreadListLayout};

use super::fields::Fields;
use varid_model::Machine;

/// The layout of all structures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JvmLayout {
    /// `CodeHeap`.
    pub code_heap: CodeHeapLayout,
    /// `CodeBlob`.
    pub code_blob: CodeBlobLayout,
    /// `nmethod`, with what JDK 21 and earlier have in `CompiledMethod`.
    pub nmethod: NmethodLayout,
    /// `PcDesc`.
    pub pc_desc: PcDescLayout,
    /// `StubQueue`, which has the interpreter's code.
    pub stub_queue: StubQueueLayout,
    /// `InterpreterCodelet`.
    pub codelet: CodeletLayout,
    /// `Method` and what it leads to.
    pub metadata: MetadataLayout,
    /// `ThreadsList`.
    pub thread_list: ThreadListLayout,
    /// `JavaThread`.
    pub thread: ThreadLayout,
    /// Frames on the stack.
    pub frame: FrameLayout,
}

impl JvmLayout {
    /// Takes the layout from the fields of a VM on a machine.
    pub(super) fn take(fields: &mut Fields<'_>, machine: Machine) -> Self {
        Self {
            code_heap: CodeHeapLayout::take(fields),
            code_blob: CodeBlobLayout::take(fields),
            nmethod: NmethodLayout::take(fields),
            pc_desc: PcDescLayout::take(fields),
            stub_queue: StubQueueLayout::take(fields),
            codelet: CodeletLayout::take(fields),
            metadata: MetadataLayout::take(fields),
            thread_list: ThreadListLayout::take(fields),
            thread: ThreadLayout::take(fields),
            frame: FrameLayout::take(fields, machine),
        }
    }
}
