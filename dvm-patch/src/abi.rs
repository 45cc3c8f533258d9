//! The tunnel's layout in memory: the Rust mirror of `include/varid_tunnel.h`.
//!
//! `tests/abi.rs` compiles the header and compares every size and offset with these.

/// First eight bytes of a tunnel.
pub const MAGIC: [u8; 8] = *b"VARIDTUN";
/// The version of the ABI that VMs of this release write. Tunnels of version 1 can also be read.
pub const VERSION: u32 = 2;
/// Name of the memfd, as it appears in a process's memory map.
pub const NAME: &str = "varid-tunnel";
/// A field of a [`Layout`] that the VM does not have.
pub const NO_FIELD: u16 = 0xffff;
/// A register of a [`Layout`] that the VM does not have.
pub const NO_REG: u8 = 0xff;

/// [`Layout::quick_rule`]: no rule.
pub const NO_RULE: u8 = 0xff;
/// [`Rule::cfa_word`]: the register itself leads to the CFA.
pub const NO_WORD: i16 = i16::MIN;

/// [`TunnelHeader::vm`]: Dalvik.
pub const VM_DALVIK: u32 = 1;
/// [`TunnelHeader::vm`]: ART.
pub const VM_ART: u32 = 2;
/// [`TunnelHeader::vm`]: HotSpot.
pub const VM_HOTSPOT: u32 = 3;
/// [`TunnelHeader::vm`]: a VM of some other kind.
pub const VM_OTHER: u32 = 4;

/// [`Rule::kind`]: linked frames.
pub const RULE_LIST: u8 = 1;
/// [`Rule::kind`]: a [`Shadow`] is the per-thread base.
pub const RULE_SHADOW: u8 = 2;
/// [`Rule::kind`]: Dalvik's frames, an area below each frame pointer.
pub const RULE_SAVE_AREA: u8 = 3;
/// [`Rule::kind`]: frames on the native stack, the method at the stack pointer.
pub const RULE_AT_SP: u8 = 4;
/// [`Rule::kind`]: frames of compiled code, whose size is in the description of their code.
pub const RULE_SIZED: u8 = 5;
/// [`Rule::kind`]: reserved for frames at the frame pointer.
pub const RULE_FP: u8 = 6;
/// [`Rule::kind`]: frames of compiled code, whose size and the size of the code are in the description of the code.
pub const RULE_CODE_INFO: u8 = 7;
/// The counters of a code cache, relative to [`Rule::code_cache_counts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeCounts {
    /// Counters of compilations; the total is their sum.
    pub compiled: &'static [u16],
    /// The counter of collections, which is the last one.
    pub collections: u16,
}

/// With [`RULE_SIZED`]: one counter for all code. The next word counts the part of it for on-stack replacement.
pub const SIZED_COUNTS: CodeCounts = CodeCounts {
    compiled: &[24],
    collections: 40,
};
/// With [`RULE_CODE_INFO`]: counters for the first tier, for optimised code and for on-stack replacement.
pub const CODE_INFO_COUNTS: CodeCounts = CodeCounts {
    compiled: &[24, 32, 40],
    collections: 48,
};
/// Maximum number of rules in a layout.
pub const MAX_RULES: usize = 4;
/// Maximum number of special methods of a rule.
pub const SPECIAL_METHODS: usize = 6;
/// [`Layout::flags`]: frames (a shadow record's sp) are addresses on the native stack.
pub const LAYOUT_ON_NATIVE_STACK: u32 = 1;
/// [`Layout::flags`]: [`Layout::method_code`] is the address of a code item, not its offset.
pub const LAYOUT_CODE_ADDRESS: u32 = 2;

