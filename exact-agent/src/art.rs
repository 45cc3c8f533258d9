//! What rewritten dex code calls: the native methods of `varid.Tree`, which keep the tree.
//!
//! ART finds them by their names, in the library that the program loads. `varid_instrument_dex` says when the code calls which. A node is the
//! number of its word in the file; 0 or less if it is not recorded. Nothing here panics or allocates on the way of a call: a native method
//! may be called with the last of a thread's stack.

use std::{
    cell::Cell,
    env,
    ffi::c_void,
    fs, io,
    panic::catch_unwind,
    sync::{OnceLock, atomic::Ordering},
};

use varid_instrument::node::{self, WORD, abort, header};

use crate::{
    agent::{Files, monotonic},
    events::files,
    options::Options,
    record::{Record, ThreadRecord},
    tables::Tables,
    tree_file::TreeFile,
};

/// The variable with the [`Options`] of the VMs that a program starts.
pub const OPTIONS: &str = "VARID_EXACT_DEX";
/// The file in the folder of the options with the records that describe the rewritten classes.
pub const RECORDS: &str = "dex.records";

/// The version of JNI that the library needs.
const JNI_VERSION_1_6: i32 = 0x0001_0006;
/// The most bytes of nodes: the number of a node's word is an `int` of Java.
const MAX_BYTES: u64 = 8 << 30;

/// The tree of this process.
static COUNTS: OnceLock<Counts> = OnceLock::new();

/// A tree, and what describes it.
#[derive(Debug)]
struct Counts {
    tree: TreeFile,
    tables: Tables,
}

/// Where the next call of a thread is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The thread has not been counted yet.
    New,
    /// In the slot with this number.
    Slot(u32),
    /// There is no room.
    Full,
}

thread_local! {
    static PLACE: Cell<Place> = const { Cell::new(Place::New) };
}

/// Starts counting, if a program is started to be counted: ART calls it when the library is loaded.
#[unsafe(no_mangle)]
pub extern "system" fn JNI_OnLoad(_vm: *mut c_void, _: *mut c_void) -> i32 {
    let started = catch_unwind(|| match env::var(OPTIONS) {
        Ok(options) => start(&options),
        Err(_) => Ok(()),
    });
    if let Ok(Err(error)) = started {
        eprintln!("varid: the VM cannot count calls: {error}");
    }
    JNI_VERSION_1_6
}

fn start(options: &str) -> Result<(), String> {
    let mut options = Options::parse(options).map_err(|error| error.to_string())?;
    options.bytes = options.bytes.min(MAX_BYTES);
    let open = || -> io::Result<Counts> {
        let records = fs::read(options.folder.join(RECORDS))?;
        let Files { tree, tables, .. } = files(&options)?;
        tables.append(&Record::Vm("ART".to_owned()))?;
        tables.append_encoded(&records)?;
        Ok(Counts { tree, tables })
    };
    let counts = open().map_err(|error| format!("{}: {error}", options.folder.display()))?;
    // Several loaders may load the library: the first one starts the counting.
    let _ = COUNTS.set(counts);
    Ok(())
}

/// The numbers of words in a node, from its own.
const fn offset(bytes: i64) -> i64 {
    match bytes.checked_div(WORD.cast_signed()) {
        Some(words) => words,
        None => 0,
    }
}

impl Counts {
    /// Returns a word by its number.
    fn word(&self, number: u32, distance: i64) -> Option<&std::sync::atomic::AtomicU64> {
        let number = i64::from(number).checked_add(distance)?;
        let bytes = u64::try_from(number).ok()?.checked_mul(WORD)?;
        self.tree.word(bytes)
    }

