//! Attribution: from what the shim saw to the frames that a profile shows.
//!
//! Native frames come from unwinding, managed ones from the walk, and the two are merged by
//! address: a managed frame lies inside the native frame of its caller. A native frame of an
//! interpreter loop stands for the managed frame that it executes and is replaced by it.

mod callchain_cache;
mod chain;
mod executed;
mod marked;
mod registers;
mod remap;
mod save_areas;

pub use callchain_cache::cached_callchain;
pub use remap::{FILE_OFFSET, RemapTable, random_build_id};

use crate::{ManagedProcess, Vm};
use chain::Chain;
use registers::{exact_pcs, walk_copy};
use save_areas::{exported, is_loop, keep_to_methods, take_trace};
use std::borrow::Cow;
use std::ops::Range;
use varid_model::{Address, FrameAddress, Marker, Reason, Stack};
use varid_process::{AddressSpace, Image};
use varid_shim::{ManagedFrame, Record, flags};
use varid_tunnel::abi::{
    LAYOUT_LIST, LAYOUT_ON_NATIVE_STACK, LAYOUT_SHADOW, RANGE_BRIDGE, RANGE_INTERPRETER,
    RANGE_TRACES,
};
use varid_unwind::{CodeAt, NativeFrame, NativeStack, StackSlice};

/// A sample's user frames; its memory is used again for the next sample's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attributed {
    /// Leaf first; callers as return addresses, managed ones as the invoke's address + 1.
    pub user: Vec<u64>,
    /// Which of them stand for frames that were seen before, and are recorded as they were then.
    pub known: Range<usize>,
    /// The leaf was in a window of the interpreter where its registers say nothing yet or no
    /// longer: the method is that of the thread's top frame, its bytecode the last known.
    pub transition: bool,
    /// Where the innermost managed frame lies; 0: there is none, or it lies nowhere.
    pub frame: u64,
    native: NativeStack,
}

/// Attributes a record. `stack` is what the session was asked for.
pub fn attribute(
    record: &mut Record,
    process: &mut ManagedProcess,
    remap: &mut RemapTable,
    stack: Stack,
    attributed: &mut Attributed,
) {
    let Attributed {
        user,
        known,
        transition,
        frame,
        native,
    } = attributed;
    user.clear();
    (*known, *transition, *frame) = (0..0, false, 0);
    // A kernel thread has no user part.
    let Some(ip) = record.regs.ip().filter(|ip| *ip != 0) else {
        return;
    };
    let at = FrameAddress::Instruction(Address::new(ip));
    // Half of the last frame is missing: those before it are whole.
    let torn = record.unpack().is_err();
    process.restore(&mut record.frames);
    let record = &*record;
    if process.is_marked() {
        let chain = Chain::new(record, at, process, remap, user);
        marked::attribute(record, ip, chain, stack);
        return;
    }
    let vm = process.vm.clone();
    let vm = vm.as_deref();
    let leaf_kind = vm.and_then(|vm| vm.range(ip));
    let in_interpreter = match leaf_kind {
        Some(_) => is_loop(leaf_kind),
        None if process.vm_problem.is_some() => process.process.is_in_vm_library(ip),
        // Where its interpreter is, is not known: this may be it.
        None => process.has_unread_tunnel(),
    };
    let mut chain = Chain::new(record, at, process, remap, user);

    let mut managed = Cow::Borrowed(record.frames.as_slice());
    if vm.is_some_and(|vm| vm.layout.kind == LAYOUT_SHADOW && on_native_stack(vm)) {
        drop_unwound(&mut managed, record);
    }
    // In a loop itself, and in what it calls to invoke a method (assembly that is no better
    // than approximate about its frame), there is nothing between the leaf and the frames.
    let entered_natively =
        !record.has(flags::IN_BODY) && managed.first().is_some_and(ManagedFrame::is_quick);
    let has_save_areas = vm.is_some_and(Vm::has_save_areas);
    let in_list = vm.is_some_and(|vm| vm.layout.kind == LAYOUT_LIST);
    let of_frames = match leaf_kind {
        _ if has_save_areas => is_loop(leaf_kind),
        Some(RANGE_BRIDGE) => true,
        Some(RANGE_INTERPRETER) => in_list,
        _ => record.has(flags::IN_BODY),
    };
    let nothing_between = of_frames && !managed.is_empty();
    if stack == Stack::None || (nothing_between && stack == Stack::Vertical) {
        leaf_only(native, record, ip);
    } else {
        let until = managed
            .iter()
            .find(|frame| !frame.is_quick())
            .filter(|_| stack == Stack::Vertical && vm.is_some_and(on_native_stack))
            .map(|frame| frame.addr);
        native.unwind(&record.regs, stack_of(record), until, |address| {
            code_at(chain.process, address)
        });
    }
    // A JNI method's frame comes first: its native code may have called what the leaf is in.
    chain.native_stretch = nothing_between && entered_natively && stack == Stack::Vertical;
    let mut incomplete = match stack {
        _ if torn => Some(Reason::TornFrames),
        Stack::Vertical | Stack::Full => {
            let cut = record.has(flags::FRAMES_TRUNCATED);
            cut.then_some(Reason::Truncated)
        }
        Stack::None => None,
    };
    if let Some(vm) = vm {
        // Not walked at the sample, or to no avail: the copy of the stack holds the inner frames.
        let space = chain.process.space();
        let walked = if record.has(flags::NO_WALK) || record.has(flags::NOT_READY) {
            Some(walk_copy(record, vm, &native.frames, native, space))
        } else if in_list && record.frames.is_empty() && !record.has(flags::TORN) {
            lost_frames(record, vm, native, space)
        } else {
            None
        };
        if let Some((walked, cut)) = walked {
            (managed, incomplete) = (Cow::Owned(walked), cut);
        }
        if on_native_stack(vm) {
            drop_repeated(&mut managed);
        }
        if leaf_kind == Some(RANGE_TRACES) {
            take_trace(managed.to_mut(), &mut chain, vm, ip);
        }
        let told = match has_save_areas {
            true => exported(&managed),
            false => Vec::new(),
        };
        exact_pcs(&mut managed, vm, native, chain.process.space());
        if !told.is_empty() {
            keep_to_methods(&told, managed.to_mut(), chain.process);
        }
    }

    let unpublished = vm.is_some_and(|vm| is_unpublished(vm, leaf_kind, native, &managed));
    if unpublished {
        chain.native(at);
        chain.marker(Marker::Reason(Reason::TornFrames));
    }
    match vm {
        Some(vm) if has_save_areas => chain.pair(record, native, &managed, vm, stack),
        _ => chain.merge(record, native, &managed, vm, stack),
    }
    chain.finish(record, native, &managed, in_interpreter, incomplete);
    *transition = match managed.first() {
        Some(frame) if has_save_areas => nothing_between && frame.is_exported(),
        Some(_) => leaf_kind == Some(RANGE_INTERPRETER),
        None => false,
    };
    *known = chain.known;
    let innermost = managed.first().map(|frame| frame.addr);
    *frame = innermost.into_iter().chain(chain.quick).min().unwrap_or(0);
    callchain_cache::remember(record, process, stack, user);
}

