//! Finds the VM's list of its threads, which only a check in the process needs.

use super::error::LayoutError;
use super::library::Library;
use super::shown::Shown;
use super::trace::{Event, Value};

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
    let Some(search) = TidSearch::find(library)? else {
        return Ok(None);
    };
    let found = search.node();
    let (Ok(runtime_list), Ok(node)) = (list, found) else {
        return Ok(None);
    };
    if node.tid != thread_tid {
        return Err(LayoutError::Contradiction {
            field: "the tid of a thread",
            one: thread_tid.into(),
            other: node.tid.into(),
        });
    }
    Ok(Some(Threads {
        runtime_list,
        first: node.first,
        next: search.next(node).ok(),
        thread: node.thread,
    }))
}

/// The function that searches the list for the thread with a tid.
struct TidSearch<'a> {
    library: &'a Library,
    shown: Shown<'a>,
    /// The list, its `this`.
    list: Value,
}

/// Offsets on the way from the list to a thread's tid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Node {
    /// In the list: pointer to the first node.
    first: u16,
    /// In a node: pointer to the thread.
    thread: u16,
    /// In the thread.
    tid: u16,
}

impl<'a> TidSearch<'a> {
    /// Finds the function. None if the library has no such function.
    fn find(library: &'a Library) -> Result<Option<Self>, LayoutError> {
        // Android 14 has the second one instead.
        let names = [
            "_ZN3art10ThreadList8ContainsEi",
            "_ZN3art10ThreadList15FindThreadByTidEi",
        ];
        let Some(function) = names.iter().find_map(|name| library.named(name, "")) else {
            return Ok(None);
        };
        let shown = Shown::of(library, function, "art::ThreadList::FindThreadByTid");
        let list = shown.argument(0)?;
        Ok(Some(Self {
            library,
            shown,
            list,
        }))
    }

    /// Returns how a tid is found. It is 32 bits in the structure that a pointer in a node leads to.
    fn node(&self) -> Result<Node, LayoutError> {
        let shown = &self.shown;
        shown.only("the tid of a thread", |event| match *event {
            Event::Load { from, size: 4 } => {
                let (thread, tid) = shown.trace.split(from)?;
                let (node, in_node) = shown.trace.split(shown.word_from(thread)?)?;
                let from_list = shown.word_from(node)?;
                Some(Node {
                    first: shown.trace.offset_from(from_list, self.list)?,
                    thread: in_node,
                    tid,
                })
            }
            _ => None,
        })
    }

    /// Returns the offset of the pointer to the next node: the other word of a node that is read.
    fn next(&self, known: Node) -> Result<u16, LayoutError> {
        let shown = &self.shown;
        shown.only("the next thread", |event| match *event {
            Event::Load { from, size } if size == self.library.word() => {
                let (node, offset) = shown.trace.split(from)?;
                let from_list = shown.word_from(node)?;
                let is_first = shown.trace.offset_from(from_list, self.list)? == known.first;
                (is_first && offset != known.thread).then_some(offset)
            }
            _ => None,
        })
    }
}