    fn load(&self, number: u32, distance: i64) -> u64 {
        let word = self.word(number, distance);
        word.map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Adds one to a word that only this thread writes.
    fn increment(&self, number: u32, distance: i64) {
        if let Some(word) = self.word(number, distance) {
            let value = word.load(Ordering::Relaxed).wrapping_add(1);
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Adds one to a word of the header.
    fn increment_shared(&self, bytes: u64) {
        if let Some(word) = self.tree.word(bytes) {
            word.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of the word at an address.
    fn number(&self, address: u64) -> Option<u32> {
        let bytes = address.checked_sub(self.tree.address())?;
        u32::try_from(bytes / WORD).ok()
    }

    /// Returns the address of a word.
    fn address(&self, number: u32) -> u64 {
        let bytes = u64::from(number).saturating_mul(WORD);
        self.tree.address().saturating_add(bytes)
    }

    /// Takes words of the arena.
    fn allocate(&self, words: u32) -> Option<u32> {
        let bytes = u64::from(words).checked_mul(WORD)?;
        u32::try_from(self.tree.allocate(bytes)? / WORD).ok()
    }

    /// Returns the slot of the thread's first call.
    fn root(&self) -> Option<u32> {
        // SAFETY: it has no arguments.
        let tid = unsafe { libc::gettid() }.cast_unsigned();
        let root = self.tree.add_root(tid)?;
        let name = fs::read_to_string("/proc/thread-self/comm").unwrap_or_default();
        let record = ThreadRecord {
            root: root.node,
            tid,
            name: name.trim_end().to_owned(),
            time: monotonic(),
        };
        // A root without a record has no name.
        let _ = self.tables.append(&Record::Thread(record));
        self.number(root.slot)
    }

    /// Returns the node of a method in a slot, which is added if it is new. None if there is no room.
    fn find(&self, slot: u32, method: u64, shape: u32) -> Option<u32> {
        let mut at = slot;
        loop {
            let node = self.load(at, 0);
            if node == 0 {
                break;
            }
            let node = self.number(node)?;
            if self.load(node, offset(node::METHOD)) == method {
                return Some(node);
            }
            at = node.checked_add_signed(offset(node::NEXT).try_into().ok()?)?;
        }
        let (slots, words) = (shape >> 16, shape & 0xffff);
        let node = self
            .allocate(slots.checked_add(words)?)?
            .checked_add(slots)?;
        let parent = self.address(slot);
        self.word(node, offset(node::METHOD))?
            .store(method, Ordering::Relaxed);
        self.word(node, offset(node::PARENT_SLOT))?
            .store(parent, Ordering::Relaxed);
        // A reader finds whole nodes.
        self.word(at, 0)?
            .store(self.address(node), Ordering::Release);
        Some(node)
    }

    /// Counts an exception of the instruction at `pc`.
    fn count_abort(&self, node: u32, pc: u32) {
        let mut at = (node, offset(node::ABORTS));
        loop {
            let record = self.load(at.0, at.1);
            if record == 0 {
                break;
            }
            let Some(record) = self.number(record) else {
                return;
            };
            if self.load(record, offset(abort::BCI)) == pc.into() {
                self.increment(record, offset(abort::COUNT));
                return;
            }
            at = (record, offset(abort::NEXT));
        }
        let added = u32::try_from(offset(abort::LENGTH)).ok();
        let Some(record) = added.and_then(|words| self.allocate(words)) else {
            self.increment_shared(header::LOST_ABORTS);
            return;
        };
        if let (Some(place), Some(count), Some(from)) = (
            self.word(record, offset(abort::BCI)),
            self.word(record, offset(abort::COUNT)),
            self.word(at.0, at.1),
        ) {
            place.store(pc.into(), Ordering::Relaxed);
            count.store(1, Ordering::Relaxed);
            from.store(self.address(record), Ordering::Release);
        }
    }

    fn enter(&self, method: u32, shape: u32) -> i32 {
        let slot = match PLACE.get() {
            Place::Slot(slot) => Some(slot),
            Place::New => self.root(),
            Place::Full => None,
        };
        let node = slot.and_then(|slot| self.find(slot, method.into(), shape));
        let Some((node, number)) = node.and_then(|node| Some((node, i32::try_from(node).ok()?)))
        else {
            self.increment_shared(header::FOLDED);
            PLACE.set(Place::Full);
            return NOT_RECORDED;
        };
        self.increment(node, offset(node::CALLS));
        set_slot(node, 0);
        number
    }

    /// Sets the next call's slot to that of a node.
    fn leave(&self, node: u32) {
        let slot = self.load(node, offset(node::PARENT_SLOT));
        if let Some(slot) = self.number(slot) {
            PLACE.set(Place::Slot(slot));
        }
    }
}

/// The node of a call for which there is no room.
const NOT_RECORDED: i32 = -1;

fn set_slot(node: u32, slot: u32) {
    // Slot 0 is one word below the node.
    let below = slot.saturating_add(1);
    PLACE.set(Place::Slot(node.saturating_sub(below)));
}

/// Calls a function with the tree and a node, if the node is recorded.
fn with(node: i32, function: impl FnOnce(&Counts, u32)) {
    if let (Some(counts), Ok(node @ 1..)) = (COUNTS.get(), u32::try_from(node)) {
        function(counts, node);
    }
}

/// `static int enter(int method, int shape)`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_varid_Tree_enter(
    _env: *mut c_void,
    _class: *mut c_void,
    method: i32,
    shape: i32,
) -> i32 {
    let counts = COUNTS.get();
    counts.map_or(0, |counts| {
        counts.enter(method.cast_unsigned(), shape.cast_unsigned())
    })
}

/// `static void at(int node, int slot)`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_varid_Tree_at(
    _env: *mut c_void,
    _class: *mut c_void,
    node: i32,
    slot: i32,
) {
    with(node, |_, node| set_slot(node, slot.cast_unsigned()));
    if node == NOT_RECORDED {
        PLACE.set(Place::Full);
    }
}

/// `static void count(int node, int counter)`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_varid_Tree_count(
    _env: *mut c_void,
    _class: *mut c_void,
    node: i32,
    counter: i32,
) {
    let distance = offset(node::COUNTERS).saturating_add(counter.into());
    with(node, |counts, node| counts.increment(node, distance));
}

/// `static void caught(int node, int pc)`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_varid_Tree_caught(
    _env: *mut c_void,
    _class: *mut c_void,
    node: i32,
    pc: i32,
) {
    with(node, |counts, node| {
        counts.count_abort(node, pc.cast_unsigned());
        set_slot(node, 0);
    });
}

/// `static void leave(int node)`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_varid_Tree_leave(_env: *mut c_void, _class: *mut c_void, node: i32) {
    with(node, Counts::leave);
}

