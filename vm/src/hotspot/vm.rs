//! The HotSpot of a process, as attribution asks for it.
//!
//! Its frames are found by unwinding the copy of the stack, with the words that the shim has found beyond it: each frame of its code is a
//! native frame, which the code's blob tells how to leave, and which methods it executes.

use super::allocated_classes::AllocatedClasses;
use super::jvm::Jvm;
use super::known_blob::KnownBlob;
use super::known_code::KnownCode;
use super::known_scopes::{ExecutedMethod, KnownScopes, Scopes};
use super::methods::{
    Bci, BlobKind, CodeKey, CompileId, CompiledCode, CompiledFrameLayout, JavaMethod, MethodError,
    MethodPointer, Precision as CodePrecision,
};
use super::named_methods::NamedMethods;
use super::sampled_code::SampledBlobs;
use super::shim_places;
use super::unwinding::{self, Calls, CodeFrames, InterruptedPart, PartialFrame, PartialState};
use crate::seam::stack_copy::stack_of;
use crate::seam::{
    CodeChange, CodeKind, ExecutedCode, FrameMethods, ManagedStack, MergeOrder, Method, Methods,
    Refreshed, Unwound, Vm, VmAbout, VmChanges, VmCode, VmCompiler, VmFrames, VmMethods, VmTarget,
    WalkedCompiledFrame,
};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use varid_model::{Address, CodeUnits, FrameAddress, Machine, MonotonicNs, Precision, Reason};
use varid_process::reader::{BatchMemory, ForeignMemory};
use varid_process::{AddressSpace, Process};
use varid_shim::{CapturedSample, FramePc, JvmTarget, ManagedFrame, SampledBlob, Target};
use varid_tunnel::TunnelError;
use varid_unwind::{CodeRule, NativeFrame, StackSlice};

/// What the descriptions of the interpreter's parts start with that enter methods.
const ENTRY: &str = "method entry point";

/// The HotSpot of a process.
#[derive(Debug)]
pub(super) struct HotSpotVm {
    jvm: Rc<Jvm>,
    code: RefCell<KnownCode>,
    scopes: RefCell<KnownScopes>,
    named: RefCell<NamedMethods>,
    allocated: RefCell<AllocatedClasses>,
    sampled: SampledBlobs,
}

impl HotSpotVm {
    pub(super) fn new(jvm: Rc<Jvm>) -> Self {
        Self {
            code: RefCell::new(KnownCode::new(Rc::clone(&jvm))),
            allocated: RefCell::new(AllocatedClasses::new(Rc::clone(&jvm))),
            jvm,
            scopes: RefCell::default(),
            named: RefCell::default(),
            sampled: SampledBlobs::default(),
        }
    }

    /// Returns how far a frame of the interpreter is made or left. None if the frame is complete.
    fn partial_frame(&self, blob: &KnownBlob, frame: &NativeFrame) -> Option<PartialFrame> {
        let FrameAddress::Instruction(at) = frame.address else {
            return None;
        };
        let codelet = self.jvm.interpreter.codelet_at(at)?;
        let part = InterruptedPart {
            code: blob.code_in(&codelet.code),
            at: usize::try_from(at.offset_from(codelet.code.start)?).ok()?,
            enters: codelet.description.starts_with(ENTRY),
            last_word: self.jvm.unexported.frame_bcp,
        };
        PartialFrame::of(part, frame)
    }

    /// Returns what is known of the code that was at an address at a time. None if it is not HotSpot's.
    fn generated_at(
        &self,
        address: Address,
        time: MonotonicNs,
        process: &Process,
    ) -> Option<Result<Rc<KnownBlob>, Reason>> {
        self.jvm.code_heap_at(address)?;
        let memory = ForeignMemory::new(process.pid);
        let found = self.code.borrow_mut().at(address, time, &memory);
        Some(found.map_err(|_| unknown_method(process)))
    }

