//! Derives the layout of ART's structures from the VM's library.
//!
//! A device has one of hundreds of builds, and since Android 12 ART is a module that is updated separately. The layout of a build can be
//! read in its library: exported functions use the fields of structures, the unwind information describes the interpreters, and assembly
//! records where it keeps frames. Nothing is guessed: a field that is not found, or on which two functions disagree, is an error, and the
//! library is refused. The result is checked in the process before it is used.
//!
//! | question | file |
//! |---|---|
//! | which symbols, code and constants does the file have | `library` |
//! | where do the values that a function uses come from | `trace` |
//! | what does one function show | `shown` |
//! | where on its stack is the argument that a function passes to another one | `call_argument` |
//! | which offsets do functions use | `fields` |
//! | where is the list of threads | `thread_list` |
//! | how large are frames of saved registers | `stubs` |
//! | where are the interpreters | `interpreter` |
//! | how is code of the JIT found | `jit_code` |
//! | where is a new frame not linked yet | `pushes` |
//! | what does the code do | `ranges` |
//! | do the process's structures agree | `process` |
//! | which libraries have been read already | `known` |

mod call_argument;
mod error;
mod fields;
mod interpreter;
mod jit_code;
mod known;
mod library;
mod process;
mod pushes;
mod ranges;
mod shown;
mod stubs;
mod thread_list;
mod trace;

pub(crate) use call_argument::first_argument_on_stack;
pub use error::LayoutError;
pub(crate) use jit_code::{OAT_VERSION, OAT_VERSION_14};
pub(crate) use known::read_once;
pub(crate) use process::Look;

use fields::{Fields, NATIVE};
use interpreter::{Interpreters, Mterp, Nterp};
use jit_code::JitCode;
use library::{Function, Library};
use pushes::pushes;
use ranges::Unnamed;
use std::ops::Range;
use stubs::{CalleeSaves, Seen};
use thread_list::Threads;
use trace::{Code, Trace};
use varid_instructions::Decoder;
use varid_model::Machine;
use varid_tunnel::abi::{
    CodeRange, LAYOUT_CODE_ADDRESS, LAYOUT_ON_NATIVE_STACK, Layout, NO_REG, NO_RULE, RULE_AT_SP,
    RULE_LIST, Rule,
};

/// Bytes of a reference between heap objects.
const REFERENCE: u8 = 4;
/// The longest function without a symbol that is followed, in bytes.
const MAX_UNNAMED_SIZE: u64 = 1 << 15;

/// Where a thread has the pointer to its `Thread`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelfPointer {
    /// At the byte offset from the thread pointer that the word at this address of the library contains.
    Word(u64),
    /// At this byte offset from the thread pointer.
    Offset(i64),
}

/// The layout of a library, with addresses of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryLayout {
    /// Complete except for [`Layout::tls_offset`], which only a process has.
    layout: Layout,
    /// What its code does, sorted and disjoint.
    ranges: Vec<CodeRange>,
    /// See [`LibraryLayout::pushes`].
    pushes: Vec<Range<u64>>,
    self_pointer: SelfPointer,
    /// True if [`Layout::dex_file_begin`] is known.
    has_dex_file_begin: bool,
    /// Address of the pointer to the `Runtime`.
    runtime: u64,
    threads: Option<Threads>,
}

