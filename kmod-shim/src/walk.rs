//! The walker in user space: walker.h over a copy of the stack or other memory.

use crate::abi::{MAX_FRAMES, MAX_JAVA, RawFrame, RawJavaFrame, RawJvm};
use crate::frames::ManagedFrame;
use crate::java::JvmTarget;
use crate::target::LeaveFrame;
use std::ffi::{c_int, c_void};
use varid_model::{ADDRESS_MASK, Address, StackWord};
use varid_tunnel::abi::{Layout, NO_RULE, NO_WORD};

/// The result of a step of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A frame.
    Frame(ManagedFrame),
    /// The outermost frame has been passed.
    End,
    /// The frames so far do not belong to the thread: discard them.
    Dropped,
    /// A read failed or was inconsistent.
    Torn,
}

/// The registers of the interrupted thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Leaf {
    /// The instruction pointer in user code.
    pub ip: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The values of a rule's registers, if the ip is in the body of that rule's loop.
    pub registers: Option<LeafRegisters>,
    /// The state of the code of the rule of quick frames, if the ip is in one that is known.
    pub state: Option<LeafState>,
    /// The values of `reg_frame` and `reg_pc` of the rule of quick frames, wherever the ip is.
    pub quick: (u64, u64),
    /// The link register, if the machine has one.
    pub link: u64,
}

/// The register values in a state of a rule's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeafState {
    /// The state.
    pub leave: LeaveFrame,
    /// Value of the state's register.
    pub register: u64,
    /// Value of the rule's `reg_frame`.
    pub frame: u64,
    /// Value of the rule's `reg_pc`.
    pub pc: u64,
}

/// The register values of a rule in the body of its loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeafRegisters {
    /// Index of the rule in the layout.
    pub rule: u32,
    /// The frame: `reg_frame` and the rule's `frame_bias`.
    pub frame: u64,
    /// The bytecode pc.
    pub pc: u64,
}

/// `struct varid_leaf`.
#[repr(C)]
#[derive(Default)]
struct RawLeaf {
    ip: u64,
    sp: u64,
    frame: u64,
    pc: u64,
    rule: u32,
    state: u32,
    state_reg: u64,
    quick_frame: u64,
    quick_pc: u64,
    link: u64,
    cfa_word: i16,
    cfa_bias: i16,
}

/// `struct varid_walk`: plain data, which only the C side changes.
#[repr(C)]
#[derive(Debug, Clone, Default)]
struct RawWalk {
    base: u64,
    next: u64,
    quick: u64,
    fragment: u64,
    reg_pc: u64,
    frame: u64,
    cfa: u64,
    returns: u64,
    note: u64,
    kind: u32,
    inner: u32,
    is_outer: u32,
    is_generic: u32,
}

/// The maximum number of bytes that the C side reads at once, plus a word.
const WINDOW: usize = 128 + 8;

/// `struct varid_user_walk`.
#[repr(C)]
struct UserWalk {
    walk: RawWalk,
    read: unsafe extern "C" fn(*mut c_void, *mut u8, u64, u64) -> c_int,
    context: *mut c_void,
    window: [u8; WINDOW],
}

unsafe extern "C" {
    fn varid_user_walk_start(
        user: *mut UserWalk,
        layout: *const Layout,
        base: u64,
        tid: u32,
        leaf: *const RawLeaf,
    ) -> c_int;
    fn varid_user_walk_step(
        user: *mut UserWalk,
        layout: *const Layout,
        out: *mut RawFrame,
    ) -> c_int;
    fn varid_user_java(
        user: *mut UserWalk,
        jvm: *const RawJvm,
        leaf: *const JavaLeaf,
        out: *mut RawJavaFrame,
        most: c_int,
    ) -> c_int;
}

/// The leaf of a thread with HotSpot: `struct varid_user_leaf`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JavaLeaf {
    /// The instruction pointer in user code.
    pub ip: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The frame pointer register.
    pub fp: u64,
    /// The register r15.
    pub r15: u64,
    /// Its `JavaThread`, if it is known; else 0.
    pub thread: u64,
    /// The address of the record's copy of the stack.
    pub stack: u64,
}

/// Walks HotSpot's frames as the BPF program does.
pub fn java_walk<R: FnMut(u64, &mut [u8]) -> bool>(
    jvm: &JvmTarget,
    leaf: &JavaLeaf,
    mut read: R,
) -> JavaWalk {
    let mut user = UserWalk {
        walk: RawWalk::default(),
        read: read_by::<R>,
        context: std::ptr::from_mut(&mut read).cast(),
        window: [0; WINDOW],
    };
    let mut frames = vec![RawJavaFrame::default(); MAX_JAVA];
    let most = c_int::try_from(frames.len()).unwrap_or(c_int::MAX);
    // SAFETY: all of them live through the call, and `frames` has as many entries as it says.
    let count = unsafe { varid_user_java(&mut user, &jvm.0, leaf, frames.as_mut_ptr(), most) };
    frames.truncate(usize::try_from(count).unwrap_or(0));
    JavaWalk(frames)
}

