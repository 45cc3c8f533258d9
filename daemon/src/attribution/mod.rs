//! Attribution: from what the shim saw to the frames that a profile shows.
//!
//! Native frames come from unwinding, managed ones from the walk, and the two are merged by
//! address: a managed frame lies inside the native frame of its caller. A native frame of an
//! interpreter loop stands for the managed frame that it executes and is replaced by it.

mod remap;

pub use remap::RemapTable;

use crate::process::{Image, Method, Process, Vm};
use crate::unwind::{CodeAt, NativeFrame, NativeStack, UnwindError, unwind};
use varid_recording::{Marker, Reason, Stack};
use varid_shim::{ManagedFrame, Record, Step, Walk, flags, frame_flags};
use varid_tunnel::abi::{
    LAYOUT_ON_NATIVE_STACK, LAYOUT_SHADOW, RANGE_BODY, RANGE_BRIDGE, RANGE_INTERPRETER,
    RANGE_QUICK, RANGE_VM,
};

/// A sample's user frames.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attributed {
    /// Leaf first; callers as return addresses, managed ones as the invoke's address + 1.
    pub user: Vec<u64>,
    /// The leaf was in a window of the interpreter where its registers say nothing yet or no
    /// longer: the method is that of the thread's top frame, its bytecode the last known.
    pub transition: bool,
}

/// Attributes a record. `stack` is what the session was asked for.
pub fn attribute(
    record: &Record,
    process: &mut Process,
    remap: &mut RemapTable,
    stack: Stack,
) -> Attributed {
    // A kernel thread has no user part.
    let Some(ip) = record.regs.ip().filter(|ip| *ip != 0) else {
        return Attributed::default();
    };
    let vm = process.vm.clone();
    let vm = vm.as_deref();
    let leaf_kind = vm.and_then(|vm| vm.range(ip));
    let in_interpreter = match leaf_kind {
        Some(kind) => matches!(kind, RANGE_BODY | RANGE_INTERPRETER),
        None => process.vm_problem.is_some() && process.is_in_vm_library(ip),
    };
    let mut chain = Chain {
        process,
        remap,
        ip,
        // A kernel sample's user frames are all callers of the kernel's.
        leaf: !record.has(flags::IN_KERNEL),
        native_stretch: false,
        user: Vec::with_capacity(record.frames.len().saturating_add(8)),
    };

    let mut managed = record.frames.clone();
    if vm.is_some_and(|vm| vm.layout.kind == LAYOUT_SHADOW && on_native_stack(vm)) {
        drop_unwound(&mut managed, record);
    }
    // In the loop itself, and in what it calls to invoke a method (assembly that is no better
    // than approximate about its frame), there is nothing between the leaf and the frames.
    let entered_natively =
        !record.has(flags::IN_BODY) && managed.first().is_some_and(ManagedFrame::is_quick);
    let nothing_between =
        (record.has(flags::IN_BODY) || leaf_kind == Some(RANGE_BRIDGE)) && !managed.is_empty();
    let native = if stack == Stack::None || (nothing_between && stack == Stack::Vertical) {
        NativeStack {
            frames: leaf_only(record, ip),
            end: None,
            stopped: None,
        }
    } else {
        let until = managed
            .iter()
            .find(|frame| !frame.is_quick())
            .filter(|_| stack == Stack::Vertical && vm.is_some_and(on_native_stack))
            .map(|frame| frame.addr);
        unwind_in(chain.process, record, until)
    };
    // A JNI method's frame comes first: its native code may have called what the leaf is in.
    chain.native_stretch = nothing_between && entered_natively && stack == Stack::Vertical;
    let mut incomplete = record.has(flags::FRAMES_TRUNCATED) && stack != Stack::None;
    if let Some(vm) = vm {
        // Not walked at the sample: the copy of the stack holds the inner frames.
        if record.has(flags::NO_WALK) || record.has(flags::NOT_READY) {
            (managed, incomplete) = walk_copy(record, vm, &native);
        }
        if on_native_stack(vm) {
            drop_repeated(&mut managed);
        }
        exact_pcs(&mut managed, vm, &native);
    }

    let unpublished = vm.is_some_and(|vm| is_unpublished(vm, leaf_kind, &native, &managed));
    if unpublished {
        chain.native(ip);
        chain.marker(Marker::Reason(Reason::TornFrames));
    }
    chain.merge(record, &native, &managed, vm, stack);
    chain.finish(record, &native, &managed, in_interpreter, incomplete);
    let transition = leaf_kind == Some(RANGE_INTERPRETER) && !managed.is_empty();
    Attributed {
        user: chain.user,
        transition,
    }
}

