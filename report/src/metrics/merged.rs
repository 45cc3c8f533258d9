//! Merges the calling contexts of all threads and processes into one tree.

use std::collections::HashMap;

use varid_recording::{Contexts, CounterId, MethodId, SiteTarget};

use super::{BYTECODES, CALLS, MetricMethodId};

/// A tree of contexts. Callers precede what they call.
#[derive(Debug, Default)]
pub(super) struct MergedTree {
    pub contexts: Vec<MergedContext>,
    /// What the instructions of call sites name, by the calling method and their offset.
    pub declared: HashMap<(MetricMethodId, u32), Declared>,
    pub has_bytecodes: bool,
}

/// What an instruction that calls a method names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Declared {
    /// The opcode of the instruction.
    pub opcode: u8,
    /// The method, with its class and descriptor. None if it is not known.
    pub target: Option<String>,
}

/// A calling context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MergedContext {
    /// The index of the calling context.
    pub caller: Option<usize>,
    /// The offset of the call site in the caller's bytecode. None if the VM calls.
    pub bci: Option<u32>,
    pub method: MetricMethodId,
    /// The number of methods on the stack.
    pub depth: u32,
    pub calls: u64,
    pub bytecodes: u64,
}

impl MergedTree {
    /// Merges contexts. Contexts below one whose method has no id are left out.
    pub fn new(
        contexts: &Contexts,
        method_of: impl Fn(MethodId) -> Option<MetricMethodId>,
    ) -> Self {
        let (calls, bytecodes) = (contexts.counter(CALLS), contexts.counter(BYTECODES));
        let mut tree = Self {
            has_bytecodes: bytecodes.is_some(),
            ..Self::default()
        };
        let mut known: HashMap<(Option<usize>, Option<u32>, MetricMethodId), usize> =
            HashMap::new();
        // By the number of the node.
        let mut merged: Vec<Option<usize>> = Vec::with_capacity(contexts.nodes().len());
        for (id, node) in contexts.node_ids().zip(contexts.nodes()) {
            let caller = match node.parent {
                None => Some(None),
                Some(parent) => merged.get(parent.index()).copied().flatten().map(Some),
            };
            let method = contexts.method_of(id).and_then(&method_of);
            let Some((caller, method)) = caller.zip(method) else {
                merged.push(None);
                continue;
            };
            let site = node.site.and_then(|site| contexts.site(site));
            let bci = site.map(|site| site.pc.get());
            let at = *known.entry((caller, bci, method)).or_insert_with(|| {
                let depth = caller.and_then(|caller| tree.contexts.get(caller));
                tree.contexts.push(MergedContext {
                    caller,
                    bci,
                    method,
                    depth: depth.map_or(0, |caller| caller.depth).saturating_add(1),
                    calls: 0,
                    bytecodes: 0,
                });
                tree.contexts.len().saturating_sub(1)
            });
            merged.push(Some(at));
            let value = |counter: Option<CounterId>| {
                counter.map_or(0, |counter| contexts.value(id, counter))
            };
            if let Some(context) = tree.contexts.get_mut(at) {
                context.calls = context.calls.saturating_add(value(calls));
                context.bytecodes = context.bytecodes.saturating_add(value(bytecodes));
            }
            let of = site.and_then(|site| Some((site, method_of(site.method)?)));
            if let Some((site, method)) = of {
                let declared = || Declared {
                    opcode: site.opcode,
                    target: match &site.target {
                        Some(SiteTarget::Name(name)) => Some(name.clone()),
                        Some(SiteTarget::Method(_)) | None => None,
                    },
                };
                let place = (method, site.pc.get());
                tree.declared.entry(place).or_insert_with(declared);
            }
        }
        tree
    }
}