    /// Returns what is known of the code that a frame executed when it was sampled. None if it is not HotSpot's.
    fn code_of(
        &self,
        frame: &NativeFrame,
        sample: &CapturedSample,
        process: &Process,
    ) -> Option<Result<Rc<KnownBlob>, Reason>> {
        let address = frame.lookup();
        let Some(sampled) = sample.code.at(address) else {
            return self.generated_at(address, sample.time, process);
        };
        self.jvm.code_heap_at(address)?;
        let key = key_of(sampled);
        let memory = ForeignMemory::new(process.pid);
        let found = self.code.borrow_mut().sampled_at(address, key, &memory);
        Some(found.map_err(|_| unknown_method(process)))
    }

    /// Returns the methods of a frame of HotSpot's code, innermost first. Code that belongs to no method has none, unless it is the leaf.
    fn methods(
        &self,
        blob: &KnownBlob,
        frame: &NativeFrame,
        sample: &CapturedSample,
        process: &Process,
    ) -> Result<FrameMethods, Reason> {
        let memory = ForeignMemory::new(process.pid);
        let mut precision = Precision::Exact;
        let frames = match blob.kind() {
            BlobKind::Compiled | BlobKind::NativeWrapper => {
                let scopes = self.compiled_scopes(blob, frame, sample, &memory);
                let scopes = scopes.map_err(|_| unknown_method(process))?;
                if frame.address.is_instruction() && scopes.precision != CodePrecision::Exact {
                    precision = Precision::Approximate;
                }
                let methods = scopes.methods.iter();
                methods.map(|method| at_method(frame, *method)).collect()
            }
            BlobKind::Interpreter => {
                let found = self.interpreted(blob, frame, sample, process)?;
                let methods = found.iter();
                let methods = methods.map(|it| at_method(frame, self.executed(&it.method, it.bci)));
                methods.collect()
            }
            _ => Vec::new(),
        };
        let frames = match frames.is_empty() && frame.address.is_instruction() {
            true => {
                let name = blob.name(frame.lookup(), &self.jvm);
                let method = self.named.borrow_mut().code(name);
                vec![at_method(frame, ExecutedMethod { method, bci: 0 })]
            }
            false => frames,
        };
        Ok(FrameMethods { frames, precision })
    }

    /// Returns the methods that a frame of compiled code executes.
    fn compiled_scopes(
        &self,
        blob: &KnownBlob,
        frame: &NativeFrame,
        sample: &CapturedSample,
        memory: &dyn BatchMemory,
    ) -> Result<Rc<Scopes>, MethodError> {
        let compiled = self.code.borrow_mut().compiled(blob, memory)?;
        if frame.address.is_instruction() {
            self.sampled.note(blob, &compiled, sample.time);
        }
        let layout = &compiled.compiled.frame;
        let address = original_address(layout, frame, stack_of(sample));
        let key = CodeKey {
            blob: compiled.compiled.blob,
            compile_id: compiled.compiled.compile_id,
        };
        let known = self.scopes.borrow_mut().get(key, address);
        match known {
            Some(known) => Ok(known),
            None => {
                let scopes = self.decode_scopes(&compiled, address)?;
                Ok(self.scopes.borrow_mut().insert(key, address, scopes))
            }
        }
    }

    fn decode_scopes(
        &self,
        compiled: &CompiledCode,
        address: FrameAddress,
    ) -> Result<Scopes, MethodError> {
        let found = compiled.frames_at(address)?;
        let methods = found.frames.into_iter().map(|frame| {
            let method = frame.method?;
            Ok(self.executed(&method, frame.bci))
        });
        Ok(Scopes {
            precision: found.precision,
            methods: methods.collect::<Result<_, MethodError>>()?,
        })
    }

    fn executed(&self, method: &Rc<JavaMethod>, bci: Option<Bci>) -> ExecutedMethod {
        ExecutedMethod {
            method: self.named.borrow_mut().java(method),
            bci: bci.map_or(0, |bci| u32::from(bci.get())),
        }
    }