fn on_native_stack(vm: &Vm) -> bool {
    vm.layout.flags & LAYOUT_ON_NATIVE_STACK != 0
}

/// Records below sp are of methods that an exception has left, and that the one which caught
/// it has not taken back yet. Where all are, sp is on another stack (a signal's, a
/// coroutine's), and says nothing about them.
fn drop_unwound(managed: &mut Vec<ManagedFrame>, record: &Record) {
    let sp = record.regs.sp().unwrap_or(0);
    if let Some(live) = managed.iter().position(|frame| frame.addr >= sp) {
        managed.drain(..live);
    }
}

/// While the VM begins a new fragment, the frames of the last one are in both: a caller's
/// frame lies above, so what does not is a frame again.
fn drop_repeated(managed: &mut Vec<ManagedFrame>) {
    let mut last = 0;
    managed.retain(|frame| {
        let above = frame.addr > last;
        last = last.max(frame.addr);
        above
    });
}

/// A method that keeps a shadow record says so a little after its native frame is there, and
/// takes it back a little before: in between, the innermost record is its caller's. It is
/// recognised by where the record says it was made: not within the leaf's own frame.
fn is_unpublished(
    vm: &Vm,
    leaf_kind: Option<u32>,
    native: &NativeStack,
    managed: &[ManagedFrame],
) -> bool {
    vm.layout.kind == LAYOUT_SHADOW
        && on_native_stack(vm)
        && leaf_kind == Some(RANGE_INTERPRETER)
        && native
            .frames
            .get(1)
            .zip(managed.first())
            .is_some_and(|(caller, innermost)| innermost.addr >= caller.sp)
}

fn leaf_only(record: &Record, ip: u64) -> Vec<NativeFrame> {
    vec![NativeFrame {
        ip,
        sp: record.regs.sp().unwrap_or(0),
        regs: record.regs,
        interrupted: true,
    }]
}

fn unwind_in(process: &Process, record: &Record, until: Option<u64>) -> NativeStack {
    unwind(record, until, |address| {
        let Some(mapped) = process.space.at(address) else {
            return CodeAt::None;
        };
        let elf = match &mapped.image {
            Image::Elf(elf) => elf,
            Image::Other(_) => return CodeAt::Unknown,
            Image::Dex(_) => return CodeAt::None,
        };
        let Some(elf) = elf.contents() else {
            return CodeAt::Unknown;
        };
        let module = elf.module.borrow_mut();
        let offset = address
            .wrapping_sub(mapped.start)
            .wrapping_add(mapped.pgoff);
        match module.address_of_offset(offset) {
            Some(address) => CodeAt::Module(module, address),
            None => CodeAt::Unknown,
        }
    })
}

/// The frames that the copy of the stack holds, from each interpreter frame's own registers;
/// and whether the copy ends before they do.
fn walk_copy(record: &Record, vm: &Vm, native: &NativeStack) -> (Vec<ManagedFrame>, bool) {
    let read = |address: u64, to: &mut [u8]| -> bool {
        record
            .stack_at(address, to.len())
            .map(|bytes| to.copy_from_slice(bytes))
            .is_some()
    };
    let mut managed: Vec<ManagedFrame> = Vec::new();
    for frame in &native.frames {
        let Some((address, pc)) = registers(vm, frame) else {
            continue;
        };
        if managed.last().is_some_and(|last| last.addr >= address) {
            continue;
        }
        let mut walk = Walk::from_frame(&vm.layout, address, pc, read);
        loop {
            match walk.step() {
                Step::Frame(found) => managed.push(found),
                Step::End => break,
                Step::Torn => return (managed, true),
            }
        }
    }
    let cut = native.stopped == Some(UnwindError::NoStack) && !managed.is_empty();
    (managed, cut)
}

fn word_of_stack(record: &Record, address: u64) -> Option<u64> {
    record
        .stack_at(address, 8)?
        .try_into()
        .ok()
        .map(u64::from_le_bytes)
}

