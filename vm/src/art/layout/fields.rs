//! Finds the offsets that the functions of the library use.
//!
//! Each field is read from a small function that has a symbol and exists to use the field. Compilers order such code differently, so the
//! comparison is of where the values come from.

use super::error::LayoutError;
use super::library::{Function, Library};
use super::shown::Shown;
use super::thread_list::{Threads, threads};
use super::trace::{Event, Value};

/// The `kAccNative` of the dex format.
pub(super) const NATIVE: u32 = 0x100;

/// Offsets in ART's structures. [`varid_tunnel::abi::Layout`] documents them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) thread_tid: u16,
    /// In the thread: the top quick frame of its `ManagedStack`, if the function that clears it writes word by word; its link; its top
    /// shadow frame.
    pub(super) stack_quick: Option<u16>,
    pub(super) stack_link: u16,
    pub(super) stack_top: u16,
    pub(super) frame_link: u16,
    pub(super) frame_method: u16,
    pub(super) frame_pc: u16,
    pub(super) frame_insns: u16,
    pub(super) frame_index: u16,
    pub(super) method_class: u16,
    pub(super) method_flags: u16,
    pub(super) method_index: u16,
    /// ART 11 and earlier. None: there is no such field.
    pub(super) method_code: Option<u16>,
    pub(super) class_dex_cache: u16,
    pub(super) dex_cache_dex_file: u16,
    /// None: the code of dex files is in another library.
    pub(super) dex_file_begin: Option<u16>,
    /// In the `Runtime` and the `ThreadList`. It may be None, because only a check needs it.
    pub(super) threads: Option<Threads>,
}

impl Fields {
    /// Finds the offsets that a library uses.
    pub(super) fn of(library: &Library) -> Result<Self, LayoutError> {
        let (stack_top, frame_link) = pushed_frames(library)?;
        let (frame_pc, frame_insns, frame_index) = frame_pcs(library)?;
        let names = names(library)?;
        let (frame_method, method_flags, others) = methods(library)?;
        let known = [names.method_class, method_flags, names.method_index];
        let mut code = others.iter().filter(|offset| !known.contains(offset));
        let method_code = code.next().copied().filter(|_| code.next().is_none());
        let thread_tid = thread_tid(library)?;
        let (stack_link, stack_quick) = stack_links(library, stack_top)?;
        Ok(Self {
            thread_tid,
            stack_quick,
            stack_link,
            stack_top,
            frame_link,
            frame_method,
            frame_pc,
            frame_insns,
            frame_index,
            method_class: names.method_class,
            method_flags,
            method_index: names.method_index,
            method_code,
            class_dex_cache: names.class_dex_cache,
            dex_cache_dex_file: names.dex_cache_dex_file,
            dex_file_begin: dex_file_begin(library)?,
            threads: threads(library, thread_tid)?,
        })
    }
}

/// `Thread::InitTid` stores the result of a function.
fn thread_tid(library: &Library) -> Result<u16, LayoutError> {
    let shown = Shown::named(
        library,
        "art::Thread::InitTid",
        ("_ZN3art6Thread7InitTidEv", ""),
    )?;
    let thread = shown.argument(0)?;
    shown.only("the tid of a thread", |event| {
        let (to, what) = event.stored(4)?;
        shown.trace.returned_by(what)?;
        shown.trace.offset_from(to, thread)
    })
}

/// `ArtInterpreterToInterpreterBridge(Thread*, accessor, ShadowFrame*, result)` makes its third argument the top frame, and links the
/// previous top frame from it.
fn pushed_frames(library: &Library) -> Result<(u16, u16), LayoutError> {
    const NAME: &str = "art::interpreter::ArtInterpreterToInterpreterBridge";
    let shown = Shown::named(
        library,
        NAME,
        (
            "_ZN3art11interpreter33ArtInterpreterToInterpreterBridgeE",
            "",
        ),
    )?;
    let (thread, frame) = (shown.argument(0)?, shown.argument(2)?);
    let top = shown.only("a thread's top shadow frame", |event| {
        let (to, what) = event.stored(library.word())?;
        let to = shown.trace.offset_from(to, thread)?;
        (what == frame).then_some(to)
    })?;
    let link = shown.only("the link of a shadow frame", |event| match *event {
        Event::Store {
            to,
            what: Some(what),
            ..
        } => {
            let before = shown.word_from(what)?;
            (shown.trace.offset_from(before, thread)? == top).then_some(())?;
            shown.trace.offset_from(to, frame)
        }
        _ => None,
    })?;
    Ok((top, link))
}

