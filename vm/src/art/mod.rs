//! ART: frames of its interpreters in a list of fragments on the native stack, between those of compiled code.

pub(crate) mod code_format;
pub(crate) mod code_info;
mod compiled;
mod frames;
pub(crate) mod layout;
mod method_header;
pub(crate) mod oat_file;
mod switch_interpreter;
mod unlinked;

use crate::described::interpreter_loop::{CalledFrames, registers};
use crate::described::{
    DerivedLayout, DescribedKind, DescribedVm, Description, LayoutSource, dex, refreshed,
};
use crate::seam::stack_copy::stack_of;
use crate::seam::{
    CodeKind, FrameMethods, ManagedStack, MergeOrder, Method, Methods, Refreshed, Unwound, Vm,
    VmChanges, VmCompiler, VmFrames, VmMethods, VmTarget,
};
use code_format::CodeFormat;
use compiled::CompiledCode;
use layout::{LibraryLayout, Look};
use std::path::Path;
use std::rc::Rc;
use switch_interpreter::SwitchCalls;
use varid_model::{Address, Precision, Reason};
use varid_process::reader::{ForeignFile, ForeignMemory};
use varid_process::{AddressSpace, MappedCode, Process};
use varid_shim::{CapturedSample, FramePc, ManagedFrame, Target, flags};
use varid_tunnel::TunnelError;
use varid_tunnel::abi::RULE_LIST;
use varid_tunnel::builds::{self, Build};
use varid_unwind::{BytecodePc, NativeFrame, bytecode_pc};

/// The VM of Android since 5.0.
#[derive(Debug)]
pub struct Art;

impl DescribedKind for Art {
    fn is_library(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("libart.so") || name.starts_with("libartd.so"))
    }

    fn recognise(&self, description: &Description) -> Option<Rc<dyn Vm>> {
        is_art(description).then(|| Rc::new(ArtVm::new(description)) as Rc<dyn Vm>)
    }

    fn build(&self, build_id: &[u8]) -> Option<&'static Build> {
        builds::lookup(build_id)
    }

    fn derive_layout(
        &self,
        file: &ForeignFile,
        process: &Process,
        load_base: u64,
    ) -> DerivedLayout {
        let library = match layout::read_once(file) {
            Ok(library) => library,
            Err(error) => return DerivedLayout::Refused(error.to_string()),
        };
        let memory = ForeignMemory::new(process.pid);
        match library.look(process.pid, &memory, load_base) {
            Look::Agrees(found) => {
                let layout_source = LayoutSource::Library(found.checks.to_string());
                let description =
                    Description::of_layout(&memory, found.layout, found.ranges, layout_source);
                DerivedLayout::Agrees(Box::new(description))
            }
            Look::NotUp(why) => DerivedLayout::NotUp(why),
            Look::Differs(check) => DerivedLayout::Differs(check.to_string()),
        }
    }

    fn check_library(&self, library: &[u8]) -> Result<(), String> {
        let read = LibraryLayout::read(library);
        read.map(drop).map_err(|error| error.to_string())
    }
}

/// Returns true if a description is of ART: its frames are linked.
fn is_art(description: &Description) -> bool {
    description.layout.has_rule(RULE_LIST)
}

/// Returns the compiled code of the VM, if the layout says how to find it.
fn compiled_code(description: &Description) -> Option<CompiledCode> {
    let mut rules = description.layout.rules().iter();
    rules.find_map(|rule| {
        let format = CodeFormat::of(rule)?;
        Some(CompiledCode::new(
            *rule,
            format,
            description.generation_at(),
        ))
    })
}

#[derive(Debug)]
struct ArtVm {
    description: Description,
    compiled: Option<Rc<CompiledCode>>,
    switch_calls: Rc<SwitchCalls>,
}

impl ArtVm {
    fn new(description: &Description) -> Self {
        Self {
            description: description.clone(),
            compiled: compiled_code(description).map(Rc::new),
            switch_calls: Rc::default(),
        }
    }

    /// Returns true if the process is known to have compiled code.
    fn has_compiled_code(&self) -> bool {
        let compiled = self.compiled.as_ref();
        compiled.is_some_and(|compiled| compiled.has_code())
    }
}

impl DescribedVm for ArtVm {
    fn description(&self) -> &Description {
        &self.description
    }

    fn with_description(&self, description: &Description) -> Option<Rc<dyn Vm>> {
        is_art(description).then(|| {
            // What is known about compiled code is kept, unless the new layout finds it by another rule.
            let rules = description.layout.rules();
            let before = self.compiled.clone();
            let before = before.filter(|before| rules.contains(before.frame_rule()));
            let before = before.inspect(|before| before.watch(description.generation_at()));
            let compiled = before.or_else(|| compiled_code(description).map(Rc::new));
            Rc::new(Self {
                description: description.clone(),
                compiled,
                switch_calls: self.switch_calls.clone(),
            }) as Rc<dyn Vm>
        })
    }
}

