//! What rewritten dex code calls: the native methods of `varid.Tree`, which keep the tree.
//!
//! The library that the program loads binds them. `varid_instrument_dex` says when the code calls which. Nothing here
//! panics or allocates on the way of a call: a native method may be called with the last of a thread's stack.
//!
//! The code itself marks its frame as left. The next entry looks for the innermost caller that has not been left.
//!
//! The entries of one thread, the owner, find and count their nodes without a native method if there is one already: the frame that it has
//! entered last is in a word of the array.

use std::{
    cell::Cell,
    env,
    ffi::{CStr, c_void},
    fs,
    panic::catch_unwind,
    ptr::NonNull,
    sync::{
        OnceLock,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use varid_instrument::{
    Counted,
    node::{self, WORD, abort, frame, header},
};
use varid_jvmti::{Handle, JavaVm, Jni, NativeMethod, RawTable};

use crate::{
    agent::{Files, monotonic},
    events::files,
    mapping::{Place, map},
    options::Options,
    record::{Record, ThreadRecord},
    tables::Tables,
    tree_file::TreeFile,
    word_array::{Elements, Index, WordArray, publish_owner, publish_placeholder},
};

/// The variable with the [`Options`] of the VMs that a program starts.
pub const OPTIONS: &str = "VARID_EXACT_DEX";
/// The file in the folder of the options with the records that describe the rewritten classes.
pub const RECORDS: &str = "dex.records";

/// The version of JNI that the library needs.
const JNI_VERSION_1_6: i32 = 0x0001_0006;
/// The class of the native methods.
const CLASS: &CStr = c"varid/Tree";
/// The most bytes of nodes: with those below 4 GB, they are within reach of an array.
const MAX_BYTES: u64 = 8 << 30;

/// The tree of this process.
static COUNTS: OnceLock<Counts> = OnceLock::new();

/// A tree, and what describes it.
#[derive(Debug)]
struct Counts {
    tree: TreeFile,
    /// The index of the tree's first word.
    first: Index,
    tables: Tables,
    spare: SpareFrames,
    counted: Counted,
    /// The word with the frame that the owner has entered last.
    last_of_owner: &'static AtomicU64,
}

/// Frames of calls for which the tree has no room. Nobody reads their counters. A thread has one, so that its callers are known.
#[derive(Debug)]
struct SpareFrames {
    memory: NonNull<u8>,
    /// The index of the first word.
    first: Index,
    /// The number of the next thread.
    next: AtomicU32,
}

// SAFETY: all access to the memory is by atomic words.
unsafe impl Send for SpareFrames {}
// SAFETY: as above.
unsafe impl Sync for SpareFrames {}

/// A place in the tree where calls are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    frame: Index,
    /// The distance of the slot from the frame, in words.
    distance: i64,
}

thread_local! {
    /// The frame of the last call of the thread that is known: it, or a caller of it, is the innermost one. 0: the thread has not been counted yet.
    static FRAME: Cell<u32> = const { Cell::new(0) };
    /// Whether the thread is the owner, which has that frame in a word of the array instead.
    static IS_OWNER: Cell<bool> = const { Cell::new(false) };
    /// The thread's spare frame, or 0.
    static SPARE: Cell<u32> = const { Cell::new(0) };
}

/// Starts counting, if a program is started to be counted: ART calls it when the library is loaded.
///
/// # Safety
///
/// The VM calls it.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn JNI_OnLoad(vm: RawTable, _: *mut c_void) -> i32 {
    // SAFETY: the VM passes itself.
    let jni = unsafe { JavaVm::new(vm) }.jni();
    if let Some(jni) = jni
        && let Ok(Err(error)) = catch_unwind(|| start(jni))
    {
        eprintln!("varid: calls are not counted: {error}");
    }
    JNI_VERSION_1_6
}