/// `ArtMethod::Invoke(Thread*, …)` copies the thread's `ManagedStack` to its own stack, clears the thread's, and links the thread's to the
/// copy. Returns the offset of the link, and of the only other word that is cleared, if there is one.
fn stack_links(library: &Library, stack_top: u16) -> Result<(u16, Option<u16>), LayoutError> {
    let shown = Shown::named(
        library,
        "art::ArtMethod::Invoke",
        ("_ZN3art9ArtMethod6InvokeE", ""),
    )?;
    let thread = shown.argument(1)?;
    let near =
        |offset: u16| offset.abs_diff(stack_top) <= u16::from(library.word()).saturating_mul(2);
    // A word that is stored near the top shadow frame, and its value.
    let stored = |event: &Event| {
        let (to, what) = event.stored(library.word())?;
        let to = shown.trace.offset_from(to, thread).filter(|to| near(*to))?;
        Some((to, what))
    };
    let link = shown.only("the link of a managed stack", |event| {
        let (to, what) = stored(event)?;
        shown.trace.on_stack(what).map(|_| to)
    })?;
    let quick = shown.only("the top quick frame of a managed stack", |event| {
        let (to, what) = stored(event)?;
        let is_cleared = shown.trace.as_constant(what) == Some(0);
        (is_cleared && to != link && to != stack_top).then_some(to)
    });
    Ok((link, quick.ok()))
}

/// `StackVisitor::GetDexPc(bool)` computes the index of a shadow frame's instruction: the difference of two pointers or, without a pointer,
/// a number.
fn frame_pcs(library: &Library) -> Result<(u16, u16, u16), LayoutError> {
    let shown = Shown::named(
        library,
        "art::StackVisitor::GetDexPc",
        ("_ZNK3art12StackVisitor8GetDexPcEb", ""),
    )?;
    let visitor = shown.argument(0)?;
    // A pointer in the visitor leads to the frame. Both pointers come from the same frame.
    let in_frame = |value: Value| {
        let (from, size) = shown.trace.loaded_from(value)?;
        frame_of(&shown, visitor, from).map(|(frame, offset)| (frame, offset, size))
    };
    let (frame, pc, insns) = shown.only("the pc of a shadow frame", |event| match *event {
        Event::Subtract { left, right } => {
            let (frame, pc, size) = in_frame(left)?;
            let (other, insns, other_size) = in_frame(right)?;
            let are_pointers = size == library.word() && other_size == library.word();
            (frame == other && are_pointers).then_some((frame, pc, insns))
        }
        _ => None,
    })?;
    let index = shown.only("the dex pc of a shadow frame", |event| match *event {
        Event::Load { from, size: 4 } => {
            let (other, offset) = frame_of(&shown, visitor, from)?;
            (other == frame && offset != pc && offset != insns).then_some(offset)
        }
        _ => None,
    })?;
    Ok((pc, insns, index))
}

/// Returns the frame that an address lies in, as the offset of the visitor's field, and the offset in the frame.
fn frame_of(shown: &Shown<'_>, visitor: Value, address: Value) -> Option<(u16, u16)> {
    let (base, offset) = shown.trace.split(address)?;
    let field = shown.word_from(base)?;
    Some((shown.trace.offset_from(field, visitor)?, offset))
}