/// [`CodeRange::kind`]: interpreter loop, [`Rule::reg_pc`] and [`Rule::reg_frame`] valid.
pub const RANGE_BODY: u32 = 1;
/// [`CodeRange::kind`]: interpreter loop, registers not valid.
pub const RANGE_INTERPRETER: u32 = 2;
/// [`CodeRange::kind`]: call trampolines, which reports do not show as a separate row below another frame.
pub const RANGE_BRIDGE: u32 = 3;
/// [`CodeRange::kind`]: other code of the VM.
pub const RANGE_VM: u32 = 4;
/// `VARID_RANGE_QUICK`: an interpreter loop with native frames: method at \[sp\], `reg_pc` is valid.
pub const RANGE_QUICK: u32 = 5;
/// [`CodeRange::kind`]: a part of the body, as 256 handlers of equal size: the kth is opcode k's, and the pc register may already
/// be at the next instruction.
pub const RANGE_HANDLERS: u32 = 6;
/// [`CodeRange::kind`]: where the VM's compiler places its traces.
pub const RANGE_TRACES: u32 = 7;

/// [`Code::kind`]: a dex file as the VM executes it.
pub const CODE_DEX: u32 = 1;
/// [`Code::kind`]: a bytecode image of the VM's own format.
pub const CODE_IMAGE: u32 = 2;
/// [`Code::flags`]: of the boot class path.
pub const CODE_BOOT: u32 = 1;
/// Bytes of [`Code::location`].
pub const CODE_LOCATION: usize = 216;

/// Where a frame of one kind has its method, its pc and the saved state of its caller. A field that the kind does not use is zero.
/// The header documents the use of each field.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// `RULE_*`.
    pub kind: u8,
    /// DWARF number: the absolute bytecode pc, in the loop's body.
    pub reg_pc: u8,
    /// DWARF number: leads to the frame, or to its CFA, in the loop's body.
    pub reg_frame: u8,
    /// The number of pointers at [`Rule::special_methods`].
    pub special_count: u8,
    /// frame = `reg_frame` + bias.
    pub frame_bias: i16,
    /// In a frame: the caller's.
    pub frame_link: u16,
    /// In a frame: method.
    pub frame_method: u16,
    /// In a frame: exported bytecode pc.
    pub frame_pc: u16,
    /// In a frame: the method's first instruction.
    pub frame_insns: u16,
    /// In a frame: 32 bits, bytecode index in 16-bit code units.
    pub frame_index: u16,
    /// In an area: bytecode pc of the caller, 0 if that is native.
    pub frame_caller_pc: u16,
    /// Bytes from `reg_frame` to the word that leads to the CFA, or [`NO_WORD`].
    pub cfa_word: i16,
    /// Bytes from that word, or from `reg_frame`, to the CFA.
    pub cfa_bias: i16,
    /// Bytes below the CFA: the caller's `reg_pc`. For compiled frames its bit, filled in by varid.
    pub saved_pc: u16,
    /// The same for the caller's `reg_frame`.
    pub saved_frame: u16,
    /// Bytes below the CFA: the return address.
    pub saved_return: u16,
    /// In a method: 32 bits of flags.
    pub method_flags: u16,
    /// Bytes of a native method's frame.
    pub native_size: u16,
    /// Flags that mark a native method, or 0 if there are none.
    pub native_flag: u32,
    /// Bytes of the special methods' frames.
    pub special_sizes: [u16; SPECIAL_METHODS],
    /// Address of the pointer to the VM's own methods (ART's callee-save methods).
    pub special_methods: u64,
    /// First address of the code whose frames follow this rule.
    pub code_start: u64,
    /// The address after the code.
    pub code_end: u64,
    /// In a method: pointer to its code. If 0 with [`RULE_AT_SP`], proxies' frames are not recognised.
    pub method_entry: u16,
    /// After the word that [`Rule::special_methods`] leads to: pointer to the code cache, or 0 if there is none.
    pub code_cache: u16,
    /// In the code cache: the map from code to method.
    pub code_cache_map: u16,
    /// In the code cache: a byte that is not 0 while code is collected. 24 and 40 bytes after it are the numbers of compilations
    /// and collections. 0 if unknown.
    pub code_cache_counts: u16,
}

