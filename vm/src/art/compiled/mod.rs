//! Which method's compiled code is at an address, and what does a frame of it stand for?
//!
//! Code that the JIT has made is found through the VM's own map and copied from the process when a sample first lands there; code of an
//! oat file is found through the file's tables.

mod frame_rows;
mod jit_map;
mod method;
mod oat_code;
#[cfg(test)]
mod tests;

use crate::dex::method_of;
use crate::kind::Methods;
use crate::method::Method;
use jit_map::jit_code;
use method::{Call, CompiledMethod, InfoBytes, Owner};
use oat_code::OatCode;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use varid_model::{Address, CodeUnits, FrameAddress, Machine, Reason};
use varid_process::reader::ForeignMemory;
use varid_process::{AddressSpace, ElfImage, Process, ProcessImage, ProcessMapping};
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
    oats: RefCell<Vec<KnownOat>>,
    /// [`AddressSpace::changes`] when a sample was last looked up.
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

/// An oat file.
#[derive(Debug)]
struct KnownOat {
    elf: Rc<ElfImage>,
    /// None: it cannot be read.
    code: Option<Rc<OatCode>>,
    /// [`AddressSpace::changes`] when it was read.
    read: u64,
}

impl KnownOat {
    /// Whether reading it again would not find more.
    fn is_complete(&self) -> bool {
        self.code.as_ref().is_none_or(|code| code.is_complete())
    }
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
            ProcessImage::Elf(elf) if is_oat(elf) => {
                self.oat_method(address, elf, mapped, &process.space)
            }
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

    /// The method of an oat file whose code has the instruction at an address.
    fn oat_method(
        &self,
        address: u64,
        elf: &Rc<ElfImage>,
        mapped: &ProcessMapping,
        space: &AddressSpace,
    ) -> Option<Rc<CompiledMethod>> {
        let oat = self.oat(elf, space)?;
        let offset = address
            .wrapping_sub(mapped.start)
            .wrapping_add(mapped.pgoff);
        let own = elf.contents()?.module.borrow().address_of_offset(offset)?;
        let bias = address.wrapping_sub(own.get());
        oat.method_at(own.get(), bias).map(Rc::new)
    }