fn start(jni: Jni) -> Result<(), String> {
    let class = jni
        .find_class(CLASS)
        .ok_or("the library belongs to no rewritten dex file")?;
    register(jni, class)?;
    let Ok(options) = env::var(OPTIONS) else {
        return Ok(publish_placeholder(jni, class, SpareFrames::ARRAY_LENGTH)?);
    };
    let counts = Options::parse(&options)
        .map_err(|error| error.to_string())
        .and_then(|options| Counts::create(jni, class, options));
    match counts {
        // Several loaders may load the library: the first one starts the counting.
        Ok(counts) => {
            if COUNTS.set(counts).is_ok()
                && let Some(counts) = COUNTS.get()
            {
                counts.set_owner(jni, class);
            }
        }
        Err(error) => {
            publish_placeholder(jni, class, SpareFrames::ARRAY_LENGTH)?;
            return Err(error);
        }
    }
    Ok(())
}

impl SpareFrames {
    /// Words from a frame upwards, and below it: as many as the largest node has. Those below are its slots: they stay empty.
    const HALF: u32 = 1 << 16;
    const WORDS: u32 = 2 * Self::HALF;
    /// How many threads have one of their own.
    const COUNT: u32 = 64;
    /// The length of an array with the frame at 0.
    const ARRAY_LENGTH: i32 = 1 << 16;

    /// Maps frames within the reach of an array.
    fn map(elements: Elements) -> Result<Self, String> {
        let words = u64::from(Self::WORDS).saturating_mul(Self::COUNT.into());
        let length = usize::try_from(words.saturating_mul(WORD)).map_err(|_| "too large")?;
        let place = Place::Within(elements.reach());
        let memory = map(&place, length, None).map_err(|error| error.to_string())?;
        let first = elements.index(memory.as_ptr().addr() as u64);
        Ok(Self {
            memory,
            first: first.ok_or("out of reach")?,
            next: AtomicU32::new(0),
        })
    }

    /// Returns the distance of a word from the first one. None: it is not one of a frame.
    fn distance(&self, index: Index) -> Option<usize> {
        let distance = index.0.checked_sub(self.first.0)?;
        (distance < Self::WORDS.saturating_mul(Self::COUNT)).then_some(distance as usize)
    }

    fn has(&self, index: Index) -> bool {
        self.distance(index).is_some()
    }

    fn word(&self, index: Index) -> Option<&AtomicU64> {
        let distance = self.distance(index)?;
        // SAFETY: the word is aligned and in the mapping, which lasts as long as the process.
        Some(unsafe { &*self.memory.as_ptr().cast::<AtomicU64>().add(distance) })
    }

    /// Returns this thread's frame. Threads share one if there are too many.
    fn of_thread(&self) -> Index {
        if SPARE.get() == 0 {
            let number = self.next.fetch_add(1, Ordering::Relaxed) % Self::COUNT;
            let distance = number.saturating_mul(Self::WORDS);
            let distance = distance.saturating_add(Self::HALF);
            SPARE.set(self.first.0.saturating_add(distance));
        }
        Index(SPARE.get())
    }
}

/// The number of words in a number of bytes.
const fn words(bytes: i64) -> i64 {
    match bytes.checked_div(WORD.cast_signed()) {
        Some(words) => words,
        None => 0,
    }
}

/// The distance from a frame of a word of its node, by the byte offset of the word in the node.
const fn from_frame(offset: i64) -> i64 {
    words(offset).saturating_sub(frame::DISTANCE as i64)
}

const SLOT: i64 = frame::SLOT as i64;
const CALLER: i64 = frame::CALLER as i64;

