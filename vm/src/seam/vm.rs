//! The VM of a process, as traits by caller. A default method means that the VM has no such feature; everything else must be implemented.

use super::{CodeKind, FrameMethods, ManagedStack, MergeOrder, Method, Methods, Unwound};
use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::rc::Rc;
use varid_model::{Address, Machine, MonotonicNs, Pid, Reason};
use varid_process::{AddressSpace, Process};
use varid_shim::{CapturedSample, ManagedFrame, Target};
use varid_tunnel::abi::VmFile;
use varid_tunnel::{PublishedBytecode, TunnelError};
use varid_unwind::{CodeRule, NativeFrame};

/// The VM of a process.
pub trait Vm: VmAbout + VmTarget + VmChanges + VmCode + VmFrames + VmMethods {}

impl<V: VmAbout + VmTarget + VmChanges + VmCode + VmFrames + VmMethods> Vm for V {}

/// Identifies a VM to users, and lists what it publishes.
pub trait VmAbout: fmt::Debug {
    /// The name of the VM and its build, such as "ART 14.0.0+r15 (Debian 13, amd64)".
    fn title(&self) -> String;

    /// Where its layout comes from, such as "its tunnel".
    fn layout_source(&self) -> String;

    /// The bytecode files that it reports.
    fn published(&self) -> &[PublishedBytecode] {
        &[]
    }

    /// The state of its call-counting agent.
    fn agent(&self, _pid: Pid) -> Agent {
        Agent::Absent
    }
}

/// An agent in a VM that counts calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    /// No agent.
    Absent,
    /// An agent that cannot be controlled: an older version, or one inherited from a parent process.
    Uncontrolled,
    /// An agent that reads `control` and, once it has started, counts in `calls`.
    Controlled {
        /// The control page.
        control: VmFile,
        /// The table of counts.
        calls: Option<VmFile>,
    },
}

/// Configures the shim for a process with the VM.
pub trait VmTarget {
    /// Returns the process's target entry. `flags`: `varid_shim::target_flags`.
    fn target(&self, flags: u32, space: &AddressSpace) -> Target;
}

/// Tracks changes of a VM while its process runs.
pub trait VmChanges {
    /// Called once the VM is found. The VM starts to observe its changes.
    fn found(&self, _process: &Process) {}

    /// Called after each batch of samples. Data read from the process may be outdated for the next batch.
    fn end_batch(&self, process: &Process) -> Refreshed;

    /// Returns the VM for a forked process, without data read from the parent.
    fn forked(&self) -> Rc<dyn Vm>;
}

/// The result of [`VmChanges::end_batch`].
#[derive(Debug)]
pub enum Refreshed {
    /// Unchanged.
    Same,
    /// Replaced by `vm`.
    Vm {
        /// The VM, with the previous one's data that is still valid.
        vm: Rc<dyn Vm>,
        /// The methods and their addresses are unchanged.
        same_methods: bool,
    },
    /// The process now describes a VM of another kind.
    Other,
}

/// The VM's own code, which is its library and what it generates once at start, and where the frames of that code lie.
pub trait VmCode {
    /// Returns what the code at `address` does, or None if it is not the VM's.
    fn code_at(&self, address: Address) -> Option<CodeKind>;

    /// Returns true if any of it lies in `start..end`.
    fn has_code_in(&self, start: Address, end: Address) -> bool;

    /// Returns true if its frames lie on the threads' native stacks.
    fn is_on_native_stack(&self) -> bool;

    /// Returns true if frames of the code at `address` are native frames with the method at the stack pointer.
    fn is_at_sp(&self, address: Address) -> bool;
}

/// The code that a VM's compiler generates.
pub trait VmCompiler {
    /// Returns true if the process is known to have compiled code. Some of the innermost frames can then be found only by unwinding the copy of
    /// the stack.
    fn has_code(&self) -> bool;

    /// Returns true if `address` is in compiled code.
    fn is_code(&self, address: Address, process: &Process) -> bool;

    /// How the compiler currently changes its code.
    fn change(&self) -> CodeChange;

    /// Returns true if mapping `path` can add the first compiled code. The caller then updates the shim's target.
    fn may_be_in(&self, path: &Path) -> bool;

    /// Looks in the running process for its first compiled code, before the record of the code's mapping is read: its compiler may be at work by
    /// then. Returns true if it is found. The caller then updates the shim's target.
    fn finds_first_code(&self, _pid: Pid) -> bool {
        false
    }

    /// Called with each sample that is about to be attributed, so that what its frames need can be read at once.
    fn expect(&self, _sample: &CapturedSample) {}

    /// Returns how to leave a native frame of compiled code. None if it is other code, or what is known of the code does not tell: the
    /// machine's conventions may lead to the caller.
    fn unwind_rule(
        &self,
        frame: &NativeFrame,
        sample: &CapturedSample,
        process: &Process,
    ) -> Option<CodeRule>;

