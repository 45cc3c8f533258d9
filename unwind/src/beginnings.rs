//! Finds code of a file that has no caller and no unwind information.
//!
//! The kernel jumps to a file's entry point, and a new thread starts after the clone(2) system call: neither has a caller. Dynamic linkers
//! have no unwind information for the entry point. musl has none for either, nor for the code that calls `main`.

use crate::architecture;
use object::{Object, ObjectSegment, ObjectSymbol, ReadRef, SegmentFlags, elf};
use std::ops::Range;
use varid_model::Machine;

/// The code of a file that has no caller.
#[derive(Debug, Default)]
pub(crate) struct Beginnings {
    code: Vec<Range<u64>>,
    begins_threads: bool,
}

impl Beginnings {
    /// Finds that code. `described`: the size of the file's unwind information in bytes. `has_rule` says whether it covers an address.
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
        let is_static = entry.is_some() && file.section_by_name(".interp").is_none();
        let mut code: Vec<_> = entry.into_iter().chain(calls_main).collect();
        if is_static {
            let calls_main = static_calls_main(file, machine).into_iter();
            code.extend(calls_main.filter(|code| !has_rule(code.start)));
        }
        // A program whose entry point has no unwind information has none for the start of threads either. Other files need not be searched.
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

    /// Returns true if an address is in that code.
    pub(crate) fn contain(&self, address: u64) -> bool {
        self.code.iter().any(|code| code.contains(&address))
    }

    /// Returns true if threads begin in that code.
    pub(crate) fn begin_threads(&self) -> bool {
        self.begins_threads
    }
}

/// Returns the code at a file's entry point.
fn entry_point<'data, R: ReadRef<'data>>(
    file: &object::File<'data, R>,
    machine: Machine,
) -> Option<Range<u64>> {
    /// The length of that code in bytes: glibc's `_start` and `_dl_start_user` have 66 on x86-64.
    const ENTRY: u64 = 128;
    let entry = match machine {
        Machine::Arm => file.entry() & !1,
        _ => file.entry(),
    };
    (entry != 0).then(|| entry..entry.saturating_add(ENTRY))
}

/// Returns the code of musl that calls `main`, with the function of its symbol.
fn calls_main<'data, R: ReadRef<'data>>(
    file: &object::File<'data, R>,
    described: usize,
) -> Vec<Range<u64>> {
    /// It ends in a jump to the function before it, whose name is not exported.
    const MUSL: &str = "__libc_start_main";
    /// The size of that function in bytes: 51 on x86-64.
    const BEFORE: u64 = 80;
    /// musl has fewer than 2,000 symbols.
    const MAX_SYMBOLS: usize = 1 << 12;
    /// A library with more unwind information than this covers the caller of main, too. Its symbols need not be searched.
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

/// Returns the code of musl in a static program that calls `main`: by its symbol, or, in a stripped program, by what follows calls through
/// pointers. Where these are others' calls, they have unwind information.
fn static_calls_main<'data, R: ReadRef<'data>>(
    file: &object::File<'data, R>,
    machine: Machine,
) -> Vec<Range<u64>> {
    /// `src/env/__libc_start_main.c`.
    const MUSL: &str = "libc_start_main_stage2";
    const MAX_SYMBOLS: usize = 1 << 20;
    let mut symbols = file.symbols().take(MAX_SYMBOLS).peekable();
    if symbols.peek().is_some() {
        return symbols
            .filter(|symbol| symbol.is_definition() && symbol.name() == Ok(MUSL))
            .map(|symbol| symbol.address()..symbol.address().saturating_add(symbol.size()))
            .collect();
    }
    let architecture = architecture::of(machine);
    returns(file, |code| architecture.exits_after(machine, code))
}

/// Returns the code after the clone(2) system call in a new thread. It calls the thread's function and exits with its result.
fn thread_ends<'data, R: ReadRef<'data>>(
    file: &object::File<'data, R>,
    machine: Machine,
) -> Vec<Range<u64>> {
    match architecture::of(machine).thread_end(machine) {
        Some(end) => returns(file, |code| code.starts_with(end).then_some(0..end.len())),
        None => Vec::new(),
    }
}

/// Returns the code of a file that is returned to, each with the last byte of the call instruction before it. `at_start` says where it is if
/// some code begins with it.
fn returns<'data, R: ReadRef<'data>>(
    file: &object::File<'data, R>,
    at_start: impl Fn(&[u8]) -> Option<Range<usize>>,
) -> Vec<Range<u64>> {
    /// The most bytes of code that are searched. A static program has a few megabytes.
    const MAX_CODE: u64 = 64 << 20;
    /// The most places that are kept. A C library has one.
    const MAX_ENDS: usize = 8;
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
        let code = segment.data().unwrap_or_default();
        let places = (0..code.len()).filter_map(|at| {
            let place = at_start(code.get(at..)?)?;
            let [start, end] = [place.start, place.end].map(|offset| {
                segment
                    .address()
                    .saturating_add(at.saturating_add(offset) as u64)
            });
            // A frame is looked up by its call instruction.
            Some(start.saturating_sub(1)..end)
        });
        let room = MAX_ENDS.saturating_sub(found.len());
        found.extend(places.take(room));
    }
    found
}
