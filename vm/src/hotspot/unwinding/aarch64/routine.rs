//! What does a call call, and where does a routine in assembly return to?

use super::instruction::{FP, Instruction, LINK, SIZE, SP};
use super::is_left;
use crate::hotspot::unwinding::state::{CodeAt, MAX_ROUTINE};
use varid_instructions::Register;
use varid_model::Address;

/// Bytes of the saved frame pointer and return address.
const PAIR: i64 = 16;
/// The most instructions that put an address into a register.
const MAX_ADDRESS: usize = 4;
/// The most instructions of an adapter, and of a stub for virtual calls.
const MAX_ADAPTER: usize = 1 << 10;

/// Returns what the call in front of a return address calls. None if there is none, or if it is not an address.
pub(in super::super) fn called(code: CodeAt<'_>, returns: Address) -> Option<Address> {
    let end = usize::try_from(returns.offset_from(code.start)?).ok()?;
    let call = end.checked_sub(SIZE)?;
    let target = match Instruction::of(code, call)? {
        Instruction::Call(target) => Address::new(target),
        Instruction::CallRegister(register) => loaded(code, call, register)?,
        _ => return None,
    };
    Some(behind_trampoline(code, target).unwrap_or(target))
}

/// Returns the address that the instructions in front of the one at `at` put into a register.
fn loaded(code: CodeAt<'_>, at: usize, register: Register) -> Option<Address> {
    let mut before = at;
    let (mut sum, mut parts) = (0_i64, 0_u64);
    for _ in 0..MAX_ADDRESS {
        before = before.checked_sub(SIZE)?;
        match Instruction::of(code, before)? {
            Instruction::Insert { to, value } if to == register => parts |= value,
            Instruction::Set { to, value } if to == register => {
                return Some(Address::new(value | parts).wrapping_add_signed(sum));
            }
            Instruction::Add { to, from, constant } if to == register && from == register => {
                sum = constant;
            }
            _ => return None,
        }
    }
    None
}

/// Returns the target of a trampoline: `ldr x8, #8; br x8`, and the address.
fn behind_trampoline(code: CodeAt<'_>, target: Address) -> Option<Address> {
    let at = usize::try_from(target.offset_from(code.start)?).ok()?;
    let next = at.checked_add(SIZE)?;
    let behind = next.checked_add(SIZE)?;
    let (Instruction::Literal(literal), Instruction::Jump) =
        (Instruction::of(code, at)?, Instruction::of(code, next)?)
    else {
        return None;
    };
    let is_behind = Address::new(literal) == code.start.wrapping_add(behind as u64);
    let word = code.bytes.get(behind..).filter(|_| is_behind)?;
    let word = word.first_chunk()?;
    Some(Address::new(u64::from_le_bytes(*word)))
}

/// A frame of a routine that has called nothing: its return address is in the link register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct LeafFrame {
    /// Bytes from the stack pointer to the caller's.
    pub(in super::super) size: u32,
    /// Bytes from the stack pointer to the caller's frame pointer. None: it is still in its register.
    pub(in super::super) saved_fp: Option<u32>,
}

/// How far a routine has come. Distances are below the caller's stack pointer.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    depth: i64,
    saved_fp: Option<i64>,
    /// Where its own frame pointer leads to.
    linked: Option<i64>,
}

impl Progress {
    /// Applies an instruction. None if it does something else to the registers that lead to the caller.
    fn after(self, instruction: Instruction) -> Option<Self> {
        let mut next = self;
        match instruction {
            Instruction::Access(access) => {
                let place = self.depth.checked_sub(access.offset)?;
                next.depth = self.depth.checked_sub(access.moved)?;
                if access.saves_link() {
                    next.saved_fp = Some(place);
                } else if access.restores_link() {
                    (next.saved_fp, next.linked) = (None, None);
                }
            }
            Instruction::Add {
                to: SP,
                from: SP,
                constant,
            } => {
                next.depth = self.depth.checked_sub(constant)?;
            }
            Instruction::Add {
                to: SP,
                from: FP,
                constant,
            } => {
                next.depth = self.linked?.checked_sub(constant)?;
            }
            Instruction::Add {
                to: FP,
                from: SP,
                constant,
            } => {
                next.linked = Some(self.depth.checked_sub(constant)?);
            }
            Instruction::Add {
                to: SP | FP | LINK, ..
            }
            | Instruction::SetSp => return None,
            Instruction::Call(_) | Instruction::CallRegister(_) => return None,
            _ => {}
        }
        (next.depth >= 0).then_some(next)
    }

