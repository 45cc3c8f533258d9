//! How the VM's threads are found, and what is in them and on their stacks.

use crate::hotspot::fields::Fields;
use crate::hotspot::member::{Member, Offset};
use varid_model::Machine;

/// Bytes of a word on a stack.
const WORD: i64 = 8;

/// The list of threads, `ThreadsList` (runtime/threadSMR.hpp). It is replaced as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadListLayout {
    /// `_length`: the number of threads.
    pub length: Member,
    /// `_threads`: a pointer to pointers to them.
    pub threads: Member,
}

impl ThreadListLayout {
    pub(super) fn take(fields: &mut Fields<'_>) -> Self {
        Self {
            length: fields.member("ThreadsList::_length"),
            threads: fields.member("ThreadsList::_threads"),
        }
    }
}

/// A thread, `JavaThread` (runtime/javaThread.hpp).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadLayout {
    /// `_anchor`: its last Java frame, while it is in native code or in the VM.
    pub anchor: Offset,
    /// A `JavaFrameAnchor`.
    pub frame_anchor: FrameAnchorLayout,
    /// `_osthread`: an `OSThread`.
    pub os_thread: Member,
    /// `OSThread::_thread_id`: the kernel's id, as the process's pid namespace has it.
    pub thread_id: Member,
    /// `_thread_state`.
    pub state: Member,
}

impl ThreadLayout {
    pub(super) fn take(fields: &mut Fields<'_>) -> Self {
        // JDK 25 has it in the base class.
        let os_thread = fields.one_of(["JavaThread::_osthread", "Thread::_osthread"]);
        Self {
            anchor: fields.offset("JavaThread::_anchor"),
            frame_anchor: FrameAnchorLayout::take(fields),
            os_thread: fields.member(os_thread),
            thread_id: fields.member("OSThread::_thread_id"),
            state: fields.member("JavaThread::_thread_state"),
        }
    }
}

/// The last Java frame below other code, `JavaFrameAnchor` (runtime/javaFrameAnchor.hpp).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameAnchorLayout {
    /// `_last_Java_sp`: its stack pointer, or null without such a frame.
    pub sp: Member,
    /// `_last_Java_pc`: where it goes on, or null: then the word below the stack pointer has it.
    pub pc: Member,
    /// `_last_Java_fp`: its frame pointer, or null.
    pub fp: Member,
}

impl FrameAnchorLayout {
    fn take(fields: &mut Fields<'_>) -> Self {
        Self {
            sp: fields.member("JavaFrameAnchor::_last_Java_sp"),
            pc: fields.member("JavaFrameAnchor::_last_Java_pc"),
            fp: fields.member("JavaFrameAnchor::_last_Java_fp"),
        }
    }
}

/// What frames have at their frame pointers (runtime/frame.hpp and the machine's). In bytes, below 0 where the stack is lower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLayout {
    /// `frame::entry_frame_call_wrapper_offset`: where the frame of a call from the VM has its `JavaCallWrapper`.
    pub call_wrapper: i32,
    /// `JavaCallWrapper::_anchor`: the Java frame below that call.
    pub wrapper_anchor: Offset,
    /// `frame::interpreter_frame_sender_sp_offset`: where an interpreter frame has its caller's stack pointer.
    pub sender_sp: i32,
}

impl FrameLayout {
    pub(super) fn take(fields: &mut Fields<'_>, machine: Machine) -> Self {
        let (call_wrapper, sender_sp) = match machine {
            // frame_aarch64.hpp: its tables have no constants of frames.
            Machine::Aarch64 => (-8, -1),
            _ => (
                fields.constant("frame::entry_frame_call_wrapper_offset"),
                fields.constant("frame::interpreter_frame_sender_sp_offset"),
            ),
        };
        let bytes = |words: i64| i32::try_from(words.saturating_mul(WORD)).unwrap_or_default();
        Self {
            call_wrapper: bytes(call_wrapper),
            sender_sp: bytes(sender_sp),
            wrapper_anchor: fields.offset("JavaCallWrapper::_anchor"),
        }
    }
}