/// The frames of a [`java_walk`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JavaWalk(pub(crate) Vec<RawJavaFrame>);

impl JavaWalk {
    /// Returns the words of the stack that they tell. `stack`: the address of the record's copy.
    pub fn words(&self, stack: Address) -> impl Iterator<Item = StackWord> {
        self.0.iter().flat_map(move |frame| frame.words(stack))
    }
}

/// Lets the C side read by an `R`.
unsafe extern "C" fn read_by<R: FnMut(u64, &mut [u8]) -> bool>(
    context: *mut c_void,
    dst: *mut u8,
    size: u64,
    addr: u64,
) -> c_int {
    // SAFETY: `context` is an `R` that is lent for the duration of the call, and walker.h reads into its own buffers of at least `size`
    // bytes.
    let (read, dst) = unsafe {
        (
            &mut *context.cast::<R>(),
            std::slice::from_raw_parts_mut(dst, size as usize),
        )
    };
    dst.fill(0);
    if read(addr, dst) { 0 } else { -1 }
}

/// A walk over memory. `read` fills the slice from the address, or returns false.
pub struct Walk<'a, R> {
    layout: &'a Layout,
    raw: RawWalk,
    read: R,
}

impl<'a, R: FnMut(u64, &mut [u8]) -> bool> Walk<'a, R> {
    /// Starts at a thread's base, as the shim does. `sp`: the thread's stack pointer. `registers`: frame and pc, if the ip is in
    /// the body of the first rule's loop. Returns None if the base is another thread's, unreadable or torn.
    pub fn from_base(
        layout: &'a Layout,
        base: u64,
        tid: u32,
        sp: u64,
        registers: Option<(u64, u64)>,
        read: R,
    ) -> Option<Self> {
        let registers = registers.map(|(frame, pc)| LeafRegisters { rule: 0, frame, pc });
        let leaf = Leaf {
            ip: 0,
            sp,
            registers,
            ..Leaf::default()
        };
        Self::from_leaf(layout, base, tid, &leaf, read)
    }

    /// The same with all registers of the leaf.
    pub fn from_leaf(
        layout: &'a Layout,
        base: u64,
        tid: u32,
        leaf: &Leaf,
        read: R,
    ) -> Option<Self> {
        let none = LeafRegisters {
            rule: u32::from(NO_RULE),
            frame: 0,
            pc: 0,
        };
        let LeafRegisters { rule, frame, pc } = leaf.registers.unwrap_or(none);
        let mut raw = RawLeaf {
            ip: leaf.ip,
            sp: leaf.sp,
            frame,
            pc,
            rule,
            quick_frame: leaf.quick.0,
            quick_pc: leaf.quick.1,
            link: leaf.link,
            ..RawLeaf::default()
        };
        if let Some(state) = &leaf.state {
            (raw.frame, raw.pc) = (state.frame, state.pc);
            raw.state = state.leave.flags().into();
            raw.state_reg = state.register;
            raw.cfa_word = state.leave.word.unwrap_or(NO_WORD);
            raw.cfa_bias = state.leave.bias;
        }
        let mut walk = Self::from_frame(layout, 0, 0, read);
        // SAFETY: `with_user` hands over a walk that lives through the call, as `raw` does; the layout is a reference.
        let result = walk.with_user(|user, layout| unsafe {
            varid_user_walk_start(user, layout, base, tid, &raw)
        });
        (result == 1).then_some(walk)
    }

    /// Starts at a frame, with the pc in a register (0: take the frame's own).
    pub fn from_frame(layout: &'a Layout, frame: u64, pc: u64, read: R) -> Self {
        let raw = RawWalk {
            next: frame & ADDRESS_MASK,
            reg_pc: pc & ADDRESS_MASK,
            ..RawWalk::default()
        };
        Self { layout, raw, read }
    }

    /// Takes the next step outwards.
    pub fn step(&mut self) -> Step {
        /// `VARID_WALK_AGAIN`.
        const AGAIN: c_int = 2;
        let mut out = RawFrame::default();
        let mut result = AGAIN;
        // The VM's own frames lie between methods. Of this many frames, at least one is a method's.
        for _ in 0..=MAX_FRAMES {
            // SAFETY: as in `from_leaf`; `out` is a frame that lives through the call.
            result = self
                .with_user(|user, layout| unsafe { varid_user_walk_step(user, layout, &mut out) });
            if result != AGAIN {
                break;
            }
        }
        match result {
            1 => Step::Frame(ManagedFrame {
                addr: out.addr,
                method: out.method,
                pc: out.pc,
                flags: out.flags,
            }),
            0 => Step::End,
            3 => Step::Dropped,
            _ => Step::Torn,
        }
    }

    fn with_user(&mut self, call: impl FnOnce(*mut UserWalk, *const Layout) -> c_int) -> c_int {
        let mut user = UserWalk {
            walk: self.raw.clone(),
            read: read_by::<R>,
            context: std::ptr::from_mut(&mut self.read).cast(),
            window: [0; WINDOW],
        };
        let result = call(&mut user, self.layout);
        self.raw = user.walk;
        result
    }
}

#[cfg(test)]
mod tests;
