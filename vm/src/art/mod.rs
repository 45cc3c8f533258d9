//! ART: frames of its interpreters in a list of fragments on the native stack, between those of compiled code.

pub(crate) mod code_format;
pub(crate) mod code_info;
mod compiled;
mod frames;
mod method_header;
pub(crate) mod oat_file;
mod switch_interpreter;

use crate::art_layout::{self, LayoutError, LibraryLayout};
use crate::code_kind::CodeKind;
use crate::dex;
use crate::facts::VmFacts;
use crate::interpreter_loop::{CalledFrames, registers};
use crate::kind::{CodeChange, FrameMethods, ManagedStack, Methods, Unwound, Vm, VmKind};
use crate::method::Method;
use crate::stack_copy::stack_of;
use code_format::CodeFormat;
use compiled::CompiledCode;
use std::path::Path;
use std::rc::Rc;
use switch_interpreter::SwitchCalls;
use varid_model::{Address, MonotonicNs, Precision, Reason};
use varid_process::reader::ForeignFile;
use varid_process::{AddressSpace, MappedCode, Process};
use varid_shim::{CapturedSample, FramePc, ManagedFrame, Target, flags};
use varid_tunnel::abi::RULE_LIST;
use varid_tunnel::builds::{self, Build};
use varid_unwind::{BytecodePc, CodeRule, NativeFrame, bytecode_pc};

/// The VM of Android since 5.0.
#[derive(Debug)]
pub struct Art;

impl VmKind for Art {
    fn name(&self) -> &'static str {
        "ART"
    }

    fn is_library(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("libart.so") || name.starts_with("libartd.so"))
    }

    fn recognise(&self, facts: &VmFacts) -> Option<Rc<dyn Vm>> {
        (facts.layout.has_rule(RULE_LIST)).then(|| {
            let vm = ArtVm {
                facts: facts.clone(),
                compiled: compiled_code(facts).map(Rc::new),
                switch_calls: Rc::default(),
            };
            Rc::new(vm) as Rc<dyn Vm>
        })
    }

    fn read_library(&self, file: &ForeignFile) -> Option<Result<Rc<LibraryLayout>, LayoutError>> {
        Some(art_layout::read_once(file))
    }

    fn build(&self, build_id: &[u8]) -> Option<&'static Build> {
        builds::lookup(build_id)
    }
}

/// The code that its compiler makes, if its layout says how that is found.
fn compiled_code(facts: &VmFacts) -> Option<CompiledCode> {
    let mut rules = facts.layout.rules().iter();
    rules.find_map(|rule| {
        let format = CodeFormat::of(rule)?;
        Some(CompiledCode::new(*rule, format, facts.generation_at()))
    })
}

#[derive(Debug)]
struct ArtVm {
    facts: VmFacts,
    compiled: Option<Rc<CompiledCode>>,
    switch_calls: Rc<SwitchCalls>,
}

impl ArtVm {
    /// Whether the process has code that a compiler has made, as far as is known.
    fn has_compiled_code(&self) -> bool {
        let compiled = self.compiled.as_ref();
        compiled.is_some_and(|compiled| compiled.is_there())
    }
}

impl Vm for ArtVm {
    fn facts(&self) -> &VmFacts {
        &self.facts
    }

    fn leaf_is_managed(&self, record: &CapturedSample, leaf: Option<CodeKind>) -> bool {
        // The frames are those of what a signal interrupted.
        if record.has(flags::INTERRUPTED) {
            return false;
        }
        // While nterp makes or leaves a frame, its caller may be native.
        let is_at_sp = |ip: u64| self.facts.is_at_sp(ip);
        match leaf {
            _ if record.has(flags::IN_BODY) => true,
            // Compiled code calls some of the VM's directly.
            Some(CodeKind::Bridge) => !self.has_compiled_code(),
            Some(CodeKind::Interpreter) => !record.regs.ip().is_some_and(is_at_sp),
            _ => false,
        }
    }

