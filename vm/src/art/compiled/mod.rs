//! Which method's compiled code is at an address, and what does a frame of it stand for?
//!
//! Code that the JIT has made is found through the VM's own map and copied from the process when a sample first lands there; code of an
//! oat file is found through the file's tables.

mod frame_rows;
mod jit_map;
mod method;
mod oat_code;

use crate::kind::Methods;
use crate::method::Method;
use jit_map::{JitMethod, method_before};
use method::{Call, CompiledMethod, InfoBytes, Owner};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use varid_model::{Address, CodeUnits, FrameAddress, Machine, Reason};
use varid_process::reader::ForeignMemory;
use varid_process::{AddressSpace, Process, ProcessImage};
use varid_shim::{FramePc, ManagedFrame};
use varid_tunnel::Memory;
use varid_tunnel::abi::Rule;
use varid_unwind::{CodeRule, NativeFrame, StackSlice};

use super::code_info::{CodeInfo, CodeInfoError, InlinedId};
use super::method_header::MethodHeader;

/// Bytes of a code unit of dex.
const DEX_UNIT: u8 = 2;

/// The compiled code of a process, as far as it was sampled.
#[derive(Debug)]
pub(super) struct CompiledCode {
    rule: Rule,
    methods: RefCell<BTreeMap<u64, Known>>,
    /// Of each mapping of an oat file.
    oats: RefCell<BTreeMap<u64, OatMapping>>,
    /// [`AddressSpace::changes`] when these were read.
    mapped: Cell<u64>,
    /// Counts batches of samples: what is known of the JIT's code is compared with the process once in each.
    batch: Cell<u64>,
}

/// A method's code, or that there is none at an address.
#[derive(Debug, Clone)]
struct Known {
    end: u64,
    method: Option<Rc<CompiledMethod>>,
    /// The batch in which the process had it.
    seen: u64,
}

impl CompiledCode {
    /// That of a VM whose compiled frames follow this rule.
    pub(super) fn new(rule: Rule) -> Self {
        Self {
            rule,
            methods: RefCell::default(),
            oats: RefCell::default(),
            mapped: Cell::new(0),
            batch: Cell::new(0),
        }
    }

    /// What is known of the JIT's code may be outdated for the next samples.
    pub(super) fn end_batch(&self) {
        self.batch.set(self.batch.get().wrapping_add(1));
    }

    /// Whether the instruction at an address is a compiled method's.
    pub(super) fn is_at(&self, address: Address, process: &Process) -> bool {
        self.at(address, process).is_some()
    }

    /// The method whose code has the instruction at an address.
    fn at(&self, address: Address, process: &Process) -> Option<Rc<CompiledMethod>> {
        let changes = process.space.changes();
        if self.mapped.replace(changes) != changes {
            self.methods.borrow_mut().clear();
        }
        let batch = self.batch.get();
        let address = address.get();
        let known = {
            let methods = self.methods.borrow();
            let before = methods.range(..=address).next_back();
            before
                .filter(|(_, known)| address < known.end)
                .map(|(_, known)| known.clone())
        };
        if let Some(known) = known.as_ref().filter(|known| known.seen == batch) {
            return known.method.clone();
        }
        let mapped = process.space.at(address)?;
        let method = match &mapped.image {
            // The JIT's code is in memory that no file on a disk shows.
            ProcessImage::Other(_) => {
                let memory = ForeignMemory::new(process.pid);
                let before = known.and_then(|known| known.method);
                jit_method(&memory, &self.rule, address, before.as_ref())
            }
            ProcessImage::Elf(elf) if self.may_be_oat(elf, mapped, &process.space) => self.oat_method(address, elf, mapped)
            ProcessImage::Elf(_) | ProcessImage::Code(_) => return None,
        };
        let (start, end) = match &method {
            Some(method) => (method.code.start, method.code.end),
            None => (address, address.saturating_add(1)),
        };
        let known = Known {
            end,
            method: method.clone(),
            seen: batch,
        };
        let mut methods = self.methods.borrow_mut();
        // Whatever was there is no more.
        let overlapping = methods.range(..end).rev();
        let overlapping = overlapping.take_while(|(_, known)| known.end > start);
        let gone: Vec<u64> = overlapping.map(|(start, _)| *start).collect();
        for start in gone {
            methods.remove(&start);
        }
        methods.insert(start, known);
        method
    }

    /// How the frame of the code at an address is left, if it is a compiled method's.
    pub(super) fn rule(&self, address: Address, process: &Process) -> Option<CodeRule> {
        Some(self.at(address, process)?.rule(address))
    }

    /// The methods that a native frame in compiled code executes, innermost first: those that the compiler has inlined are frames of their
    /// own. None: it is no frame of compiled code.
    pub(super) fn frames(
        &self,
        frame: &NativeFrame,
        stack: StackSlice<'_>,
        process: &mut dyn Methods,
    ) -> Option<Result<Vec<ManagedFrame>, Reason>> {
        let code = self.at(frame.lookup(), process.process())?;
        Some(frames_of(&code, frame, stack, process))
    }
}

/// The JIT's code is in memory that no file on a disk shows.
fn may_have_jit_code(address: u64, space: &AddressSpace) -> bool {
    let mapped = space.at(address);
    mapped.is_some_and(|mapped| matches!(mapped.image, ProcessImage::Other(_)))
}

