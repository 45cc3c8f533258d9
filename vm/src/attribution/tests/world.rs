//! A process whose every address, frame and method is known: what attribution is tested on.

use object::{Object, ObjectSection, ObjectSymbol};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::OnceLock;
use varid_model::{Address, CodeUnits, Marker, MonotonicNs, Period, Reason, Regs, Stack, Tid};
use varid_process::{AddressSpace, CodeImage, ElfImage, MappingId, ProcessImage, ProcessMapping};
use varid_recording::remap::address_of;
use varid_shim::{CapturedSample, FramePc, ManagedFrame, StackCopy, flags};
use varid_testing::Compiled;
use varid_tunnel::abi;
use varid_vm::attribution::{Attributed, RemapTable, attribute, cached_callchain};
use varid_vm::seam::Methods;
use varid_vm::{Description, ManagedProcess, Method};

/// Maps an image.
pub fn mapped(start: u64, len: u64, pgoff: u64, image: ProcessImage) -> ProcessMapping {
    ProcessMapping {
        start,
        end: start + len,
        pgoff,
        image,
        mode: None,
        id: MappingId::default(),
    }
}

/// A library from its bytes.
pub fn elf(bytes: &[u8], path: &str) -> ProcessImage {
    ProcessImage::Elf(Rc::new(ElfImage::from_bytes(bytes, Path::new(path))))
}

/// The dex file that the symbolizer's tests keep.
pub fn dex() -> Rc<CodeImage> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../symbolizer/tests/fixtures/names.dex");
    let bytes = std::fs::read(&path).unwrap();
    Rc::new(CodeImage::of_dex(bytes, Path::new("/test/app.dex")).unwrap())
}

/// Bytes of every native frame here.
pub const FRAME: u64 = 64;
/// The stack pointer of every record: native frame n starts at SP + 64 n.
pub const SP: u64 = 0x7fff_0000_0000;
/// Bytes below its stack pointer with which an interrupted stack's copy begins.
const RED_ZONE: usize = 128;
/// Bytes from a signal's frame to the stack pointer that it interrupted.
pub const SAVED_SP: u64 = 32;
/// Code that nothing is known of.
pub const JIT: u64 = 0x7200_0000_0000;
/// No address of anything.
pub const NOWHERE: u64 = 0x1234_5000;
const LIBRARY: u64 = 0x7000_0000_0000;
const VM_LIBRARY: u64 = 0x7080_0000_0000;
pub const DEX: u64 = 0x7100_0000_0000;

/// Pointers of methods: two with bytecode, one without, one of the VM's own, one that cannot be read.
pub const FIRST: u64 = 0x100;
pub const SECOND: u64 = 0x110;
pub const NATIVE: u64 = 0x120;
pub const RUNTIME: u64 = 0x130;
pub const UNREADABLE: u64 = 0x140;

/// DWARF numbers of the loop's pc and frame registers.
pub const PC: u16 = 12;
pub const FRAME_REGISTER: u16 = 13;

/// Functions that only an unwinder visits. `helper` saves the loop's registers. `signal` is what a signal's handler returns to: the
/// kernel has saved the interrupted stack pointer at [`SAVED_SP`] of its frame, and the instruction behind it.
const FRAMES: &str = "
.macro function name
.balign 0x100
.globl \\name
.type \\name, @function
\\name: .cfi_startproc
.cfi_def_cfa_offset 64
.endm
.macro done name
.skip 0x80, 0x90
.cfi_endproc
.size \\name, . - \\name
.endm
.text
function body
done body
function interpreter
done interpreter
function bridge
done bridge
function vm
done vm
function quick
done quick
function native
done native
function helper
.cfi_offset r12, -24
.cfi_offset r13, -32
done helper
function nterp
done nterp
function nterp_entry
done nterp_entry
function signal
.cfi_signal_frame
.cfi_escape 0x0f, 3, 0x77, 32, 6
.cfi_escape 0x10, 16, 2, 0x77, 40
done signal
function outermost
.cfi_undefined rip
done outermost
.section .note.GNU-stack,\"\",@progbits
";

/// Interpreters that say which bytecode they execute. Of `entering` and `leaving` only other addresses do.
const MARKED: &str = "
.macro function name
.balign 0x100
.globl \\name
.type \\name, @function
\\name: .cfi_startproc
.cfi_def_cfa_offset 64
.endm
.macro done name, size=0x80
.skip \\size, 0x90
.cfi_endproc
.size \\name, . - \\name
.endm
.macro marker register
.cfi_escape 0x16, 5, 9, 0x0c, 0x44, 0x45, 0x58, 0x31, 0x13, 0x92, \\register, 0
.endm
.text
function loop
.cfi_offset r12, -24
marker 12
done loop
function entering
.cfi_offset r12, -24
.skip 0x40, 0x90
marker 12
done entering
function leaving
.skip 1, 0x90
.cfi_offset r12, -24
marker 12
.skip 8, 0x90
.cfi_restore r12
done leaving
function trampoline
.cfi_offset rbx, -16
marker 3
done trampoline, 0x20
function vm_code
done vm_code
.section .note.GNU-stack,\"\",@progbits
";

