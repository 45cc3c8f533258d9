//! Rewrites Java class files so that they count every call of every method by its whole calling context, and how often each basic block was executed.
//!
//! Everything here is a function over bytes: no VM, no files. The agent passes each class to [`rewrite`] before the VM defines it, and stores the
//! [`MethodTable`]s; the reader needs them to interpret the tree.
//!
//! # Design
//!
//! The rewritten code keeps a tree of nodes in memory that another process can read at any time. [`node`] says how it is laid out. A node is a
//! method in a calling context. It has one *slot* for each call site of the method: the first word of a list of the methods that were called there.
//! Slot 0 is for calls by the VM itself: class initialisers, class loaders, constructors of exceptions that the VM throws.
//!
//! Each thread has a *cell* with the address of the slot in which its next call is recorded. A call site stores its slot in the cell; the callee's
//! entry finds its node in that slot, or adds it, increments its calls, and stores its own slot 0 in the cell; each of its exits, by a return or by
//! an exception, restores what the cell held at its entry. So whatever the VM executes between them has a parent, and callers need not clean up.
//! Most entries find the wanted node first in the slot: a load, a comparison and an increment. `sequences` lists what is inserted where.
//!
//! | event | recorded |
//! |---|---|
//! | call of a method with code | in the caller's slot for the site, by the callee |
//! | call by the VM while no call is executed | in slot 0: before an instruction by which the VM may call, the cell is set to it if a call site can have changed it |
//! | call of a native method | no node. Its calls are the site's executions less the other callees' entries. What it calls itself is in the site's slot |
//! | first call of a thread, and calls by code that was entered before recording began | below the thread's root |
//! | block | a counter, except the first block if no branch leads to it: it is executed once for each call |
//! | order | with [`Counted::Order`], each call, and each execution of a block with instructions that small processors execute by a subroutine: see [`runtime::order`] |
//! | exception that leaves a block, caught by the method or not | an abort record with the bci: the instructions after it were not executed. The one that throws is counted |
//! | exception out of `super()` or `this()` | no abort record in the calling constructor, because no handler can cover that call: it equals the callee's exceptions that were not caught. The cell keeps the site's slot until the caller's caller sets it |
//! | `StackOverflowError` while the entry is executed | the call is not counted |
//! | call outside the extent of [`Plan::within`] | none: the cell has no slot, and only the entry of that method sets one |
//! | no room for a node | the call and all below it are counted together in the header as folded |
//!
//! Bytecodes that a context executed are, for each block, its executions times its instructions, less what abort records say.
//!
//! # What is not rewritten
//!
//! [`Body`] says it for each method, [`NotRewritten`] for a class. HotSpot's compilers replace methods with the annotation `IntrinsicCandidate` by
//! their own code. By default these are leaves ([`Intrinsics::Leaves`]): what they call is not recorded either, so that counts do not depend on what
//! was compiled when. `Object.<init>` and empty methods `finalize` stay as they are because HotSpot recognises them.
//!
//! Attributes of code with offsets are adapted, or left out if the VM does not need them (annotations of types in method bodies). Classes of
//! version 50 and later keep a valid `StackMapTable`; older ones are verified by inference, subroutines (`jsr`) included.
//!
//! | question | file |
//! |---|---|
//! | how is a tree laid out in memory | [`node`] |
//! | what is counted | `plan` |
//! | which methods and classes does a name select | `pattern` |
//! | what is reported of a class and its methods | `table` |
//! | why is a class not rewritten | `error` |
//! | how is a class rewritten | `rewrite` |
//! | how is one method's code rewritten | `method` |
//! | what is that given, and what does it return | `request` |
//! | which instructions are inserted | `sequences` |
//! | what is inserted before each instruction | `insert` |
//! | which instructions are in the call order | `order` |
//! | what may HotSpot's compilers replace | `intrinsics` |
//! | which instructions start basic blocks | `blocks` |
//! | where is `this` not initialised | `constructor` |
//! | how many words does an instruction pop and push | `operands` |
//! | where does each instruction lie afterwards, and how do branches reach their targets | `layout` |
//! | how are stack map frames extended | `frames` |
//! | which other attributes are kept | `attributes` |
//! | how is the attribute `Code` written | `code_attribute` |
//! | how is an instruction written | `assembler` |
//! | how is a whole class written, and which of that may others use | `class_builder`, [`assemble`] |
//! | which class and field does the VM need beside | [`runtime`] |
//! | what is in a class file | `class`, a folder |
//!
//! ```
//! use varid_instrument::{Counted, Intrinsics, MethodNumber, NotRewritten, Plan, rewrite};
//!
//! let plan = Plan {
//!     counted: Counted::Blocks,
//!     intrinsics: Intrinsics::Leaves,
//!     start: None,
//!     within: None,
//! };
//! let error = rewrite(b"\xca\xfe\xba\xbe\0\0\0\x46", &plan, MethodNumber::FIRST).unwrap_err();
//! assert_eq!(error, NotRewritten::Version(70));
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

pub mod assemble;
mod assembler;
mod attributes;
mod blocks;
mod class;
mod class_builder;
mod code_attribute;
mod constructor;
mod error;
mod frames;
mod insert;
mod intrinsics;
mod layout;
mod method;
pub mod node;
mod operands;
mod order;
mod pattern;
mod plan;
mod request;
mod rewrite;
pub mod runtime;
mod sequences;
mod table;
#[cfg(test)]
mod tests;

pub use class::opcode;
pub use error::NotRewritten;
pub use pattern::{ClassPattern, MethodPattern};
pub use plan::{Counted, Intrinsics, Plan};
pub use rewrite::rewrite;
pub use runtime::{
    SwitchAddress, TreeAddress, runtime_class, switched_runtime_class, thread_class,
};
pub use table::{
    Bci, Block, Body, Executions, Line, MethodNumber, MethodReference, MethodTable, Plain,
    Rewritten, Site,
};
