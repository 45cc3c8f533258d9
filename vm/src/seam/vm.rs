//! What does the VM of a process answer?
//!
//! Its questions stand in traits by who asks them. A default says that the VM has nothing of the kind: what a VM must know has none.

use super::{CodeKind, FrameMethods, ManagedStack, MergeOrder, Method, Methods, Unwound};
use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::rc::Rc;
use varid_model::{Address, MonotonicNs, Pid, Reason};
use varid_process::{AddressSpace, Process};
use varid_shim::{CapturedSample, ManagedFrame, Target};
use varid_tunnel::abi::VmFile;
use varid_tunnel::{PublishedBytecode, TunnelError};
use varid_unwind::{CodeRule, NativeFrame};

/// The VM of a process.
pub trait Vm: VmAbout + VmTarget + VmChanges + VmCode + VmFrames + VmMethods {}

impl<V: VmAbout + VmTarget + VmChanges + VmCode + VmFrames + VmMethods> Vm for V {}

/// What people are told of a VM, and what it has beside its frames.
pub trait VmAbout: fmt::Debug {
    /// The VM, as far as it is known, as in "ART 14 of Debian".
    fn title(&self) -> String;

    /// Who says how its frames are linked, as in "its tunnel".
    fn known_by(&self) -> String;

    /// The files of bytecode that it says it executes.
    fn published(&self) -> &[PublishedBytecode] {
        &[]
    }

    /// The agent that counts calls in it.
    fn agent(&self, _pid: Pid) -> Agent {
        Agent::Absent
    }
}

/// An agent in a VM that counts calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    /// There is none.
    Absent,
    /// There is one that cannot be told what to count: one of an older version, or a forked process's parent's.
    Uncontrolled,
    /// It reads what is wanted of it in `control`, and counts in `calls`, once it has begun.
    Controlled {
        /// Where it reads what is wanted.
        control: VmFile,
        /// Where it counts.
        calls: Option<VmFile>,
    },
}

/// What the shim is told of a process with the VM.
pub trait VmTarget {
    /// The process's entry; `flags`: `varid_shim::target_flags`.
    fn target(&self, flags: u32, space: &AddressSpace) -> Target;
}

/// How a VM's code and what it says of itself change while the process runs.
pub trait VmChanges {
    /// Called when the VM was found in a process: what changes in it is observed from now on.
    fn found(&self, _process: &Process) {}

    /// Called after each batch of samples: what was read from the process may be outdated for the next ones.
    fn end_batch(&self, process: &Process) -> Refreshed;

    /// The same VM in a forked process, with nothing that was read from its parent.
    fn forked(&self) -> Rc<dyn Vm>;
}

/// What a VM says of itself after a batch.
#[derive(Debug)]
pub enum Refreshed {
    /// The same as before.
    Same,
    /// This.
    Vm {
        /// The VM, with what was read from the process for the one before as far as it still holds.
        vm: Rc<dyn Vm>,
        /// The same methods, at the same places.
        same_methods: bool,
    },
    /// It is no VM of its kind any more.
    Other,
}

/// What the VM's own code does: that of its library, and what it has generated once and for all.
pub trait VmCode {
    /// What the code at an address does, if it is the VM's own.
    fn code_at(&self, address: Address) -> Option<CodeKind>;

    /// Whether any of it lies between these addresses.
    fn has_code_in(&self, start: Address, end: Address) -> bool;

    /// Whether frames of the code at an address are native frames with their method at the stack pointer.
    fn is_at_sp(&self, address: Address) -> bool;
}

/// What a VM's compiler makes.
pub trait VmCompiler {
    /// Whether the process has any of it, as far as is known: some of the innermost frames are only found by unwinding the copy of the
    /// stack then.
    fn has_code(&self) -> bool;

    /// Whether there is compiled code at an address.
    fn is_code(&self, address: Address, process: &Process) -> bool;

    /// What it does at present.
    fn change(&self) -> CodeChange;

    /// Whether what the shim is told may be something else once code of a file of this path is mapped: the first that holds compiled code.
    fn may_be_in(&self, path: &Path) -> bool;

