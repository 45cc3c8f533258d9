//! Finds the VM's list of its threads, which only a check in the process needs.

use super::error::LayoutError;
use super::library::Library;
use super::shown::Shown;
use super::trace::Event;

/// The location of the VM's list of its threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Threads {
    /// In the `Runtime`: pointer to the list.
    pub(super) runtime_list: u16,
    /// In the list: pointer to the first node.
    pub(super) first: u16,
    /// In a node, and in the head, which is not a node: pointer to the next one. None: the code does not distinguish it from the pointer to
    /// the first one.
    pub(super) next: Option<u16>,
    /// In a node: pointer to the thread.
    pub(super) thread: u16,
}

/// Reads the offsets from `Runtime::DetachCurrentThread`, which removes the thread from the list, and `ThreadList::Contains(pid_t)`, which
/// searches for a tid. None if one of them is missing or has other code.
pub(super) fn threads(library: &Library, thread_tid: u16) -> Result<Option<Threads>, LayoutError> {
    let Some(unregister) = library.functions.iter().find(|function| {
        function
            .name
            .starts_with("_ZN3art10ThreadList10UnregisterEPNS_6ThreadE")
    }) else {
        return Ok(None);
    };
    let unregister = unregister.code.start;
    let Ok(detach) = Shown::named(
        library,
        "art::Runtime::DetachCurrentThread",
        ("_ZN3art7Runtime19DetachCurrentThreadE", ""),
    ) else {
        return Ok(None);
    };
    let runtime = detach.argument(0)?;
    let list = detach.only("the list of threads", |event| match *event {
        Event::Call { target, arguments } if target == unregister => {
            let from = detach.word_from(arguments[0])?;
            detach.trace.offset_from(from, runtime)
        }
        _ => None,
    });
    // Android 14 has the second one instead.
    let searches = [
        "_ZN3art10ThreadList8ContainsEi",
        "_ZN3art10ThreadList15FindThreadByTidEi",
    ];
    let search = searches.iter().find_map(|name| library.named(name, ""));
    let Some(contains) =
        search.map(|search| Shown::of(library, search, "art::ThreadList::FindThreadByTid"))
    else {
        return Ok(None);
    };
    let this = contains.argument(0)?;
    // A tid is 32 bits in the structure that a pointer in a node leads to.
    let found = contains.only("the tid of a thread", |event| match *event {
        Event::Load { from, size: 4 } => {
            let (thread, tid) = contains.trace.split(from)?;
            let (node, in_node) = contains.trace.split(contains.word_from(thread)?)?;
            let from_list = contains.word_from(node)?;
            let first = contains.trace.offset_from(from_list, this)?;
            Some((tid, in_node, first))
        }
        _ => None,
    });
    let (Ok(runtime_list), Ok((tid, thread, first))) = (list, found) else {
        return Ok(None);
    };
    if tid != thread_tid {
        return Err(LayoutError::Contradiction {
            field: "the tid of a thread",
            one: thread_tid.into(),
            other: tid.into(),
        });
    }
    // The other word of a node that is read is the pointer to the next one.
    let next = contains.only("the next thread", |event| match *event {
        Event::Load { from, size } if size == library.word() => {
            let (node, offset) = contains.trace.split(from)?;
            let from_list = contains.word_from(node)?;
            let is_first = contains.trace.offset_from(from_list, this)? == first;
            (is_first && offset != thread).then_some(offset)
        }
        _ => None,
    });
    Ok(Some(Threads {
        runtime_list,
        first,
        next: next.ok(),
        thread,
    }))
}
