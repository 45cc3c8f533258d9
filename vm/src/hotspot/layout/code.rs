//! How code is kept: code heaps, blobs, compiled methods, the interpreter's codelets.

use crate::hotspot::fields::Fields;
use crate::hotspot::member::{Member, Offset};

/// A code heap, `CodeHeap` (memory/heap.hpp). Its memory is divided into segments; a byte for each segment leads to the block, and behind
/// the block's header is a code blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeHeapLayout {
    /// `_memory`, a `VirtualSpace`: the code.
    pub memory: Offset,
    /// `_segmap`, a `VirtualSpace`: a byte for each segment. 0xff: free; 0: a block starts; otherwise so many segments back, or more.
    pub segment_map: Offset,
    /// `_log2_segment_size`, in bytes.
    pub log2_segment_size: Member,
    /// `VirtualSpace::_low`: the first address in use.
    pub space_low: Member,
    /// `VirtualSpace::_high`: the first address after what is in use.
    pub space_high: Member,
    /// `VirtualSpace::_low_boundary`: the first reserved address.
    pub space_low_boundary: Member,
    /// `VirtualSpace::_high_boundary`: the first address after what is reserved.
    pub space_high_boundary: Member,
    /// `HeapBlock::Header::_length`, in segments.
    pub block_length: Member,
    /// `HeapBlock::Header::_used`.
    pub block_used: Member,
    /// Bytes from a block to its blob: the size of `HeapBlock`.
    pub block_header: u32,
    /// `GrowableArrayBase::_len` of the list of heaps.
    pub heaps_length: Member,
    /// `GrowableArray::_data` of that list: pointers.
    pub heaps_data: Member,
}

impl CodeHeapLayout {
    pub(super) fn take(fields: &mut Fields<'_>) -> Self {
        Self {
            memory: fields.offset("CodeHeap::_memory"),
            segment_map: fields.offset("CodeHeap::_segmap"),
            log2_segment_size: fields.member("CodeHeap::_log2_segment_size"),
            space_low: fields.member("VirtualSpace::_low"),
            space_high: fields.member("VirtualSpace::_high"),
            space_low_boundary: fields.member("VirtualSpace::_low_boundary"),
            space_high_boundary: fields.member("VirtualSpace::_high_boundary"),
            block_length: fields.member("HeapBlock::Header::_length"),
            block_used: fields.member("HeapBlock::Header::_used"),
            block_header: fields.size("HeapBlock"),
            heaps_length: fields
                .member(fields.one_of(["GrowableArrayBase::_len", "GenericGrowableArray::_len"])),
            // The array of pointers has the same members as that of numbers, which is exported.
            heaps_data: fields.member("GrowableArray<int>::_data"),
        }
    }
}

/// A code blob, `CodeBlob` (code/codeBlob.hpp).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeBlobLayout {
    /// `_name`: a string of C. Of a compiled method it is `nmethod` or `native nmethod`.
    pub name: Member,
    /// `_size`: in bytes, header and data included.
    pub size: Member,
    /// `_frame_size`: in words. Without a frame 0, or -1 in some stubs.
    pub frame_size: Member,
    /// `_frame_complete_offset`: bytes of code until the frame is made. Signed.
    pub frame_complete: Member,
    /// Where the code starts.
    pub code: BlobCode,
}

/// Where the code of a blob is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobCode {
    /// `_code_begin`, `_code_end`: pointers. Until JDK 22.
    Pointers {
        /// To the first instruction.
        begin: Member,
        /// Behind the last one.
        end: Member,
    },
    /// `_code_offset`, `_data_offset`: bytes from the blob to its first instruction, and behind the last one.
    Offsets {
        /// To the first instruction.
        begin: Member,
        /// Behind the last one.
        end: Member,
    },
}

impl CodeBlobLayout {
    pub(super) fn take(fields: &mut Fields<'_>) -> Self {
        let code = match fields.has("CodeBlob::_code_begin") {
            true => BlobCode::Pointers {
                begin: fields.member("CodeBlob::_code_begin"),
                end: fields.member("CodeBlob::_code_end"),
            },
            false => BlobCode::Offsets {
                begin: fields.member("CodeBlob::_code_offset"),
                end: fields.member("CodeBlob::_data_offset"),
            },
        };
        Self {
            name: fields.member("CodeBlob::_name"),
            size: fields.member("CodeBlob::_size"),
            frame_size: fields.member("CodeBlob::_frame_size"),
            frame_complete: fields.member("CodeBlob::_frame_complete_offset"),
            code,
        }
    }
}