impl Counts {
    fn create(jni: Jni, class: Handle, mut options: Options) -> Result<Self, String> {
        options.bytes = options.bytes.min(MAX_BYTES);
        let folder = options.folder.display();
        let failed = |error: std::io::Error| format!("{folder}: {error}");
        let records = fs::read(options.folder.join(RECORDS)).map_err(failed)?;
        let array = WordArray::create(jni);
        let place = match &array {
            Ok(array) => Place::Within(array.elements().reach()),
            Err(_) => Place::Anywhere,
        };
        let Files { tree, tables, .. } = files(&options, &place).map_err(failed)?;
        let append = || {
            tables.append(&Record::Vm("ART".to_owned()))?;
            tables.append_encoded(&records)
        };
        append().map_err(failed)?;
        let prepare = || -> Result<_, String> {
            let array = array?;
            let magic = Index::at_bytes(tree.address().saturating_add(header::MAGIC));
            let magic = magic.ok_or("out of reach")?;
            let spare = SpareFrames::map(array.elements())?;
            array.extend(jni, (magic, node::MAGIC))?;
            array.publish(jni, class)?;
            let first = Index::at_bytes(tree.address());
            Ok((first.ok_or("out of reach")?, spare, array.last()))
        };
        match prepare() {
            Ok((first, spare, last_of_owner)) => Ok(Self {
                tree,
                first,
                tables,
                spare,
                counted: options.counted,
                last_of_owner,
            }),
            Err(reason) => {
                // The message says it, too.
                let _ = tables.append(&Record::Failed(reason.clone()));
                Err(reason)
            }
        }
    }

    /// Returns a word of the tree or of a spare frame.
    fn word(&self, index: Index, distance: i64) -> Option<&AtomicU64> {
        let index = index.at(distance)?;
        let from_first = index.0.wrapping_sub(self.first.0);
        let word = self.tree.words().get(from_first as usize);
        word.or_else(|| self.spare.word(index))
    }

    fn load(&self, index: Index, distance: i64) -> u64 {
        let word = self.word(index, distance);
        word.map_or(0, |word| word.load(Ordering::Relaxed))
    }