    /// What an oat file has; read again if dex files that it lacked may be mapped by now.
    fn oat(&self, elf: &Rc<ElfImage>, space: &AddressSpace) -> Option<Rc<OatCode>> {
        let changes = space.changes();
        let mut oats = self.oats.borrow_mut();
        let known = oats.iter().find(|known| Rc::ptr_eq(&known.elf, elf));
        if let Some(known) = known.filter(|known| known.is_complete() || known.read == changes) {
            return known.code.clone();
        }
        let code = OatCode::read(elf, space).map(Rc::new);
        oats.retain(|known| !Rc::ptr_eq(&known.elf, elf));
        oats.push(KnownOat {
            elf: elf.clone(),
            code: code.clone(),
            read: changes,
        });
        code
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

/// Whether an ELF file is an oat file by its name.
fn is_oat(elf: &ElfImage) -> bool {
    let extension = elf
        .path
        .extension()
        .and_then(|extension| extension.to_str());
    matches!(extension, Some("oat" | "odex"))
}

/// What the JIT has compiled the code at an address from; `before`: what it was when the process was last asked.
fn jit_method(
    memory: &dyn Memory,
    rule: &Rule,
    address: u64,
    before: Option<&Rc<CompiledMethod>>,
) -> Option<Rc<CompiledMethod>> {
    let read = jit_code(memory, rule)
        .and_then(|code| {
            let method = code.method_before(address)?;
            let method = method.and_then(|(start, method)| {
                read_jit_method(memory, start, address, Owner::Pointer(method))
            });
            if method.is_some() {
                return Ok(method);
            }
            let stub = code.stub_before(address)?;
            Ok(stub.and_then(|start| read_jit_method(memory, start, address, Owner::Stub)))
        })
        .inspect_err(|error| tracing::debug!(%error, "the JIT's map"))
        .ok()??;
    let same = before.filter(|before| before.as_ref() == &read);
    same.cloned().or_else(|| Some(Rc::new(read)))
}

/// Copies the code that starts at an address and what the compiler noted down of it from the process; None: it does not reach as far as
/// `inside`.
fn read_jit_method(
    memory: &dyn Memory,
    start: u64,
    inside: u64,
    owner: Owner,
) -> Option<CompiledMethod> {
    let mut header = [0; MethodHeader::SIZE as usize];
    let at = start.checked_sub(MethodHeader::SIZE.into())?;
    memory.read(at, &mut header).ok()?;
    let header = MethodHeader::parse(header).ok()?;
    if inside.checked_sub(start)? >= header.code_size.into() {
        return None;
    }
    let mut code = vec![0; usize::try_from(header.code_size).ok()?];
    memory.read(start, &mut code).ok()?;
    let info = start.checked_sub(header.code_info_distance.into())?;
    let info = read_code_info(memory, info)?;
    CompiledMethod::new(start, &code, owner, InfoBytes::Own(info))
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

/// The methods that a frame executes, innermost first.
fn frames_of(
    code: &CompiledMethod,
    frame: &NativeFrame,
    stack: StackSlice<'_>,
    process: &mut dyn Methods,
) -> Result<Vec<ManagedFrame>, Reason> {
    let (outer, pointer) = outer_method(code, frame, stack, process)?;
    let at = |pc: FramePc| ManagedFrame::new(frame.sp, pc, false);
    let noted = match frame.address {
        FrameAddress::Return(address) => code.call(address),
        FrameAddress::Instruction(_) => None,
    };
    // Which of the inlined methods a leaf is in nobody has noted down, nor of calls of the VM's code that never look at the stack: of
    // read barriers and of mathematical functions.
    let call = noted.unwrap_or_else(|| {
        Rc::new(Call {
            dex_pc: code.dex_pc_near(frame.lookup()),
            inlined: Vec::new(),
        })
    });
    let mut frames = Vec::new();
    for inlined in call.inlined.iter().rev() {
        let method = inlined_method(inlined.method, &outer, process);
        let pc = instruction(&method, inlined.dex_pc).ok_or(Reason::UnknownMethod)?;
        frames.push(at(pc));
    }
    let pc = match &outer {
        Method::Known {
            code: Some(code), ..
        } => {
            // A leaf before the first call is at its beginning.
            let pc = instruction(&outer, call.dex_pc);
            pc.unwrap_or(FramePc::Absolute(Address::new(code.start)))
        }
        _ => FramePc::Native {
            method: Address::new(pointer.ok_or(Reason::ArtQuick)?),
        },
    };
    frames.push(at(pc));
    Ok(frames)
}

/// The method that a frame of compiled code executes, and the VM's pointer to it, if that is known.
fn outer_method(
    code: &CompiledMethod,
    frame: &NativeFrame,
    stack: StackSlice<'_>,
    process: &mut dyn Methods,
) -> Result<(Method, Option<u64>), Reason> {
    let at_sp = code.method_at(frame.address).and_then(|distance| {
        let at = frame.sp.get().checked_add(distance.into())?;
        stack.word(frame.regs.machine(), Address::new(at))
    });
    let pointer = match &code.owner {
        Owner::Pointer(pointer) => match at_sp {
            // Another method's code is there by now.
            Some(other) if other != *pointer => return Err(Reason::ArtQuick),
            _ => *pointer,
        },
        Owner::Dex(methods) => {
            let by_pointer = at_sp.map(|pointer| process.method(pointer));
            return match (by_pointer, &methods[..]) {
                (Some(method @ Method::Known { .. }), _) => Ok((method, at_sp)),
                // The process need not have it any more to tell this one.
                (_, [method]) => {
                    let space = &process.process().space;
                    Ok((method_of(space, &method.image, method.index), at_sp))
                }
                (Some(method), _) => Ok((method, at_sp)),
                // Several methods share it, and the frame does not tell which this is.
                (None, _) => Err(Reason::ArtQuick),
            };
        }
        Owner::Stub => at_sp.ok_or(Reason::ArtQuick)?,
    };
    Ok((process.method(pointer), Some(pointer)))
}

/// A method that is inlined in another one's code.
fn inlined_method(id: InlinedId, outer: &Method, process: &mut dyn Methods) -> Method {
    match (id, outer) {
        (InlinedId::Pointer(pointer), _) => process.method(pointer),
        (InlinedId::Index(index), Method::Known { image, .. }) => {
            method_of(&process.process().space, image, index)
        }
        (InlinedId::Index(_) | InlinedId::CharAt(_), _) => Method::Unknown,
    }
}

/// An instruction of a method.
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
