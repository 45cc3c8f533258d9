//! Where does a file have code that nobody has called, and that no unwind information covers?
//!
//! The kernel jumps to a file's entry point, and a new thread comes out of clone(2)'s system call: nobody has called that code. Dynamic
//! linkers do not describe the first, musl describes neither these nor the code that calls `main`.

use crate::architecture;
use object::{Object, ObjectSegment, ObjectSymbol, ReadRef, SegmentFlags, elf};
use std::ops::Range;
use varid_model::Machine;

/// The code of a file that nobody has called.
#[derive(Debug, Default)]
pub(crate) struct Beginnings {
    code: Vec<Range<u64>>,
    begins_threads: bool,
}

impl Beginnings {
    /// Those of a file, whose unwind information has `described` bytes and says by `has_rule` whether it covers an address.
    pub(crate) fn of<'data, R: ReadRef<'data>>(
        file: &object::File<'data, R>,
        machine: Machine,
        described: usize,
        has_rule: impl Fn(u64) -> bool,
    ) -> Self {
        let entry = entry_point(file, machine).filter(|code| !has_rule(code.start));
        let calls_main = calls_main(file, described)
            .into_iter()
            .find(|code| !has_rule(code.end.saturating_sub(1)));
        let mut code: Vec<_> = entry.into_iter().chain(calls_main).collect();
        // Where a program begins without being described, threads do, too: other files need not be searched.
        let threads = match code.is_empty() {
            true => Vec::new(),
            false => thread_ends(file, machine),
        };
        let known = code.len();
        code.extend(threads.into_iter().filter(|code| !has_rule(code.start)));
        Self {
            begins_threads: code.len() > known,
            code,
        }
    }

    /// Whether an address is in that code.
    pub(crate) fn contain(&self, address: u64) -> bool {
        self.code.iter().any(|code| code.contains(&address))
    }

    /// Whether threads begin in some of it.
    pub(crate) fn begin_threads(&self) -> bool {
        self.begins_threads
    }
}

/// The code at a file's entry point.
fn entry_point<'data, R: ReadRef<'data>>(
    file: &object::File<'data, R>,
    machine: Machine,
) -> Option<Range<u64>> {
    /// Bytes at an entry point: glibc's `_start` and `_dl_start_user` have 66 on x86-64.
    const ENTRY: u64 = 128;
    let entry = match machine {
        Machine::Arm => file.entry() & !1,
        _ => file.entry(),
    };
    (entry != 0).then(|| entry..entry.saturating_add(ENTRY))
}

/// The code of musl that calls `main`, with the function that its symbol is of.
fn calls_main<'data, R: ReadRef<'data>>(
    file: &object::File<'data, R>,
    described: usize,
) -> Vec<Range<u64>> {
    /// It ends in a jump to the function that lies before it, whose name is not exported.
    const MUSL: &str = "__libc_start_main";
    /// Bytes of that function: 51 on x86-64.
    const BEFORE: u64 = 80;
    /// Symbols of musl: fewer than 2,000.
    const MAX_SYMBOLS: usize = 1 << 12;
    /// A library that describes more of its code describes what calls main, too: its symbols need not be searched.
    const LITTLE: usize = 1 << 12;
    let symbols = (described < LITTLE).then(|| file.dynamic_symbols());
    let symbols = symbols.into_iter().flatten().take(MAX_SYMBOLS);
    symbols
        .filter(|symbol| symbol.is_definition() && symbol.name() == Ok(MUSL))
        .map(|symbol| {
            let start = symbol.address();
            start.saturating_sub(BEFORE)..start.saturating_add(symbol.size())
        })
        .collect()
}

/// The code behind clone(2)'s system call in a new thread: it calls the thread's function, and exits with what that returns.
fn thread_ends<'data, R: ReadRef<'data>>(
    file: &object::File<'data, R>,
    machine: Machine,
) -> Vec<Range<u64>> {
    /// Bytes of code that are searched: a static program has a few megabytes.
    const MAX_CODE: u64 = 64 << 20;
    /// A C library has one.
    const MAX_ENDS: usize = 8;
    let Some(end) = architecture::of(machine).thread_end(machine) else {
        return Vec::new();
    };
    let is_code =
        |flags| matches!(flags, SegmentFlags::Elf { p_flags } if p_flags & elf::PF_X != 0);
    let mut left = MAX_CODE;
    let mut found = Vec::new();
    for segment in file.segments().filter(|segment| is_code(segment.flags())) {
        let (_, size) = segment.file_range();
        let Some(after) = left.checked_sub(size).filter(|_| found.len() < MAX_ENDS) else {
            break;
        };
        left = after;
        let places = segment.data().into_iter().flat_map(|code| {
            let windows = code.windows(end.len()).enumerate();
            windows.filter(|(_, window)| *window == end)
        });
        let returns = places.map(|(at, _)| segment.address().saturating_add(at as u64));
        let room = MAX_ENDS.saturating_sub(found.len());
        // A frame is looked up by the call.
        found.extend(
            returns
                .take(room)
                .map(|at| at.saturating_sub(1)..at.saturating_add(end.len() as u64)),
        );
    }
    found
}
