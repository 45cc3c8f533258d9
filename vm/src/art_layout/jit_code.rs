//! How is the code that the JIT has compiled found?
//!
//! Only for the versions of ART whose tables of compiled code are understood, on the machine on which that is.

use super::library::Library;
use super::trace::Event;
use varid_model::Machine;

/// Android 11.
const OAT_VERSION: &[u8; 3] = b"183";

/// Where the JIT's code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JitCode {
    /// In a method: pointer to its code.
    pub(super) method_entry: u16,
    /// In the `Runtime`: pointer to the code cache.
    pub(super) code_cache: u16,
    /// In the code cache: the map from code to methods.
    pub(super) code_cache_map: u16,
}

/// What a library says; None: frames of compiled code are not walked.
pub(super) fn find(library: &Library) -> Option<JitCode> {
    if library.oat_version.as_ref() != Some(OAT_VERSION) || library.machine != Machine::X86_64 {
        return None;
    }
    Some(JitCode {
        method_entry: method_entry(library)?,
        code_cache: code_cache(library)?,
        code_cache_map: code_cache_map(library)?,
    })
}

/// `ArtMethod::Invoke` asks whether its method has code before it calls that.
fn method_entry(library: &Library) -> Option<u16> {
    let function = library.named("_ZN3art9ArtMethod6InvokeE", "")?;
    let trace = library.trace(function);
    let method = trace.argument(0)?;
    only(trace.events.iter().filter_map(|(_, event)| match *event {
        Event::Load { from, size: 8 } => trace.offset_from(from, method),
        _ => None,
    }))
}

/// `Runtime::CreateJitCodeCache(bool)` stores what `JitCodeCache::Create` returns.
fn code_cache(library: &Library) -> Option<u16> {
    let function = library.named("_ZN3art7Runtime18CreateJitCodeCacheEb", "")?;
    let create = library
        .named("_ZN3art3jit12JitCodeCache6CreateE", "")?
        .code
        .start;
    let trace = library.trace(function);
    let runtime = trace.argument(0)?;
    only(trace.events.iter().filter_map(|(_, event)| match *event {
        Event::Store {
            to,
            what: Some(what),
            size: 8,
        } if trace.returned_by(what) == Some(create) => trace.offset_from(to, runtime),
        _ => None,
    }))
}

/// `JitCodeCache::LookupMethodHeader(uintptr_t pc, ArtMethod*)` searches the map for the pc: from the root, which lies behind the map's
/// comparison and its head's colour and parent, to nodes that begin with four words and a key.
fn code_cache_map(library: &Library) -> Option<u16> {
    /// In a map of libstdc++: pointer to the root.
    const ROOT: u16 = 16;
    /// In a node of its tree: the key.
    const KEY: u16 = 32;
    let function = library.named("_ZN3art3jit12JitCodeCache18LookupMethodHeaderE", "")?;
    let trace = library.trace(function);
    let cache = trace.argument(0)?;
    // A key is what lies behind four words of what a pointer in the cache leads to.
    let root = only(trace.events.iter().filter_map(|(_, event)| match *event {
        Event::Load { from, size: 8 } => {
            let (node, offset) = trace.split(from)?;
            let (root, _) = trace.loaded_from(node).filter(|_| offset == KEY)?;
            trace.offset_from(root, cache)
        }
        _ => None,
    }))?;
    root.checked_sub(ROOT)
}

/// The one value that all are.
fn only(mut values: impl Iterator<Item = u16>) -> Option<u16> {
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}