/// `ShadowFrame::GetThisObject() const` checks whether the frame's method is native. Returns where the frame has its method, where the
/// method has its flags, and the other 32-bit fields of a method that the function uses.
fn methods(library: &Library) -> Result<(u16, u16, Vec<u16>), LayoutError> {
    let shown = Shown::named(
        library,
        "art::ShadowFrame::GetThisObject",
        ("_ZNK3art11ShadowFrame13GetThisObjectEv", ""),
    )?;
    let frame = shown.argument(0)?;
    let in_method = |address: Value| {
        let (method, offset) = shown.trace.split(address)?;
        let from = shown.word_from(method)?;
        Some((shown.trace.offset_from(from, frame)?, offset))
    };
    let (method, flags) = shown.only("a method's flags", |event| match *event {
        Event::Test { value, mask } if mask == u64::from(NATIVE) => {
            in_method(shown.half_from(value)?)
        }
        _ => None,
    })?;
    let mut others: Vec<u16> = Vec::new();
    for (_, event) in &shown.trace.events {
        if let Event::Load { from, size: 4 } = *event
            && let Some((of, offset)) = in_method(from)
            && of == method
            && !others.contains(&offset)
        {
            others.push(offset);
        }
    }
    Ok((method, flags, others))
}

/// The fields by which a method's name is found.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Names {
    method_class: u16,
    class_dex_cache: u16,
    dex_cache_dex_file: u16,
    method_index: u16,
}

/// `ArtMethod::PrettyMethod(bool)` calls a function of the method's dex file with the method's index.
fn names(library: &Library) -> Result<Names, LayoutError> {
    let shown = Shown::named(
        library,
        "art::ArtMethod::PrettyMethod",
        ("_ZN3art9ArtMethod12PrettyMethod", "Eb"),
    );
    // The static function of the same name has the same ending.
    let shown = match shown {
        Ok(shown) => shown,
        Err(error) => {
            let member = |function: &&Function| {
                function.name.starts_with("_ZN3art9ArtMethod12PrettyMethod")
                    && function.name.ends_with("Eb")
                    && !function.name.ends_with("PS0_b")
            };
            let function = library.functions.iter().find(member).ok_or(error)?;
            Shown::of(library, function, "art::ArtMethod::PrettyMethod")
        }
    };
    shown.only("the names of methods", |event| {
        let Event::Call { arguments, .. } = event else {
            return None;
        };
        arguments.windows(2).find_map(|pair| {
            let [dex_file, index] = *pair else {
                return None;
            };
            let (cache, dex_cache_dex_file) = shown.trace.split(shown.word_from(dex_file)?)?;
            let (class, class_dex_cache) = shown.trace.split(shown.half_from(cache)?)?;
            let (method, method_class) = shown.trace.split(shown.half_from(class)?)?;
            let method_index = shown.trace.offset_from(shown.half_from(index)?, method)?;
            Some(Names {
                method_class,
                class_dex_cache,
                dex_cache_dex_file,
                method_index,
            })
        })
    })
}

/// The constructor `DexFile(const uint8_t* begin, …)` stores its argument.
fn dex_file_begin(library: &Library) -> Result<Option<u16>, LayoutError> {
    let constructor = |function: &&Function| {
        ["_ZN3art7DexFileC1EPKh", "_ZN3art7DexFileC2EPKh"]
            .iter()
            .any(|name| function.name.starts_with(name))
    };
    let Some(function) = library.functions.iter().find(constructor) else {
        return Ok(None);
    };
    let shown = Shown::of(library, function, "art::DexFile::DexFile");
    let (this, begin) = (shown.argument(0)?, shown.argument(1)?);
    let stored = shown.trace.events.iter().filter_map(|(_, event)| {
        let (to, what) = event.stored(library.word())?;
        let to = shown.trace.offset_from(to, this)?;
        (what == begin).then_some(to)
    });
    // In a standard dex file the data begin at the same address. The first member is the one.
    stored.min().map(Some).ok_or(LayoutError::NotShown {
        function: "art::DexFile::DexFile",
        field: "the start of a dex file",
    })
}
