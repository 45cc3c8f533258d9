//! Contexts in which nothing has been counted: which of them are callers of one in which something has? The others are left out. A VM whose
//! counting is switched off finds its contexts all the same.

use varid_instrument::MethodNumber;
use varid_recording::NodeId;

/// A caller that is in the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caller {
    /// None if its method has no address.
    pub(crate) node: Option<NodeId>,
    pub(crate) method: MethodNumber,
}

/// A context whose callees are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visited {
    /// It is in the session.
    Added(Caller),
    /// It is not, or was not when it was visited: its index.
    Waiting(usize),
}

/// A context in which nothing has been counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitingContext {
    caller: Option<Visited>,
    /// The index of the call site in the caller's method.
    pub(crate) site: Option<usize>,
    pub(crate) method: MethodNumber,
    added: Option<Caller>,
}

/// The contexts of a VM in which nothing has been counted.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Vec<WaitingContext>);

impl Waiting {
    /// Keeps a context.
    pub(crate) fn push(
        &mut self,
        caller: Option<Visited>,
        site: Option<usize>,
        method: MethodNumber,
    ) -> Visited {
        let index = self.0.len();
        self.0.push(WaitingContext {
            caller,
            site,
            method,
            added: None,
        });
        Visited::Waiting(index)
    }

    /// Returns the innermost of a context and its callers that is in the session, and the indices of those below it, outermost first.
    pub(crate) fn missing(&self, of: Option<Visited>) -> (Option<Caller>, Vec<usize>) {
        let mut missing = Vec::new();
        let mut next = of;
        let mut added = None;
        while let Some(visited) = next {
            let context = match visited {
                Visited::Added(caller) => {
                    added = Some(caller);
                    break;
                }
                Visited::Waiting(index) => self.0.get(index).map(|context| (index, context)),
            };
            next = None;
            if let Some((index, context)) = context {
                added = context.added;
                if added.is_none() {
                    missing.push(index);
                    next = context.caller;
                }
            }
        }
        missing.reverse();
        (added, missing)
    }

    /// Returns a context by its index.
    pub(crate) fn get(&self, index: usize) -> Option<WaitingContext> {
        self.0.get(index).copied()
    }

    /// Says that a context is in the session now.
    pub(crate) fn set_added(&mut self, index: usize, caller: Caller) {
        if let Some(context) = self.0.get_mut(index) {
            context.added = Some(caller);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::number;

    #[test]
    fn callers_wait_until_one_of_their_callees_is_added() {
        let caller = |method| Caller {
            node: None,
            method: number(method),
        };
        let mut waiting = Waiting::default();
        let outer = Visited::Added(caller(1));
        let middle = waiting.push(Some(outer), Some(0), number(2));
        let inner = waiting.push(Some(middle), None, number(3));
        assert_eq!(waiting.missing(None), (None, vec![]));
        assert_eq!(waiting.missing(Some(outer)), (Some(caller(1)), vec![]));
        let (added, missing) = waiting.missing(Some(inner));
        assert_eq!((added, &missing[..]), (Some(caller(1)), &[0, 1][..]));
        waiting.set_added(0, caller(2));
        assert_eq!(waiting.missing(Some(inner)), (Some(caller(2)), vec![1]));
        waiting.set_added(1, caller(3));
        assert_eq!(waiting.missing(Some(inner)), (Some(caller(3)), vec![]));
        // Below the root of a thread.
        let first = waiting.push(None, None, number(4));
        assert_eq!(waiting.missing(Some(first)), (None, vec![2]));
    }
}
