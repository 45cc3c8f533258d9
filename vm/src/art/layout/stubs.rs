//! Finds the methods that stand for saved registers, and the sizes of their frames.
//!
//! The VM's assembly saves registers in frames of its own. It stores one of six methods of the `Runtime` at the frame's stack pointer, and
//! the frame's address in the thread. Each place in the code that does so shows the size of the frame, and all of them must agree.

use super::error::LayoutError;
use super::library::{Function, Library};
use super::trace::{Event, Trace};
use varid_instructions::Register;
use varid_tunnel::abi::SPECIAL_METHODS;

/// What the assembly shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CalleeSaves {
    /// Size of each method's frame in bytes.
    pub(super) sizes: [u16; SPECIAL_METHODS],
    /// In the thread: its top quick frame.
    pub(super) stack_quick: u16,
}

const FUNCTION: &str = "art_quick_*";

/// What the assembly has shown so far.
#[derive(Debug, Default)]
pub(super) struct Seen {
    sizes: [Option<u16>; SPECIAL_METHODS],
    quick: Option<(Option<Register>, u16)>,
}

impl Seen {
    /// Adds what a function shows, if it is one that saves registers.
    pub(super) fn add(
        &mut self,
        library: &Library,
        function: &Function,
        trace: &Trace,
    ) -> Result<(), LayoutError> {
        let mut saves = false;
        for (_, event) in &trace.events {
            let Some((method, depth)) = saved(library, trace, event) else {
                continue;
            };
            let Some(size) = frame_size(library, function, depth) else {
                continue;
            };
            let known = self.sizes.get_mut(method).ok_or(LayoutError::OutOfBounds(
                "the number of a method for callee-saved registers",
            ))?;
            agree("the size of a frame of callee-saved registers", known, size)?;
            saves = true;
        }
        // Only in such a function does a stack pointer that is stored in a structure have this meaning.
        let noted = trace.events.iter().filter(|_| saves);
        for (_, event) in noted {
            if let Some(top) = noted_frame(library, trace, event) {
                agree("a thread's top quick frame", &mut self.quick, top)?;
            }
        }
        Ok(())
    }

    /// Returns the result, if it is complete.
    pub(super) fn all(&self) -> Result<CalleeSaves, LayoutError> {
        let not_shown = |field| LayoutError::NotShown {
            function: FUNCTION,
            field,
        };
        let mut sizes = [0; SPECIAL_METHODS];
        for (to, size) in sizes.iter_mut().zip(self.sizes) {
            *to = size.ok_or(not_shown("a method for callee-saved registers"))?;
        }
        let (_, stack_quick) = self.quick.ok_or(not_shown("a thread's top quick frame"))?;
        Ok(CalleeSaves { sizes, stack_quick })
    }
}

/// Keeps the first value. A different one is a contradiction.
fn agree<T: Copy + PartialEq + Into<Shown>>(
    field: &'static str,
    known: &mut Option<T>,
    value: T,
) -> Result<(), LayoutError> {
    let first = *known.get_or_insert(value);
    match first == value {
        true => Ok(()),
        false => Err(LayoutError::Contradiction {
            field,
            one: first.into().0,
            other: value.into().0,
        }),
    }
}

/// A value as an error shows it.
struct Shown(u64);

impl From<u16> for Shown {
    fn from(value: u16) -> Self {
        Self(value.into())
    }
}

impl From<(Option<Register>, u16)> for Shown {
    fn from((_, value): (Option<Register>, u16)) -> Self {
        Self(value.into())
    }
}

/// If a method of the `Runtime` is stored on the stack: which one, and how far below the stack pointer at the function's start.
fn saved(library: &Library, trace: &Trace, event: &Event) -> Option<(usize, i64)> {
    let (to, what) = event.stored(library.word())?;
    let (from, loaded) = trace.loaded_from(what)?;
    let (runtime, offset) = trace.split(from)?;
    let (instance, _) = trace.loaded_from(runtime)?;
    let is_runtime = trace.as_constant(instance) == Some(library.runtime);
    if !is_runtime || loaded != library.word() {
        return None;
    }
    let word = u16::from(library.word());
    let method = usize::from(offset.checked_div(word)?);
    // These methods are in the first words of a Runtime. Anything else is not one of them.
    if offset.checked_rem(word)? != 0 || method >= SPECIAL_METHODS {
        return None;
    }
    Some((method, trace.on_stack(to)?.checked_neg()?))
}

/// Returns the size in bytes of a frame that begins this far below the stack pointer at a function's start. The caller may have pushed more
/// than a return address; the first row of the function's unwind information shows how much.
fn frame_size(library: &Library, function: &Function, depth: i64) -> Option<u16> {
    let rows = library.rows(function.code.clone());
    let cfa = rows.first()?.cfa()?;
    let is_sp = cfa.register == library.machine.sp() && cfa.word.is_none();
    let size = depth.checked_add(cfa.bias).filter(|_| is_sp)?;
    u16::try_from(size).ok()
}

/// If the stack pointer is stored in the thread: the register that points to the thread, and the offset.
fn noted_frame(library: &Library, trace: &Trace, event: &Event) -> Option<(Option<Register>, u16)> {
    let (to, what) = event.stored(library.word())?;
    trace.on_stack(what)?;
    match trace.on_stack(to) {
        Some(_) => None,
        None => trace.in_thread(to),
    }
}
