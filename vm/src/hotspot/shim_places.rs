//! What does the shim need to know of a HotSpot?

use super::code_heaps::CodeHeap;
use super::jvm::Jvm;
use super::layout::BlobCode;
use super::member::Member;
use varid_model::Machine;
use varid_shim::{BlobCodePlace, CodeHeapPlace, FieldPlace, JvmPlaces};

/// Returns where the shim finds code and frames of a VM. None: it knows the frames of x86-64 only.
pub(super) fn of(jvm: &Jvm) -> Option<JvmPlaces> {
    (jvm.machine == Machine::X86_64).then_some(())?;
    let (layout, unexported) = (&jvm.layout, &jvm.unexported);
    let (blob, frame) = (&layout.code_blob, &layout.frame);
    let anchor = &layout.thread.frame_anchor;
    Some(JvmPlaces {
        heaps: jvm.code_heaps.iter().map(heap).collect(),
        interpreter: jvm.interpreter.code.clone(),
        call_returns: jvm.call_stub_return,
        block_header: layout.code_heap.block_header,
        blob_size: field(blob.size),
        blob_frame: field(blob.frame_size),
        blob_complete: field(blob.frame_complete),
        blob_code: match blob.code {
            BlobCode::Pointers { begin, .. } => BlobCodePlace::Pointer(begin.offset.bytes()),
            BlobCode::Offsets { begin, .. } => BlobCodePlace::Offset(field(begin)),
        },
        compile_id: field(layout.nmethod.compile_id),
        frame_sender: frame.sender_sp,
        frame_method: unexported.frame_method,
        frame_bcp: unexported.frame_bcp,
        frame_wrapper: frame.call_wrapper,
        wrapper_anchor: frame.wrapper_anchor.bytes(),
        thread_anchor: layout.thread.anchor.bytes(),
        anchor: [anchor.sp, anchor.pc, anchor.fp].map(|member| member.offset.bytes()),
    })
}

fn heap(heap: &CodeHeap) -> CodeHeapPlace {
    CodeHeapPlace {
        reserved: heap.reserved.clone(),
        segment_map: heap.segment_map,
        log2_segment_size: heap.log2_segment_size,
    }
}

fn field(member: Member) -> FieldPlace {
    FieldPlace {
        offset: member.offset.bytes(),
        size: member.width.bytes(),
    }
}