impl LibraryLayout {
    /// Derives the layout of a library.
    ///
    /// # Errors
    ///
    /// The library does not show a field, or shows it in two ways.
    pub fn read(bytes: &[u8]) -> Result<Self, LayoutError> {
        let library = Library::read(bytes)?;
        let interpreters = Interpreters::of(&library)?;
        let fields = Fields::of(&library)?;
        let (unnamed, saves) = assembly(&library)?;
        let saves = match saves.all() {
            Ok(saves) => Some(saves),
            // The assembly may be Thumb code. The frames of saved registers are only needed for frames of nterp and of compiled code.
            Err(LayoutError::NotShown { .. }) if library.machine == Machine::Arm => None,
            Err(error) => return Err(error),
        };
        let mut layout = layout(&library, &fields, saves.as_ref(), &interpreters)?;
        let rules = rules(&library, &fields, saves.as_ref(), &interpreters)?;
        layout.rule_count = u8::try_from(rules.len()).unwrap_or(0);
        for (to, rule) in layout.rules.iter_mut().zip(&rules) {
            *to = *rule;
        }
        let at_sp = rules.iter().position(|rule| rule.kind == RULE_AT_SP);
        let at_sp = at_sp.and_then(|at| u8::try_from(at).ok());
        layout.quick_rule = at_sp.unwrap_or(NO_RULE);
        // Walkers read no further than this check allows, wherever a layout comes from.
        varid_tunnel::layout::check(&layout)
            .map_err(|error| LayoutError::Unusable(error.to_string()))?;
        let kinds = ranges::kinds(&library, &unnamed, &interpreters);
        let ranges = ranges::ranges(&library, &kinds, &interpreters, at_sp.map(u32::from)).ok_or(
            LayoutError::OutOfBounds(
                "the number of its functions, or one that lies in another one,",
            ),
        )?;
        let self_pointer = self_pointer(&library)?;
        let pushes = pushes(&library, fields.stack_top, fields.frame_link);
        library.is_read()?;
        Ok(Self {
            layout,
            ranges,
            pushes,
            self_pointer,
            has_dex_file_begin: fields.dex_file_begin.is_some(),
            runtime: library.runtime,
            threads: fields.threads,
        })
    }

    /// Returns the layout and the code ranges in a process that has loaded the library at `base`, and whose word for the thread pointer's
    /// offset contains `tls_offset`.
    pub fn loaded_at(&self, base: u64, tls_offset: i64) -> (Layout, Vec<CodeRange>) {
        let mut layout = self.layout;
        layout.tls_offset = tls_offset;
        for rule in layout.rules.iter_mut().take(layout.rule_count.into()) {
            if rule.special_methods != 0 {
                rule.special_methods = rule.special_methods.wrapping_add(base);
            }
            if rule.kind == RULE_AT_SP {
                rule.code_start = rule.code_start.wrapping_add(base);
                rule.code_end = rule.code_end.wrapping_add(base);
            }
        }
        let ranges = self.ranges.iter().map(|range| CodeRange {
            start: range.start.wrapping_add(base),
            end: range.end.wrapping_add(base),
            ..*range
        });
        (layout, ranges.collect())
    }

    /// Addresses of the file at which the innermost frame of a thread's list is not linked to its caller yet: its link is invalid. They are
    /// sorted and disjoint.
    pub fn pushes(&self) -> &[Range<u64>] {
        &self.pushes
    }

    /// Where a thread has the pointer to its `Thread`.
    pub const fn self_pointer(&self) -> SelfPointer {
        self.self_pointer
    }
}

/// Returns the functions without a symbol (assembly and static functions of C++), and what all assembly shows of the frames of saved
/// registers.
fn assembly(library: &Library) -> Result<(Vec<Unnamed>, Seen), LayoutError> {
    let mut unnamed = Vec::new();
    let mut seen = Seen::default();
    for function in &library.functions {
        let size = function.code.end.saturating_sub(function.code.start);
        let is_unnamed = function.name.is_empty();
        let is_assembly = is_unnamed || function.name.starts_with("art_quick_");
        if !is_assembly || size > MAX_UNNAMED_SIZE {
            continue;
        }
        let trace = library.trace(function);
        seen.add(library, function, &trace)?;
        if is_unnamed {
            unnamed.push(Unnamed {
                code: function.code.clone(),
                calls: trace.calls().collect(),
            });
        }
    }
    Ok((unnamed, seen))
}