/// How to walk a VM's frames, as data. Offsets are in bytes. The header documents the use of each field.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// ELF `e_machine` of the VM.
    pub machine: u16,
    /// Bytes of a pointer, 4 or 8.
    pub word: u8,
    /// Bytes of a reference between heap objects.
    pub reference: u8,
    /// The number of valid [`Layout::rules`].
    pub rule_count: u8,
    /// Index of the rule that frames from [`Layout::fragment_quick`] on follow, or [`NO_RULE`].
    pub quick_rule: u8,
    /// In the thread: 32 bits, the tid that owns this base.
    pub thread_tid: u16,
    /// `LAYOUT_*` flags.
    pub flags: u32,
    /// In the thread: its innermost fragment; with [`RULE_SAVE_AREA`] the innermost frame pointer.
    pub thread_fragment: u16,
    /// In a fragment: quick frame.
    pub fragment_quick: u16,
    /// The thread's base is the word at thread pointer + this.
    pub tls_offset: i64,
    /// In a fragment: the next outer one.
    pub fragment_link: u16,
    /// In a fragment: top frame.
    pub fragment_top: u16,
    /// In a method: reference to its class.
    pub method_class: u16,
    /// In a method: 32 bits, the code item's offset in the dex file, 0 if none; with
    /// [`RULE_SAVE_AREA`] a pointer to the first instruction.
    pub method_code: u16,
    /// In a method: 32 bits, its index in the dex file's `method_ids`.
    pub method_index: u16,
    /// In a class: reference to its dex cache.
    pub class_dex_cache: u16,
    /// In a dex cache: pointer to the VM's dex file object.
    pub dex_cache_dex_file: u16,
    /// In a dex file object: pointer to the dex file's first byte.
    pub dex_file_begin: u16,
    /// With [`RULE_SAVE_AREA`], in a method: pointer to its name, in the dex file.
    pub method_name: u16,
    /// In such a method: 32 bits, its index in the dex file's `proto_ids`.
    pub method_proto: u16,
    /// In such a method's class: pointer to its descriptor, in the dex file.
    pub class_descriptor: u16,
    /// Zero.
    pub reserved: u16,
    /// The first `rule_count` are valid. If there is a [`RULE_LIST`], it is the first one.
    pub rules: [Rule; MAX_RULES],
}

impl Default for Layout {
    fn default() -> Self {
        Self::with_rules(&[])
    }
}

impl Layout {
    /// Makes a layout with these rules (the first [`MAX_RULES`] of them) and nothing else.
    pub fn with_rules(rules: &[Rule]) -> Self {
        let mut layout = Self {
            machine: 0,
            word: 0,
            reference: 0,
            rule_count: rules.len().min(MAX_RULES) as u8,
            quick_rule: NO_RULE,
            thread_tid: 0,
            flags: 0,
            thread_fragment: 0,
            fragment_quick: 0,
            tls_offset: 0,
            fragment_link: 0,
            fragment_top: 0,
            method_class: 0,
            method_code: 0,
            method_index: 0,
            class_dex_cache: 0,
            dex_cache_dex_file: 0,
            dex_file_begin: 0,
            method_name: 0,
            method_proto: 0,
            class_descriptor: 0,
            reserved: 0,
            rules: [Rule::default(); MAX_RULES],
        };
        for (to, rule) in layout.rules.iter_mut().zip(rules) {
            *to = *rule;
        }
        layout
    }

    /// The valid rules.
    pub fn rules(&self) -> &[Rule] {
        self.rules
            .get(..usize::from(self.rule_count))
            .unwrap_or(&self.rules)
    }

    /// Returns the rule of a kind (`RULE_*`).
    pub fn rule(&self, kind: u8) -> Option<&Rule> {
        self.rules().iter().find(|rule| rule.kind == kind)
    }

    /// Returns true if there is a rule of a kind (`RULE_*`).
    pub fn has_rule(&self, kind: u8) -> bool {
        self.rule(kind).is_some()
    }