    /// How a native frame of a sample is left that is one of compiled code. None: it is none, or that is not known.
    fn unwind_rule(
        &self,
        frame: &NativeFrame,
        sample: &CapturedSample,
        process: &Process,
    ) -> Option<CodeRule>;

    /// The methods that a native frame of compiled code executes. None: it is none.
    ///
    /// # Errors
    ///
    /// Why they are not known.
    fn native_frame(
        &self,
        frame: &NativeFrame,
        sample: &CapturedSample,
        process: &mut dyn Methods,
    ) -> Option<Result<FrameMethods, Reason>>;

    /// The methods that a frame of compiled code executes which the shim has walked.
    ///
    /// # Errors
    ///
    /// Why they are not known.
    fn walked_frame(
        &self,
        frame: WalkedCompiledFrame,
        process: &mut dyn Methods,
    ) -> Result<FrameMethods, Reason>;
}

/// A frame of compiled code that the shim has walked.
#[derive(Debug, Clone, Copy)]
pub struct WalkedCompiledFrame {
    /// Its stack pointer.
    pub sp: Address,
    /// What the VM stores there: its method.
    pub method: Address,
    /// Where the call that it has made returns to.
    pub returns: Address,
    /// When it was sampled.
    pub time: MonotonicNs,
}

/// What the compiler of a VM does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeChange {
    /// Nothing, or that is not known.
    None,
    /// It adds code.
    Added,
    /// It throws code away, and puts other code into its place.
    Replaced,
}

/// Which managed frames a sample has, and which methods they are of.
pub trait VmFrames {
    /// How its frames are merged with native ones.
    fn merge_order(&self) -> MergeOrder;

    /// Whether its frames are addresses on the threads' native stacks.
    fn is_on_native_stack(&self) -> bool;

    /// Puts methods in the place of what the VM stores instead of their addresses.
    fn restore(&self, _process: &mut dyn Methods, _frames: &mut [ManagedFrame]) {}

    /// Takes away what a record has of frames that are no more, before its native frames are unwound.
    fn drop_stale(&self, _record: &CapturedSample, _frames: &mut Cow<'_, [ManagedFrame]>) {}

    /// Whether nothing native lies between a leaf in code of this kind and the innermost managed frame: the leaf is the frame's own
    /// interpreter, or assembly that invokes a method.
    fn leaf_is_managed(&self, record: &CapturedSample, leaf: Option<CodeKind>) -> bool;

    /// The managed frames of a record, whose native frames have been unwound: `walked` are those that the shim found.
    fn frames<'r>(
        &self,
        sample: &Unwound<'r>,
        walked: ManagedStack<'r>,
        process: &mut dyn Methods,
    ) -> ManagedStack<'r>;

    /// What its compiler makes; None: it has none.
    fn compiler(&self) -> Option<&dyn VmCompiler> {
        None
    }

    /// The method that a native frame in code of [`CodeKind::NativeFrames`] executes.
    ///
    /// # Errors
    ///
    /// What the frame shows is no instruction of its method, as in the middle of a call; or the VM has no such frames.
    fn native_frame(
        &self,
        _frame: &NativeFrame,
        _sample: &CapturedSample,
        _process: &mut dyn Methods,
    ) -> Result<FrameMethods, Reason> {
        Err(Reason::UnknownCompiledCode)
    }

    /// What its code is that calls native methods: the native frame below a noted native method that still runs. The note may outlive it.
    fn native_caller(&self) -> CodeKind;

    /// The leaf's bytecode pc, if two samples with equal frames can differ only in it: then the callers of the thread's last sample
    /// are used again. None: they may differ otherwise.
    fn leaf_pc_if_only_difference(
        &self,
        _record: &CapturedSample,
        _space: &AddressSpace,
    ) -> Option<u64> {
        None
    }
}

/// Which methods a VM's pointers stand for.
pub trait VmMethods {
    /// What a method pointer stands for, read from the process's memory.
    ///
    /// # Errors
    ///
    /// It cannot be read, or what is read contradicts itself.
    fn method(&self, process: &mut Process, pointer: u64) -> Result<Method, TunnelError>;
}