/// Returns the offset of a thread's top quick frame in its `Thread`.
fn stack_quick(fields: &Fields, saves: Option<&CalleeSaves>) -> Result<u16, LayoutError> {
    match (fields.stack_quick, saves.map(|saves| saves.stack_quick)) {
        (Some(one), Some(other)) if one != other => Err(LayoutError::Contradiction {
            field: "a thread's top quick frame",
            one: one.into(),
            other: other.into(),
        }),
        (Some(quick), _) | (None, Some(quick)) => Ok(quick),
        (None, None) => Err(LayoutError::NotShown {
            function: "art::ArtMethod::Invoke",
            field: "a thread's top quick frame",
        }),
    }
}

/// Makes the layout without its rules.
fn layout(
    library: &Library,
    fields: &Fields,
    saves: Option<&CalleeSaves>,
    interpreters: &Interpreters,
) -> Result<Layout, LayoutError> {
    let stack = [
        stack_quick(fields, saves)?,
        fields.stack_link,
        fields.stack_top,
    ];
    let word = u16::from(library.word());
    let first = stack.iter().copied().min().unwrap_or_default();
    let last = stack.iter().copied().max().unwrap_or_default();
    // Three consecutive pointers.
    if last.wrapping_sub(first) != word.wrapping_mul(2) || first.checked_rem(word) != Some(0) {
        return Err(LayoutError::OutOfBounds("the size of a managed stack"));
    }
    let [quick, link, top] = stack.map(|offset| offset.wrapping_sub(first));
    let code_address = interpreters
        .nterp
        .as_ref()
        .and_then(|nterp| nterp.method_code);
    let (flags, method_code) = match (code_address, fields.method_code) {
        (Some(offset), _) => (LAYOUT_CODE_ADDRESS, offset),
        (None, Some(offset)) => (0, offset),
        (None, None) => {
            return Err(LayoutError::NotShown {
                function: "art::ShadowFrame::GetThisObject",
                field: "a method's code item",
            });
        }
    };
    Ok(Layout {
        machine: library.elf_machine,
        word: library.word(),
        reference: REFERENCE,
        thread_tid: fields.thread_tid,
        flags: LAYOUT_ON_NATIVE_STACK | flags,
        thread_fragment: first,
        fragment_quick: quick,
        fragment_link: link,
        fragment_top: top,
        method_class: fields.method_class,
        method_code,
        method_index: fields.method_index,
        class_dex_cache: fields.class_dex_cache,
        dex_cache_dex_file: fields.dex_cache_dex_file,
        dex_file_begin: fields.dex_file_begin.unwrap_or_default(),
        ..Layout::default()
    })
}

/// Makes the rules of the library's frames, linked frames first.
fn rules(
    library: &Library,
    fields: &Fields,
    saves: Option<&CalleeSaves>,
    interpreters: &Interpreters,
) -> Result<Vec<Rule>, LayoutError> {
    let mut rules = vec![list(fields, interpreters.mterp.as_ref())];
    let saved = saves.map(|saves| saved(library, fields, saves));
    match (&interpreters.mterp, &interpreters.nterp, saved) {
        (_, Some(nterp), Some(saved)) => {
            rules.extend(at_sp(library, nterp, &saved));
            rules.extend(jit_code::find(library).map(|jit| sized(&jit, saved)));
        }
        (None, _, _) => {
            return Err(LayoutError::NotShown {
                function: "art_quick_*",
                field: "a method for callee-saved registers",
            });
        }
        (Some(_), None, Some(saved)) => {
            rules.extend(jit_code::find(library).map(|jit| sized(&jit, saved)));
        }
        (Some(_), _, None) => {}
    }
    Ok(rules)
}

/// Makes the part of the rules of native frames that describes frames of saved registers.
fn saved(library: &Library, fields: &Fields, saves: &CalleeSaves) -> Rule {
    // The frame of a native method is made like the third of these.
    let [_, _, native_size, ..] = saves.sizes;
    Rule {
        method_flags: fields.method_flags,
        native_flag: NATIVE,
        native_size,
        special_count: u8::try_from(saves.sizes.len()).unwrap_or(0),
        special_sizes: saves.sizes,
        special_methods: library.runtime,
        ..Rule::default()
    }
}