    /// Returns the methods that a native frame executes. None if it is not compiled code.
    ///
    /// # Errors
    ///
    /// The reason why the methods are not known.
    fn native_frame(
        &self,
        frame: &NativeFrame,
        sample: &CapturedSample,
        process: &mut dyn Methods,
    ) -> Option<Result<FrameMethods, Reason>>;

    /// Returns the code in which leaves were sampled since the last call, each piece of code once.
    fn take_executed_code(&self) -> Vec<ExecutedCode> {
        Vec::new()
    }

    /// Returns the methods of a compiled frame that the shim walked.
    ///
    /// # Errors
    ///
    /// The reason why the methods are not known.
    fn walked_frame(
        &self,
        frame: WalkedCompiledFrame,
        process: &mut dyn Methods,
    ) -> Result<FrameMethods, Reason>;
}

/// Code that a VM's compiler generated, as it was when it was first sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutedCode {
    /// The time of its first sample.
    pub since: MonotonicNs,
    /// The address of its first instruction.
    pub start: Address,
    /// The machine of its instructions.
    pub machine: Machine,
    /// What it is: `C2 #812 of org.example.App.run`.
    pub name: String,
    /// Its instructions. Empty if they cannot be read.
    pub bytes: Vec<u8>,
}

/// A frame of compiled code that the shim walked.
#[derive(Debug, Clone, Copy)]
pub struct WalkedCompiledFrame {
    /// Its stack pointer.
    pub sp: Address,
    /// The method pointer stored there.
    pub method: Address,
    /// The return address of its current call.
    pub returns: Address,
    /// The time of the sample.
    pub time: MonotonicNs,
}

/// How a VM's compiler changes its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeChange {
    /// It does not at present, or that is not known.
    None,
    /// It adds code.
    Added,
    /// It frees code and reuses its memory.
    Replaced,
}

/// Finds the managed frames of a sample.
pub trait VmFrames {
    /// How its frames are merged with native ones.
    fn merge_order(&self) -> MergeOrder;

    /// Replaces the VM's method numbers in `frames` by addresses.
    fn restore(&self, _process: &mut dyn Methods, _frames: &mut [ManagedFrame]) {}

    /// Removes frames that have already returned. Called before the native frames are unwound.
    fn drop_stale(&self, _record: &CapturedSample, _frames: &mut Cow<'_, [ManagedFrame]>) {}

    /// Returns true if no native frame lies between a leaf in code of this kind and the innermost managed frame: the leaf is that frame's
    /// interpreter, or assembly that invokes a method.
    fn leaf_is_managed(&self, record: &CapturedSample, leaf: Option<CodeKind>) -> bool;

    /// Returns the managed frames of a sample. `walked`: the frames that the shim found.
    fn frames<'r>(
        &self,
        sample: &Unwound<'r>,
        walked: ManagedStack<'r>,
        process: &mut dyn Methods,
    ) -> ManagedStack<'r>;

    /// Returns the frame that stands for the class of the object that a sample allocates. None: it allocates none, or the class is not known.
    fn allocated_class(
        &self,
        _sample: &CapturedSample,
        _process: &Process,
    ) -> Option<ManagedFrame> {
        None
    }

    /// Its compiled code. None if the VM has no compiler.
    fn compiler(&self) -> Option<&dyn VmCompiler> {
        None
    }

    /// Returns the method of a native frame in code of [`CodeKind::NativeFrames`], or of [`CodeKind::Compiled`] that the compiler does not know.
    ///
    /// # Errors
    ///
    /// The frame does not show an instruction of its method, as in the middle of a call.
    fn native_frame(
        &self,
        _frame: &NativeFrame,
        _sample: &CapturedSample,
        _process: &mut dyn Methods,
    ) -> Result<FrameMethods, Reason> {
        Err(Reason::UnknownCompiledCode)
    }

    /// The kind of code that calls native methods. The VM's note of a native method is valid only if a frame of this kind lies below it.
    fn native_caller(&self) -> CodeKind;

    /// Returns the leaf's bytecode pc if samples with equal frames can differ only in it. The callers of the thread's last sample are then
    /// reused. None if they can differ otherwise.
    fn leaf_pc_if_only_difference(
        &self,
        _record: &CapturedSample,
        _space: &AddressSpace,
    ) -> Option<u64> {
        None
    }
}

/// Resolves method pointers.
pub trait VmMethods {
    /// Reads what a method pointer stands for from the process's memory.
    ///
    /// # Errors
    ///
    /// The memory cannot be read, or is inconsistent.
    fn method(&self, process: &mut Process, pointer: u64) -> Result<Method, TunnelError>;
}