    fn store(&self, index: Index, distance: i64, value: u64) {
        if let Some(word) = self.word(index, distance) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Adds one to a word that only this thread writes.
    fn increment(&self, index: Index, distance: i64) {
        if let Some(word) = self.word(index, distance) {
            let value = word.load(Ordering::Relaxed).wrapping_add(1);
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Adds one to a word of the header.
    fn increment_shared(&self, offset: u64) {
        if let Some(word) = self.tree.word(offset) {
            word.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes words of the arena.
    fn allocate(&self, words: u32) -> Option<Index> {
        let offset = self.tree.allocate(u64::from(words).checked_mul(WORD)?)?;
        Index::at_bytes(self.tree.address().checked_add(offset)?)
    }

    /// Makes the frame of the thread's root, which is never left. None if there is no room.
    fn root(&self) -> Option<Index> {
        // SAFETY: it has no arguments.
        let tid = unsafe { libc::gettid() }.cast_unsigned();
        let words = frame::DISTANCE.saturating_add(frame::COUNTERS.into());
        let root = self.tree.add_root(tid, words)?;
        let name = fs::read_to_string("/proc/thread-self/comm").unwrap_or_default();
        let record = ThreadRecord {
            root: root.node,
            tid,
            name: name.trim_end().to_owned(),
            time: monotonic(),
        };
        // A root without a record has no name.
        let _ = self.tables.append(&Record::Thread(record));
        let root = Index::at_bytes(root.node)?.at(frame::DISTANCE.into())?;
        self.store(root, CALLER, root.0.into());
        self.store(root, SLOT, frame::distance(0).cast_unsigned());
        Some(root)
    }

    /// Lets the rewritten code count the entries of this thread. Without room for its root, it is as all others.
    fn set_owner(&self, jni: Jni, class: Handle) {
        let Some(root) = self.root() else {
            return;
        };
        FRAME.set(root.0);
        // From here on, the code never reads another value than that of a frame.
        self.last_of_owner.store(root.0.into(), Ordering::Release);
        IS_OWNER.set(publish_owner(jni, class));
    }

    /// Returns the frame of the last call of the thread that is known, or 0.
    fn last(&self) -> Index {
        match IS_OWNER.get() {
            true => {
                let last = self.last_of_owner.load(Ordering::Relaxed);
                Index(u32::try_from(last).unwrap_or(0))
            }
            false => Index(FRAME.get()),
        }
    }

    fn set_last(&self, frame: Index) {
        match IS_OWNER.get() {
            true => self.last_of_owner.store(frame.0.into(), Ordering::Relaxed),
            false => FRAME.set(frame.0),
        }
    }

    /// Returns the slot in which the next call of the thread is recorded.
    fn slot(&self) -> Slot {
        let mut frame = self.last();
        if frame.0 == 0 {
            frame = self.root().unwrap_or_else(|| {
                let spare = self.spare.of_thread();
                self.store(spare, CALLER, spare.0.into());
                spare
            });
        }
        loop {
            let distance = self.load(frame, SLOT).cast_signed();
            // A frame without a caller is never left.
            let caller = || Index(u32::try_from(self.load(frame, CALLER)).unwrap_or(0));
            match distance {
                ..0 => return Slot { frame, distance },
                _ if caller() == frame => {
                    let distance = frame::distance(0);
                    return Slot { frame, distance };
                }
                _ => frame = caller(),
            }
        }
    }

    /// Returns the frame of a method that is called in a slot. Its node is added if it is new. None if there is no room.
    fn find(&self, slot: Slot, method: u64, shape: u32) -> Option<Index> {
        if self.spare.has(slot.frame) {
            return None;
        }
        let first = slot.frame.at(slot.distance)?;
        let mut link = first;
        loop {
            let node = self.load(link, 0);
            if node == 0 {
                break;
            }
            let node = Index::at_bytes(node)?;
            if self.load(node, words(node::METHOD)) == method {
                return node.at(frame::DISTANCE.into());
            }
            link = node.at(words(node::NEXT))?;
        }
        let (slots, size) = (shape >> 16, shape & 0xffff);
        let node = self.allocate(slots.checked_add(size)?)?.at(slots.into())?;
        let frame = node.at(frame::DISTANCE.into())?;
        self.store(node, words(node::METHOD), method);
        self.store(node, words(node::PARENT_SLOT), first.bytes());
        self.store(frame, CALLER, slot.frame.0.into());
        // A reader finds whole nodes.
        self.word(link, 0)?.store(node.bytes(), Ordering::Release);
        Some(frame)
    }

    /// Counts a call. Returns its frame.
    fn enter(&self, method: u32, shape: u32) -> Index {
        let slot = self.slot();
        let frame = match self.find(slot, method.into(), shape) {
            Some(frame) => {
                self.increment(frame, from_frame(node::CALLS));
                frame
            }
            None => {
                self.increment_shared(header::FOLDED);
                let spare = self.spare.of_thread();
                if !self.spare.has(slot.frame) {
                    self.store(spare, CALLER, slot.frame.0.into());
                }
                spare
            }
        };
        self.set_frame(frame);
        frame
    }

    /// Records the next call of the thread in slot 0 of a frame.
    fn set_frame(&self, frame: Index) {
        self.store(frame, SLOT, frame::distance(0).cast_unsigned());
        self.set_last(frame);
    }

    /// Counts an exception of the instruction at `pc`.
    fn count_abort(&self, frame: Index, pc: u32) {
        if self.spare.has(frame) || self.counted == Counted::Calls {
            return;
        }
        let mut link = (frame, from_frame(node::ABORTS));
        loop {
            let record = self.load(link.0, link.1);
            if record == 0 {
                break;
            }
            let Some(record) = Index::at_bytes(record) else {
                return;
            };
            if self.load(record, words(abort::BCI)) == pc.into() {
                self.increment(record, words(abort::COUNT));
                return;
            }
            link = (record, words(abort::NEXT));
        }
        let length = u32::try_from(words(abort::LENGTH)).ok();
        let Some(record) = length.and_then(|length| self.allocate(length)) else {
            self.increment_shared(header::LOST_ABORTS);
            return;
        };
        self.store(record, words(abort::BCI), pc.into());
        self.store(record, words(abort::COUNT), 1);
        if let Some(link) = self.word(link.0, link.1) {
            link.store(record.bytes(), Ordering::Release);
        }
    }
}

/// `static int enter(int method, int shape)`.
extern "C" fn enter(method: i32, shape: i32) -> i32 {
    let frame = COUNTS.get().map(|counts| {
        let frame = counts.enter(method.cast_unsigned(), shape.cast_unsigned());
        frame.0.cast_signed()
    });
    frame.unwrap_or(0)
}

/// `static void caught(int frame, int pc)`.
extern "C" fn caught(frame: i32, pc: i32) {
    if let Some(counts) = COUNTS.get() {
        let frame = Index(frame.cast_unsigned());
        counts.count_abort(frame, pc.cast_unsigned());
        counts.set_frame(frame);
    }
}

/// `static void thrown(int frame, int pc)`.
extern "C" fn thrown(frame: i32, pc: i32) {
    if let Some(counts) = COUNTS.get() {
        counts.count_abort(Index(frame.cast_unsigned()), pc.cast_unsigned());
        // Callees that have no handler may not have been left.
        counts.set_last(Index(frame.cast_unsigned()));
    }
}

/// The native methods for a VM that passes the environment and the class.
mod with_environment {
    use std::ffi::c_void;

    pub(super) extern "C" fn enter(_: *mut c_void, _: *mut c_void, method: i32, shape: i32) -> i32 {
        super::enter(method, shape)
    }

    pub(super) extern "C" fn caught(_: *mut c_void, _: *mut c_void, frame: i32, pc: i32) {
        super::caught(frame, pc);
    }

    pub(super) extern "C" fn thrown(_: *mut c_void, _: *mut c_void, frame: i32, pc: i32) {
        super::thrown(frame, pc);
    }
}

/// How the VM calls native methods that are marked as critical.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Convention {
    /// With their arguments only.
    Critical = 1,
    /// With the environment and the class in front of them.
    Environment = 2,
}

/// What [`convention`] is called with.
const PROBE: [i32; 2] = [0x5eed_0001, 0x5eed_0002];

/// Stands for `enter`. Returns the [`Convention`] by which it is called with [`PROBE`].
extern "C" fn convention(first: usize, second: usize) -> i32 {
    // An `int` is in the lower half of its register.
    let low = |value: usize| u32::try_from(value & 0xffff_ffff).map(u32::cast_signed);
    let is_critical = [low(first), low(second)] == PROBE.map(Ok);
    let convention = match is_critical {
        true => Convention::Critical,
        false => Convention::Environment,
    };
    convention as i32
}

/// Binds the native methods, by the convention that the VM has for them.
fn register(jni: Jni, class: Handle) -> Result<(), &'static str> {
    const ENTER: (&CStr, &CStr) = (c"enter", c"(II)I");
    const CAUGHT: (&CStr, &CStr) = (c"caught", c"(II)V");
    const THROWN: (&CStr, &CStr) = (c"thrown", c"(II)V");
    let method = |method: (&'static CStr, &'static CStr), function| {
        NativeMethod::new(method.0, method.1, function)
    };
    let bind = |methods: &[NativeMethod]| {
        // SAFETY: the class is valid in this thread. The functions have the types of the methods, or take what is in the first registers.
        let is_bound = unsafe { jni.register_natives(class, methods) };
        is_bound
            .then_some(())
            .ok_or("the class that counts has other methods")
    };
    bind(&[method(ENTER, convention as *const c_void)])?;
    // SAFETY: the class is valid in this thread.
    let found = unsafe { jni.call_static_int(class, ENTER.0, PROBE) };
    let functions = match found {
        Some(found) if found == Convention::Critical as i32 => [
            enter as *const c_void,
            caught as *const c_void,
            thrown as *const c_void,
        ],
        Some(_) => [
            with_environment::enter as *const c_void,
            with_environment::caught as *const c_void,
            with_environment::thrown as *const c_void,
        ],
        None => return Err("the VM does not call native methods"),
    };
    let [enter, caught, thrown] = functions;
    bind(&[
        method(ENTER, enter),
        method(CAUGHT, caught),
        method(THROWN, thrown),
    ])
}

#[cfg(test)]
mod tests;
