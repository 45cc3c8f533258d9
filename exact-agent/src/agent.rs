//! The agent's state: which classes it rewrites, and where threads count.

use std::{
    ffi::c_void,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use varid_instrument::{
    ClassPattern, MethodNumber, NotRewritten, Plan, Rewritten, SwitchAddress, TreeAddress, node,
    rewrite, runtime_class, switched_runtime_class, thread_class,
};
use varid_jvmti::{FieldId, GlobalHandle, Handle, Jni, Jvmti, RawJni};

use crate::{
    options::Options,
    order::Order,
    record::{ClassRecord, Record, ThreadRecord},
    tables::Tables,
    tree_file::{Chunk, Root, TreeFile},
};

/// The agent of this process.
static AGENT: OnceLock<Agent> = OnceLock::new();

/// The names of [`varid_instrument::runtime`], as JNI takes them.
mod names {
    use std::ffi::CStr;

    pub(super) const CELL: &CStr = c"java/lang/VaridTree";
    pub(super) const CELL_TYPE: &CStr = c"Ljava/lang/VaridTree;";
    pub(super) const BEGIN: &CStr = c"begin";
    pub(super) const SLOT: &CStr = c"slot";
    pub(super) const ROOT: &CStr = c"root";
    pub(super) const NEXT: &CStr = c"next";
    pub(super) const END: &CStr = c"end";
    pub(super) const LONG: &CStr = c"J";
    pub(super) const THREAD: &CStr = c"java/lang/Thread";
    pub(super) const THREAD_CELL: &CStr = c"varid";
}

/// The agent.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) jvmti: Jvmti,
    tree: TreeFile,
    tables: Tables,
    /// The order of calls, if it is recorded.
    order: Option<Order>,
    /// The word that switches counting. None: it is always on.
    switch: Option<SwitchAddress>,
    plan: Plan,
    /// The classes that are counted. Empty: all are.
    include: Vec<ClassPattern>,
    /// Whether the tables have the class files.
    has_class_files: bool,
    /// The number of the next method. None: there are no more.
    next: Mutex<Option<MethodNumber>>,
    /// Whether counting has started.
    has_begun: AtomicBool,
    /// The class and the fields that say where a thread counts.
    cells: OnceLock<Cells>,
}

/// The class and the fields that say where a thread counts.
#[derive(Debug, Clone, Copy)]
struct Cells {
    class: GlobalHandle,
    /// A thread's cell.
    of_thread: FieldId,
    /// The address of the slot of the next call.
    slot: FieldId,
    /// The address of slot 0 of the thread's root.
    root: FieldId,
    /// The next event and the end of the thread's chunk, if the order is recorded.
    chunk: Option<[FieldId; 2]>,
}

/// A class that the VM is about to define.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoadedClass<'a> {
    /// Whether its loader is the boot loader.
    pub(crate) is_boot: bool,
    /// Its name, if the VM says it.
    pub(crate) name: Option<&'a str>,
    pub(crate) bytes: &'a [u8],
}

impl LoadedClass<'_> {
    /// Returns true if it is `java.lang.Thread`.
    fn is_thread(&self) -> bool {
        self.is_boot && self.name.map(str::as_bytes) == Some(names::THREAD.to_bytes())
    }
}

/// The files of a VM.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) tree: TreeFile,
    pub(crate) tables: Tables,
    /// The order of calls, if it is recorded.
    pub(crate) order: Option<Order>,
    /// The word that switches counting. None: it is always on.
    pub(crate) switch: Option<SwitchAddress>,
}

/// The native method of the runtime class. The VM finds it by its name, as [`varid_instrument::runtime::order`] says.
///
/// # Safety
///
/// The VM calls it for the runtime class, with the address of a thread's root, or 0, and the end of the thread's chunk.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_VaridTree_newChunk(
    _: RawJni,
    _: *mut c_void,
    root: i64,
    end: i64,
) -> i64 {
    let mut address = 0;
    if root != 0 {
        // What is written into this chunk is lost. It is used if the function behind it panics.
        guarded(|agent| {
            let sink = agent.order.as_ref().map(Order::sink);
            address = sink.map_or(0, |sink: Chunk| agent.tree.events_address(sink));
        });
        guarded(|agent| {
            let new = agent.new_chunk(root.cast_unsigned(), end.cast_unsigned());
            address = new.unwrap_or(address);
        });
    }
    address.cast_signed()
}

/// Calls a function with the agent, if there is one. A panic ends the function, not the VM.
pub(crate) fn guarded(event: impl FnOnce(&Agent)) {
    // The agent's state is in atomic words, and in a lock that is taken even if it is poisoned.
    let _ = catch_unwind(AssertUnwindSafe(|| AGENT.get().map(event)));
}

