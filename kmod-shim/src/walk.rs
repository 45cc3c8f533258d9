//! The walker in user space: walker.h over a copy of the stack or another memory.

use crate::abi::RawFrame;
use crate::record::ManagedFrame;
use std::ffi::{c_int, c_void};
use varid_model::ADDRESS_MASK;
use varid_tunnel::abi::Layout;

/// What a step of a walk found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A frame.
    Frame(ManagedFrame),
    /// The outermost frame has been seen.
    End,
    /// A read failed or contradicted another.
    Torn,
}

/// `struct varid_walk`: plain data, changed by the C side only.
#[repr(C)]
#[derive(Debug, Clone)]
struct RawWalk {
    base: u64,
    next: u64,
    quick: u64,
    fragment: u64,
    reg_pc: u64,
}

/// `struct varid_user_walk`.
#[repr(C)]
struct UserWalk {
    walk: RawWalk,
    read: unsafe extern "C" fn(*mut c_void, *mut u8, u64, u64) -> c_int,
    context: *mut c_void,
    window: [u8; 72],
}

unsafe extern "C" {
    fn varid_user_walk_start(
        user: *mut UserWalk,
        layout: *const Layout,
        base: u64,
        tid: u32,
        sp: u64,
        reg_frame: u64,
        reg_pc: u64,
    ) -> c_int;
    fn varid_user_walk_step(
        user: *mut UserWalk,
        layout: *const Layout,
        out: *mut RawFrame,
    ) -> c_int;
}

/// A walk over memory that `read` gives: it fills the slice from the address, or says false.
pub struct Walk<'a, R> {
    layout: &'a Layout,
    raw: RawWalk,
    read: R,
}

impl<'a, R: FnMut(u64, &mut [u8]) -> bool> Walk<'a, R> {
    /// Starts at a thread's base, as the shim does. `sp`: the thread's stack pointer. `registers`: frame and pc, if the ip
    /// is in the loop's body. None: the base is another thread's, unreadable or torn.
    pub fn from_base(
        layout: &'a Layout,
        base: u64,
        tid: u32,
        sp: u64,
        registers: Option<(u64, u64)>,
        read: R,
    ) -> Option<Self> {
        let mut walk = Self::from_frame(layout, 0, 0, read);
        let (frame, pc) = registers.unwrap_or_default();
        // SAFETY: `with_user` hands over a walk that lives through the call; the layout is a reference.
        let result = walk.with_user(|user, layout| unsafe {
            varid_user_walk_start(user, layout, base, tid, sp, frame, pc)
        });
        (result == 1).then_some(walk)
    }

    /// Starts at a frame, with the pc that a register held (0: the frame's own).
    pub fn from_frame(layout: &'a Layout, frame: u64, pc: u64, read: R) -> Self {
        let raw = RawWalk {
            base: 0,
            next: frame & ADDRESS_MASK,
            quick: 0,
            fragment: 0,
            reg_pc: pc & ADDRESS_MASK,
        };
        Self { layout, raw, read }
    }

    /// The next frame out.
    pub fn step(&mut self) -> Step {
        let mut out = RawFrame::default();
        // SAFETY: as in `from_base`; `out` is a frame that lives through the call.
        match self.with_user(|user, layout| unsafe { varid_user_walk_step(user, layout, &mut out) })
        {
            1 => Step::Frame(ManagedFrame {
                addr: out.addr,
                method: out.method,
                pc: out.pc,
                flags: out.flags,
            }),
            0 => Step::End,
            _ => Step::Torn,
        }
    }

    fn with_user(&mut self, call: impl FnOnce(*mut UserWalk, *const Layout) -> c_int) -> c_int {
        unsafe extern "C" fn trampoline<R: FnMut(u64, &mut [u8]) -> bool>(
            context: *mut c_void,
            dst: *mut u8,
            size: u64,
            addr: u64,
        ) -> c_int {
            // SAFETY: `context` is the `R` that `with_user` lends for the length of the
            // call, and walker.h reads into buffers of its own of at least `size` bytes.
            let (read, dst) = unsafe {
                (
                    &mut *context.cast::<R>(),
                    std::slice::from_raw_parts_mut(dst, size as usize),
                )
            };
            dst.fill(0);
            if read(addr, dst) { 0 } else { -1 }
        }
        let mut user = UserWalk {
            walk: self.raw.clone(),
            read: trampoline::<R>,
            context: std::ptr::from_mut(&mut self.read).cast(),
            window: [0; 72],
        };
        let result = call(&mut user, self.layout);
        self.raw = user.walk;
        result
    }
}

#[cfg(test)]
mod tests;
