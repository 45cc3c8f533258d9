//! The metrics that follow from calls: call sites, methods, depths, contexts.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use super::{
    ContextMetric, DepthMetric, MethodMetric, MetricMethod, MetricMethodId, SiteMetric,
    merged::{Declared, MergedTree},
};

/// The opcode of `invokedynamic`: what it calls cannot be told from what the VM calls to link it.
const INVOKEDYNAMIC: u8 = 186;

/// Returns the call sites, those with most targets first, then those with most calls.
pub(super) fn sites(tree: &MergedTree, methods: &[MetricMethod]) -> Vec<SiteMetric> {
    let mut sites: HashMap<(MetricMethodId, u32), (HashSet<MetricMethodId>, u64)> = HashMap::new();
    for context in &tree.contexts {
        let caller = context.caller.and_then(|caller| tree.contexts.get(caller));
        let Some((caller, bci)) = caller.zip(context.bci) else {
            continue;
        };
        let place = (caller.method, bci);
        if !is_target(tree.declared.get(&place), method(methods, context.method)) {
            continue;
        }
        let (targets, calls) = sites.entry(place).or_default();
        targets.insert(context.method);
        *calls = calls.saturating_add(context.calls);
    }
    let mut found: Vec<_> = sites
        .into_iter()
        .map(|((caller, bci), (targets, calls))| SiteMetric {
            method: name(methods, caller),
            bci,
            declared: tree
                .declared
                .get(&(caller, bci))
                .and_then(|declared| declared.target.clone()),
            targets: targets.len(),
            calls,
        })
        .collect();
    found.sort_by(|one, other| {
        let key = |site: &SiteMetric| (Reverse(site.targets), Reverse(site.calls));
        let place = |site: &SiteMetric| (site.method.clone(), site.bci);
        (key(one).cmp(&key(other))).then_with(|| place(one).cmp(&place(other)))
    });
    found
}

/// Returns true if a method is one that an instruction calls: it has the name that the instruction names. Others are called by the VM there, to
/// load and to initialise classes, or by a native method.
fn is_target(declared: Option<&Declared>, callee: Option<&MetricMethod>) -> bool {
    let Some(declared) = declared else {
        return true;
    };
    if declared.opcode == INVOKEDYNAMIC {
        return false;
    }
    let callee = callee.and_then(|callee| callee.simple_name.as_deref());
    let Some((target, callee)) = declared.target.as_deref().zip(callee) else {
        return true;
    };
    let name = target.split('(').next().unwrap_or_default();
    name.rsplit('.').next() == Some(callee)
}

/// Returns the methods, those with most calls first.
pub(super) fn methods(tree: &MergedTree, methods: &[MetricMethod]) -> Vec<MethodMetric> {
    let mut sums: HashMap<MetricMethodId, (u64, u64)> = HashMap::new();
    for context in &tree.contexts {
        let (calls, bytecodes) = sums.entry(context.method).or_default();
        *calls = calls.saturating_add(context.calls);
        *bytecodes = bytecodes.saturating_add(context.bytecodes);
    }
    let mut found: Vec<_> = sums
        .into_iter()
        .map(|(id, (calls, bytecodes))| {
            let metric = MethodMetric {
                method: name(methods, id),
                size: method(methods, id).and_then(|method| method.size),
                calls,
                bytecodes: tree.has_bytecodes.then_some(bytecodes),
            };
            (id, metric)
        })
        .collect();
    found.sort_by(|(one_id, one), (other_id, other)| {
        (Reverse(one.calls), &one.method, one_id).cmp(&(
            Reverse(other.calls),
            &other.method,
            other_id,
        ))
    });
    found.into_iter().map(|(_, metric)| metric).collect()
}

/// Returns the contexts and calls of each depth.
pub(super) fn depth(tree: &MergedTree) -> Vec<DepthMetric> {
    let mut sums: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for context in &tree.contexts {
        let (contexts, calls) = sums.entry(context.depth).or_default();
        *contexts = contexts.saturating_add(1);
        *calls = calls.saturating_add(context.calls);
    }
    sums.into_iter()
        .map(|(depth, (contexts, calls))| DepthMetric {
            depth,
            contexts,
            calls,
        })
        .collect()
}

/// Returns the contexts in the order of the tree.
pub(super) fn contexts(tree: &MergedTree, methods: &[MetricMethod]) -> Vec<ContextMetric> {
    let contexts = tree.contexts.iter();
    contexts
        .map(|context| ContextMetric {
            caller: context.caller,
            bci: context.bci,
            method: name(methods, context.method),
            depth: context.depth,
            calls: context.calls,
            bytecodes: tree.has_bytecodes.then_some(context.bytecodes),
        })
        .collect()
}

fn method(methods: &[MetricMethod], id: MetricMethodId) -> Option<&MetricMethod> {
    methods.get(id.index())
}

fn name(methods: &[MetricMethod], id: MetricMethodId) -> Arc<str> {
    method(methods, id).map_or_else(|| "".into(), |method| method.name.clone())
}
