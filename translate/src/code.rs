//! Memory of this process that is executed. All unsafe code is here.
#![allow(unsafe_code)]

use std::{
    ffi::c_void,
    num::NonZeroUsize,
    ptr::{NonNull, copy_nonoverlapping},
};

use nix::{
    errno::Errno,
    sys::mman::{MapFlags, ProtFlags, mmap_anonymous, mprotect, munmap},
};

use varid_machine::ContextId;

use crate::{
    plan::VersionId,
    state::{ContextRow, Events, Next, State},
};

/// Machine code in memory that can be executed and not written.
#[derive(Debug)]
pub struct Code {
    start: NonNull<c_void>,
    len: NonZeroUsize,
}

impl Code {
    /// Copies machine code that does not depend on its address.
    ///
    /// # Errors
    ///
    /// There is no memory, or none that can be executed: the system may forbid it.
    pub fn new(bytes: &[u8]) -> Result<Self, Errno> {
        let len = NonZeroUsize::new(bytes.len()).ok_or(Errno::EINVAL)?;
        let writable = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: the kernel chooses the address, so no memory that is in use is replaced.
        let start = unsafe { mmap_anonymous(None, len, writable, MapFlags::MAP_PRIVATE) }?;
        let code = Self { start, len };
        // SAFETY: the mapping has `len` bytes, can be written, and nothing else refers to it.
        unsafe { copy_nonoverlapping(bytes.as_ptr(), start.cast().as_ptr(), len.get()) };
        let executable = ProtFlags::PROT_READ | ProtFlags::PROT_EXEC;
        // SAFETY: the mapping is this one's own, and no reference into it exists.
        unsafe { mprotect(start, len.get(), executable) }?;
        Ok(code)
    }

    /// Its first byte.
    pub fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's own. Code is dropped only while none is executed, because it is executed only while `Gate::enter` runs.
        // An error would leave the mapping as it is.
        let _ = unsafe { munmap(self.start, self.len.get()) };
    }
}

/// Code with this machine's calling convention that calls translated code, which has another one.
#[derive(Debug)]
pub struct Gate(Code);

/// The address of a gate's code.
#[derive(Debug, Clone, Copy)]
pub struct GateAddress(*const c_void);

/// What translated code is entered with.
#[derive(Debug, Clone, Copy)]
pub struct Entered {
    /// The state.
    pub state: *mut State,
    /// The row of the context.
    pub row: *mut ContextRow,
    /// The context's code.
    pub code: u64,
    /// The number of the entry.
    pub entry: u32,
}

impl Gate {
    /// Takes code that the emitter has made for this purpose.
    pub const fn new(code: Code) -> Self {
        Self(code)
    }

    /// The address of its code, which stays there as long as the gate.
    pub fn address(&self) -> GateAddress {
        GateAddress(self.0.start.as_ptr())
    }
}

impl GateAddress {
    /// Executes the code of a context from an entry on, until it is left. The state says where.
    ///
    /// The engine keeps what translated code relies on. The gate is still there. The row of a context that has code has as many counters as the
    /// plan of that code. Numbers of contexts and entries in counters, in calls and in `entry` are those of such rows and of their plans. The
    /// state's memory and limits are those of the region that the code was made for, the tables of caches those of the pipeline. All of it stays
    /// where it is until this returns, and nobody has a reference to it but what the state's events call.
    pub fn enter(self, entered: Entered) {
        type Function = unsafe extern "sysv64" fn(*mut State, *mut ContextRow, u64, u32);
        let Entered {
            state,
            row,
            code,
            entry,
        } = entered;
        // SAFETY: the emitter has made the gate's code for a function of this type.
        let function: Function = unsafe { std::mem::transmute(self.0) };
        // SAFETY: the row is that of a context. Translated code accesses the state, the rows, the calls between the three pointers, counters by the
        // numbers of its plan, the tables of caches, and memory that it has compared with the region's limits; the engine keeps these as said
        // above.
        unsafe { function(state, row, code, entry) };
    }
}

/// What simulates the processor where translated code does not.
pub trait Simulator {
    /// Issues a block of a context to the pipeline once more, which was executed and is left by a way. Returns how to go on.
    fn reissue(&mut self, context: ContextId, version: VersionId, way: usize) -> Next;

    /// Fetches the first instruction of a block that was entered from another function.
    fn fetch(&mut self, context: ContextId, version: VersionId);
}

/// What translated code calls: see [`Events`].
pub fn events<S: Simulator>(simulator: &mut S) -> Events {
    Events {
        simulator: std::ptr::from_mut(simulator).cast(),
        reissue: Some(reissue::<S>),
        fetch: Some(fetch::<S>),
    }
}

unsafe extern "sysv64" fn reissue<S: Simulator>(
    simulator: *mut c_void,
    context: u32,
    version: u32,
    way: u32,
) -> u32 {
    // SAFETY: the pointer is that of `events`, whose caller waits in `GateAddress::enter`, and uses nothing of the simulator meanwhile.
    let simulator = unsafe { &mut *simulator.cast::<S>() };
    let version = VersionId(version as usize);
    let next = simulator.reissue(ContextId(context), version, way as usize);
    next.number()
}

unsafe extern "sysv64" fn fetch<S: Simulator>(simulator: *mut c_void, context: u32, version: u32) {
    // SAFETY: as above.
    let simulator = unsafe { &mut *simulator.cast::<S>() };
    simulator.fetch(ContextId(context), VersionId(version as usize));
}