    fn frame(self) -> Option<LeafFrame> {
        let size = u32::try_from(self.depth).ok()?;
        let Some(saved) = self.saved_fp else {
            return Some(LeafFrame {
                size,
                saved_fp: None,
            });
        };
        // Both words are in the frame.
        (saved >= PAIR).then_some(())?;
        let saved_fp = u32::try_from(self.depth.checked_sub(saved)?).ok()?;
        Some(LeafFrame {
            size,
            saved_fp: Some(saved_fp),
        })
    }
}

/// Returns the frame of a routine that starts at `entry`, when it has come to `at` and has called nothing, to return to `returns`. None if
/// that is not known, or if the link register has the return address of an earlier call.
pub(in super::super) fn leaf_frame(
    code: CodeAt<'_>,
    entry: Address,
    at: Address,
    returns: Address,
) -> Option<LeafFrame> {
    at.offset_from(entry).filter(|size| *size < MAX_ROUTINE)?;
    if entry < returns && returns <= at {
        return None;
    }
    let offset = |address: Address| usize::try_from(address.offset_from(code.start)?).ok();
    let (mut now, mut deepest) = (Progress::default(), Progress::default());
    let mut has_returned = false;
    for place in (offset(entry)?..offset(at)?).step_by(SIZE) {
        let instruction = Instruction::at(code.bytes, place)?;
        match instruction {
            // What follows is reached by a jump from where the frame is made.
            Instruction::Return => (now, has_returned) = (deepest, true),
            // Another routine.
            Instruction::Access(access) if has_returned && access.saves_link() => return None,
            _ => now = now.after(instruction)?,
        }
        let reach = |progress: Progress| (progress.depth, progress.linked.is_some());
        if reach(now) > reach(deepest) {
            deepest = now;
        }
    }
    now.frame()
}

/// Returns true if code makes a frame with a frame pointer at once.
pub(in super::super) fn is_linked(code: &[u8]) -> bool {
    let saves = matches!(
        Instruction::at(code, 0),
        Some(Instruction::Access(access)) if access.saves_link() && access.moved < 0
    );
    saves
        && matches!(
            Instruction::at(code, SIZE),
            Some(Instruction::Add {
                to: FP,
                from: SP,
                constant: 0
            })
        )
}

/// Of such code: returns true if there is no frame before the instruction at `at`.
pub(in super::super) fn is_before_frame(code: &[u8], at: usize) -> bool {
    at == 0 || is_left(code, at)
}

/// Of such code: returns true if only the caller's frame pointer and the return address are on the stack before the instruction at `at`.
pub(in super::super) const fn is_in_entry(at: usize) -> bool {
    at == SIZE
}

/// Returns how many bytes code that jumps on to a method has made room for before the instruction at `at`. None if that is not known.
pub(in super::super) fn pushed_in_adapter(code: &[u8], at: usize) -> Option<u32> {
    let mut room = 0_i64;
    let mut before = at;
    for _ in 0..MAX_ADAPTER {
        let Some(place) = before.checked_sub(SIZE) else {
            break;
        };
        before = place;
        match Instruction::at(code, before)? {
            Instruction::Add {
                to: SP,
                from: SP,
                constant,
            } => room = room.checked_sub(constant)?,
            Instruction::Access(access) if access.restores_link() => break,
            Instruction::Access(access) if access.saves_link() => return None,
            Instruction::Call(_) | Instruction::CallRegister(_) => return None,
            // It is aligned for a compiled method: the caller is the interpreter, whose frame pointer leads on.
            Instruction::Jump | Instruction::Return | Instruction::SetSp => break,
            _ => {}
        }
    }
    u32::try_from(room).ok()
}
