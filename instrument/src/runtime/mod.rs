//! Which class and field does the rewritten code need in the VM?
//!
//! | class | member | what for |
//! |---|---|---|
//! | `java/lang/VaridTree` | all of it | [`runtime_class`]: to be defined in the boot loader, in `java.base`, before any rewritten code is executed |
//! | `java/lang/Thread` | `varid` | [`thread_class`]: to be added to the VM's own class before it is rewritten |
//!
//! An instance of the runtime class is the *cell* of a thread: it holds where the thread's next call is recorded. A cell is not the `Thread` itself,
//! because rewritten code is executed before the VM has one, and before `Thread` is initialised: until recording begins, all code uses one common
//! cell and touches neither `Thread` nor `Unsafe`. The runtime's methods call only native methods, or they would record themselves.

mod append;
mod count;
mod enter;
mod memory;
pub mod order;
mod thread;
mod tree;

pub use thread::thread_class;
pub use tree::{runtime_class, switched_runtime_class};

/// The runtime class's name.
pub const CLASS: &str = "java/lang/VaridTree";
/// Static method of the runtime class, `()V`: begins recording. It does nothing if recording has begun.
pub const BEGIN: &str = "begin";
/// Static method of the runtime class, `(Z)V`, if counting is switched: switches it on or off. The program calls it, by reflection.
pub const SET_COUNTING: &str = "setCounting";
/// Instance field of the runtime class, of type `long`: the address of the slot in which the thread's next call is recorded. 0 or negative: the
/// call is not recorded, because the code that calls was entered before recording began (0 down to -2^20), because there was no room for its node
/// (down to -2^40 - 2^20), or because it is a leaf (below).
pub const SLOT: &str = "slot";
/// Instance field of the runtime class, of type `long`: the address of slot 0 of the thread's root; 0 until its first recorded call. The root is 8
/// bytes above.
pub const ROOT: &str = "root";
/// Instance field of `java/lang/Thread`, of the runtime class's type: the thread's cell; null until its first recorded call.
pub const THREAD_CELL: &str = "varid";

pub(crate) const CELL_TYPE: &str = "Ljava/lang/VaridTree;";
pub(crate) const SET_COUNTING_TYPE: &str = "(Z)V";
pub(crate) const CURRENT: &str = "current";
pub(crate) const CURRENT_TYPE: &str = "()Ljava/lang/VaridTree;";
pub(crate) const ENTER: &str = "enter";
pub(crate) const ENTER_WITHIN: &str = "enterWithin";
pub(crate) const ENTER_TYPE: &str = "(Ljava/lang/VaridTree;JIII)J";
pub(crate) const COUNT: &str = "count";
pub(crate) const COUNT_TYPE: &str = "(JI)V";
pub(crate) const COUNT_IN_ORDER: &str = "countInOrder";
pub(crate) const COUNT_IN_ORDER_TYPE: &str = "(Ljava/lang/VaridTree;JI)V";
pub(crate) const ABORT: &str = "abort";
pub(crate) const ABORT_TYPE: &str = "(JI)V";

/// What is called from a leaf finds this slot, or one at most 2^20 below.
pub(crate) const LEAF_SLOT: i64 = -(1 << 41);
/// What is called from a method whose node found no room finds this slot, or one at most 2^20 below.
pub(crate) const FOLDED_SLOT: i64 = -(1 << 40);

/// The address of the tree's header in the VM's process. [`node`](crate::node) says what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeAddress(pub u64);

/// The address in the VM's process of the word that switches counting: 0 is off, anything else on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchAddress(pub u64);