    fn frames<'r>(
        &self,
        sample: &Unwound<'r>,
        walked: ManagedStack<'r>,
        process: &mut dyn Methods,
    ) -> ManagedStack<'r> {
        let called = match frames::are_copied(sample.record, &walked.frames) {
            true => self.switch_calls.frames(&self.facts, sample, process),
            false => CalledFrames::default(),
        };
        let space = &process.process().space;
        frames::frames(&self.facts, sample, walked, &called, space)
    }

    fn code_at(&self, address: Address, process: &Process) -> Option<CodeKind> {
        self.facts.code_at(address.get()).or_else(|| {
            let compiled = self.compiled.as_ref()?;
            compiled
                .is_at(address, process)
                .then_some(CodeKind::Compiled)
        })
    }

    fn unwind_rule(
        &self,
        frame: &NativeFrame,
        sample: &CapturedSample,
        process: &Process,
    ) -> Option<CodeRule> {
        self.compiled.as_ref()?.rule(frame, sample, process)
    }

    /// nterp keeps the method at its stack pointer and the pc in a register. In the middle of a call the two disagree.
    fn native_frame(
        &self,
        frame: &NativeFrame,
        sample: &CapturedSample,
        process: &mut dyn Methods,
    ) -> Result<FrameMethods, Reason> {
        if let Some(compiled) = &self.compiled
            && let Some(frames) = compiled.frames(frame, sample, process)
        {
            return frames;
        }
        let rule = self.facts.rule_at(frame.lookup().get());
        let pc = rule.and_then(|rule| frame.regs.get(u16::from(rule.reg_pc)));
        // While it makes a frame, what is at the stack pointer may be left of a frame that is no more.
        let mut info = MappedCode::new(&process.process().space);
        let is_incomplete = bytecode_pc(stack_of(sample), frame, &mut info) == BytecodePc::Unknown;
        let pc = pc.filter(|_| !is_incomplete);
        let pointer = stack_of(sample).word(frame.regs.machine(), frame.sp);
        let method = pointer.map(|pointer| process.method(pointer));
        let (pc, method) = pc
            .zip(method)
            .filter(|(pc, method)| method.has_code_at(*pc))
            .ok_or(Reason::ArtQuick)?;
        let pc = method.own_address(pc, &mut process.process().space);
        let pc = FramePc::Absolute(Address::new(pc));
        Ok(FrameMethods {
            frames: vec![ManagedFrame::new(frame.sp, pc, false)],
            precision: Precision::Exact,
        })
    }

    fn compiled_frame(
        &self,
        sp: Address,
        method: Address,
        returns: Address,
        time: MonotonicNs,
        process: &mut dyn Methods,
    ) -> Result<FrameMethods, Reason> {
        let compiled = self.compiled.as_ref().ok_or(Reason::ArtQuick)?;
        compiled.caller_frames(sp, method, returns, time, process)
    }

    fn adds_compiled_code(&self, path: &Path) -> bool {
        let compiled = self.compiled.as_ref();
        // The shim is told where the code is that it walks frames of.
        compiled.is_some() && compiled::may_be_code(path)
    }

    fn target(&self, flags: u32, space: &AddressSpace) -> Target {
        let compiled = self.compiled.as_ref();
        match compiled.and_then(|compiled| compiled.look_for_it(space)) {
            Some(code) => self.facts.target_with_compiled_code(flags, &code),
            None => self.facts.target(flags),
        }
    }

    fn found(&self, process: &Process) {
        if let Some(compiled) = &self.compiled {
            compiled.observe(process.pid);
        }
    }

    fn end_batch(&self, process: &Process) -> bool {
        let compiled = self.compiled.as_ref();
        let generation = compiled.and_then(|compiled| compiled.end_batch(process.pid));
        self.facts.has_changed(process.pid, generation)
    }

    fn code_change(&self) -> CodeChange {
        let compiled = self.compiled.as_ref();
        compiled.map_or(CodeChange::None, |compiled| compiled.change())
    }

    fn unwinds_compiled_code(&self) -> bool {
        self.has_compiled_code()
    }

    fn forked(&self) -> Option<Rc<dyn Vm>> {
        Art.recognise(&self.facts)
    }

    fn with_new_description(&self, facts: &VmFacts) -> Option<Rc<dyn Vm>> {
        facts.layout.has_rule(RULE_LIST).then(|| {
            // What is known of the code stays, unless it is found in another way now.
            let rules = facts.layout.rules();
            let before = self.compiled.clone();
            let before = before.filter(|before| rules.contains(before.frame_rule()));
            let before = before.inspect(|before| before.watch(facts.generation_at()));
            let compiled = before.or_else(|| compiled_code(facts).map(Rc::new));
            let facts = facts.clone();
            let switch_calls = self.switch_calls.clone();
            Rc::new(Self {
                facts,
                compiled,
                switch_calls,
            }) as Rc<dyn Vm>
        })
    }

    fn leaf_pc_if_only_difference(
        &self,
        record: &CapturedSample,
        space: &AddressSpace,
    ) -> Option<u64> {
        const OTHERWISE: u32 =
            flags::IN_KERNEL | flags::NO_WALK | flags::NOT_READY | flags::LINKED_ONLY;
        if record.flags & (flags::IN_BODY | OTHERWISE) != flags::IN_BODY {
            return None;
        }
        let innermost = record.frames.innermost()?;
        let regs = &record.regs;
        let (address, pc) = registers(&self.facts, regs.ip()?, regs, space)?;
        (address == innermost.address().get() && !innermost.is_quick()).then_some(pc)
    }

    fn method(
        &self,
        process: &mut Process,
        pointer: u64,
    ) -> Result<Method, varid_tunnel::TunnelError> {
        dex::resolve(&self.facts, process, pointer)
    }
}
