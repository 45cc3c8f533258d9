//! The description of a process's HotSpot.

use super::code_heaps::{self, CodeHeap};
use super::error::{JvmError, Result};
use super::fields::Fields;
use super::flags::{FlagTable, Flags};
use super::interpreter::{Interpreter, InterpreterPlace};
use super::layout::JvmLayout;
use super::library::LoadedLibrary;
use super::member::Width;
use super::memory::PagedMemory;
use super::tables::VmTables;
use super::threads::{self, ThreadPlace};
use super::unexported::Unexported;
use super::unloading::UnloadedClasses;
use super::version::VmVersion;
use std::collections::{BTreeMap, HashSet};
use varid_model::{Address, Machine, Tid};
use varid_tunnel::Memory;

/// The largest shift of compressed class pointers in bits.
const MAX_SHIFT: u64 = 10;

/// Where the pointer to the VM's counters is.
const COUNTERS: &str = "PerfMemory::_start";

/// What a HotSpot says about itself in the tables that its library exports for debuggers, and what is known of its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jvm {
    /// Its version.
    pub version: VmVersion,
    /// The machine that it runs on.
    pub machine: Machine,
    /// Where the members of its structures are.
    pub layout: JvmLayout,
    /// What of its tables the layout was taken from, by name as in HotSpot's sources: offsets and sizes in bytes, constants.
    pub taken: BTreeMap<String, i64>,
    /// What its tables do not have.
    pub unexported: Unexported,
    /// Its flags.
    pub flags: Flags,
    /// The memory of its code, by address.
    pub code_heaps: Vec<CodeHeap>,
    /// Its interpreter.
    pub interpreter: Interpreter,
    /// How class pointers of 32 bits are decoded. None if they have 64.
    pub class_pointers: Option<CompressedClassPointers>,
    /// Where the pointer to the list of threads is, which is replaced when a thread comes or goes.
    pub thread_list: Address,
    /// `StubRoutines::_call_stub_return_address`: where a call from the VM returns to, the pc of an entry frame.
    pub call_stub_return: Address,
    /// The counter of the classes that it has unloaded. None if it has none.
    pub unloaded_classes: Option<UnloadedClasses>,
}

/// How class pointers of 32 bits are decoded: `base + (pointer << shift)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressedClassPointers {
    /// The base.
    pub base: Address,
    /// The shift in bits.
    pub shift: u8,
}

/// Where the VM's global variables are.
struct Globals {
    flags: FlagTable,
    /// `CodeCache::_heaps`.
    code_heaps: Address,
    /// `AbstractInterpreter::_code`.
    interpreter: Address,
    /// `ThreadsSMRSupport::_java_thread_list`.
    thread_list: Address,
    /// `StubRoutines::_call_stub_return_address`.
    call_stub_return: Address,
    /// `CompressedKlassPointers`.
    class_base: Address,
    class_shift: Address,
    /// `PerfMemory::_start`, if it is exported.
    counters: Option<Address>,
}

impl Globals {
    fn take(fields: &mut Fields<'_>) -> Self {
        // JDK 11, 17 and 21, 25.
        let class_base = fields.one_of([
            "CompressedKlassPointers::_narrow_klass._base",
            "CompressedKlassPointers::_base",
            "Universe::_narrow_klass._base",
        ]);
        let class_shift = fields.one_of([
            "CompressedKlassPointers::_narrow_klass._shift",
            "CompressedKlassPointers::_shift",
            "Universe::_narrow_klass._shift",
        ]);
        Self {
            flags: FlagTable::take(fields),
            code_heaps: fields.address("CodeCache::_heaps"),
            interpreter: fields.address("AbstractInterpreter::_code"),
            thread_list: fields.address("ThreadsSMRSupport::_java_thread_list"),
            call_stub_return: fields.address("StubRoutines::_call_stub_return_address"),
            class_base: fields.address(class_base),
            class_shift: fields.address(class_shift),
            counters: fields.has(COUNTERS).then(|| fields.address(COUNTERS)),
        }
    }
}

