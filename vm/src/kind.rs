//! What does a kind of VM answer?
//!
//! A VM that is added is a folder with one [`VmKind`] and one [`Vm`]; attribution asks them and knows none by name.

use crate::art_layout::{LayoutError, LibraryLayout};
use crate::code_kind::CodeKind;
use crate::facts::VmFacts;
use crate::method::Method;
use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::rc::Rc;
use varid_model::{Address, MonotonicNs, Precision, Reason};
use varid_process::reader::ForeignFile;
use varid_process::{AddressSpace, BytecodeFormat, Process};
use varid_shim::{CapturedSample, ManagedFrame, Target, flags};
use varid_tunnel::builds::Build;
use varid_unwind::{CodeRule, NativeFrame, NativeStack};

/// A sample after its native frames have been unwound.
#[derive(Debug, Clone, Copy)]
pub struct Unwound<'r> {
    /// What the shim saw.
    pub record: &'r CapturedSample,
    /// The user's instruction.
    pub ip: u64,
    /// What the code there does, if it is the VM's.
    pub leaf: Option<CodeKind>,
    /// Nothing but managed frames lies between the leaf and the innermost of them.
    pub leaf_is_managed: bool,
    /// The native frames, as far as they were wanted.
    pub native: &'r NativeStack,
}

/// The managed frames of a sample.
#[derive(Debug, Clone)]
pub struct ManagedStack<'r> {
    /// The frames, innermost first.
    pub frames: Cow<'r, [ManagedFrame]>,
    /// The walk ended where a read failed or contradicted another, and nothing else has led to the frames beyond.
    pub torn: bool,
    /// Why there may be more of them, otherwise.
    pub incomplete: Option<Reason>,
    /// What the innermost says of the leaf.
    pub leaf: LeafMethod,
}

/// The methods that a native frame executes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameMethods {
    /// Innermost first: a compiler inlines some methods into others.
    pub frames: Vec<ManagedFrame>,
    /// How well the instruction of the innermost is known.
    pub precision: Precision,
}

/// What the innermost managed frame says of the leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LeafMethod {
    /// It is what the leaf executes, or has called what that is in.
    #[default]
    Known,
    /// The loop's registers say nothing yet or no longer: the method is that of the thread's top frame, its bytecode pc the last one known.
    Transition,
    /// The leaf's own method has not published its frame: the innermost is its caller's.
    Unpublished,
}

/// What the compiler of a VM does: how soon samples of its code have to be looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeChange {
    /// Nothing, or that is not known.
    None,
    /// It adds code.
    Added,
    /// It throws code away, and puts other code into its place.
    Replaced,
}

/// How managed frames are merged with native ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeOrder {
    /// Both lie on the native stack: a managed frame lies inside its caller's native frame.
    ByAddress,
    /// Managed frames lie elsewhere: each native frame of a loop stands for the managed frames up to the next one that native code
    /// called.
    ByLoop,
}

/// The methods of a process, as its VM's pointers name them.
pub trait Methods {
    /// The process.
    fn process(&mut self) -> &mut Process;

    /// What a method pointer stands for; read from the process the first time it is seen.
    fn method(&mut self, pointer: u64) -> Method;

    /// Whether it is known what a pointer stands for.
    fn is_known(&self, pointer: u64) -> bool;

    /// Makes a pointer stand for a method.
    fn insert(&mut self, pointer: u64, method: Method);
}

/// A kind of VM: how one is recognised in a process.
pub trait VmKind: fmt::Debug + Sync {
    /// What people call it.
    fn name(&self) -> &'static str;

    /// Whether a file of this path is a library of this kind, whatever build of it.
    fn is_library(&self, _path: &Path) -> bool {
        false
    }

    /// The VM that describes itself so in a tunnel, or that a library of a known build is; None: it is another kind's.
    fn recognise(&self, facts: &VmFacts) -> Option<Rc<dyn Vm>>;

    /// The format of its bytecode files, if that is not dex.
    fn bytecode(&self) -> Option<&'static dyn BytecodeFormat> {
        None
    }

    /// What a library of this kind says itself of how frames are linked; None: libraries of this kind are not asked.
    fn read_library(&self, _file: &ForeignFile) -> Option<Result<Rc<LibraryLayout>, LayoutError>> {
        None
    }

    /// The build with this build-id, if this kind's table has it.
    fn build(&self, _build_id: &[u8]) -> Option<&'static Build> {
        None
    }
}

/// The VM of a process.
pub trait Vm: fmt::Debug {
    /// What is known of it, as of any VM.
    fn facts(&self) -> &VmFacts;

