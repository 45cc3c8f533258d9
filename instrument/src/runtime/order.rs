//! How is the order of calls recorded?
//!
//! An event is the increment of a word of the tree: of the calls of a node, or of the counter of a block that is [ordered](crate::Executions).
//! It is recorded just before the increment. Events of a thread are in chunks of its own, which have this layout, aligned to 8 bytes:
//!
//! ```text
//! chunk:  c + 0             address of the chunk that was made before, or 0
//!         c + 8             address of the root of the thread whose events follow, or 0: it has none
//!         c + 16            number of this filling, from 1: no other filling in the VM has it
//!         c + 24 + 4 * k    event k: the number of the word in the tree's file, counted from 0; 0: there is no event here, nor behind
//! ```
//!
//! When a chunk is full, or the thread has none, the runtime class calls its native method [`NEW_CHUNK`] with the address of the thread's root
//! and the value of [`END`]. The agent keeps the events elsewhere, and returns the address of event 0 of a chunk that has none. The VM looks for that method's function in the libraries of
//! agents, by methods that are rewritten themselves: `begin` calls it once, with 0, before anything is recorded. So the events of a
//! process that is killed are those that the agent has kept, and behind them those in the thread's chunk.

/// Instance field of the runtime class, of type `long`: the address of the thread's next event; 0: it has no chunk.
pub const NEXT: &str = "next";
/// Instance field of the runtime class, of type `long`: the end of the thread's chunk.
pub const END: &str = "end";
/// Native static method of the runtime class.
pub const NEW_CHUNK: &str = "newChunk";
/// Its descriptor.
pub const NEW_CHUNK_TYPE: &str = "(JJ)J";

/// Byte offset of the address of the chunk that was made before.
pub const BEFORE: u64 = 0;
/// Byte offset of the address of the thread's root.
pub const THREAD: u64 = 8;
/// Byte offset of the number of the filling.
pub const FILLING: u64 = 16;
/// Byte offset of event 0.
pub const EVENTS: u64 = 24;
/// Length of a chunk's events in bytes.
pub const EVENTS_LENGTH: u64 = (16 << 10) - EVENTS;
/// Length of an event in bytes.
pub const EVENT: u64 = 4;

pub(super) const APPEND: &str = "append";
pub(super) const APPEND_TYPE: &str = "(Ljava/lang/VaridTree;J)V";