impl Jvm {
    /// Returns the code heap for which an address is reserved.
    pub fn code_heap_at(&self, address: Address) -> Option<&CodeHeap> {
        let mut heaps = self.code_heaps.iter();
        heaps.find(|heap| heap.reserved.contains(&address))
    }

    /// Describes the VM whose library a process has loaded. `tids`: returns the ids of the process's threads in its own pid namespace.
    ///
    /// # Errors
    ///
    /// A table, a field or a value is missing or implausible, the memory cannot be read, or the VM has not started.
    pub fn read(
        library: &LoadedLibrary,
        memory: &dyn Memory,
        tids: &dyn Fn() -> HashSet<Tid>,
    ) -> std::result::Result<Self, JvmError> {
        let memory = PagedMemory::new(memory);
        let tables = VmTables::read(library, &memory)?;
        Self::of_tables(&tables, library.machine, &memory, tids)
    }

    /// Describes the VM that has these tables.
    pub(super) fn of_tables(
        tables: &VmTables,
        machine: Machine,
        memory: &PagedMemory<'_>,
        tids: &dyn Fn() -> HashSet<Tid>,
    ) -> Result<Self> {
        let version = VmVersion::read(tables, memory)?;
        let unexported = Unexported::of(&version, machine)?;
        let mut fields = Fields::of(tables);
        let layout = JvmLayout::take(&mut fields, machine);
        let globals = Globals::take(&mut fields);
        let taken = fields.finish(&version.to_string())?;
        // The first thread is in the list when flags, code heaps, interpreter and stubs are made.
        let place = ThreadPlace {
            list: globals.thread_list,
            list_layout: &layout.thread_list,
            layout: &layout.thread,
        };
        threads::check(place, tids, memory)?;
        let flags = Flags::read(&globals.flags, &version, memory)?;
        let code_heaps = code_heaps::read(&layout.code_heap, globals.code_heaps, memory)?;
        let place = InterpreterPlace {
            queue: globals.interpreter,
            queue_layout: &layout.stub_queue,
            codelet_layout: &layout.codelet,
        };
        let interpreter = Interpreter::read(place, &flags, &code_heaps, memory)?;
        let call_stub_return = call_stub_return(&globals, &code_heaps, memory)?;
        let class_pointers = match flags.compressed_class_pointers {
            true => Some(CompressedClassPointers::read(&globals, memory)?),
            false => None,
        };
        let counters = globals.counters;
        let unloaded_classes = counters.and_then(|at| UnloadedClasses::find(at, memory));
        Ok(Self {
            version,
            machine,
            layout,
            taken,
            unexported,
            flags,
            code_heaps,
            interpreter,
            class_pointers,
            thread_list: globals.thread_list,
            call_stub_return,
            unloaded_classes,
        })
    }
}

fn call_stub_return(
    globals: &Globals,
    heaps: &[CodeHeap],
    memory: &PagedMemory<'_>,
) -> Result<Address> {
    const RETURN: &str = "StubRoutines::_call_stub_return_address";
    let address = memory.pointer(RETURN, globals.call_stub_return)?;
    if address.get() == 0 {
        return Err(JvmError::NotStarted("its stubs are not generated yet"));
    }
    match heaps.iter().any(|heap| heap.reserved.contains(&address)) {
        true => Ok(address),
        false => Err(JvmError::implausible(
            RETURN,
            address.get(),
            "it is in no code heap",
        )),
    }
}

impl CompressedClassPointers {
    fn read(globals: &Globals, memory: &PagedMemory<'_>) -> Result<Self> {
        const SHIFT: &str = "CompressedKlassPointers::_shift";
        let base = memory.pointer("CompressedKlassPointers::_base", globals.class_base)?;
        let shift = memory.number(SHIFT, globals.class_shift, Width::Four)?;
        match u8::try_from(shift) {
            Ok(bits) if shift <= MAX_SHIFT => Ok(Self { base, shift: bits }),
            _ => Err(JvmError::implausible(
                SHIFT,
                shift,
                "no pointer has this shift",
            )),
        }
    }
}