/// The frame's address and bytecode pc that an interpreter loop's registers hold.
fn registers(vm: &Vm, frame: &NativeFrame) -> Option<(u64, u64)> {
    if vm.range(frame.lookup()) != Some(RANGE_BODY) {
        return None;
    }
    let address = frame.regs.get(u16::from(vm.layout.reg_frame))?;
    let pc = frame.regs.get(u16::from(vm.layout.reg_pc))?;
    Some((
        address.wrapping_add_signed(i64::from(vm.layout.reg_frame_bias)),
        pc,
    ))
}

/// A loop that called a helper need not have stored its pc; its register, restored by
/// unwinding, is the exact one.
fn exact_pcs(managed: &mut [ManagedFrame], vm: &Vm, native: &NativeStack) {
    for frame in &native.frames {
        let Some((address, pc)) = registers(vm, frame) else {
            continue;
        };
        if let Some(found) = managed
            .iter_mut()
            .find(|managed| managed.addr == address && !managed.is_quick())
        {
            found.pc = pc;
            found.flags &= !frame_flags::RELATIVE;
        }
    }
}

/// Which managed frame came last while native ones were merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    /// None yet.
    Nothing,
    /// One whose caller is managed, too.
    Fragment,
    /// One that native code may have called.
    Edge,
}

/// A callchain in the making.
struct Chain<'a> {
    process: &'a mut Process,
    remap: &'a mut RemapTable,
    /// The user's instruction.
    ip: u64,
    /// The next frame is the sampled instruction itself.
    leaf: bool,
    /// Native frames that nobody unwound lie before the next one.
    native_stretch: bool,
    user: Vec<u64>,
}