const KINDS: [(&str, u32); 6] = [
    ("body", abi::RANGE_BODY),
    ("interpreter", abi::RANGE_INTERPRETER),
    ("bridge", abi::RANGE_BRIDGE),
    ("vm", abi::RANGE_VM),
    ("quick", abi::RANGE_QUICK),
    ("helper", abi::RANGE_VM),
];
/// An interpreter whose frames are native ones, with their method at the stack pointer; where it makes one.
const NTERP: [(&str, u32); 2] = [
    ("nterp", abi::RANGE_BODY),
    ("nterp_entry", abi::RANGE_INTERPRETER),
];

/// ART's frames on x86-64, as far as a walk needs them.
fn layout(kind: u8) -> abi::Layout {
    let rule = abi::Rule {
        kind,
        reg_pc: PC as u8,
        reg_frame: FRAME_REGISTER as u8,
        frame_bias: -64,
        frame_link: 0,
        frame_method: 8,
        frame_pc: 24,
        frame_insns: 32,
        frame_index: 52,
        ..abi::Rule::default()
    };
    let at_sp = abi::Rule {
        kind: abi::RULE_AT_SP,
        reg_pc: PC as u8,
        ..abi::Rule::default()
    };
    abi::Layout {
        flags: abi::LAYOUT_ON_NATIVE_STACK,
        machine: 62,
        word: 8,
        reference: 4,
        ..abi::Layout::with_rules(&[rule, at_sp])
    }
}

pub struct World {
    pub process: ManagedProcess,
    pub remap: RemapTable,
    /// What its VM says of itself.
    pub description: Description,
    /// Addresses of the instructions of `FIRST` and `SECOND`.
    pub code: [Range<u64>; 2],
    /// The method without bytecode.
    pub native: Method,
    functions: HashMap<String, u64>,
    /// The mappings that are recorded.
    pub recorded: HashSet<u64>,
}

impl World {
    /// A VM whose frames are a list on the native stack.
    pub fn list() -> Self {
        Self::new(abi::RULE_LIST)
    }

    /// A VM that keeps a shadow stack.
    pub fn shadow() -> Self {
        Self::new(abi::RULE_SHADOW)
    }

    /// A VM whose frames lie on a stack of their own, and whose compiler has made two traces, of FIRST's second
    /// and of SECOND's first instruction.
    pub fn areas() -> Self {
        Self::new(abi::RULE_SAVE_AREA)
    }

    /// A VM whose build nobody knows.
    pub fn unknown() -> Self {
        let mut world = Self::without_description();
        world.process.set_unknown_vm();
        world
    }

    /// A VM that has not started yet.
    pub fn starting() -> Self {
        let mut world = Self::without_description();
        world.process.set_starting_vm();
        world
    }

    /// A VM's library, whose functions are those of [`MARKED`].
    fn without_description() -> Self {
        static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
        let bytes = BYTES.get_or_init(|| compiled("marked.s", MARKED));
        let mut world = Self::list();
        let space = &mut world.process.process.space;
        world
            .functions
            .extend(map_library(space, VM_LIBRARY, bytes, "/test/libart.so"));
        world
    }

    /// Addresses of the instructions of a method.
    pub fn method(&self, name: &str) -> Range<u64> {
        let dex = dex();
        let named = |index| {
            dex.bytecode
                .method_name(index)
                .is_some_and(|found| found == name)
        };
        let methods = dex.bytecode.methods();
        let method = methods.iter().find(|method| named(method.index)).unwrap();
        DEX + u64::from(method.code.start)..DEX + u64::from(method.code.end)
    }