impl Agent {
    /// Makes the agent of this process. Returns false if there is one.
    pub(crate) fn install(jvmti: Jvmti, files: Files, options: &Options) -> bool {
        let agent = Self {
            jvmti,
            tree: files.tree,
            tables: files.tables,
            order: files.order,
            switch: files.switch,
            plan: Plan {
                counted: options.counted,
                intrinsics: options.intrinsics,
                start: None,
                within: options.within.clone(),
            },
            include: options.include.clone(),
            has_class_files: options.class_files || options.counted.has_blocks(),
            next: Mutex::new(Some(MethodNumber::FIRST)),
            has_begun: AtomicBool::new(false),
            cells: OnceLock::new(),
        };
        AGENT.set(agent).is_ok()
    }

    /// Returns true if calls are counted.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Acquire)
    }

    /// Defines the class that the rewritten classes call. No bytecode has run. Returns false if the VM refuses it.
    pub(crate) fn define_runtime(&self, jni: Jni) -> bool {
        let tree = TreeAddress(self.tree.address());
        let class = match self.switch {
            Some(switch) => switched_runtime_class(tree, switch, &self.plan),
            None => runtime_class(tree, &self.plan),
        };
        jni.define_boot_class(names::CELL, &class).is_some()
    }

    /// Finds what needs classes of the VM.
    pub(crate) fn initialize(&self, jni: Jni) -> Result<(), String> {
        let property = |name| self.jvmti.system_property(name).unwrap_or_default();
        let (name, version) = (property("java.vm.name"), property("java.vm.version"));
        self.append(&Record::Vm(format!("{name} {version}")));
        let cells = Cells::find(jni, self.order.is_some())
            .ok_or("threads have no field for their place in the tree")?;
        let _ = self.cells.set(cells);
        Ok(())
    }

    /// Returns the rewritten bytes of a class, which are described in the tables. None: the class stays as it is.
    pub(crate) fn rewrite(&self, class: &LoadedClass<'_>) -> Option<Vec<u8>> {
        if !class.name.is_none_or(|name| self.includes(name)) {
            return match class.is_thread() {
                true => thread_class(class.bytes).ok(),
                false => None,
            };
        }
        let rewritten = match self.number_methods(class) {
            Ok(rewritten) => rewritten,
            Err(NotRewritten::Runtime) => return None,
            Err(error) => {
                self.append(&Record::NotCounted {
                    class: class.name.unwrap_or("a hidden class").to_owned(),
                    reason: error.to_string(),
                });
                return None;
            }
        };
        if !self.includes(&rewritten.class) {
            return None;
        }
        let record = ClassRecord {
            is_boot: class.is_boot,
            name: rewritten.class,
            source_file: rewritten.source_file.unwrap_or_default(),
            methods: rewritten.methods,
            bytes: self.original(class),
        };
        // A class that is not described must not be counted.
        self.append(&Record::Class(record))
            .then_some(rewritten.bytes)
    }

    fn includes(&self, class: &str) -> bool {
        let mut patterns = self.include.iter();
        self.include.is_empty() || patterns.any(|pattern| pattern.matches(class))
    }

    /// Returns the class file as the tables have it.
    const fn original<'a>(&self, class: &LoadedClass<'a>) -> &'a [u8] {
        match self.has_class_files {
            true => class.bytes,
            false => &[],
        }
    }

    fn number_methods(&self, class: &LoadedClass<'_>) -> Result<Rewritten, NotRewritten> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let first = (*next).ok_or(NotRewritten::NoNumbers)?;
        let rewritten = match class.is_thread() {
            true => rewrite(&thread_class(class.bytes)?, &self.plan, first)?,
            false => rewrite(class.bytes, &self.plan, first)?,
        };
        *next = first.after(rewritten.methods.len());
        Ok(rewritten)
    }

    /// Starts counting. Returns false if it has started before, or cannot.
    pub(crate) fn begin(&self, jni: Jni) -> bool {
        let Some(cells) = self.cells.get() else {
            return false;
        };
        if self.has_begun.swap(true, Ordering::AcqRel) {
            return false;
        }
        // SAFETY: the class is that of cells.
        unsafe { jni.call_static(cells.class.get(), names::BEGIN) }
    }

    /// Counts a thread from now on: this thread, or the virtual one that it carries. It has no frames of Java yet, but for those that attach
    /// it.
    pub(crate) fn count_thread(&self, jni: Jni, thread: Handle) {
        let Some(cells) = self.cells.get() else {
            return;
        };
        // SAFETY: gettid(2) has no conditions.
        let tid = u32::try_from(unsafe { libc::gettid() }).unwrap_or(0);
        let add = || self.tree.add_root(tid, node::WORDS);
        let is_counted = self.plan.within.is_none();
        // SAFETY: the handle is of a thread, in the thread that the VM passed it to.
        let Some(root) = (unsafe { cells.root_of(jni, thread, is_counted, add) }) else {
            return;
        };
        self.append(&Record::Thread(ThreadRecord {
            root,
            tid,
            name: self.name_of(thread),
            time: monotonic(),
        }));
    }

    /// Keeps the order of the calls of a thread that has ended.
    pub(crate) fn end_thread(&self, jni: Jni, thread: Handle) {
        let order = self.order.as_ref();
        let Some((order, cells)) = order.zip(self.cells.get()) else {
            return;
        };
        // SAFETY: the handle is of a thread, in the thread that the VM passed it to.
        let end = unsafe { cells.take_chunk(jni, thread) };
        if let Some(chunk) = end.and_then(|end| self.tree.chunk_at(end)) {
            order.end(&self.tree, chunk);
        }
    }

    /// Keeps the events of a thread's chunk, by its end, and returns the address of the first event of a chunk that has none.
    fn new_chunk(&self, root: u64, end: u64) -> Option<u64> {
        let full = self.tree.chunk_at(end);
        let chunk = self.order.as_ref()?.renew(&self.tree, root, full);
        Some(self.tree.events_address(chunk))
    }

    fn name_of(&self, thread: Handle) -> String {
        // SAFETY: the handle is this thread's.
        let info = unsafe { self.jvmti.thread_info(thread) };
        info.map(|info| info.name).unwrap_or_default()
    }

    /// Says why nothing is counted.
    pub(crate) fn fail(&self, reason: &str) {
        eprintln!("varid: calls are not counted: {reason}");
        self.append(&Record::Failed(reason.to_owned()));
    }

    /// Appends a record to the tables. Returns false if that fails.
    fn append(&self, record: &Record<'_>) -> bool {
        self.tables.append(record).is_ok()
    }
}