/// A compiled method, `nmethod` (code/nmethod.hpp). It is a [`CodeBlobLayout`] with more members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NmethodLayout {
    /// `_method`: the `Method`.
    pub method: Member,
    /// `_entry_bci`: `InvocationEntryBci`, or the index of the loop that is entered (OSR). Signed.
    pub entry_bci: Member,
    /// `InvocationEntryBci`.
    pub invocation_entry: i32,
    /// `_state`: 0 in use, others not entered any more. Signed.
    pub state: Member,
    /// `_compile_id`: the number of the compilation.
    pub compile_id: Member,
    /// `_comp_level`: 1 to 3 C1, 4 C2.
    pub comp_level: Member,
    /// `_orig_pc_offset`: bytes from the stack pointer of a frame to the return address that deoptimisation has replaced.
    pub orig_pc_offset: Member,
    /// Where its code is entered.
    pub entries: EntryPoints,
    /// The code that a deoptimised frame returns to.
    pub deopt_handlers: DeoptHandlers,
    /// Where its metadata and debug information are.
    pub data: NmethodData,
}

/// Where the code of a compiled method is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryPoints {
    /// `_entry_point`, `_verified_entry_point`: pointers. Until JDK 22.
    Pointers {
        /// With a check of the receiver's class.
        entry: Member,
        /// Without.
        verified: Member,
    },
    /// `_entry_offset`, `_verified_entry_offset`: bytes from the first instruction.
    Offsets {
        /// With a check of the receiver's class.
        entry: Member,
        /// Without.
        verified: Member,
    },
}

/// The code that a deoptimised frame returns to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeoptHandlers {
    /// `_deopt_handler_begin`, `_deopt_mh_handler_begin`: pointers. Until JDK 22.
    Pointers {
        /// Of a usual call.
        call: Member,
        /// Of a call through a method handle.
        method_handle: Member,
    },
    /// `_deopt_handler_offset`, `_deopt_mh_handler_offset`: bytes from the blob. Signed: -1 is none.
    Offsets {
        /// Of a usual call.
        call: Member,
        /// Of a call through a method handle.
        method_handle: Member,
    },
}

/// Where a compiled method has its metadata (`Method*` of inlined methods) and its debug information: an array of `PcDesc` and the scopes
/// that they lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NmethodData {
    /// In the blob. Until JDK 22.
    InBlob {
        /// `_metadata_offset`: bytes from the blob.
        metadata: Member,
        /// `_scopes_data_begin`: a pointer to the scopes, which is also the end of the metadata.
        scopes_data: Member,
        /// `_scopes_pcs_offset`: bytes from the blob to the array, which is also the end of the scopes.
        scopes_pcs: Member,
        /// `_dependencies_offset`: bytes from the blob to the end of the array.
        scopes_pcs_end: Member,
    },
    /// In memory of their own, outside of the code heaps.
    Apart {
        /// `_immutable_data`: a pointer.
        immutable: Member,
        /// `_immutable_data_size`: in bytes.
        immutable_size: Member,
        /// `_scopes_pcs_offset`: bytes from there to the array.
        scopes_pcs: Member,
        /// `_scopes_data_offset`: bytes from there to the scopes, which is also the end of the array.
        scopes_data: Member,
        /// `CodeBlob::_mutable_data`: a pointer.
        mutable: Member,
        /// `CodeBlob::_mutable_data_size`: in bytes.
        mutable_size: Member,
        /// `CodeBlob::_relocation_size`: bytes from there to the metadata.
        relocation_size: Member,
    },
}

impl NmethodLayout {
    pub(super) fn take(fields: &mut Fields<'_>) -> Self {
        let method = fields.one_of(["CompiledMethod::_method", "nmethod::_method"]);
        Self {
            method: fields.member(method),
            entry_bci: fields.member("nmethod::_entry_bci"),
            invocation_entry: fields.constant("InvocationEntryBci") as i32,
            state: fields.member("nmethod::_state"),
            compile_id: fields.member("nmethod::_compile_id"),
            comp_level: fields.member("nmethod::_comp_level"),
            orig_pc_offset: fields.member("nmethod::_orig_pc_offset"),
            entries: EntryPoints::take(fields),
            deopt_handlers: DeoptHandlers::take(fields),
            data: NmethodData::take(fields),
        }
    }
}

