//! Native unwinding: from a sample's registers and its slice of stack to return addresses.
//!
//! All registers that a callee saves are followed, not only sp and fp: the interpreter
//! keeps its bytecode pc and its frame in such registers, and a frame of it that lies under
//! a helper's frame shows them only to an unwinder that restores them.

#![cfg_attr(not(test), forbid(unsafe_code))]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

mod code_address;
mod dex_pc;
mod expression;
mod module;
mod rule;
mod stack;

pub use module::Module;
pub use stack::StackSlice;

use code_address::CodeAddresses;
use rule::Rule;
use std::rc::Rc;
use thiserror::Error;
use varid_model::{Address, FrameAddress, Machine, Regs};

/// Why unwinding stopped before the outermost frame.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum UnwindError {
    /// The next frame lies beyond the stack that the sample has.
    #[error("the copy of the stack ends here")]
    NoStack,
    /// Neither unwind information nor a frame pointer leads on, or what it needs is not known of this frame.
    #[error("no unwind information for address {0:#x}")]
    NoInfo(u64),
    /// A return address that leads to no code: the stack is not what the rules say.
    #[error("return address {0:#x} leads to no code")]
    NoCode(u64),
    /// The next frame would not lie above this one.
    #[error("frames do not ascend at {0:#x}")]
    NotAscending(u64),
}

/// A native frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NativeFrame {
    /// The instruction, or where the frame's call returns to.
    pub address: FrameAddress,
    /// The stack pointer in this frame: nothing of it lies below.
    pub sp: u64,
    /// Its registers, as far as they are known.
    pub regs: Regs,
}

impl NativeFrame {
    /// The instruction pointer: the instruction, or where the frame's call returns to.
    pub const fn ip(&self) -> u64 {
        self.address.recorded().get()
    }

    /// The address that tells which function this is.
    pub const fn lookup(&self) -> u64 {
        self.address.lookup().get()
    }
}

/// A stack, leaf first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NativeStack {
    /// The frames.
    pub frames: Vec<NativeFrame>,
    /// Address above the last frame of the list: its own frame ends there, if known.
    pub end: Option<u64>,
    /// Why there are no more; none: the outermost frame was reached, or `until`.
    pub stopped: Option<UnwindError>,
}

/// What is known of the code at an address.
#[derive(Debug)]
pub enum CodeAt<'m> {
    /// A module's, at this address in the module's own terms.
    Module(std::cell::RefMut<'m, Module>, u64),
    /// Nobody's: generated, or of a file that could not be read.
    Unknown,
    /// It is no code.
    None,
}

/// What the unwind information of a frame's function says of the bytecode that it executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DexPc {
    /// It executes none.
    NoInterpreter,
    /// It is an interpreter's frame that has no bytecode yet or no longer, or whose registers
    /// are lost.
    Unknown,
    /// The instruction at this address.
    At(u64),
    /// It has called an interpreter, for the method whose first instruction is at this address.
    MethodAt(u64),
}

/// The bytecode that a frame of a stack executes.
pub fn dex_pc<'m>(
    stack: StackSlice<'_>,
    frame: &NativeFrame,
    code_at: impl FnOnce(u64) -> CodeAt<'m>,
) -> DexPc {
    match code_at(frame.lookup()).rules(frame) {
        Rules::Known(rule) => rule.dex_pc(&frame.regs, |address| {
            stack.word(frame.regs.machine(), address)
        }),
        Rules::Unknown | Rules::NoCode => DexPc::NoInterpreter,
    }
}

/// What leads from a frame to its caller.
enum Rules {
    Known(Rc<Rule>),
    /// There are none for it.
    Unknown,
    /// Nothing leads on from what is no code.
    NoCode,
}

impl CodeAt<'_> {
    /// The rules of the frame whose code this is.
    fn rules(self, frame: &NativeFrame) -> Rules {
        match self {
            CodeAt::Module(mut module, address) if module.machine() == frame.regs.machine() => {
                module.rule(address).map_or(Rules::Unknown, Rules::Known)
            }
            CodeAt::Module(..) | CodeAt::Unknown => Rules::Unknown,
            CodeAt::None => Rules::NoCode,
        }
    }
}

/// No thread's stack is deeper; a longer one is a loop.
const MAX_FRAMES: usize = 4096;