impl Cells {
    /// Finds the class and the fields.
    fn find(jni: Jni, has_order: bool) -> Option<Self> {
        let class = jni.find_class(names::CELL)?;
        let thread = jni.find_class(names::THREAD)?;
        // SAFETY: the handles are this thread's, and the local ones are not used behind this block.
        unsafe {
            let cells = Self {
                of_thread: jni.field(thread, names::THREAD_CELL, names::CELL_TYPE)?,
                slot: jni.field(class, names::SLOT, names::LONG)?,
                root: jni.field(class, names::ROOT, names::LONG)?,
                chunk: match has_order {
                    true => Some([
                        jni.field(class, names::NEXT, names::LONG)?,
                        jni.field(class, names::END, names::LONG)?,
                    ]),
                    false => None,
                },
                class: jni.global(class)?,
            };
            jni.delete(class);
            jni.delete(thread);
            Some(cells)
        }
    }

    /// Takes a thread's chunk, and returns the end of that. None: it has none.
    ///
    /// # Safety
    ///
    /// `thread` is a handle of this thread.
    unsafe fn take_chunk(self, jni: Jni, thread: Handle) -> Option<u64> {
        let [next, end] = self.chunk?;
        // SAFETY: the caller promises the thread; the fields are those of its class and of its cell's.
        unsafe {
            let cell = jni.object_value(thread, self.of_thread)?;
            let value = jni.long_value(cell, end);
            jni.set_long_value(cell, next, 0);
            jni.set_long_value(cell, end, 0);
            jni.delete(cell);
            Some(value.cast_unsigned())
        }
    }

    /// Returns the address of a thread's root. If it has none, `add` makes it, and the thread's next call is counted below it if `is_counted`.
    /// None if there is no room.
    ///
    /// # Safety
    ///
    /// `thread` is a handle of a thread, valid in this thread.
    unsafe fn root_of(
        self,
        jni: Jni,
        thread: Handle,
        is_counted: bool,
        add: impl FnOnce() -> Option<Root>,
    ) -> Option<u64> {
        // SAFETY: the caller promises the thread; the fields are those of its class and of its cell's.
        let (known, slot) = unsafe {
            let known = jni.object_value(thread, self.of_thread);
            (
                known,
                known.map_or(0, |cell| jni.long_value(cell, self.root)),
            )
        };
        // The thread has called something when it was attached.
        if let Some(slot) = u64::try_from(slot).ok().filter(|slot| *slot != 0) {
            return slot.checked_add(node::WORD);
        }
        // SAFETY: the class has objects.
        let cell = known.or_else(|| unsafe { jni.allocate(self.class.get()) })?;
        let root = add()?;
        let slot = i64::try_from(root.slot).ok()?;
        // SAFETY: as above. The cell is complete before the thread has it.
        unsafe {
            jni.set_long_value(cell, self.root, slot);
            if is_counted {
                jni.set_long_value(cell, self.slot, slot);
            }
            jni.set_object_value(thread, self.of_thread, cell);
            jni.delete(cell);
        }
        Some(root.node)
    }
}

/// Nanoseconds of CLOCK_MONOTONIC.
pub(crate) fn monotonic() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the result has room for a time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(nanoseconds)
}