    /// Returns a bit for each kind of rule: `1 << RULE_*`.
    pub fn rule_bits(&self) -> u32 {
        let bit = |rule: &Rule| 1u32.checked_shl(rule.kind.into()).unwrap_or(0);
        self.rules().iter().fold(0, |all, rule| all | bit(rule))
    }
}

/// The purpose of the code in a range.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeRange {
    /// First address, in the process.
    pub start: u64,
    /// The address after the range.
    pub end: u64,
    /// `RANGE_*`.
    pub kind: u32,
    /// Index in [`Layout::rules`]: the rule whose registers are valid in a body.
    pub rule: u32,
}

/// Code that the VM executes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// First address, in the process.
    pub start: u64,
    /// Bytes, 0 for a free slot.
    pub size: u64,
    /// `CLOCK_MONOTONIC` nanoseconds when it was published.
    pub time: u64,
    /// `CODE_*`: what it is.
    pub kind: u32,
    /// `CODE_*` flags.
    pub flags: u32,
    /// The VM's name for it, zero-terminated.
    pub location: [u8; CODE_LOCATION],
}

/// A thread whose base cannot be found from its thread pointer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// The value that [`Layout::tls_offset`] would lead to.
    pub base: u64,
    /// Its tid, 0 for a free slot.
    pub tid: u32,
    /// Zero.
    pub reserved: u32,
}

/// Code that the VM compiled from a stretch of bytecode; it ends where the next one starts.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// First address, in the process.
    pub start: u64,
    /// Address of the stretch's first instruction, 0 for a free slot.
    pub pc: u64,
}

/// A table in the tunnel: the first `count` of `capacity` entries are valid.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Bytes from the tunnel's start.
    pub offset: u32,
    /// Bytes of an entry.
    pub entry_size: u32,
    /// Maximum number of entries.
    pub capacity: u32,
    /// Entries in use.
    pub count: u32,
}

/// A file of the VM's beside the tunnel. The VM has it open and mapped.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VmFile {
    /// Its address in the process, or 0 if there is none.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Its descriptor, in the process.
    pub fd: u32,
    /// Zero.
    pub reserved: u32,
}

/// [`TunnelHeader::tactic`]: nothing at a call.
pub const TACTIC_LOAD_FROM_DEX: u32 = 0;
/// [`TunnelHeader::tactic`]: invokes, returns and unwinds are counted.
pub const TACTIC_METHOD_INVOKE: u32 = 1;

/// Name of the control page's memfd.
pub const CONTROL_NAME: &str = "varid-control";
/// Version of the control page.
pub const CONTROL_VERSION: u32 = 1;
/// First eight bytes of the control page.
pub const CONTROL_MAGIC: [u8; 8] = *b"VARIDCTL";
/// Bytes of [`Control::log`].
pub const CONTROL_LOG: usize = 216;
/// Maximum number of filters in the control page.
pub const FILTERS: usize = 32;
/// Bytes of a filter, including its terminator.
pub const FILTER_SIZE: usize = 120;
/// Name of the calls' memfd.
pub const CALLS_NAME: &str = "varid-calls";
/// Version of the calls' file.
pub const CALLS_VERSION: u32 = 1;
/// First eight bytes of the calls' file.
pub const CALLS_MAGIC: [u8; 8] = *b"VARIDCAL";
/// Bytes from the start of the calls' file to the first entry.
pub const CALLS_ENTRIES: u64 = 4096;
/// The remapped address of the first entry's method.
pub const REMAP_FIRST: u64 = 0x1000;
/// The end of the remapped addresses.
pub const REMAP_END: u64 = 0x10000;
/// Maximum number of entries.
pub const MAX_CALLS: u32 = 0xf000;
/// [`Call::flags`]: excluded by the filter.
pub const CALL_LEFT_OUT: u32 = 1;
/// [`Call::index`]: unknown.
pub const NO_INDEX: u32 = 0xffff_ffff;