impl Chain<'_> {
    /// Native frames, and the managed ones that lie within them.
    fn merge(
        &mut self,
        record: &Record,
        native: &NativeStack,
        managed: &[ManagedFrame],
        vm: Option<&Vm>,
        stack: Stack,
    ) {
        let read = |address: u64| word_of_stack(record, address);
        let mut rest = managed;
        let mut inside = Inside::Nothing;
        let mut enclosing = None; // what the native frame below the next one is
        for (depth, frame) in native.frames.iter().enumerate() {
            while let Some((next, after)) = rest
                .split_first()
                .filter(|(next, _)| depth > 0 && next.addr < frame.sp)
            {
                // The VM's note of a quick frame outlives the frame; a live one is a trampoline's.
                if !next.is_quick() || enclosing == Some(RANGE_BRIDGE) {
                    self.managed(next);
                    inside = if next.is_quick() || next.is_outermost() {
                        Inside::Edge
                    } else {
                        Inside::Fragment
                    };
                }
                rest = after;
            }
            let kind = vm.and_then(|vm| vm.range(frame.lookup()));
            enclosing = kind;
            if let (Some(RANGE_QUICK), Some(vm)) = (kind, vm) {
                self.quick(frame, vm, read);
                inside = Inside::Edge;
                continue;
            }
            let among_managed = inside != Inside::Nothing || !rest.is_empty();
            let machinery = match kind {
                // Stands for the managed frame that it executes; without one it is all there is.
                Some(RANGE_BODY | RANGE_INTERPRETER) => among_managed,
                Some(RANGE_BRIDGE) => depth > 0 && among_managed,
                // Between two frames of one fragment there is nothing but an invoke.
                Some(RANGE_VM) => depth > 0 && !rest.is_empty() && inside == Inside::Fragment,
                _ => false,
            };
            if !machinery {
                self.native(frame.ip);
            }
        }
        // An interrupted loop has been left out for the frame that it executes: that is the leaf.
        while let Some((next, after)) = rest.split_first().filter(|_| self.leaf) {
            self.managed(next);
            self.native_stretch |= next.is_outermost();
            rest = after;
        }
        if self.leaf {
            self.native(self.ip);
        }
        if let Some(error) = native
            .stopped
            .as_ref()
            .filter(|_| stack == Stack::Full || !rest.is_empty())
        {
            self.marker(Marker::Reason(reason(error)));
        }
        for frame in rest {
            self.managed(frame);
            // Who called the outermost frame of a fragment is native; the next one out called that.
            // Whoever called a quick frame may have been nterp, which only an unwinder sees.
            self.native_stretch |= frame.is_outermost() || frame.is_quick();
        }
    }

    /// What is missing, said where it is missing.
    fn finish(
        &mut self,
        record: &Record,
        native: &NativeStack,
        managed: &[ManagedFrame],
        in_interpreter: bool,
        incomplete: bool,
    ) {
        if in_interpreter && managed.is_empty() {
            let reason = match &self.process.vm_problem {
                Some(_) => Reason::UnknownVm,
                None if record.has(flags::NOT_READY) => Reason::VmNotReady,
                None if native.stopped == Some(UnwindError::NoStack) => Reason::Truncated,
                None => Reason::TornFrames,
            };
            self.marker(Marker::Reason(reason));
        } else if record.has(flags::TORN) {
            self.marker(Marker::Reason(Reason::TornFrames));
        } else if incomplete {
            self.marker(Marker::Reason(Reason::Truncated));
        }
    }

    fn push(&mut self, address: u64) {
        self.user.push(address);
        self.leaf = false;
    }

    fn native(&mut self, ip: u64) {
        if self.process.space.at(ip).is_none() && self.leaf {
            self.push(ip);
            return self.marker(Marker::Reason(Reason::UnknownMapping));
        }
        self.push(ip);
    }

    fn marker(&mut self, marker: Marker) {
        // Looked up as a caller, one byte back.
        self.push(marker.address().wrapping_add(1));
    }

    fn managed(&mut self, frame: &ManagedFrame) {
        let place = self.place(frame);
        if place == Ok(None) {
            return;
        }
        if std::mem::take(&mut self.native_stretch) && !self.leaf {
            self.marker(Marker::Native);
        }
        match place {
            Ok(Some(address)) => self.push(address.wrapping_add(u64::from(!self.leaf))),
            Ok(None) => {}
            Err(reason) => {
                if self.leaf {
                    self.push(self.ip);
                }
                self.marker(Marker::Reason(reason));
            }
        }
    }

    /// A frame of an interpreter loop that keeps its frames as compiled code does: the method
    /// is at its sp, the pc in a register. In the middle of a call the two disagree.
    fn quick(&mut self, frame: &NativeFrame, vm: &Vm, read: impl Fn(u64) -> Option<u64>) {
        let pc = frame.regs.get(u16::from(vm.layout.reg_pc));
        let method = read(frame.sp).map(|pointer| self.process.method(pointer));
        match (pc, method) {
            (
                Some(pc),
                Some(Method::Known {
                    code: Some(code), ..
                }),
            ) if code.contains(&pc) => {
                self.push(pc.wrapping_add(u64::from(!self.leaf)));
            }
            _ => {
                self.native(frame.ip);
                self.marker(Marker::Reason(Reason::ArtQuick));
            }
        }
    }

    /// The address that stands for a managed frame; None: the VM's own method.
    fn place(&mut self, frame: &ManagedFrame) -> Result<Option<u64>, Reason> {
        if !frame.is_quick() && !frame.is_relative() {
            return match self.process.space.at(frame.pc).map(|mapped| &mapped.image) {
                Some(Image::Dex(_)) => Ok(Some(frame.pc)),
                _ => Err(Reason::UnknownMapping),
            };
        }
        match self.process.method(frame.method) {
            Method::Runtime => Ok(None),
            Method::Unknown => Err(Reason::UnknownMethod),
            Method::Known {
                code: Some(code), ..
            } if frame.is_relative() => {
                let pc = code.start.wrapping_add(frame.pc);
                if code.contains(&pc) {
                    Ok(Some(pc))
                } else {
                    Err(Reason::TornFrames)
                }
            }
            // Compiled code of a method that has bytecode: its entry stands for it.
            Method::Known {
                code: Some(code), ..
            } => Ok(Some(code.start)),
            Method::Known {
                dex,
                index,
                code: None,
            } => self
                .remap
                .slot(&dex, index)
                .map(Some)
                .ok_or(Reason::UnknownMethod),
        }
    }
}

fn reason(error: &UnwindError) -> Reason {
    match error {
        UnwindError::NoStack => Reason::Truncated,
        UnwindError::NoInfo(_) => Reason::NoUnwindInfo,
        UnwindError::NoCode(_) | UnwindError::NotAscending(_) => Reason::StackUnreadable,
    }
}

#[cfg(test)]
mod tests;