/// What the JIT has compiled the code at an address from; `before`: what it was when the process was last asked.
fn jit_method(
    memory: &dyn Memory,
    rule: &Rule,
    address: u64,
    before: Option<&Rc<CompiledMethod>>,
) -> Option<Rc<CompiledMethod>> {
    let found = method_before(memory, rule, address)
        .inspect_err(|error| tracing::debug!(%error, "the JIT's map"))
        .ok()??;
    let read = read_jit_method(memory, found)?;
    let same = before.filter(|before| before.as_ref() == &read);
    same.cloned()
        .or_else(|| Some(Rc::new(read)))
        .filter(|method| method.code.contains(&address))
}

/// Copies a method's code and what the compiler noted down of it from the process.
fn read_jit_method(memory: &dyn Memory, found: JitMethod) -> Option<CompiledMethod> {
    let mut header = [0; MethodHeader::SIZE as usize];
    let at = found.start.checked_sub(MethodHeader::SIZE.into())?;
    memory.read(at, &mut header).ok()?;
    let header = MethodHeader::parse(header).ok()?;
    let mut code = vec![0; usize::try_from(header.code_size).ok()?];
    memory.read(found.start, &mut code).ok()?;
    let info = found.start.checked_sub(header.code_info_distance.into())?;
    let info = read_code_info(memory, info)?;
    CompiledMethod::new(
        found.start,
        &code,
        Owner::Pointer(found.method),
        InfoBytes::Own(info),
    )
    .inspect_err(|error| tracing::debug!(%error, "compiled code"))
    .ok()
}

/// Copies what the compiler noted down, which says how long it is as it is read.
fn read_code_info(memory: &dyn Memory, address: u64) -> Option<Vec<u8>> {
    const FIRST: u64 = 256;
    /// No method's is larger.
    const MAX: u64 = 1 << 22;
    let mut wanted = FIRST;
    loop {
        let mut bytes = vec![0; usize::try_from(wanted).ok()?];
        memory.read(address, &mut bytes).ok()?;
        match CodeInfo::parse(Machine::NATIVE, &bytes) {
            Ok(info) => {
                let size = usize::try_from(info.size).ok()?;
                bytes.truncate(size);
                return Some(bytes);
            }
            Err(CodeInfoError::CutShort { needed }) if needed > wanted && needed <= MAX => {
                wanted = needed;
            }
            Err(error) => {
                tracing::debug!(%error, address, "compiled code");
                return None;
            }
        }
    }
}

fn frames_of(
    code: &CompiledMethod,
    frame: &NativeFrame,
    stack: StackSlice<'_>,
    process: &mut dyn Methods,
) -> Result<Vec<ManagedFrame>, Reason> {
    let pointer = method_pointer(code, frame, stack)?;
    let outer = process.method(pointer);
    let at = |pc: FramePc| ManagedFrame::new(frame.sp, pc, false);
    let native = FramePc::Native {
        method: Address::new(pointer),
    };
    let call = match frame.address {
        FrameAddress::Return(address) => code.call(address),
        // Which of the inlined methods it is in nobody has noted down.
        FrameAddress::Instruction(address) => Some(Rc::new(Call {
            dex_pc: code.dex_pc_near(address),
            inlined: Vec::new(),
        })),
    };
    let Some(call) = call else {
        return Ok(vec![at(native)]);
    };
    let mut frames = Vec::new();
    for inlined in call.inlined.iter().rev() {
        let method = match inlined.method {
            InlinedId::Pointer(pointer) => process.method(pointer),
            InlinedId::Index(_) | InlinedId::CharAt(_) => Method::Unknown,
        };
        frames.push(at(instruction(&method, inlined.dex_pc).ok_or(Reason::UnknownMethod)?));
    }
    frames.push(at(instruction(&outer, call.dex_pc).unwrap_or(native)));
    Ok(frames)
}

/// The address of an instruction of a method.
fn instruction(method: &Method, dex_pc: Option<CodeUnits>) -> Option<FramePc> {
    let Method::Known {
        code: Some(code), ..
    } = method
    else {
        return None;
    };
    let pc = code.start.saturating_add(dex_pc?.to_bytes(DEX_UNIT));
    code.contains(&pc)
        .then_some(FramePc::Absolute(Address::new(pc)))
}

/// The VM's pointer to the method that a frame of compiled code executes.
fn method_pointer(
    code: &CompiledMethod,
    frame: &NativeFrame,
    stack: StackSlice<'_>,
) -> Result<u64, Reason> {
    let at_sp = || stack.word(frame.regs.machine(), frame.sp);
    match (&code.owner, code.has_method(frame.address)) {
        (Owner::Pointer(pointer), true) => match at_sp() {
            // Another method's code is there by now.
            Some(other) if other != *pointer => Err(Reason::ArtQuick),
            _ => Ok(*pointer),
        },
        (Owner::Pointer(pointer), false) => Ok(*pointer),
        (Owner::Dex(_), true) => at_sp().ok_or(Reason::Truncated),
        (Owner::Dex(_), false) => Err(Reason::ArtQuick),
    }
}