    fn new(kind: u8) -> Self {
        static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
        let bytes = BYTES.get_or_init(|| compiled("frames.s", FRAMES));
        let mut space = AddressSpace::default();
        let functions = map_library(&mut space, LIBRARY, bytes, "/test/library.so");
        let range = |(name, kind), rule| abi::CodeRange {
            start: functions[name],
            end: functions[name] + 0x80,
            kind,
            rule,
        };
        let mut ranges = KINDS.map(|code| range(code, 0)).to_vec();
        ranges.extend(NTERP.map(|code| range(code, 1)));
        let in_areas = kind == abi::RULE_SAVE_AREA;
        if in_areas {
            ranges.push(abi::CodeRange {
                start: JIT,
                end: JIT + 0x1000,
                kind: abi::RANGE_TRACES,
                rule: 0,
            });
        }
        ranges.sort_by_key(|range| range.start);

        let dex = dex();
        space.insert(mapped_dex(&dex, DEX));
        space.insert(mapped(
            JIT,
            0x1000,
            0,
            ProcessImage::Other(Path::new("//anon").into()),
        ));
        // The methods with most code; one that has none.
        let mut methods: Vec<_> = dex.bytecode.methods().to_vec();
        methods.sort_by_key(|method| std::cmp::Reverse(method.code.len()));
        let code = [0, 1].map(|which| {
            let code = &methods[which].code;
            DEX + u64::from(code.start)..DEX + u64::from(code.end)
        });
        let mut vm = Description::made_up(layout(kind), ranges);
        if in_areas {
            vm.layout.flags = 0;
            let trace = |start, pc| abi::Trace { start, pc };
            vm.set_traces(vec![
                trace(JIT + 0x10, code[0].start + 2),
                trace(JIT + 0x80, code[1].start),
            ]);
        }
        let mut process = ManagedProcess::made_up(space, Some(&vm));
        for (which, pointer) in [FIRST, SECOND].into_iter().enumerate() {
            let known = Method::Known {
                image: dex.clone(),
                index: methods[which].index,
                code: Some(code[which].clone()),
            };
            process.set_method(pointer, known);
        }
        let native = varid_symbolizer::dex::DexFile::parse(dex.bytecode.bytes())
            .unwrap()
            .methods()
            .flatten()
            .find(|method| method.code.is_none())
            .unwrap()
            .id
            .index();
        let native = Method::Known {
            image: dex.clone(),
            index: native,
            code: None,
        };
        process.set_method(NATIVE, native.clone());
        process.set_method(RUNTIME, Method::Runtime);
        Self {
            process,
            description: vm,
            remap: RemapTable::new().unwrap(),
            code,
            native,
            functions,
            recorded: HashSet::new(),
        }
    }

    /// The dex file is mapped.
    pub fn map_dex(&mut self, start: u64) {
        let Method::Known { image: dex, .. } = &self.native else {
            panic!("a known method")
        };
        self.process.process.space.insert(mapped_dex(dex, start));
    }

    /// An address in a function: what a sample's ip is, and what a return address into it is.
    pub fn at(&self, function: &str) -> u64 {
        match function {
            "jit" => JIT + 0x10,
            "nowhere" => NOWHERE,
            _ => self.functions[function] + 0x10,
        }
    }

    /// The slot of the method without bytecode.
    pub fn native_slot(&mut self) -> u64 {
        let Method::Known {
            image: dex, index, ..
        } = self.process.method(NATIVE)
        else {
            panic!("a known method")
        };
        self.remap.slot(&dex, index).unwrap()
    }

    /// A record whose native frames are these, leaf first.
    pub fn record(&self, functions: &[&str]) -> CapturedSample {
        let mut stack = vec![0; functions.len() * FRAME as usize];
        for (frame, caller) in stack.chunks_mut(FRAME as usize).zip(&functions[1..]) {
            frame[56..].copy_from_slice(&self.at(caller).to_le_bytes());
        }
        let mut regs = Regs::default();
        let ip = self.at(functions[0]);
        regs.set_frame(ip, SP, 0);
        CapturedSample {
            time: MonotonicNs::new(1),
            pid: self.process.pid(),
            tid: Tid::new(2),
            cpu: 0,
            flags: 0,
            period: Period::new(1),
            ip: Address::new(ip),
            regs,
            frames: Default::default(),
            kernel: Vec::new(),
            stack_addr: Address::new(SP),
            stack,
            holes: Default::default(),
            interrupted: Default::default(),
            beyond: Default::default(),
            code: Default::default(),
            allocated: None,
        }
    }

    /// A record of a signal's handler, which runs on a stack at `alternate`; the functions are what the signal interrupted.
    pub fn interrupted(&self, functions: &[&str], alternate: u64) -> CapturedSample {
        let ordinary = self.record(functions);
        let mut record = self.record(&["native", "signal"]);
        record.regs.set_frame(self.at("native"), alternate, 0);
        record.stack_addr = Address::new(alternate);
        put(&mut record, alternate + FRAME + SAVED_SP, SP);
        let interrupted = self.at(functions[0]);
        put(&mut record, alternate + FRAME + SAVED_SP + 8, interrupted);
        record.interrupted = StackCopy {
            start: Address::new(SP - RED_ZONE as u64),
            bytes: [vec![0; RED_ZONE], ordinary.stack].concat(),
            holes: Default::default(),
        };
        record.flags |= flags::INTERRUPTED;
        record
    }