impl VmTarget for ArtVm {
    fn target(&self, flags: u32, space: &AddressSpace) -> Target {
        let compiled = self.compiled.as_ref();
        match compiled.and_then(|compiled| compiled.look_for_it(space)) {
            Some(code) => self.description.target_with_compiled_code(flags, &code),
            None => self.description.target(flags),
        }
    }
}

impl VmChanges for ArtVm {
    fn found(&self, process: &Process) {
        if let Some(compiled) = &self.compiled {
            compiled.observe(process.pid);
        }
    }

    fn end_batch(&self, process: &Process) -> Refreshed {
        let compiled = self.compiled.as_ref();
        let generation = compiled.and_then(|compiled| compiled.end_batch(process.pid));
        refreshed(self, process, generation)
    }

    fn forked(&self) -> Rc<dyn Vm> {
        Rc::new(Self::new(&self.description))
    }
}

impl VmFrames for ArtVm {
    fn merge_order(&self) -> MergeOrder {
        MergeOrder::ByAddress
    }

    fn leaf_is_managed(&self, record: &CapturedSample, leaf: Option<CodeKind>) -> bool {
        // The managed frames are those of the code that a signal interrupted.
        if record.has(flags::INTERRUPTED) {
            return false;
        }
        // While nterp makes or leaves a frame, its caller may be native.
        let is_at_sp = |ip: u64| self.description.is_at_sp(ip);
        match leaf {
            _ if record.has(flags::IN_BODY) => true,
            // Compiled code calls some of the VM's bridges directly.
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
        let description = &self.description;
        let mut walked = walked;
        let space = &process.process().space;
        let pushes_frame = |address| unlinked::pushes_frame(description, address, space);
        let push = unlinked::interrupted_push(description, sample.native, pushes_frame);
        let called = match push.is_some() || frames::are_copied(sample.record, &walked.frames) {
            true => self.switch_calls.frames(description, sample, process),
            false => CalledFrames::default(),
        };
        let space = &process.process().space;
        let unlinked = push.and_then(|depth| {
            let native = sample.native;
            let caller = unlinked::caller(description, native, depth, &called, space);
            let sp = native.frames.get(depth)?.sp;
            unlinked::drop_others(&mut walked.frames, sp, caller)
        });
        let mut found = frames::frames(description, sample, walked, &called, space);
        found.unlinked = unlinked.and_then(|unlinked| {
            let is_unlinked =
                |frame: &ManagedFrame| !frame.is_quick() && frame.address() == unlinked;
            found.frames.iter().position(is_unlinked)
        });
        found
    }

    fn compiler(&self) -> Option<&dyn VmCompiler> {
        let compiled = self.compiled.as_deref()?;
        Some(compiled)
    }

    /// nterp keeps the method at its stack pointer and the pc in a register. In the middle of a call the two disagree.
    fn native_frame(
        &self,
        frame: &NativeFrame,
        sample: &CapturedSample,
        process: &mut dyn Methods,
    ) -> Result<FrameMethods, Reason> {
        let rule = self.description.rule_at(frame.lookup().get());
        let pc = rule.and_then(|rule| frame.regs.get(u16::from(rule.reg_pc)));
        // While nterp makes a frame, the word at the stack pointer may be left over from an earlier frame.
        let mut info = MappedCode::new(&process.process().space);
        let is_incomplete = bytecode_pc(stack_of(sample), frame, &mut info) == BytecodePc::Unknown;
        let pc = pc.filter(|_| !is_incomplete);
        let pointer = stack_of(sample).word(frame.regs.machine(), frame.sp);
        let method = pointer.map(|pointer| process.method(pointer));
        let (pc, method) = pc
            .zip(method)
            .filter(|(pc, method)| method.has_code_at(*pc))
            .ok_or(Reason::UnknownCompiledCode)?;
        let pc = method.own_address(pc, &mut process.process().space);
        let pc = FramePc::Absolute(Address::new(pc));
        Ok(FrameMethods {
            frames: vec![ManagedFrame::new(frame.sp, pc, false)],
            precision: Precision::Exact,
        })
    }

    fn native_caller(&self) -> CodeKind {
        CodeKind::Bridge
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
        let (address, pc) = registers(&self.description, regs.ip()?, regs, space)?;
        (address == innermost.address().get() && !innermost.is_quick()).then_some(pc)
    }
}

impl VmMethods for ArtVm {
    fn method(&self, process: &mut Process, pointer: u64) -> Result<Method, TunnelError> {
        dex::resolve(&self.description, process, pointer)
    }
}
