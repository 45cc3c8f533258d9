//! Checks whether the structures of a process agree with the layout that its library shows.
//!
//! The process runs meanwhile: reads may be torn, threads come and go, and a thread's note of its top quick frame outlives the frame. So a
//! failed check is repeated later, and only the last of many failures means that the process differs.

use super::{LibraryLayout, SelfPointer};
use std::collections::HashSet;
use std::fmt;
use varid_model::{Pid, Tid};
use varid_process::own_tids;
use varid_tunnel::abi::{CodeRange, Layout, NO_INDEX, SPECIAL_METHODS};
use varid_tunnel::method::{CodeItem, resolve_method};
use varid_tunnel::{Memory, TunnelError};

/// No library has more initial thread-local storage than this. A larger value is something else.
const MAX_TLS: u64 = 1 << 20;
/// How often a list that changes is read again.
const ATTEMPTS: usize = 5;
/// The most threads that are checked.
const MAX_THREADS: usize = 1 << 12;
/// The most threads whose frames are checked.
const MAX_STACKS: usize = 64;
/// The most fragments of a thread, and frames of a fragment, that are checked.
const MAX_FRAMES: usize = 64;
/// The most methods that are checked.
const MAX_METHODS: usize = 256;
/// The most members of a dex file object that may be the pointer to the file.
const MAX_MEMBERS: u16 = 8;

/// What is checked in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// The methods for callee-saved registers are methods.
    CalleeSaves,
    /// The threads in the VM's list are threads of the process.
    Threads,
    /// Fragments and frames lie on the stacks in order.
    Stacks,
    /// The frames' methods lead to dex files that contain them.
    Methods,
}

impl Check {
    /// All of these and the check of the word with the thread pointer's offset, which a process that is up passes.
    const ALL: usize = 5;

    const fn what(self) -> &'static str {
        match self {
            Self::CalleeSaves => "the methods for callee-saved registers",
            Self::Threads => "the list of threads",
            Self::Stacks => "the managed stacks",
            Self::Methods => "the methods of frames",
        }
    }
}

/// How many checks a layout has passed. No check has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checks {
    passed: usize,
}

impl fmt::Display for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} checks of {} passed", self.passed, Check::ALL)
    }
}

/// A layout that a process's structures agree with.
#[derive(Debug)]
pub(crate) struct InProcess {
    pub(crate) layout: Layout,
    pub(crate) ranges: Vec<CodeRange>,
    pub(crate) checks: Checks,
}

/// The result of a look at a process.
#[derive(Debug)]
pub(crate) enum Look {
    /// There is nothing yet that can be checked.
    NotUp(&'static str),
    /// The process's structures differ, or were being changed.
    Differs(Check),
    /// The structures agree with the library.
    Agrees(Box<InProcess>),
}

/// Why a check did not pass.
enum Failed {
    NotUp(&'static str),
    Differs(Check),
}

impl LibraryLayout {
    /// Checks a process that has loaded the library at `base`.
    pub(crate) fn look(&self, pid: Pid, memory: &dyn Memory, base: u64) -> Look {
        let process = InMemory {
            library: self,
            pid,
            memory,
            base,
        };
        match process.check() {
            Ok(found) => Look::Agrees(Box::new(found)),
            Err(Failed::NotUp(why)) => Look::NotUp(why),
            Err(Failed::Differs(check)) => Look::Differs(check),
        }
    }
}

struct InMemory<'a> {
    library: &'a LibraryLayout,
    pid: Pid,
    memory: &'a dyn Memory,
    base: u64,
}

impl InMemory<'_> {
    fn word(&self, address: u64) -> Result<u64, TunnelError> {
        self.memory.read_word(address, self.library.layout.word)
    }

    fn word_in(&self, structure: u64, offset: u16) -> Result<u64, TunnelError> {
        self.word(structure.wrapping_add(offset.into()))
    }

    fn check(&self) -> Result<InProcess, Failed> {
        let tls_offset = self.tls_offset()?;
        let (mut layout, ranges) = self.library.loaded_at(self.base, tls_offset);
        let runtime = self.runtime(&layout)?;
        let mut passed = 2usize;
        if let Some(threads) = self.threads(&layout, runtime)? {
            passed = passed.saturating_add(1);
            let methods = self.stacks(&layout, &threads)?;
            passed = passed.saturating_add(1);
            layout.dex_file_begin = self.methods(layout, &methods)?;
            passed = passed.saturating_add(1);
        } else if !self.library.has_dex_file_begin {
            // Nothing else shows where a dex file is.
            return Err(Failed::Differs(Check::Threads));
        }
        Ok(InProcess {
            layout,
            ranges,
            checks: Checks { passed },
        })
    }