    /// Takes away what a record has of frames that are no more, before its native frames are unwound.
    fn drop_stale(&self, _record: &CapturedSample, _frames: &mut Cow<'_, [ManagedFrame]>) {}

    /// Whether nothing native lies between a leaf in code of this kind and the innermost managed frame: the leaf is the frame's own
    /// interpreter, or assembly that invokes a method.
    fn leaf_is_managed(&self, record: &CapturedSample, leaf: Option<CodeKind>) -> bool {
        leaf == Some(CodeKind::Bridge) || record.has(flags::IN_BODY)
    }

    /// The managed frames of a record, whose native frames have been unwound: `walked` are those that the shim found.
    fn frames<'r>(
        &self,
        sample: &Unwound<'r>,
        walked: ManagedStack<'r>,
        process: &mut dyn Methods,
    ) -> ManagedStack<'r>;

    /// What the code at an address does, if it is the VM's; its compiled code included.
    fn code_at(&self, address: Address, _process: &Process) -> Option<CodeKind> {
        self.facts().code_at(address.get())
    }

    /// How a native frame of a sample is left that is one of compiled code; None: it is none, or that is not known.
    fn unwind_rule(
        &self,
        _frame: &NativeFrame,
        _sample: &CapturedSample,
        _process: &Process,
    ) -> Option<CodeRule> {
        None
    }

    /// The methods that a native frame in code of [`CodeKind::NativeFrames`] or [`CodeKind::Compiled`] executes.
    ///
    /// # Errors
    ///
    /// What the frame shows is no instruction of its method, as in the middle of a call.
    fn native_frame(
        &self,
        _frame: &NativeFrame,
        _sample: &CapturedSample,
        _process: &mut dyn Methods,
    ) -> Result<FrameMethods, Reason> {
        Err(Reason::ArtQuick)
    }

    /// The methods that a frame of compiled code executes which the shim has walked: `method` is at its stack pointer, and
    /// the call that it has made returns to `returns`; `time` is that of the sample.
    ///
    /// # Errors
    ///
    /// Why they are not known.
    fn compiled_frame(
        &self,
        _sp: Address,
        _method: Address,
        _returns: Address,
        _time: MonotonicNs,
        _process: &mut dyn Methods,
    ) -> Result<FrameMethods, Reason> {
        Err(Reason::ArtQuick)
    }

    /// Whether a mapping of this path may be the first that holds code which the VM's compiler has made: the shim is told something else then.
    fn adds_compiled_code(&self, _path: &Path) -> bool {
        false
    }

    /// What the shim is told about the process.
    fn target(&self, flags: u32, _space: &AddressSpace) -> Target {
        self.facts().target(flags)
    }

    /// Whether a noted native method is still running: the note may outlive its frame. `callee`: the kind of code of the outermost native frame
    /// below it, which for a live one is the code that calls native methods.
    fn has_live_native_method(&self, callee: Option<CodeKind>) -> bool {
        callee == Some(CodeKind::Bridge)
    }

    /// How its frames are merged with native ones.
    fn merge_order(&self) -> MergeOrder {
        MergeOrder::ByAddress
    }

    /// The leaf's bytecode pc, if two samples with equal frames can differ only in it: then the callers of the thread's last sample
    /// are used again. None: they may differ otherwise.
    fn leaf_pc_if_only_difference(
        &self,
        _record: &CapturedSample,
        _space: &AddressSpace,
    ) -> Option<u64> {
        None
    }

    /// Called when the VM was found in a process: what changes in it is observed from now on.
    fn found(&self, _process: &Process) {}

    /// Called after each batch of samples: what was read from the process may be outdated for the next ones. Whether the VM has changed
    /// its description.
    fn end_batch(&self, process: &Process) -> bool {
        self.facts().has_changed(process.pid, None)
    }

    /// Whether the process has compiled code, of whose innermost frames some are only found by unwinding the copy of the stack.
    fn unwinds_compiled_code(&self) -> bool {
        false
    }

    /// What the VM's compiler does at present.
    fn code_change(&self) -> CodeChange {
        CodeChange::None
    }

    /// The same VM as it describes itself now, with what was read from the process for it. None: it keeps nothing of that.
    fn with_new_description(&self, _facts: &VmFacts) -> Option<Rc<dyn Vm>> {
        None
    }

    /// The same VM in a forked process, with nothing that was read from its parent. None: it keeps nothing of that.
    fn forked(&self) -> Option<Rc<dyn Vm>> {
        None
    }

    /// Puts methods in the place of what the VM stores instead of their addresses.
    fn restore(&self, _process: &mut dyn Methods, _frames: &mut [ManagedFrame]) {}

    /// What a method pointer stands for, read from the process's memory.
    ///
    /// # Errors
    ///
    /// It cannot be read, or what is read contradicts itself.
    fn method(
        &self,
        process: &mut Process,
        pointer: u64,
    ) -> Result<Method, varid_tunnel::TunnelError>;
}