impl NativeStack {
    /// Becomes the frames of a thread with these registers, unwound until a frame encloses `until` (an address of the stack),
    /// or to the outermost frame. Its memory is used again.
    pub fn unwind<'m>(
        &mut self,
        regs: &Regs,
        stack: StackSlice<'_>,
        until: Option<u64>,
        mut code_at: impl FnMut(u64) -> CodeAt<'m>,
    ) {
        self.frames.clear();
        (self.end, self.stopped) = (None, None);
        let (Some(ip), Some(sp)) = (regs.ip(), regs.sp()) else {
            return;
        };
        let machine = regs.machine();
        let read = |address: u64| stack.word(machine, address);
        let code = CodeAddresses::of(regs);
        let leaf = NativeFrame {
            address: FrameAddress::Instruction(Address::new(code.address(ip))),
            sp,
            regs: *regs,
        };
        let mut rules = code_at(leaf.lookup()).rules(&leaf);
        self.frames.push(leaf);
        while let Some(frame) = self.frames.last() {
            match step(frame, rules, code, &mut code_at, read, until) {
                Ok(Some(next)) => {
                    rules = code_at(next.lookup()).rules(&next);
                    // A stack may be executable, and what lies in it a wrong rule's idea of an address.
                    if stack.holds(next.address.recorded()) || matches!(rules, Rules::NoCode) {
                        self.end = Some(next.sp);
                        self.stopped = Some(UnwindError::NoCode(next.ip()));
                        return;
                    }
                    if self.frames.len() >= MAX_FRAMES {
                        return;
                    }
                    self.end = Some(next.sp);
                    self.frames.push(next);
                }
                Ok(None) => return,
                Err(Stop::Enclosed(cfa)) => {
                    self.end = Some(cfa);
                    return;
                }
                Err(Stop::Because(error)) => {
                    self.end = None;
                    self.stopped = Some(error);
                    return;
                }
            }
        }
    }
}

enum Stop {
    /// The frame encloses the address that was asked for; it ends here.
    Enclosed(u64),
    Because(UnwindError),
}

impl From<UnwindError> for Stop {
    fn from(error: UnwindError) -> Self {
        Stop::Because(error)
    }
}

fn step<'m>(
    frame: &NativeFrame,
    rules: Rules,
    code: CodeAddresses,
    code_at: &mut impl FnMut(u64) -> CodeAt<'m>,
    read: impl Fn(u64) -> Option<u64> + Copy,
    until: Option<u64>,
) -> Result<Option<NativeFrame>, Stop> {
    // Past a frame of unknown size, a frame pointer that leads on tells where this one's two words are.
    let keeps_pointer = frame.regs.sp().is_none()
        && by_frame_pointer(frame, read)
            .is_ok_and(|(_, linked)| leads_to_code(&linked, code, code_at));
    let (cfa, mut caller, of_signal) = match rules {
        Rules::NoCode => return Err(UnwindError::NoCode(frame.ip()).into()),
        Rules::Known(rule) => {
            let regs = &frame.regs;
            let known = rule.cfa(regs, read).or_else(|| {
                let fp = regs.fp().filter(|_| keeps_pointer)?;
                rule.cfa_by_frame_pointer(fp)
            });
            if let (Some(cfa), Some(until)) = (known, until)
                && cfa > until
            {
                return Err(Stop::Enclosed(cfa));
            }
            if rule.is_outermost() {
                return Ok(None);
            }
            let cfa = known.ok_or_else(|| match regs.sp() {
                Some(_) => UnwindError::NoStack,
                None => UnwindError::NoInfo(frame.ip()),
            })?;
            let caller = rule.caller(cfa, regs, read)?;
            (cfa, caller, rule.is_signal_frame)
        }
        Rules::Unknown => {
            let leaf = frameless(frame, read).filter(|(_, regs)| {
                frame.address.is_instruction() && leads_to_code(regs, code, code_at)
            });
            let (cfa, regs) = match (leaf, by_frame_pointer(frame, read)) {
                (Some((_, called)), Ok((cfa, linked)))
                    if is_stale(&called, &linked, frame, code, code_at)
                        && leads_to_code(&linked, code, code_at) =>
                {
                    (cfa, linked)
                }
                (Some(leaf), _) => leaf,
                (None, linked) => linked?,
            };
            (cfa, regs, false)
        }
    };
    // A leaf that has pushed nothing may end where it begins (arm64); what a signal
    // interrupted may have been on another stack.
    let ascends =
        cfa > frame.sp || (cfa == frame.sp && frame.address.is_instruction()) || of_signal;
    if !ascends {
        return Err(UnwindError::NotAscending(frame.sp).into());
    }
    let Some(ip) = caller.ip().map(|ip| code.address(ip)).filter(|ip| *ip != 0) else {
        return Ok(None);
    };
    caller.set(caller.machine().ip(), Some(ip));
    let address = match of_signal {
        true => FrameAddress::Instruction(Address::new(ip)),
        false => FrameAddress::Return(Address::new(ip)),
    };
    Ok(Some(NativeFrame {
        address,
        sp: cfa,
        regs: caller,
    }))
}

