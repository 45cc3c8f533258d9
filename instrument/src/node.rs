//! How is a tree of calling contexts laid out in memory?
//!
//! The tree is in one file that the VM's process maps shared. Every word is 8 bytes, little endian, and aligned to 8. An address in the tree is an
//! address in the VM's process; the header holds the address of the mapping, so that another process can convert it to an offset in the file.
//! In a tree of dex code, addresses are distances from the elements of the array by which the code accesses the tree.
//!
//! ```text
//! file:   header, 4096 bytes | arena: nodes and abort records, each allocated at the first free byte
//!
//! node:   n - 8 * (k + 1)   slot k: the first child that was called there, or 0
//!         n - 16            slot 1: the method's first call site
//!         n - 8             slot 0: calls by the VM while no call site is executed
//!         n + 0             method number; 0: the root of a thread
//!         n + 8             the next child of the same slot, or 0; of a root: the next root, or 0
//!         n + 16            address of the slot in whose chain this node is; 0: a root
//!         n + 24            calls; of a root: free for the agent
//!         n + 32            with block counters: the first abort record, or 0
//!         n + 40 + 8 * c    with block counters: counter c
//!
//! abort:  a + 0             bci at which an exception left its block
//!         a + 8             the next abort record of the same node, or 0
//!         a + 16            how often
//! ```
//!
//! A root has slot 0 only. Its children are the methods that the thread executes without a caller: `Thread.run`, `Thread.exit`, `main`, and what
//! frames call that were entered before recording began.
//!
//! A writer fills a node or record before it stores its address, with release semantics. So a reader that follows addresses finds whole nodes at
//! any time; counters are as old as the reader's look at them. Each root, and all nodes below it, is written by one thread only.

/// Length of the header in bytes. The arena follows it.
pub const HEADER: u64 = 4096;
/// Value of the word at [`header::MAGIC`].
pub const MAGIC: u64 = u64::from_le_bytes(*b"varidCCT");
/// Value of the word at [`header::VERSION`].
pub const VERSION: u64 = 1;
/// Bytes of a word.
pub const WORD: u64 = 8;

/// Byte offsets of the header's words. Words that are not named are free for the agent and the reader.
pub mod header {
    /// [`MAGIC`](super::MAGIC).
    pub const MAGIC: u64 = 0;
    /// [`VERSION`](super::VERSION).
    pub const VERSION: u64 = 8;
    /// Address of the header in the VM's process.
    pub const ADDRESS: u64 = 16;
    /// Length of the arena in bytes, set before the VM starts.
    pub const ARENA_LENGTH: u64 = 24;
    /// Bytes of the arena that are allocated; added to atomically. Never above the length.
    pub const ALLOCATED: u64 = 32;
    /// Calls that were not recorded because the arena was full; added to atomically.
    pub const FOLDED: u64 = 40;
    /// Address of the last thread's root, or 0; each root leads to the one before.
    pub const ROOTS: u64 = 48;
    /// Abort records that were not made because the arena was full; added to atomically.
    pub const LOST_ABORTS: u64 = 56;
    /// Address of the last chunk of events, or 0: see [`runtime::order`](crate::runtime::order).
    pub const CHUNKS: u64 = 64;
    /// Not 0: events have been lost, and none is kept since then.
    pub const LOST_EVENTS: u64 = 72;
}

/// Byte offset of a node's method number.
pub const METHOD: i64 = 0;
/// Byte offset of the address of the next child of the same slot.
pub const NEXT: i64 = 8;
/// Byte offset of the address of the slot in whose chain the node is.
pub const PARENT_SLOT: i64 = 16;
/// Byte offset of the number of calls.
pub const CALLS: i64 = 24;
/// Byte offset of the address of the first abort record. The word exists with block counters only.
pub const ABORTS: i64 = 32;
/// Byte offset of counter 0. Counters exist with block counters only.
pub const COUNTERS: i64 = 40;
/// Words of a node from its address upwards, without block counters.
pub const WORDS: u32 = 4;
/// Method number of a thread's root.
pub const ROOT: i64 = 0;

/// Byte offset, from a node, of slot `slot`. Slot 0 is the implicit one, slot `k + 1` that of the method's call site `k`.
#[must_use]
pub const fn slot(slot: u32) -> i64 {
    (slot as i64).saturating_add(1).saturating_mul(-8)
}

/// Byte offset, from a node, of counter `counter`.
#[must_use]
pub const fn counter(counter: u32) -> i64 {
    (counter as i64).saturating_mul(8).saturating_add(COUNTERS)
}

/// The words of a node that rewritten dex code accesses by itself: its frame. They are the first ones of its counters, and a node has them, and
/// the word for aborts, even if blocks are not counted. A method is executed at most once at a time in its context, so the node has room for
/// what belongs to the execution.
///
/// The code knows the frame by the index of its first word in an array of the VM.
pub mod frame {
    /// Words of a node from its address upwards to its frame.
    pub const DISTANCE: u32 = super::WORDS + 1;
    /// The word that says where the next call is recorded: the distance in words from here to the slot, which is negative, or [`LEFT`].
    pub const SLOT: u16 = 0;
    /// The word with the index of the caller's frame.
    pub const CALLER: u16 = 1;
    /// The number of the first word, and of the first counter, that is one of a block.
    pub const COUNTERS: u16 = 2;
    /// The value of the first word if the execution has ended: the next call is recorded in the caller.
    pub const LEFT: i64 = 0;
    /// The index of the word with the index of the frame that the owner has entered last. The owner is the thread whose entries need no
    /// native method. The word before it is 0, so that an empty slot leads to a node without a method.
    pub const LAST: u16 = 1;

    /// Returns the distance in words from a frame to slot `slot`.
    #[must_use]
    pub const fn distance(slot: u32) -> i64 {
        (slot as i64)
            .saturating_add(1)
            .saturating_add(DISTANCE as i64)
            .saturating_neg()
    }
}

/// Byte offsets of an abort record's words.
pub mod abort {
    /// The bci at which the exception left its block.
    pub const BCI: i64 = 0;
    /// Address of the next record of the same node, or 0.
    pub const NEXT: i64 = 8;
    /// How often an exception left there.
    pub const COUNT: i64 = 16;
    /// Length of a record in bytes.
    pub const LENGTH: i64 = 24;
}