fn on_native_stack(vm: &Vm) -> bool {
    vm.layout.flags & LAYOUT_ON_NATIVE_STACK != 0
}

/// Records below sp are of methods that an exception has left, and that the one which caught
/// it has not taken back yet. Where all are, sp is on another stack (a signal's, a
/// coroutine's), and says nothing about them.
fn drop_unwound(managed: &mut Cow<'_, [ManagedFrame]>, record: &Record) {
    let sp = record.regs.sp().unwrap_or(0);
    if let Some(live @ 1..) = managed.iter().position(|frame| frame.addr >= sp) {
        managed.to_mut().drain(..live);
    }
}

/// While the VM begins a new fragment, the frames of the last one are in both: a caller's
/// frame lies above, so what does not is a frame again.
fn drop_repeated(managed: &mut Cow<'_, [ManagedFrame]>) {
    let above = managed.iter().zip(managed.get(1..).unwrap_or_default());
    let ascend = above.fold(true, |all, (frame, caller)| {
        all & (frame.addr < caller.addr)
    });
    if ascend && managed.first().is_none_or(|frame| frame.addr > 0) {
        return;
    }
    let mut last = 0;
    managed.to_mut().retain(|frame| {
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

fn leaf_only(native: &mut NativeStack, record: &Record, ip: u64) {
    native.frames.clear();
    native.frames.push(NativeFrame {
        address: FrameAddress::Instruction(Address::new(ip)),
        sp: record.regs.sp().unwrap_or(0),
        regs: record.regs,
    });
    (native.end, native.stopped) = (None, None);
}

/// While the VM begins a new fragment, for a moment the last one can be reached from nowhere: it executes methods, and
/// has no frames. None: it executes none. The copy of the stack has those of the innermost stretch of interpreters;
/// beyond native code that this has called there are frames that only the VM's list has.
fn lost_frames(
    record: &Record,
    vm: &Vm,
    native: &NativeStack,
    space: &AddressSpace,
) -> Option<(Vec<ManagedFrame>, Option<Reason>)> {
    let kind = |frame: &NativeFrame| vm.range(frame.lookup());
    let executes = |frame: &NativeFrame| is_loop(kind(frame));
    let first = native.frames.iter().position(executes)?;
    let mut outer = native.frames.iter().enumerate().skip(first);
    let end = outer
        .by_ref()
        .find(|(_, frame)| kind(frame).is_none())
        .and_then(|_| outer.find(|(_, frame)| executes(frame)));
    let end = end.map(|(at, _)| at);
    let inner = native.frames.get(..end.unwrap_or(native.frames.len()))?;
    let (walked, cut) = walk_copy(record, vm, inner, native, space);
    Some((walked, cut.or(end.map(|_| Reason::TornFrames))))
}

/// What a record has of its thread's stack.
fn stack_of(record: &Record) -> StackSlice<'_> {
    StackSlice::new(Address::new(record.stack_addr), &record.stack)
}

/// What is known of the code at an address of a process.
fn code_at(process: &ManagedProcess, address: u64) -> CodeAt<'_> {
    let Some(mapped) = process.space().at(address) else {
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
}

#[cfg(test)]
pub(crate) mod tests;
