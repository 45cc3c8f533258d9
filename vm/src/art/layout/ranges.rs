//! The kinds of the library's code, by address.
//!
//! Functions with symbols are classified by name. Assembly without symbols is classified by the named functions that it calls. A static
//! function that is called by one function of the call machinery and calls another one belongs to it.

use super::interpreter::Interpreters;
use super::library::{Function, Library};
use super::trace::Trace;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use varid_tunnel::abi::{
    CodeRange, RANGE_BODY, RANGE_BRIDGE, RANGE_HANDLERS, RANGE_INTERPRETER, RANGE_QUICK, RANGE_VM,
};

/// The most ranges of a library, which is the most in a process's list of them.
const MAX_RANGES: usize = 250;
/// The most functions without a symbol that belong to the call machinery. Debian's builds have thirty.
const MAX_UNNAMED: usize = 100;
/// A gap between two ranges with less code than this is padding.
const PADDING: u64 = 16;

/// Prefixes of the mangled names of interpreters in C++.
const INTERPRETERS: [&str; 1] = ["_ZN3art11interpreter20ExecuteSwitchImplCppI"];

/// Prefixes of the names of the call machinery.
const BRIDGES: [&str; 40] = [
    "_ZN3art9ArtMethod6InvokeE",
    "_ZN3art11interpreter26EnterInterpreterFromInvokeE",
    "_ZN3art11interpreter30EnterInterpreterFromDeoptimizeE",
    "_ZN3art11interpreter30EnterInterpreterFromEntryPointE",
    "_ZN3art11interpreter33ArtInterpreterToInterpreterBridgeE",
    "_ZN3art11interpreter34ArtInterpreterToCompiledCodeBridgeE",
    "_ZN3art11interpreter25DoMethodHandleInvokeExactE",
    "_ZN3art11interpreter20DoMethodHandleInvokeE",
    "_ZN3art11interpreter14DoInvokeCustomE",
    "_ZN3art11interpreter6DoCallI",
    "_ZN3art11interpreter19DoInvokePolymorphicI",
    "_ZN3art11interpreterL7ExecuteE",
    "_ZN3art11interpreterL14InterpreterJniE",
    "_ZN3art18MethodHandleInvokeE",
    "_ZN3art23MethodHandleInvokeExactE",
    "_ZN3art32MethodHandleInvokeExactWithFrameE",
    "_ZN3artL26MethodHandleInvokeInternalE",
    "_ZN3art17InvokeWithVarArgsI",
    "_ZN3art17InvokeWithJValuesI",
    "_ZN3art35InvokeVirtualOrInterfaceWithJValuesI",
    "_ZN3art35InvokeVirtualOrInterfaceWithVarArgsI",
    "_ZN3art12InvokeMethodE",
    "_ZN3art12InvokeMethodI",
    "_ZN3art17InvokeConstructorE",
    "_ZN3art28InvokeProxyInvocationHandlerE",
    "artQuickToInterpreterBridge",
    "artQuickProxyInvokeHandler",
    "artQuickResolutionTrampoline",
    "artQuickGenericJniTrampoline",
    "artQuickGenericJniEndTrampoline",
    "artInvoke",
    "MterpInvoke",
    "art_quick_invoke_",
    "art_quick_proxy_invoke_handler",
    "art_quick_imt_conflict_trampoline",
    "art_quick_resolution_trampoline",
    "art_quick_generic_jni_trampoline",
    "art_quick_to_interpreter_bridge",
    "art_quick_instrumentation_e",
    "art_invoke_",
];

/// Prefixes of the names of functions that are called only by assembly of the call machinery.
const CALLED_BY_BRIDGES: [&str; 6] = [
    "artQuickToInterpreterBridge",
    "artQuickProxyInvokeHandler",
    "artQuickResolutionTrampoline",
    "artQuickGenericJniTrampoline",
    "artInvoke",
    "artInstrumentationMethodE",
];

fn begins_with_any(function: &Function, names: &[&str]) -> bool {
    names.iter().any(|name| function.name.starts_with(name))
}

/// A function without a symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unnamed {
    pub(super) code: Range<u64>,
    /// The functions that it calls.
    pub(super) calls: Vec<u64>,
}

/// The functions of the library with a known kind, by their first address: end and kind.
pub(super) type Kinds = BTreeMap<u64, (u64, u32)>;

/// Prefixes of the names of functions whose static functions may belong to the call machinery, too.
const WITH_STATIC_PARTS: [&str; 4] = [
    "_ZN3art11interpreter",
    "_ZN3art18MethodHandleInvokeE",
    "_ZN3art23MethodHandleInvokeExactE",
    "_ZN3art32MethodHandleInvokeExactWithFrameE",
];