    /// Returns the method that a pointer of the process led to at a time.
    fn method_at(
        &self,
        pointer: u64,
        time: MonotonicNs,
        process: &Process,
    ) -> Result<Rc<JavaMethod>, Reason> {
        let pointer = MethodPointer(Address::new(pointer));
        let memory = ForeignMemory::new(process.pid);
        let method = self.code.borrow_mut().method(pointer, time, &memory);
        method.map_err(|error| match error {
            // The VM unmaps what it keeps of classes that it has unloaded.
            MethodError::Memory { .. } | MethodError::OtherMethod(_) => unknown_method(process),
            _ => Reason::TornFrames,
        })
    }

    /// Returns the method that the interpreter returns from. None if its registers have another one already.
    fn left_method(
        &self,
        frame: &NativeFrame,
        time: MonotonicNs,
        process: &Process,
    ) -> Option<Interpreted> {
        let registers = &self.jvm.unexported.registers;
        let method = self
            .method_at(frame.regs.get(registers.method)?, time, process)
            .ok()?;
        let bci = method.bci(Address::new(frame.regs.get(registers.bcp)?))?;
        Some(Interpreted {
            method,
            bci: Some(bci),
        })
    }

    /// Returns the method that a frame of the interpreter executes. None if the frame has been left.
    fn interpreted(
        &self,
        blob: &KnownBlob,
        frame: &NativeFrame,
        sample: &CapturedSample,
        process: &Process,
    ) -> Result<Option<Interpreted>, Reason> {
        let facts = &self.jvm.unexported;
        let time = sample.time;
        match self.partial_frame(blob, frame).map(|it| it.state) {
            Some(PartialState::Left) if frame.regs.machine() == Machine::Aarch64 => {
                return Ok(self.left_method(frame, time, process));
            }
            // Its registers have other values by then.
            Some(PartialState::Left | PartialState::LeftPopped) => return Ok(None),
            Some(_) => {
                let pointer = frame.regs.get(facts.registers.method);
                let method = self.method_at(pointer.ok_or(Reason::TornFrames)?, time, process)?;
                return Ok(Some(Interpreted { method, bci: None }));
            }
            None => {}
        }
        let stack = stack_of(sample);
        let fp = Address::new(frame.regs.fp().ok_or(Reason::Truncated)?);
        let word = |offset: i32| {
            let at = fp.wrapping_add_signed(offset.into());
            let word = stack.word(frame.regs.machine(), at);
            word.ok_or(Reason::Truncated)
        };
        let method = self.method_at(word(facts.frame_method)?, time, process)?;
        // The code of a bytecode has the address of its instruction in a register, until it calls or returns.
        let interrupted = match frame.address {
            FrameAddress::Instruction(at) => self.jvm.interpreter.codelet_at(at),
            FrameAddress::Return(_) => None,
        };
        let register = interrupted
            .filter(|codelet| codelet.bytecode.is_some())
            .and_then(|_| frame.regs.get(facts.registers.bcp));
        let bci = match register.and_then(|bcp| method.bci(Address::new(bcp))) {
            Some(bci) => Some(bci),
            None => {
                let bcp = Address::new(word(facts.frame_bcp)?);
                method.executed_at(bcp).map_err(|_| Reason::TornFrames)?
            }
        };
        Ok(Some(Interpreted { method, bci }))
    }
}

/// The method that the interpreter executes.
struct Interpreted {
    method: Rc<JavaMethod>,
    /// The instruction. None: the method is being entered, or native.
    bci: Option<Bci>,
}

/// The calls in a process's code at the time of a sample.
struct ProcessCalls<'p> {
    vm: &'p HotSpotVm,
    process: &'p Process,
    time: MonotonicNs,
}

impl ProcessCalls<'_> {
    fn blob_before(&self, returns: Address) -> Option<Rc<KnownBlob>> {
        let call = FrameAddress::Return(returns).lookup();
        self.vm.generated_at(call, self.time, self.process)?.ok()
    }
}