/// Makes the rule of linked frames. Without mterp, no register leads to one.
fn list(fields: &Fields, mterp: Option<&Mterp>) -> Rule {
    Rule {
        kind: RULE_LIST,
        reg_pc: mterp.map_or(NO_REG, |mterp| mterp.reg_pc),
        reg_frame: mterp.map_or(NO_REG, |mterp| mterp.reg_frame),
        frame_bias: mterp.map_or(0, |mterp| mterp.frame_bias),
        frame_link: fields.frame_link,
        frame_method: fields.frame_method,
        frame_pc: fields.frame_pc,
        frame_insns: fields.frame_insns,
        frame_index: fields.frame_index,
        ..Rule::default()
    }
}

/// Makes the rule of compiled frames.
const fn sized(jit: &JitCode, mut rule: Rule) -> Rule {
    rule.kind = jit.kind;
    (rule.reg_pc, rule.reg_frame) = (NO_REG, NO_REG);
    rule.method_entry = jit.method_entry;
    (rule.code_cache, rule.code_cache_map) = (jit.code_cache, jit.code_cache_map);
    rule.code_cache_counts = jit.code_cache_counts;
    rule
}

/// Makes the rule of nterp's frames.
fn at_sp(library: &Library, nterp: &Nterp, saved: &Rule) -> Option<Rule> {
    Some(Rule {
        // Without it, the frames of proxies are not recognised.
        method_entry: jit_code::method_entry(library).unwrap_or_default(),
        method_flags: saved.method_flags,
        native_flag: saved.native_flag,
        native_size: saved.native_size,
        special_count: saved.special_count,
        special_sizes: saved.special_sizes,
        special_methods: saved.special_methods,
        code_start: nterp.parts.first()?.start,
        code_end: nterp.parts.last()?.end,
        ..nterp.rule
    })
}

/// Finds out how code gets the `Thread` of its thread: by a thread-local variable or, with Android's C library, by a slot at the thread
/// pointer.
fn self_pointer(library: &Library) -> Result<SelfPointer, LayoutError> {
    if let Some(word) = library.tls_word {
        return Ok(SelfPointer::Word(word));
    }
    // Functions that begin by getting the current thread. They also read the slot of the stack protector, as any function may.
    let named = library
        .functions
        .iter()
        .filter(|function| function.name.starts_with("_ZN3art6Thread"));
    let slots = slots(library, named);
    match slots[..] {
        [slot] => Ok(SelfPointer::Offset(slot)),
        _ => Err(LayoutError::NotShown {
            function: "art::Thread::*",
            field: "the thread pointer's slot of art::Thread",
        }),
    }
}

/// Returns the offsets from the thread pointer of the words that functions read, except that of the stack protector (bionic's
/// `TLS_SLOT_STACK_GUARD`).
fn slots<'f>(library: &Library, functions: impl Iterator<Item = &'f Function>) -> Vec<i64> {
    let guard = i64::from(library.word()).wrapping_mul(5);
    let mut found: Vec<i64> = Vec::new();
    for function in functions {
        let trace = library.trace(function);
        for (_, event) in &trace.events {
            if let trace::Event::Load { from, size } = *event
                && size == library.word()
                && let Some(slot) = trace.at_thread_pointer(from)
                && slot != guard
                && !found.contains(&slot)
            {
                found.push(slot);
            }
        }
    }
    found
}

/// For a fuzz target: follows code from its first instruction on, and returns the number of events.
pub(crate) fn follow(machine: Machine, code: &[u8]) -> usize {
    let Some(decoder) = Decoder::of(machine) else {
        return 0;
    };
    let end = code.len() as u64;
    Trace::of(&Fragment(code), decoder, 0..end).events.len()
}

/// Code at address 0, and nothing else.
struct Fragment<'a>(&'a [u8]);

impl Code for Fragment<'_> {
    fn code(&self, address: u64) -> &[u8] {
        let at = usize::try_from(address).unwrap_or(usize::MAX);
        self.0.get(at..).unwrap_or_default()
    }

    fn constant(&self, _address: u64, _size: u8) -> Option<u64> {
        None
    }

    fn count(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