/// [`Call::method`]: the VM has removed the method.
pub const RETIRED: u64 = u64::MAX;

/// varid's orders to the VM, one page.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// [`CONTROL_MAGIC`].
    pub magic: [u8; 8],
    /// [`CONTROL_VERSION`].
    pub version: u32,
    /// Bytes of this structure.
    pub size: u32,
    /// Odd while varid changes something.
    pub generation: u32,
    /// `TACTIC_*`.
    pub tactic: u32,
    /// A change resets the counts.
    pub session: u64,
    /// Number of valid filters. 0: every method is counted.
    pub filter_count: u32,
    /// Zero.
    pub reserved: u32,
    /// Path of the event log, to which "." and the pid are appended, zero-terminated. Empty: no log.
    pub log: [u8; CONTROL_LOG],
    /// First characters of `package.Class.method`, zero-terminated.
    pub filters: [[u8; FILTER_SIZE]; FILTERS],
}

/// The number of calls and exits of a method.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The VM's pointer, or [`RETIRED`].
    pub method: u64,
    /// Address of its first instruction in a mapped dex file, or 0 if it has none.
    pub insns: u64,
    /// Start of its dex file, or 0 if unknown.
    pub dex: u64,
    /// In the dex file's `method_ids`, or [`NO_INDEX`] if unknown.
    pub index: u32,
    /// `CALL_*`.
    pub flags: u32,
    /// Calls.
    pub invokes: u64,
    /// Returns.
    pub returns: u64,
    /// Exits by an exception.
    pub unwinds: u64,
    /// Zero.
    pub reserved: u64,
}

/// The start of the calls' file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallsHeader {
    /// [`CALLS_MAGIC`].
    pub magic: [u8; 8],
    /// [`CALLS_VERSION`].
    pub version: u32,
    /// Bytes of a [`Call`].
    pub entry_size: u32,
    /// Maximum number of entries.
    pub capacity: u32,
    /// Entries in use.
    pub count: u32,
    /// The session that reset the counts; 0: they started with the VM.
    pub session: u64,
    /// Events of methods without an entry, for lack of space.
    pub uncounted: u64,
    /// Events that could not be written to the log.
    pub unlogged: u64,
    /// Number of orders that were invalid, or that the VM could not carry out.
    pub refused: u32,
    /// Zero.
    pub reserved: u32,
}

/// The start of the tunnel.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TunnelHeader {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`VERSION`].
    pub version: u32,
    /// Bytes of this structure.
    pub header_size: u32,
    /// Bytes of the memfd.
    pub size: u64,
    /// `CLOCK_MONOTONIC` nanoseconds when it was made.
    pub time: u64,
    /// `VM_*`.
    pub vm: u32,
    /// Owner, in its own pid namespace. A different pid means an inherited mapping.
    pub pid: u32,
    /// Odd while the writer changes something.
    pub generation: u32,
    /// `TACTIC_*`: what the VM does at a call.
    pub tactic: u32,
    /// How to walk the VM's frames.
    pub layout: Layout,
    /// Table of [`CodeRange`].
    pub ranges: Part,
    /// Table of [`Code`].
    pub codes: Part,
    /// Table of [`Thread`].
    pub threads: Part,
    /// Table of [`Trace`].
    pub traces: Part,
    /// The VM reads varid's orders there: a [`Control`].
    pub control: VmFile,
    /// The VM counts calls there: a [`CallsHeader`].
    pub calls: VmFile,
}

/// One call in a shadow stack.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShadowRecord {
    /// Address of the method's first instruction in a mapped dex file.
    pub method: u64,
    /// Native stack pointer at entry.
    pub sp: u64,
}

/// The head of a thread's shadow stack; `capacity` [`ShadowRecord`]s follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shadow {
    /// The tid of its owner.
    pub tid: u32,
    /// Maximum number of records. Deeper calls are counted and not recorded.
    pub capacity: u32,
    /// The current depth of calls.
    pub depth: u64,
}
