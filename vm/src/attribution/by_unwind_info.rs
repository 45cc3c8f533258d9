//! Which methods run in a VM whose build nobody knows? Those that its interpreters' unwind information names.
//!
//! The whole stack is unwound, and every native frame that says which bytecode it executes
//! stands for a managed frame. What the VM does between two of them is left out where the
//! caller's instruction invokes just the method that the callee is: nothing but the call lies
//! there. All else is shown, or marked as left out, as for any VM. Of JNI methods there is
//! their native code only.

use super::chain::Chain;
use super::shared_code::bytecode_at;
use super::unwinding::leaf_only;
use crate::ManagedProcess;
use crate::seam::stack_copy::stack_of;
use std::rc::Rc;
use varid_model::{Address, Reason, Stack};
use varid_process::{CodeImage, MappedCode};
use varid_shim::CapturedSample;
use varid_unwind::{BytecodePc, NativeFrame, NativeStack, bytecode_pc};

/// The user part of a record's callchain.
pub(super) fn attribute(record: &CapturedSample, ip: u64, chain: Chain<'_>, stack: Stack) {
    let mut native = NativeStack::default();
    match stack {
        Stack::None => leaf_only(&mut native, record, ip),
        Stack::Vertical | Stack::Full => {
            let mut code = MappedCode::new(chain.process.space());
            native.unwind(&record.regs, stack_of(record), None, &mut code);
        }
    }
    let says: Vec<BytecodePc> = native
        .frames
        .iter()
        .map(|frame| {
            let mut code = MappedCode::new(chain.process.space());
            bytecode_pc(stack_of(record), frame, &mut code)
        })
        .collect();
    let mut merged = Merged {
        chain,
        stack,
        callee: None,
        between: Vec::new(),
    };
    for (depth, (frame, says_frame)) in native.frames.iter().zip(&says).enumerate() {
        let caller = says.get(depth.saturating_add(1));
        match says_frame {
            // The function that an interpreter's trampoline calls is the interpreter.
            BytecodePc::NoInterpreter if matches!(caller, Some(BytecodePc::MethodAt(_))) => {}
            BytecodePc::NoInterpreter => merged.native(frame),
            BytecodePc::Unknown => merged.unknown(frame),
            BytecodePc::At(pc) => merged.managed(pc.get(), Executed::at),
            BytecodePc::MethodAt(pc) => merged.managed(pc.get(), Executed::entered),
        }
    }
    if stack == Stack::Full {
        merged.show_between();
    }
    let mut chain = merged.chain;
    chain.leaf_at_least();
    // Any of the frames that are missing may be managed.
    if let Some(error) = &native.stopped {
        chain.missing(error.reason());
    }
}

/// A callchain as far as it has been merged.
struct Merged<'a> {
    chain: Chain<'a>,
    stack: Stack,
    /// The interpreter's frame that came last, if there was one.
    callee: Option<Result<Executed, Reason>>,
    /// Native frames since then.
    between: Vec<NativeFrame>,
}

impl Merged<'_> {
    fn native(&mut self, frame: &NativeFrame) {
        if self.callee.is_some() {
            self.between.push(*frame);
        } else {
            self.chain.native(frame.address);
        }
    }

    fn show_between(&mut self) {
        for frame in std::mem::take(&mut self.between) {
            self.chain.native(frame.address);
        }
    }

    /// An interpreter that enters or leaves a method: which one it does not say.
    fn unknown(&mut self, frame: &NativeFrame) {
        self.leave_out_or_show();
        self.chain.native(frame.address);
        self.chain.missing(Reason::TornFrames);
        self.callee = Some(Err(Reason::TornFrames));
    }

    /// An interpreter that executes what `executed` finds at `pc`.
    fn managed(
        &mut self,
        pc: u64,
        executed: impl Fn(&mut ManagedProcess, u64) -> Result<Executed, Reason>,
    ) {
        let frame = executed(self.chain.process, pc);
        if self.is_call_to_callee(&frame) {
            self.between.clear();
        } else {
            self.leave_out_or_show();
        }
        let place = frame.as_ref().map(|frame| frame.pc);
        self.chain.method(place.map_err(|reason| *reason));
        self.callee = Some(frame);
    }

    fn leave_out_or_show(&mut self) {
        if self.stack == Stack::Full {
            self.show_between();
        } else {
            self.chain.native_stretch |= !self.between.is_empty();
            self.between.clear();
        }
    }

    /// What lies between two managed frames is the VM's work for the one invoke.
    fn is_call_to_callee(&self, caller: &Result<Executed, Reason>) -> bool {
        let (Ok(caller), Some(Ok(callee))) = (caller, &self.callee) else {
            return false;
        };
        let process = &self.chain.process;
        let of_vm = |frame: &NativeFrame| process.is_in_vm_library(frame.lookup().get());
        self.between.iter().all(of_vm) && caller.invokes(callee) == Some(true)
    }
}

/// An instruction that a managed frame executes.
struct Executed {
    pc: u64,
    image: Rc<CodeImage>,
    /// Where that is in the file.
    offset: u32,
    /// The method's index.
    method: u32,
    /// It is the method's first.
    first: bool,
}

impl Executed {
    /// The instruction at an address, if that is in a method of a mapped dex file.
    fn at(process: &mut ManagedProcess, pc: u64) -> Result<Self, Reason> {
        if !process.process.has_bytecode_at(pc) {
            return Err(Reason::UnknownMapping);
        }
        let found = bytecode_at(process.space(), Address::new(pc));
        let (image, offset) = found.ok_or(Reason::UnknownMapping)?;
        let method = image
            .bytecode
            .method_at(offset)
            .ok_or(Reason::UnknownMethod)?;
        Ok(Self {
            pc,
            image: image.clone(),
            offset,
            method: method.index,
            first: method.code.start == offset,
        })
    }

    /// The instruction at an address, which must be a method's first.
    fn entered(process: &mut ManagedProcess, pc: u64) -> Result<Self, Reason> {
        Self::at(process, pc)
            .and_then(|executed| executed.first.then_some(executed).ok_or(Reason::TornFrames))
    }

    /// Whether the instruction invokes a method of just this name and signature.
    fn invokes(&self, callee: &Self) -> Option<bool> {
        let (own, other) = (&self.image.bytecode, &callee.image.bytecode);
        let Some(invoked) = own.invoked_method(self.offset) else {
            return Some(false);
        };
        Some(
            own.simple_name(invoked.index)? == other.simple_name(callee.method)?
                && own.descriptor(invoked.index)? == other.descriptor(callee.method)?,
        )
    }
}