    pub fn attribute(&mut self, record: &CapturedSample, stack: Stack) -> Attributed {
        let mut attributed = Attributed::default();
        let (process, remap) = (&mut self.process, &mut self.remap);
        let recorded = |id: MappingId| self.recorded.contains(&id.serial);
        if let Some(user) = cached_callchain(record, process, recorded) {
            attributed.user = user.to_vec();
            attributed.known = 0..user.len();
            return attributed;
        }
        let mut record = record.clone();
        attribute(&mut record, process, remap, stack, &mut attributed);
        attributed
    }

    /// The user frames of a record with these managed ones.
    pub fn user(
        &mut self,
        mut record: CapturedSample,
        flags: u32,
        managed: &[ManagedFrame],
        stack: Stack,
    ) -> Vec<u64> {
        record.flags |= flags;
        record.frames = managed.into();
        addresses(&self.attribute(&record, stack).user)
    }
}

/// Why a sample with this callchain is unattributed.
pub fn unattributed(user: &[u64]) -> Option<Reason> {
    let user: Vec<_> = user.iter().copied().map(Address::new).collect();
    varid_recording::remap::unattributed(&user)
}

/// A callchain's numbers.
pub fn addresses(user: &[Address]) -> Vec<u64> {
    user.iter().map(|address| address.get()).collect()
}

fn mapped_dex(dex: &Rc<CodeImage>, start: u64) -> ProcessMapping {
    let image = ProcessImage::Code(dex.clone());
    mapped(start, dex.bytecode.bytes().len() as u64, 0, image)
}

fn compiled(name: &str, source: &str) -> Vec<u8> {
    std::fs::read(Compiled::new(name, source).path()).unwrap()
}

/// Maps a library's text; where its functions are.
fn map_library(
    space: &mut AddressSpace,
    start: u64,
    bytes: &[u8],
    path: &str,
) -> HashMap<String, u64> {
    let file = object::File::parse(bytes).unwrap();
    let text = file.section_by_name(".text").unwrap();
    let (offset, size) = text.file_range().unwrap();
    space.insert(mapped(start, size, offset, elf(bytes, path)));
    file.dynamic_symbols()
        .map(|symbol| {
            let address = start + symbol.address().saturating_sub(text.address());
            (symbol.name().unwrap().to_owned(), address)
        })
        .collect()
}

/// Writes a word of a record's stack.
pub fn put(record: &mut CapturedSample, address: u64, word: u64) {
    let at = (address - record.stack_addr.get()) as usize;
    record.stack[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

/// A ShadowFrame of ART's in the copy of the stack.
pub fn put_shadow_frame(record: &mut CapturedSample, at: u64, link: u64, method: u64, pc: u64) {
    for (offset, word) in [(0, link), (8, method), (24, pc)] {
        put(record, at + offset, word);
    }
}

/// A managed frame in native frame `n`.
pub fn managed(n: u64, method: u64, pc: u64, flags: u64) -> ManagedFrame {
    frame_at(SP + FRAME * n + 8, method, pc, flags)
}

/// Flags of a frame, as [`frame_at`] takes them: the last of its stretch, and what its pc is.
pub const QUICK: u64 = 1;
pub const OUTERMOST: u64 = 2;
pub const RELATIVE: u64 = 4;
pub const EXPORTED: u64 = 8;
pub const COMPILED: u64 = 16;

/// A managed frame at an address.
pub fn frame_at(address: u64, method: u64, pc: u64, flags: u64) -> ManagedFrame {
    let method = Address::new(method);
    let pc = match flags & !OUTERMOST {
        QUICK => FramePc::Native { method },
        RELATIVE => FramePc::Relative {
            method,
            offset: CodeUnits::new((pc / 2) as u32),
        },
        EXPORTED => FramePc::Exported {
            method,
            pc: Address::new(pc),
        },
        COMPILED => FramePc::Compiled {
            method,
            returns: Address::new(pc),
        },
        _ => FramePc::Absolute(Address::new(pc)),
    };
    ManagedFrame::new(Address::new(address), pc, flags & OUTERMOST != 0)
}

/// What stands in a callchain for a reason.
pub fn because(reason: Reason) -> u64 {
    address_of(Marker::Reason(reason)).get() + 1
}

/// What stands in a callchain for native frames that were left out.
pub fn left_out() -> u64 {
    address_of(Marker::Native).get() + 1
}