    fn tls_offset(&self) -> Result<i64, Failed> {
        let word = match self.library.self_pointer {
            SelfPointer::Offset(offset) => return Ok(offset),
            SelfPointer::Word(word) => word,
        };
        let value = self
            .word(self.base.wrapping_add(word))
            .map_err(|_| Failed::NotUp("its library cannot be read"))?;
        let offset = match self.library.layout.word {
            4 => i64::from(value as u32 as i32),
            _ => value.cast_signed(),
        };
        // Not relocated yet: the process is still being loaded.
        if offset == 0 || offset.unsigned_abs() > MAX_TLS {
            return Err(Failed::NotUp("its library is not relocated"));
        }
        Ok(offset)
    }

    /// Finds the `Runtime`. Its methods for callee-saved registers must be methods of no dex file.
    fn runtime(&self, layout: &Layout) -> Result<u64, Failed> {
        const NOT_UP: Failed = Failed::NotUp("its VM is starting");
        const DIFFERS: Failed = Failed::Differs(Check::CalleeSaves);
        let runtime = self
            .word(self.base.wrapping_add(self.library.runtime))
            .map_err(|_| NOT_UP)?;
        if runtime == 0 {
            return Err(NOT_UP);
        }
        let mut seen = HashSet::new();
        for number in 0..SPECIAL_METHODS as u64 {
            let at = number.wrapping_mul(layout.word.into());
            let method = self.word(runtime.wrapping_add(at)).map_err(|_| DIFFERS)?;
            if method == 0 {
                return Err(NOT_UP);
            }
            let index = self
                .memory
                .read_u32(method.wrapping_add(layout.method_index.into()))
                .map_err(|_| DIFFERS)?;
            if index != NO_INDEX || !seen.insert(method) {
                return Err(DIFFERS);
            }
        }
        Ok(runtime)
    }

    /// Returns the VM's threads. None if the location of their list is not known.
    fn threads(&self, layout: &Layout, runtime: u64) -> Result<Option<Vec<u64>>, Failed> {
        let Some(list) = self.library.threads else {
            return Ok(None);
        };
        let word = u16::from(layout.word);
        // Where a node may have the pointer to the next one, if the library does not show it.
        let candidates = match list.next {
            Some(next) => vec![next],
            None => vec![0, word],
        };
        for _ in 0..ATTEMPTS {
            let tids = own_tids(self.pid);
            for next in &candidates {
                let Ok(threads) = self.listed(runtime, *next) else {
                    continue;
                };
                let tid = |thread: &u64| {
                    self.memory
                        .read_u32(thread.wrapping_add(layout.thread_tid.into()))
                };
                let all = threads.iter().map(tid);
                // A thread that has just begun has no tid yet.
                let are_its = |tid: Result<u32, TunnelError>| {
                    tid.is_ok_and(|tid| tid == 0 || tids.contains(&Tid::new(tid)))
                };
                if threads.is_empty() {
                    return Err(Failed::NotUp("its VM has no thread yet"));
                }
                if all.into_iter().all(are_its) {
                    return Ok(Some(threads));
                }
            }
        }
        Err(Failed::Differs(Check::Threads))
    }

    /// Returns the threads of the list.
    fn listed(&self, runtime: u64, next: u16) -> Result<Vec<u64>, TunnelError> {
        let Some(list) = self.library.threads else {
            return Ok(Vec::new());
        };
        let nodes = self.word_in(runtime, list.runtime_list)?;
        let wrong = |address| TunnelError::Read {
            address,
            len: 0,
            reason: "this is no list".to_owned(),
        };
        if nodes == 0 {
            return Ok(Vec::new());
        }
        let head = nodes
            .wrapping_add(list.first.into())
            .wrapping_sub(next.into());
        let mut node = self.word_in(nodes, list.first)?;
        let mut threads = Vec::new();
        while node != head {
            if node == 0 || threads.len() >= MAX_THREADS {
                return Err(wrong(node));
            }
            threads.push(self.word_in(node, list.thread)?);
            node = self.word_in(node, next)?;
        }
        Ok(threads)
    }

