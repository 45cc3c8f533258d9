//! The session's `call-order.data`: the order of calls and blocks in each thread.
//!
//! | question | file |
//! |---|---|
//! | how are events and chunks encoded | `format` |
//! | how is it written | `writer` |
//! | how is it read | `reader` |

mod format;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use format::ContextsKey;
pub use reader::{CallEvents, CallOrder, CallOrderThread};
pub use writer::CallOrderWriter;

use varid_model::CodeUnits;

use crate::contexts::NodeId;

/// The name of the order of calls inside a session folder.
pub const CALL_ORDER_DATA: &str = "call-order.data";

/// A thread enters a method or a block.
///
/// Returns are not events. They follow from the nodes: at an event of a node, every call above that node is over, whether it has returned or
/// thrown an exception; at an `Enter`, every call above the node's parent. The calls that are left at a thread's last event return after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallEvent {
    /// A call of the node's method, from the node's parent. It is also the execution of the method's first block. If a branch leads to that
    /// block, its executions are `Block` events instead, as those of others are.
    Enter(NodeId),
    /// The execution of another block of the node's method. Not every block has events.
    Block {
        /// The calling context.
        node: NodeId,
        /// The offset of the block's first instruction in the method's bytecode.
        start: CodeUnits,
    },
}

impl CallEvent {
    /// Returns the calling context of the event.
    #[must_use]
    pub const fn node(&self) -> NodeId {
        match *self {
            Self::Enter(node) | Self::Block { node, .. } => node,
        }
    }
}