/// An address in the call that returns to an address.
fn call_before(returns_to: u64) -> u64 {
    FrameAddress::Return(Address::new(returns_to))
        .lookup()
        .get()
}

fn leads_to_code<'m>(
    regs: &Regs,
    code: CodeAddresses,
    code_at: &mut impl FnMut(u64) -> CodeAt<'m>,
) -> bool {
    regs.ip()
        .is_some_and(|ip| !matches!(code_at(call_before(code.address(ip))), CodeAt::None))
}

/// Whether the link register of interrupted code without unwind information is known to tell nothing of its caller: it holds
/// the same return address as the frame that the frame pointer shows, or an address of the very function, which its last
/// call left there. Without symbols that is not known: a leaf would lose its caller. (One that calls itself loses a level
/// where it has no frame yet.) On AArch64 only: elsewhere frame pointers follow no rule.
fn is_stale<'m>(
    called: &Regs,
    linked: &Regs,
    frame: &NativeFrame,
    code: CodeAddresses,
    code_at: &mut impl FnMut(u64) -> CodeAt<'m>,
) -> bool {
    let Some(link) = called.ip().map(|ip| code.address(ip)) else {
        return false;
    };
    if called.machine() != Machine::Aarch64 {
        return false;
    }
    if linked.ip().map(|ip| code.address(ip)) == Some(link) {
        return true;
    }
    let mut function_at = |address: u64| match code_at(address) {
        CodeAt::Module(module, own) => Some((&raw const *module, module.function_at(own)?)),
        CodeAt::Unknown | CodeAt::None => None,
    };
    let own = function_at(frame.ip());
    own.is_some() && own == function_at(call_before(link))
}

/// A leaf without unwind information is most often assembly that has pushed nothing: its
/// return address is where the call left it.
fn frameless(frame: &NativeFrame, read: impl Fn(u64) -> Option<u64>) -> Option<(u64, Regs)> {
    let mut regs = frame.regs;
    let machine = regs.machine();
    let (ip, cfa) = match machine.link() {
        Some(link) => (frame.regs.get(link)?, frame.sp),
        None => (
            read(frame.sp)?,
            frame.sp.wrapping_add(u64::from(machine.word())),
        ),
    };
    regs.set_frame(ip, cfa, frame.regs.fp()?);
    Some((cfa, regs))
}

/// Code without unwind information that keeps a frame pointer: {caller's fp, return address}. On 32-bit ARM that is
/// what clang's ARM code does; GCC's frame pointer is elsewhere, and leads to no code. On AArch64 the two words may lie
/// anywhere in the frame: the caller's stack pointer is not known, only that it is not below them.
fn by_frame_pointer(
    frame: &NativeFrame,
    read: impl Fn(u64) -> Option<u64>,
) -> Result<(u64, Regs), Stop> {
    let no_info = || UnwindError::NoInfo(frame.ip());
    let machine = frame.regs.machine();
    let word = u64::from(machine.word());
    let fp = frame
        .regs
        .fp()
        .filter(|fp| *fp >= frame.sp && fp.checked_rem(word) == Some(0))
        .ok_or_else(no_info)?;
    let (next_fp, ip) = (
        read(fp).ok_or_else(no_info)?,
        read(fp.wrapping_add(word)).ok_or_else(no_info)?,
    );
    let cfa = fp.wrapping_add(word.wrapping_mul(2));
    let mut regs = Regs::unknown(machine);
    regs.set_frame(ip, cfa, next_fp);
    if machine == Machine::Aarch64 {
        regs.set(machine.sp(), None);
    }
    Ok((cfa, regs))
}

#[cfg(test)]
mod tests;
