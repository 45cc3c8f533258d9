//! The tree of calling contexts.

use std::collections::HashMap;

/// A context, by its row in [`Contexts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(transparent)]
pub struct ContextId(pub u32);

/// A function that was called from a site of another context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// The caller. None: the program begins here.
    pub parent: Option<ContextId>,
    /// The address of the instruction that calls, in the parent. 0 without one.
    pub site: u32,
    /// The address of the function.
    pub function: u32,
    /// How often it was entered.
    pub calls: u64,
}

/// All contexts. A parent comes before its children.
///
/// Recursion is folded: a function that is on the path already is entered in that context, so no path has a function twice, and the depth is
/// at most the number of functions.
#[derive(Debug, Clone, Default)]
pub struct Contexts {
    contexts: Vec<Context>,
    children: HashMap<(ContextId, u32, u32), ContextId>,
}

/// The most contexts. What exceeds them is counted in the caller.
const MAX_CONTEXTS: usize = 1 << 22;

impl Contexts {
    /// Makes a tree whose root is this function.
    #[must_use]
    pub fn new(function: u32) -> Self {
        let root = Context {
            parent: None,
            site: 0,
            function,
            calls: 1,
        };
        Self {
            contexts: vec![root],
            children: HashMap::new(),
        }
    }

    /// The context in which the program begins.
    pub const ROOT: ContextId = ContextId(0);

    /// All contexts, by id.
    #[must_use]
    pub fn all(&self) -> &[Context] {
        &self.contexts
    }

    /// Returns a context.
    #[must_use]
    pub fn get(&self, id: ContextId) -> Option<&Context> {
        self.contexts.get(id.0 as usize)
    }

    /// The function of a context.
    #[must_use]
    pub fn function(&self, id: ContextId) -> u32 {
        self.get(id).map_or(0, |context| context.function)
    }

    /// Returns the context of a function that is entered from `site` in the context `from`: one on the path, or a child, which is added if it
    /// is new. The entry is not counted.
    pub fn enter(&mut self, from: ContextId, site: u32, function: u32) -> ContextId {
        if let Some(known) = self.children.get(&(from, site, function)) {
            return *known;
        }
        let id = self.on_path(from, function).unwrap_or_else(|| {
            if self.contexts.len() >= MAX_CONTEXTS {
                return from;
            }
            let id = ContextId(self.contexts.len() as u32);
            self.contexts.push(Context {
                parent: Some(from),
                site,
                function,
                calls: 0,
            });
            id
        });
        self.children.insert((from, site, function), id);
        id
    }

    /// Counts entries of a context.
    pub fn count_calls(&mut self, id: ContextId, calls: u64) {
        if let Some(context) = self.contexts.get_mut(id.0 as usize) {
            context.calls = context.calls.saturating_add(calls);
        }
    }

    /// Returns the context of a function among a context and its callers.
    #[must_use]
    pub fn on_path(&self, from: ContextId, function: u32) -> Option<ContextId> {
        let mut next = Some(from);
        while let Some(id) = next {
            let context = self.get(id)?;
            if context.function == function {
                return Some(id);
            }
            next = context.parent;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recursion_is_folded() {
        let mut contexts = Contexts::new(0x10);
        let a = contexts.enter(Contexts::ROOT, 0x14, 0x100);
        let b = contexts.enter(a, 0x104, 0x200);
        assert_eq!(contexts.enter(b, 0x204, 0x100), a);
        assert_eq!(contexts.enter(b, 0x204, 0x200), b);
        assert_eq!(contexts.enter(a, 0x104, 0x200), b);
        assert_eq!(contexts.all().len(), 3);
        assert_ne!(contexts.enter(a, 0x108, 0x200), b);
    }
}
