//! What translated code and this crate both read and write. Its layout is that of C.

use std::{ffi::c_void, mem::offset_of};

use varid_machine::{Call, MAX_LENGTH};

/// The state of the program while translated code runs.
#[derive(Debug)]
#[repr(C)]
pub struct State {
    /// The integer registers. A function of translated code has them in the host's registers, and writes those that it has changed when it is
    /// left.
    pub registers: [u32; 32],
    /// The host's address of the first byte of the region with the stack.
    pub memory: u64,
    /// How far behind it memory begins to which stores need no check but for the limits.
    pub store_start: u32,
    /// By width (1, 2, 4 bytes): the limit of a store's place behind `store_start`, as `Range::limit` has it.
    pub store_limits: [u64; 3],
    /// The first row of the call stack, the first free one, and the one behind the last.
    pub calls: *mut Call,
    /// See `calls`.
    pub calls_top: *mut Call,
    /// See `calls`.
    pub calls_end: *mut Call,
    /// The rows of all contexts.
    pub contexts: *mut ContextRow,
    /// How many instructions may be executed.
    pub left: u64,
    /// Where the code was left: the context, and in its function the block and its instruction.
    pub exit_context: u32,
    /// See `exit_context`.
    pub exit_version: u32,
    /// See `exit_context`.
    pub exit_instruction: u32,
    /// The word that was stored last, as the pipeline has it.
    pub stored_word: u32,
    /// How many of the accesses of the block that is left, or issued once more, were executed, and their addresses.
    pub accesses: u32,
    /// See `accesses`.
    pub addresses: [u32; MAX_LENGTH],
    /// Where control goes next: the context, and the number of the entry, or 0 and the block.
    pub next_context: u32,
    /// See `next_context`.
    pub next_entry: u32,
    /// See `next_context`.
    pub next_version: u32,
    /// The row of the context that control came from, and the block in its function. 0: from the interpreter.
    pub from_row: u64,
    /// See `from_row`.
    pub from_version: u32,
    /// What is called if a cache does not have a line.
    pub events: Events,
}

/// What translated code calls, with the simulator as the first argument.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Events {
    /// The simulator.
    pub simulator: *mut c_void,
    /// Issues a block once more: context, block, way. Returns how to go on, as a [`Next`].
    pub reissue: Option<unsafe extern "sysv64" fn(*mut c_void, u32, u32, u32) -> u32>,
    /// Fetches the first instruction of a block that was entered: context, block.
    pub fetch: Option<unsafe extern "sysv64" fn(*mut c_void, u32, u32)>,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            simulator: std::ptr::null_mut(),
            reissue: None,
            fetch: None,
        }
    }
}

/// How translated code goes on behind a block that was issued once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// As planned.
    Planned,
    /// To another block of the way, by its row.
    Other(usize),
    /// To the interpreter. The state says where.
    Leave,
}

impl Next {
    /// The number by which translated code knows it.
    pub const fn number(self) -> u32 {
        match self {
            Self::Planned => 0,
            Self::Leave => 1,
            // There are few.
            Self::Other(row) => (row as u32).saturating_add(2),
        }
    }
}

impl State {
    /// The offset of a register.
    pub const fn register(number: usize) -> i32 {
        // There are 32.
        offset_of!(Self, registers).wrapping_add(number.wrapping_mul(4)) as i32
    }

    /// The offset of the limit of stores, by width.
    pub const fn store_limit(width: usize) -> i32 {
        offset_of!(Self, store_limits).wrapping_add(width.wrapping_mul(8)) as i32
    }
}

impl Default for State {
    fn default() -> Self {
        Self {
            registers: [0; 32],
            memory: 0,
            store_start: 0,
            store_limits: [0; 3],
            calls: std::ptr::null_mut(),
            calls_top: std::ptr::null_mut(),
            calls_end: std::ptr::null_mut(),
            contexts: std::ptr::null_mut(),
            left: 0,
            exit_context: 0,
            exit_version: 0,
            exit_instruction: 0,
            stored_word: 0,
            accesses: 0,
            addresses: [0; MAX_LENGTH],
            next_context: 0,
            next_entry: 0,
            next_version: 0,
            from_row: 0,
            from_version: 0,
            events: Events::default(),
        }
    }
}

/// A calling context, by its id.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct ContextRow {
    /// The code of the context's function.
    pub code: u64,
    /// The counters of the context, as many as the plan of its function has.
    pub counters: *mut u64,
    /// How often it was entered by translated code.
    pub calls: u64,
    /// Its own id.
    pub id: u32,
    /// Its size is a power of two.
    pub unused: u32,
}

impl Default for ContextRow {
    fn default() -> Self {
        Self {
            code: 0,
            counters: std::ptr::null_mut(),
            calls: 0,
            id: 0,
            unused: 0,
        }
    }
}

/// Where control goes from a block of a context to another context, among its counters.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Passage {
    /// The context.
    pub context: u32,
    /// The cell of the block that it is left by.
    pub cell: u32,
    /// The number of the entry of the code there. 0: the passage is not known yet.
    pub entry: u32,
    /// The address, for a jump to a register.
    pub target: u32,
    /// 1 if the instruction there lies in two words of memory, else 0.
    pub straddles: u32,
    /// Its size is that of three counters.
    pub unused: u32,
}

impl Passage {
    /// The counters whose room it takes.
    pub const COUNTERS: usize = 3;
    /// The rows of passages that a call to an address in a register has. Such calls may lead to many functions in turn.
    pub const ROWS: usize = 1 << Self::ROW_BITS;
    /// The number of bits of a row's number, which are the highest ones of the address multiplied by [`Self::SPREAD`].
    pub const ROW_BITS: u32 = 8;
    /// An odd number that spreads addresses: 2^32 divided by the golden ratio.
    pub const SPREAD: u32 = 0x9e37_79b1;

    /// The first of the two rows in which an address may be. The other one differs in the lowest bit.
    pub const fn row(target: u32) -> usize {
        let bits = u32::BITS.saturating_sub(Self::ROW_BITS);
        target.wrapping_mul(Self::SPREAD).wrapping_shr(bits) as usize
    }

    /// Writes it to the first of two places, unless another passage is there.
    pub fn write(self, counters: &mut [u64], [first, second]: [usize; 2]) {
        let known = counters.get(first.saturating_add(1)).copied();
        let [context, entry, rest] = self.to_counters();
        let (mask, other) = (u64::from(u32::MAX), known.unwrap_or_default());
        // The lower half is the entry, the upper one the target.
        let is_free = other & mask == 0 || other & !mask == entry & !mask;
        let place = if is_free { first } else { second };
        let rows = counters.get_mut(place..).into_iter().flatten();
        for (row, number) in rows.zip([context, entry, rest]) {
            *row = number;
        }
    }

    const fn to_counters(self) -> [u64; Self::COUNTERS] {
        [
            pair(self.context, self.cell),
            pair(self.entry, self.target),
            pair(self.straddles, self.unused),
        ]
    }
}

/// This machine has the lower half first.
const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}