impl Calls for ProcessCalls<'_> {
    fn called(&mut self, returns: Address) -> Option<Address> {
        self.blob_before(returns)?.code_at().called(returns)
    }

    fn returns_to_java(&mut self, address: Address) -> bool {
        let memory = ForeignMemory::new(self.process.pid);
        let blob = self.blob_before(address);
        blob.is_some_and(|blob| self.vm.code.borrow_mut().is_call(&blob, address, &memory))
    }
}

/// Returns the address of a frame, which deoptimisation may have replaced.
fn original_address(
    layout: &CompiledFrameLayout,
    frame: &NativeFrame,
    stack: StackSlice<'_>,
) -> FrameAddress {
    let original = || {
        let FrameAddress::Return(returns) = frame.address else {
            return None;
        };
        let place = frame.sp.wrapping_add(layout.original_pc.into());
        let is_deoptimised = layout.is_deoptimised(returns);
        let word = stack.word(frame.regs.machine(), place);
        Some(FrameAddress::Return(Address::new(
            word.filter(|_| is_deoptimised)?,
        )))
    };
    original().unwrap_or(frame.address)
}

/// The frame of a method, at an instruction of it.
fn at_method(frame: &NativeFrame, executed: ExecutedMethod) -> ManagedFrame {
    let method = executed.method;
    let offset = CodeUnits::new(executed.bci);
    ManagedFrame::new(frame.sp, FramePc::Relative { method, offset }, false)
}

/// What code that was sampled is looked up by.
fn key_of(sampled: &SampledBlob) -> CodeKey {
    CodeKey {
        blob: sampled.start,
        compile_id: CompileId(sampled.compile_id),
    }
}

/// Returns why a method is not known: its code was freed, or the process has ended.
fn unknown_method(process: &Process) -> Reason {
    match process.has_memory() {
        true => Reason::UnknownMethod,
        false => Reason::VmGone,
    }
}

impl VmAbout for HotSpotVm {
    fn title(&self) -> String {
        self.jvm.version.to_string()
    }

    fn layout_source(&self) -> String {
        "the tables of its library".to_owned()
    }
}

impl VmTarget for HotSpotVm {
    /// The shim copies the stack, and takes what its frames need beyond the copy.
    fn target(&self, flags: u32, _space: &AddressSpace) -> Target {
        Target {
            flags,
            jvm: shim_places::of(&self.jvm).and_then(|places| JvmTarget::new(&places)),
            ..Target::default()
        }
    }
}

impl VmChanges for HotSpotVm {
    fn end_batch(&self, _process: &Process) -> Refreshed {
        self.code.borrow_mut().end_turn();
        self.allocated.borrow_mut().end_turn();
        Refreshed::Same
    }

    fn forked(&self) -> Rc<dyn Vm> {
        Rc::new(Self::new(Rc::clone(&self.jvm)))
    }
}

impl VmCode for HotSpotVm {
    /// Its library's code is native code, and what it generates is the compiler's.
    fn code_at(&self, _address: Address) -> Option<CodeKind> {
        None
    }

    fn has_code_in(&self, _start: Address, _end: Address) -> bool {
        false
    }

    fn is_on_native_stack(&self) -> bool {
        true
    }

    fn is_at_sp(&self, _address: Address) -> bool {
        false
    }
}

impl VmFrames for HotSpotVm {
    fn merge_order(&self) -> MergeOrder {
        MergeOrder::ByAddress
    }

    fn leaf_is_managed(&self, _record: &CapturedSample, _leaf: Option<CodeKind>) -> bool {
        false
    }

    fn frames<'r>(
        &self,
        _sample: &Unwound<'r>,
        walked: ManagedStack<'r>,
        _process: &mut dyn Methods,
    ) -> ManagedStack<'r> {
        walked
    }

    fn allocated_class(&self, sample: &CapturedSample, process: &Process) -> Option<ManagedFrame> {
        let memory = ForeignMemory::new(process.pid);
        let class = sample.allocated?;
        let class = self.allocated.borrow_mut().name(class, &memory)?;
        let method = self.named.borrow_mut().class(&class);
        let offset = CodeUnits::new(0);
        let at = sample.ordinary_sp();
        Some(ManagedFrame::new(
            at,
            FramePc::Relative { method, offset },
            false,
        ))
    }

    fn compiler(&self) -> Option<&dyn VmCompiler> {
        Some(self)
    }

    fn native_caller(&self) -> CodeKind {
        CodeKind::Bridge
    }
}

