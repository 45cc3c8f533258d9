//! Derives how compiled code is located.
//!
//! This is limited to supported versions of ART's compiler and machines: ahead-of-time code of ART 11 on x86-64 and arm64, and of ART 14 on
//! x86-64; code of the JIT of both on x86-64.

use super::error::LayoutError;
use super::library::Library;
use super::shown::Shown;
use super::trace::Event;
use varid_model::Machine;
use varid_tunnel::abi::{CODE_INFO_COUNTS, CodeCounts, RULE_CODE_INFO, RULE_SIZED, SIZED_COUNTS};

/// The version of Android 11's oat files. Their tables can be read.
pub(crate) const OAT_VERSION: &[u8; 3] = b"183";
/// The version of Android 14's oat files.
pub(crate) const OAT_VERSION_14: &[u8; 3] = b"230";

/// The location of the JIT's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JitCode {
    /// [`RULE_SIZED`] or [`RULE_CODE_INFO`].
    pub(super) kind: u8,
    /// In a method: pointer to its code.
    pub(super) method_entry: u16,
    /// In the `Runtime`: pointer to the code cache. 0: the JIT's code is not looked up.
    pub(super) code_cache: u16,
    /// In the code cache: the map from code to methods.
    pub(super) code_cache_map: u16,
    /// In the code cache: the flag that says whether code is being collected. The numbers of compilations and collections follow it.
    pub(super) code_cache_counts: u16,
}

/// Returns what a library shows. None: frames of compiled code are not walked.
pub(super) fn find(library: &Library) -> Option<JitCode> {
    let (kind, counts) = match library.oat_version.as_ref() {
        Some(OAT_VERSION) => (RULE_SIZED, SIZED_COUNTS),
        Some(OAT_VERSION_14) => (RULE_CODE_INFO, CODE_INFO_COUNTS),
        _ => return None,
    };
    let (code_cache, code_cache_map, code_cache_counts) = match library.machine {
        Machine::X86_64 => (
            code_cache(library).ok()?,
            code_cache_map(library).ok()?,
            code_cache_counts(library, counts).ok()?,
        ),
        Machine::Aarch64 if kind == RULE_SIZED => (0, 0, 0),
        Machine::Aarch64 | Machine::X86 | Machine::Arm => return None,
    };
    Some(JitCode {
        kind,
        method_entry: method_entry(library).ok()?,
        code_cache,
        code_cache_map,
        code_cache_counts,
    })
}

/// `ArtMethod::Invoke` checks that its method has code before it calls the code.
pub(super) fn method_entry(library: &Library) -> Result<u16, LayoutError> {
    let shown = Shown::named(
        library,
        "art::ArtMethod::Invoke",
        ("_ZN3art9ArtMethod6InvokeE", ""),
    )?;
    let method = shown.argument(0)?;
    shown.only("a method's code", |event| match *event {
        Event::Load { from, size: 8 } => shown.trace.offset_from(from, method),
        _ => None,
    })
}

/// `Runtime::CreateJitCodeCache(bool)`, or `Runtime::CreateJit()` of ART 14, stores the result of `JitCodeCache::Create`.
fn code_cache(library: &Library) -> Result<u16, LayoutError> {
    const CREATE: &str = "art::jit::JitCodeCache::Create";
    let create = library.named("_ZN3art3jit12JitCodeCache6CreateE", "");
    let create = create.ok_or(LayoutError::NoSymbol(CREATE))?.code.start;
    let shown = Shown::named(
        library,
        "art::Runtime::CreateJitCodeCache",
        ("_ZN3art7Runtime18CreateJitCodeCacheEb", ""),
    )
    .or_else(|_| {
        Shown::named(
            library,
            "art::Runtime::CreateJit",
            ("_ZN3art7Runtime9CreateJitEv", ""),
        )
    })?;
    let runtime = shown.argument(0)?;
    shown.only("the code cache", |event| {
        let (to, what) = event.stored(8)?;
        let is_cache = shown.trace.returned_by(what) == Some(create);
        is_cache.then(|| shown.trace.offset_from(to, runtime))?
    })
}

/// `JitCodeCache::LookupMethodHeader(uintptr_t pc, ArtMethod*)` searches the map for the pc. It starts at the root, which follows the map's
/// comparison and its head's colour and parent. Nodes begin with four words and a key.
fn code_cache_map(library: &Library) -> Result<u16, LayoutError> {
    /// In a map of libstdc++: pointer to the root.
    const ROOT: u16 = 16;
    /// In a node of its tree: the key.
    const KEY: u16 = 32;
    const FIELD: &str = "the map from code to methods";
    let shown = Shown::named(
        library,
        "art::jit::JitCodeCache::LookupMethodHeader",
        ("_ZN3art3jit12JitCodeCache18LookupMethodHeaderE", ""),
    )?;
    let cache = shown.argument(0)?;
    // A key follows four words of a node to which a pointer in the cache leads.
    let root = shown.only(FIELD, |event| match *event {
        Event::Load { from, size: 8 } => {
            let (node, offset) = shown.trace.split(from)?;
            let (root, _) = shown.trace.loaded_from(node).filter(|_| offset == KEY)?;
            shown.trace.offset_from(root, cache)
        }
        _ => None,
    })?;
    root.checked_sub(ROOT)
        .ok_or(LayoutError::OutOfBounds(FIELD))
}

/// `JitCodeCache::NotifyCollectionDone(Thread*)` clears the flag that code is being collected, and `GarbageCollectCache(Thread*)` sets it.
/// The latter also increments the number of collections.
fn code_cache_counts(library: &Library, counts: CodeCounts) -> Result<u16, LayoutError> {
    let shown = Shown::named(
        library,
        "art::jit::JitCodeCache::NotifyCollectionDone",
        ("_ZN3art3jit12JitCodeCache20NotifyCollectionDoneE", ""),
    )?;
    let cache = shown.argument(0)?;
    let is_collecting = shown.only("whether code is collected", |event| {
        let (to, _) = event.stored(1)?;
        shown.trace.offset_from(to, cache)
    })?;
    let name = "art::jit::JitCodeCache::GarbageCollectCache";
    let shown = Shown::named(
        library,
        name,
        ("_ZN3art3jit12JitCodeCache19GarbageCollectCacheE", ""),
    )?;
    let cache = shown.argument(0)?;
    let events = || shown.trace.events.iter().map(|(_, event)| event);
    let stores_it = events().any(|event| {
        let at = event
            .stored(1)
            .and_then(|(to, _)| shown.trace.offset_from(to, cache));
        at == Some(is_collecting)
    });
    let number = is_collecting.checked_add(counts.collections);
    let counts_it = events().any(|event| match *event {
        Event::Load { from, size: 8 } => {
            number.is_some() && shown.trace.offset_from(from, cache) == number
        }
        _ => false,
    });
    let not_shown = LayoutError::NotShown {
        function: name,
        field: "how often code was collected",
    };
    (stores_it && counts_it)
        .then_some(is_collecting)
        .ok_or(not_shown)
}