/// Classifies functions by their names, and those without a name by the functions that call them and that they call.
///
/// `unnamed`: the functions without a symbol.
pub(super) fn kinds(library: &Library, unnamed: &[Unnamed], interpreters: &Interpreters) -> Kinds {
    let mut kinds = Kinds::new();
    // A static part of the call machinery calls one of `leads_on`, and is one of `called`.
    let mut leads_on: HashSet<u64> = HashSet::new();
    let mut called: HashSet<u64> = HashSet::new();
    for function in &library.functions {
        let kind = match function {
            _ if begins_with_any(function, &INTERPRETERS) => RANGE_INTERPRETER,
            _ if begins_with_any(function, &BRIDGES) => RANGE_BRIDGE,
            _ => continue,
        };
        kinds.insert(function.code.start, (function.code.end, kind));
        leads_on.insert(function.code.start);
        if kind == RANGE_BRIDGE && begins_with_any(function, &WITH_STATIC_PARTS) {
            called.extend(library.trace(function).calls());
        }
    }
    leads_on.extend(interpreters.mterp.iter().map(|mterp| mterp.code.start));
    leads_on.extend(interpreters.switch.iter().map(|code| code.start));
    let mut found = assembly(library, unnamed);
    // A part may have parts of its own.
    loop {
        let part = unnamed.iter().find(|one| {
            let start = one.code.start;
            called.contains(&start)
                && !found.contains_key(&start)
                && one.calls.iter().any(|target| leads_on.contains(target))
        });
        let Some(part) = part.filter(|_| found.len() < MAX_UNNAMED) else {
            break;
        };
        leads_on.insert(part.code.start);
        called.extend(&part.calls);
        found.insert(part.code.start, part.code.end);
    }
    for (start, end) in found {
        kinds.entry(start).or_insert((end, RANGE_BRIDGE));
    }
    kinds
}

/// Finds assembly of the call machinery without symbols: callers of a function that only such assembly calls, and what `ArtMethod::Invoke`
/// calls to enter compiled code. On ARM, the latter has a part of its own.
fn assembly(library: &Library, unnamed: &[Unnamed]) -> BTreeMap<u64, u64> {
    let invoke = library.named("_ZN3art9ArtMethod6InvokeE", "");
    let invoke = invoke.map(|invoke| library.trace(invoke));
    let invoked: HashSet<u64> = invoke.iter().flat_map(Trace::calls).collect();
    let mut found = BTreeMap::new();
    let mut parts: HashSet<u64> = HashSet::new();
    for one in unnamed {
        let is_stub = one.calls.iter().any(|target| {
            let target = library.function_at(*target);
            target.is_some_and(|target| begins_with_any(target, &CALLED_BY_BRIDGES))
        });
        let is_invoked = invoked.contains(&one.code.start);
        if is_invoked {
            parts.extend(&one.calls);
        }
        if is_stub || is_invoked {
            found.insert(one.code.start, one.code.end);
        }
    }
    for one in unnamed {
        if parts.contains(&one.code.start) {
            found.insert(one.code.start, one.code.end);
        }
    }
    found
}

/// Returns all code of the library, by address, without gaps other than padding. `rule`: the index of nterp's rule, if it has one.
pub(super) fn ranges(
    library: &Library,
    kinds: &Kinds,
    interpreters: &Interpreters,
    rule: Option<u32>,
) -> Option<Vec<CodeRange>> {
    let mut ranges: Vec<CodeRange> = Vec::new();
    let mut add = |code: Range<u64>, kind: u32, rule: u32| {
        ranges.push(CodeRange {
            start: code.start,
            end: code.end,
            kind,
            rule,
        });
    };
    for (start, (end, kind)) in kinds {
        add(*start..*end, *kind, 0);
    }
    if let Some(code) = &interpreters.switch {
        add(code.clone(), RANGE_INTERPRETER, 0);
    }
    if let Some(mterp) = &interpreters.mterp {
        add(mterp.code.start..mterp.body.start, RANGE_INTERPRETER, 0);
        add(mterp.body.start..mterp.handlers.start, RANGE_BODY, 0);
        add(mterp.handlers.clone(), RANGE_HANDLERS, 0);
        add(mterp.handlers.end..mterp.body.end, RANGE_BODY, 0);
        add(mterp.body.end..mterp.code.end, RANGE_INTERPRETER, 0);
    }
    match (&interpreters.nterp, rule) {
        (Some(nterp), Some(rule)) => {
            let start = nterp.parts.first()?.start;
            let end = nterp.parts.last()?.end;
            add(start..nterp.handlers.start, RANGE_INTERPRETER, rule);
            // Only one interpreter's handlers can be followed: mterp's, if there is one.
            let handlers = match &interpreters.mterp {
                Some(_) => RANGE_BODY,
                None => RANGE_HANDLERS,
            };
            add(nterp.handlers.clone(), handlers, rule);
            add(nterp.handlers.end..end, RANGE_INTERPRETER, rule);
        }
        (Some(nterp), None) => {
            for part in &nterp.parts {
                add(part.clone(), RANGE_QUICK, 0);
            }
        }
        (None, _) => {}
    }
    ranges.retain(|range| range.start < range.end);
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let overlap = |pair: &[CodeRange]| matches!(pair, [one, next] if one.end > next.start);
    if ranges.windows(2).any(overlap) {
        return None;
    }
    let all = with_rest(library, &ranges);
    (all.len() <= MAX_RANGES).then_some(all)
}

/// Adds the rest of the library's code between the ranges.
fn with_rest(library: &Library, ranges: &[CodeRange]) -> Vec<CodeRange> {
    let mut all = Vec::new();
    let mut at = library.text.start;
    let end = library.text.end;
    let rest = |start: u64, end: u64| CodeRange {
        start,
        end,
        kind: RANGE_VM,
        rule: 0,
    };
    for range in ranges {
        if range.start >= at.saturating_add(PADDING) {
            all.push(rest(at, range.start));
        }
        all.push(*range);
        at = range.end;
    }
    if end >= at.saturating_add(PADDING) {
        all.push(rest(at, end));
    }
    all
}