    /// Returns the methods of the threads' frames, if these are on stacks: the fragments of a thread and the frames of a fragment must lie
    /// in order.
    fn stacks(&self, layout: &Layout, threads: &[u64]) -> Result<Vec<u64>, Failed> {
        let mut methods = Vec::new();
        let (mut ordered, mut torn) = (0usize, 0usize);
        for thread in threads.iter().take(MAX_STACKS) {
            match self.stack(layout, *thread) {
                Ok(found) if found.is_empty() => {}
                Ok(found) => {
                    ordered = ordered.saturating_add(1);
                    methods.extend(found);
                }
                Err(_) => torn = torn.saturating_add(1),
            }
        }
        match (ordered, torn) {
            (0, 0) => Err(Failed::NotUp("no thread of its VM executes a method")),
            _ if ordered > torn => Ok(methods),
            _ => Err(Failed::Differs(Check::Stacks)),
        }
    }

    /// Returns the methods of a thread's frames.
    fn stack(&self, layout: &Layout, thread: u64) -> Result<Vec<u64>, TunnelError> {
        let list = layout.rules.first().copied().unwrap_or_default();
        let torn = |address| TunnelError::Read {
            address,
            len: 0,
            reason: "frames are not in order".to_owned(),
        };
        let mut methods = Vec::new();
        let mut fragment = thread.wrapping_add(layout.thread_fragment.into());
        let mut above = 0;
        for _ in 0..MAX_FRAMES {
            let quick = self.word_in(fragment, layout.fragment_quick)?;
            let mut frame = self.word_in(fragment, layout.fragment_top)?;
            // Two bits are tags.
            let quick = quick & !3;
            if quick != 0 {
                methods.push(self.word(quick)?);
            }
            let mut inner = 0;
            for _ in 0..MAX_FRAMES {
                if frame == 0 {
                    break;
                }
                if frame <= inner || !frame.is_multiple_of(layout.word.into()) {
                    return Err(torn(frame));
                }
                methods.push(self.word_in(frame, list.frame_method)?);
                inner = frame;
                frame = self.word_in(frame, list.frame_link)?;
            }
            let next = self.word_in(fragment, layout.fragment_link)?;
            if next == 0 {
                break;
            }
            if next <= above {
                return Err(torn(next));
            }
            (fragment, above) = (next, next);
        }
        Ok(methods)
    }

    /// Checks that at least one method is of a dex file, and returns where a dex file object has the pointer to its file. Other methods may
    /// fail the check, because outdated notes lead to frames that have returned.
    fn methods(&self, layout: Layout, methods: &[u64]) -> Result<u16, Failed> {
        let word = u16::from(layout.word);
        let members = match self.library.has_dex_file_begin {
            true => vec![layout.dex_file_begin],
            false => (1..=MAX_MEMBERS)
                .map(|member| member.saturating_mul(word))
                .collect(),
        };
        let mut has_others = false;
        for begin in members {
            let layout = Layout {
                dex_file_begin: begin,
                ..layout
            };
            for method in methods.iter().take(MAX_METHODS) {
                match self.is_of_dex_file(&layout, *method) {
                    Some(true) => return Ok(begin),
                    Some(false) => has_others = true,
                    None => {}
                }
            }
        }
        match has_others {
            true => Err(Failed::Differs(Check::Methods)),
            false => Err(Failed::NotUp(
                "no thread of its VM executes a method of a dex file",
            )),
        }
    }

    /// Returns true if a method's dex file is valid and has enough methods. None if it is a method of the VM itself.
    fn is_of_dex_file(&self, layout: &Layout, method: u64) -> Option<bool> {
        /// Offset in a dex file's header of the number of methods.
        const METHOD_IDS_SIZE: u64 = 88;
        /// Offset in that header of the file's size.
        const FILE_SIZE: u64 = 32;
        let id = match resolve_method(layout, self.memory, method) {
            Ok(Some(id)) => id,
            Ok(None) => return None,
            Err(_) => return Some(false),
        };
        let read = |offset: u64| self.memory.read_u32(id.dex_begin.wrapping_add(offset));
        let mut magic = [0; 4];
        let has_magic = self.memory.read(id.dex_begin, &mut magic).is_ok()
            && matches!(&magic, b"dex\n" | b"cdex");
        let has_method = read(METHOD_IDS_SIZE).is_ok_and(|methods| id.method_index < methods);
        // A method's code is in its dex file. With compact dex, it may be in the data of another one.
        let has_code = match id.code {
            CodeItem::Address { start, .. } if &magic == b"dex\n" => {
                let size = read(FILE_SIZE).map_or(0, u64::from);
                start
                    .checked_sub(id.dex_begin)
                    .is_some_and(|offset| offset < size)
            }
            CodeItem::Offset(offset) if &magic == b"dex\n" => {
                read(FILE_SIZE).is_ok_and(|size| offset < size)
            }
            _ => true,
        };
        Some(has_magic && has_method && has_code)
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what())
    }
}