impl VmCompiler for HotSpotVm {
    fn has_code(&self) -> bool {
        true
    }

    fn is_code(&self, address: Address, _process: &Process) -> bool {
        self.jvm.code_heap_at(address).is_some()
    }

    fn change(&self) -> CodeChange {
        self.code.borrow().change()
    }

    fn may_be_in(&self, _path: &Path) -> bool {
        false
    }

    /// The kernel tells the code and the methods of frames. Where it does not, return addresses, and pointers to interpreted methods, are among the
    /// words of the stack.
    fn expect(&self, sample: &CapturedSample) {
        if let Some(class) = sample.allocated {
            self.allocated.borrow_mut().expect(class);
        }
        let mut code = self.code.borrow_mut();
        if let Some(ip) = sample.regs.ip().map(Address::new)
            && sample.code.at(ip).is_none()
        {
            code.expect(FrameAddress::Instruction(ip));
        }
        if !sample.code.is_empty() {
            code.note_walk();
            for blob in sample.code.blobs() {
                code.expect_blob(key_of(blob));
            }
            for method in sample.code.methods() {
                code.expect_method(MethodPointer(*method));
            }
        }
        // It finds none of the VM's own threads, which have none.
        if code.has_walk() {
            return;
        }
        for stack in [
            &sample.stack,
            &sample.interrupted.bytes,
            &sample.beyond.bytes,
        ] {
            let (words, _) = stack.as_chunks();
            for word in words {
                code.expect_word(u64::from_le_bytes(*word));
            }
        }
    }

    fn unwind_rule(
        &self,
        frame: &NativeFrame,
        sample: &CapturedSample,
        process: &Process,
    ) -> Option<CodeRule> {
        let Ok(blob) = self.code_of(frame, sample, process)? else {
            // Frame pointers lead past callers: the VM's code keeps other values in that register.
            return Some(CodeRule::NotRead);
        };
        let memory = ForeignMemory::new(process.pid);
        let is_entry = frame.address == FrameAddress::Return(self.jvm.call_stub_return);
        let frames = match self.partial_frame(&blob, frame) {
            _ if is_entry => CodeFrames::Entry,
            Some(partial) => CodeFrames::Partial(partial),
            None => self.code.borrow_mut().frames(&blob, frame.address, &memory),
        };
        let mut calls = ProcessCalls {
            vm: self,
            process,
            time: sample.time,
        };
        let rule = unwinding::rule(frames, frame, stack_of(sample), &mut calls);
        // No convention holds for this code.
        Some(rule.unwrap_or(match blob.thaws_frames() {
            true => CodeRule::Elsewhere,
            false => CodeRule::NoCode,
        }))
    }

    fn native_frame(
        &self,
        frame: &NativeFrame,
        sample: &CapturedSample,
        process: &mut dyn Methods,
    ) -> Option<Result<FrameMethods, Reason>> {
        let process = process.process();
        let blob = self.code_of(frame, sample, process)?;
        Some(blob.and_then(|blob| self.methods(&blob, frame, sample, process)))
    }

    fn take_executed_code(&self) -> Vec<ExecutedCode> {
        self.sampled.take()
    }

    fn walked_frame(
        &self,
        _frame: WalkedCompiledFrame,
        _process: &mut dyn Methods,
    ) -> Result<FrameMethods, Reason> {
        Err(Reason::UnknownCompiledCode)
    }
}

impl VmMethods for HotSpotVm {
    /// `pointer`: an address that [`NamedMethods`] has given to a method. The VM's own pointers may be another method's by now.
    fn method(&self, _process: &mut Process, pointer: u64) -> Result<Method, TunnelError> {
        let known = self.named.borrow().get(Address::new(pointer));
        Ok(known.map_or(Method::Unknown, Method::InMemory))
    }
}