impl EntryPoints {
    fn take(fields: &mut Fields<'_>) -> Self {
        match fields.has("nmethod::_entry_point") {
            true => Self::Pointers {
                entry: fields.member("nmethod::_entry_point"),
                verified: fields.member("nmethod::_verified_entry_point"),
            },
            false => Self::Offsets {
                entry: fields.member("nmethod::_entry_offset"),
                verified: fields.member("nmethod::_verified_entry_offset"),
            },
        }
    }
}

impl DeoptHandlers {
    fn take(fields: &mut Fields<'_>) -> Self {
        match fields.has("CompiledMethod::_deopt_handler_begin") {
            true => Self::Pointers {
                call: fields.member("CompiledMethod::_deopt_handler_begin"),
                method_handle: fields.member("CompiledMethod::_deopt_mh_handler_begin"),
            },
            false => Self::Offsets {
                call: fields.member("nmethod::_deopt_handler_offset"),
                method_handle: fields.member("nmethod::_deopt_mh_handler_offset"),
            },
        }
    }
}

impl NmethodData {
    fn take(fields: &mut Fields<'_>) -> Self {
        match fields.has("CompiledMethod::_scopes_data_begin") {
            true => Self::InBlob {
                metadata: fields.member("nmethod::_metadata_offset"),
                scopes_data: fields.member("CompiledMethod::_scopes_data_begin"),
                scopes_pcs: fields.member("nmethod::_scopes_pcs_offset"),
                scopes_pcs_end: fields.member("nmethod::_dependencies_offset"),
            },
            false => Self::Apart {
                immutable: fields.member("nmethod::_immutable_data"),
                immutable_size: fields.member("nmethod::_immutable_data_size"),
                scopes_pcs: fields.member("nmethod::_scopes_pcs_offset"),
                scopes_data: fields.member("nmethod::_scopes_data_offset"),
                mutable: fields.member("CodeBlob::_mutable_data"),
                mutable_size: fields.member("CodeBlob::_mutable_data_size"),
                relocation_size: fields.member("CodeBlob::_relocation_size"),
            },
        }
    }
}

/// The debug information of a code address, `PcDesc` (code/pcDesc.hpp). An array of them is sorted by address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PcDescLayout {
    /// Size in bytes.
    pub size: u32,
    /// `_pc_offset`: bytes from the method's first instruction. Signed.
    pub pc_offset: Member,
    /// `_scope_decode_offset`: bytes from the start of the scopes.
    pub scope: Member,
}

impl PcDescLayout {
    pub(super) fn take(fields: &mut Fields<'_>) -> Self {
        Self {
            size: fields.size("PcDesc"),
            pc_offset: fields.member("PcDesc::_pc_offset"),
            scope: fields.member("PcDesc::_scope_decode_offset"),
        }
    }
}

/// The interpreter's code, `StubQueue` (code/stubs.hpp): codelets one after the other, in a ring that the interpreter does not wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StubQueueLayout {
    /// `_stub_buffer`: a pointer to the buffer.
    pub buffer: Member,
    /// `_buffer_limit`: bytes of it that are used at most.
    pub limit: Member,
    /// `_queue_begin`: bytes to the first codelet.
    pub begin: Member,
    /// `_queue_end`: bytes to the end of the last one.
    pub end: Member,
    /// `_number_of_stubs`: how many there are.
    pub count: Member,
}

impl StubQueueLayout {
    pub(super) fn take(fields: &mut Fields<'_>) -> Self {
        Self {
            buffer: fields.member("StubQueue::_stub_buffer"),
            limit: fields.member("StubQueue::_buffer_limit"),
            begin: fields.member("StubQueue::_queue_begin"),
            end: fields.member("StubQueue::_queue_end"),
            count: fields.member("StubQueue::_number_of_stubs"),
        }
    }
}

/// A part of the interpreter, `InterpreterCodelet` (interpreter/interpreter.hpp).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeletLayout {
    /// Size in bytes of what stands in front of its code, without alignment.
    pub header: u32,
    /// `_size`: in bytes, header included.
    pub size: Member,
    /// `_description`: a string of C.
    pub description: Member,
    /// `_bytecode`: the bytecode that it executes, or -1. Signed.
    pub bytecode: Member,
}

impl CodeletLayout {
    pub(super) fn take(fields: &mut Fields<'_>) -> Self {
        Self {
            header: fields.size("InterpreterCodelet"),
            size: fields.member("InterpreterCodelet::_size"),
            description: fields.member("InterpreterCodelet::_description"),
            bytecode: fields.member("InterpreterCodelet::_bytecode"),
        }
    }
}
