//! Unwinds native stacks: from a sample's registers and its copy of a part of the stack to the native frames.
//!
//! All callee-saved registers are restored, not only the stack pointer and the frame pointer. An interpreter keeps its bytecode pc in such
//! a register. While it calls a helper, only an unwinder that restores what the helper has saved shows that pc.
//!
//! Everything here is a function over registers and bytes, so the stack of a process of any machine is unwound on any machine. Unwind
//! information may be wrong or hostile: unwinding always ends, and reports why.
//!
//! ```
//! use varid_model::{Address, Machine, Regs};
//! use varid_unwind::{CodeRule, FixedFrame, NativeStack, SavedRegister, StackSlice, UnwindInfo};
//!
//! /// Generated code between 0x1000 and 0x2000; there is no other code.
//! struct Generated(FixedFrame);
//!
//! impl UnwindInfo for Generated {
//!     fn rule(&mut self, pc: Address) -> CodeRule {
//!         match pc.get() {
//!             0x1000..0x2000 => self.0.rule(pc),
//!             _ => CodeRule::NoCode,
//!         }
//!     }
//! }
//!
//! // Its frames have 24 bytes: a local variable, the caller's rbp (DWARF register 6), the return address.
//! let rbp = SavedRegister { dwarf: 6, offset: 8 };
//! let mut code = Generated(FixedFrame::new(Machine::X86_64, 24, &[rbp]));
//!
//! // Two frames. Nobody called the outer one: its return address is zero.
//! let words: [u64; 6] = [0, 0xb0b, 0x1205, 0, 0, 0];
//! let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
//! let stack = StackSlice::new(Address::new(0x7000), &bytes);
//! let mut regs = Regs::unknown(Machine::X86_64);
//! regs.set_frame(0x1010, 0x7000, 0);
//!
//! let mut native = NativeStack::default();
//! native.unwind(&regs, stack, None, &mut code);
//! let [leaf, caller] = &native.frames[..] else { panic!() };
//! assert_eq!(leaf.lookup(), Address::new(0x1010));
//! assert_eq!(caller.address.recorded(), Address::new(0x1205));
//! assert_eq!((caller.sp, caller.regs.fp()), (Address::new(0x7018), Some(0xb0b)));
//! assert_eq!(native.stopped, None);
//! ```
//!
//! | question | file |
//! |---|---|
//! | which frames does a stack have | [`NativeStack`], [`NativeFrame`] |
//! | which bytes of the stack does a sample have | [`StackSlice`] |
//! | which frames does a stack share with the thread's previous one | [`UnwoundStack`] |
//! | what is known of the code at an address | [`UnwindInfo`], [`CodeRule`] |
//! | which rules does an ELF file have | [`Module`] |
//! | which rows do some of its functions have | [`UnwindRow`] |
//! | which of its code has no caller | `beginnings` |
//! | where are the caller's registers in a frame of generated code | [`FixedFrame`], [`LinkedFrame`] |
//! | which bytecode does a frame execute | [`bytecode_pc`], [`BytecodePc`] |
//! | why does unwinding stop | [`UnwindError`] |
//! | how is a stack unwound, how is one frame's caller found | `walk`, `step` |
//! | where are the caller's registers | `rule`, `expression` |
//! | how does ART mark its interpreters | `dex_marker` |
//! | what differs between machines | `architecture` |

#![cfg_attr(not(test), forbid(unsafe_code))]
#![cfg_attr(not(test), deny(unreachable_pub))]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]
mod architecture;
mod beginnings;
mod bytecode_pc;
mod dex_marker;
mod error;
mod expression;
mod fixed_frame;
mod linked_frame;
mod module;
mod native_stack;
mod row;
mod rule;
mod stack_slice;
mod step;
mod unwind_info;
mod unwound_stack;
mod walk;

pub use bytecode_pc::bytecode_pc;
pub use dex_marker::BytecodePc;
pub use error::UnwindError;
pub use fixed_frame::{FixedFrame, SavedRegister};
pub use linked_frame::{CallerSp, LinkedFrame, ReturnAt};
pub use module::Module;
pub use native_stack::{NativeFrame, NativeStack, Reached};
pub use row::{CallerRegister, CfaAt, UnwindRow};
pub use rule::Rule;
pub use stack_slice::StackSlice;
pub use unwind_info::{CodeRule, UnwindInfo};
pub use unwound_stack::UnwoundStack;

#[cfg(test)]
mod tests;