/// `static void abandon(int node, int pc)`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_varid_Tree_abandon(
    _env: *mut c_void,
    _class: *mut c_void,
    node: i32,
    pc: i32,
) {
    with(node, |counts, node| {
        counts.count_abort(node, pc.cast_unsigned());
        counts.leave(node);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node with two slots and a counter.
    const SHAPE: u32 = 2 << 16 | 6;

    fn counts(name: &str, bytes: u64) -> Counts {
        let folder = std::env::temp_dir();
        let path = folder.join(format!("varid-art-{}-{name}", std::process::id()));
        let tables = Tables::create(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let tree = TreeFile::create(&path, bytes).unwrap();
        fs::remove_file(&path).unwrap();
        Counts { tree, tables }
    }

    fn enter(counts: &Counts, method: u32) -> u32 {
        u32::try_from(counts.enter(method, SHAPE)).unwrap()
    }

    #[test]
    fn calls_are_counted_in_the_slot_of_their_site_and_behind_a_return_in_the_caller_s() {
        let counts = counts("slots", 1 << 16);
        let main = enter(&counts, 1);
        set_slot(main, 1);
        let one = enter(&counts, 2);
        // The VM calls something for the callee.
        let below = enter(&counts, 4);
        counts.leave(below);
        counts.leave(one);
        let other = enter(&counts, 3);
        counts.leave(other);
        assert_eq!(enter(&counts, 2), one);
        counts.leave(one);
        let calls = |node| counts.load(node, offset(node::CALLS));
        assert_eq!([main, one, below, other].map(calls), [1, 2, 1, 1]);
        let parent = |node| counts.number(counts.load(node, offset(node::PARENT_SLOT)));
        assert_eq!(parent(one), Some(main - 2));
        assert_eq!(parent(other), Some(main - 2));
        assert_eq!(parent(below), Some(one - 1));
        assert_eq!(PLACE.get(), Place::Slot(main - 2));
        counts.leave(main);
        assert_ne!(enter(&counts, 5), main);
    }

    #[test]
    fn exceptions_are_counted_by_their_instruction() {
        let counts = counts("aborts", 1 << 16);
        let main = enter(&counts, 1);
        for pc in [7, 9, 7] {
            counts.count_abort(main, pc);
        }
        let mut found = Vec::new();
        let mut record = counts.load(main, offset(node::ABORTS));
        while record != 0 {
            let number = counts.number(record).unwrap();
            let word = |bytes| counts.load(number, offset(bytes));
            found.push((word(abort::BCI), word(abort::COUNT)));
            record = word(abort::NEXT);
        }
        assert_eq!(found, [(7, 2), (9, 1)]);
    }

    #[test]
    fn calls_without_room_are_counted_as_such_until_a_caller_has_a_node() {
        // Room for the thread's root and two nodes.
        let counts = counts("full", 8 * (5 + 2 * 8));
        let main = enter(&counts, 1);
        let one = enter(&counts, 2);
        assert_eq!(counts.enter(3, SHAPE), NOT_RECORDED);
        assert_eq!(counts.enter(4, SHAPE), NOT_RECORDED);
        set_slot(main, 0);
        assert_eq!(enter(&counts, 2), one);
        assert_eq!(
            counts
                .tree
                .word(header::FOLDED)
                .unwrap()
                .load(Ordering::Relaxed),
            2
        );
        assert_eq!(counts.load(one, offset(node::CALLS)), 2);
    }
}
