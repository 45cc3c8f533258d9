//! Whether a frame layout can be used: what a walker may rely on.

use crate::Description;
use crate::abi::{
    LAYOUT_LIST, LAYOUT_ON_NATIVE_STACK, LAYOUT_SAVE_AREAS, LAYOUT_SHADOW, Layout, NO_FIELD,
    NO_REG, Shadow,
};
use crate::{Error, Memory};

/// A walker reads a frame or a fragment as one piece of this many bytes.
const WINDOW: u16 = 64;
/// No thread structure is larger.
const MAX_THREAD_OFFSET: u16 = 0x4000;
/// No method, class, dex cache or dex file object is larger.
const MAX_OBJECT_OFFSET: u16 = 0x1000;
/// No thread-local storage of a library lies further from the thread pointer.
const MAX_TLS: u64 = 1 << 30;
/// DWARF numbers of the registers that any machine here has.
const MAX_REGISTER: u8 = 64;

const EM_386: u16 = 3;
const EM_MIPS: u16 = 8;
const EM_ARM: u16 = 40;
const EM_X86_64: u16 = 62;
const EM_AARCH64: u16 = 183;

/// Checks a layout by itself: after this, no field leads a walker out of what it reads.
pub fn check(layout: &Layout) -> Result<(), Error> {
    let refuse = |what, value: u64| Err(Error::Layout { what, value });
    let word = match layout.machine {
        EM_X86_64 | EM_AARCH64 => 8,
        EM_386 | EM_ARM | EM_MIPS => 4,
        other => return refuse("unknown machine", u64::from(other)),
    };
    if layout.word != word {
        return refuse("pointer size of another machine", u64::from(layout.word));
    }
    if layout.flags & !LAYOUT_ON_NATIVE_STACK != 0 {
        return refuse("unknown flags", u64::from(layout.flags));
    }
    if layout.tls_offset.unsigned_abs() > MAX_TLS {
        return refuse("offset from the thread pointer", layout.tls_offset as u64);
    }
    for register in [layout.reg_pc, layout.reg_frame] {
        if register >= MAX_REGISTER && register != NO_REG {
            return refuse("unknown register", u64::from(register));
        }
    }
    match layout.kind {
        LAYOUT_SHADOW => Ok(()),
        LAYOUT_LIST => check_list(layout),
        LAYOUT_SAVE_AREAS => check_save_areas(layout),
        other => refuse("unknown kind", u64::from(other)),
    }
}

fn within(what: &'static str, offset: u16, size: u16, limit: u16) -> Result<(), Error> {
    match offset.checked_add(size) {
        Some(end) if end <= limit => Ok(()),
        _ => Err(Error::Layout {
            what,
            value: u64::from(offset),
        }),
    }
}

fn check_list(layout: &Layout) -> Result<(), Error> {
    let word = u16::from(layout.word);
    within("thread_tid", layout.thread_tid, 4, MAX_THREAD_OFFSET)?;
    within(
        "thread_fragment",
        layout.thread_fragment,
        WINDOW,
        MAX_THREAD_OFFSET,
    )?;
    within("fragment_quick", layout.fragment_quick, word, WINDOW)?;
    within("fragment_link", layout.fragment_link, word, WINDOW)?;
    within("fragment_top", layout.fragment_top, word, WINDOW)?;
    within("frame_link", layout.frame_link, word, WINDOW)?;
    within("frame_method", layout.frame_method, word, WINDOW)?;
    within("frame_pc", layout.frame_pc, word, WINDOW)?;
    within("frame_insns", layout.frame_insns, word, WINDOW)?;
    within("frame_index", layout.frame_index, 4, WINDOW)?;
    check_objects(layout)
}

fn check_save_areas(layout: &Layout) -> Result<(), Error> {
    /// Above an area is its frame, which may end the stack: it is read by itself.
    const MAX_AREA: u16 = WINDOW - 4;
    let refuse = |what, value: u64| Err(Error::Layout { what, value });
    let word = u16::from(layout.word);
    let area = layout.reg_frame_bias.unsigned_abs();
    if layout.reg_frame_bias >= 0 || area > MAX_AREA || !area.is_multiple_of(4) {
        return refuse("size of an area", u64::from(area));
    }
    if layout.flags & LAYOUT_ON_NATIVE_STACK != 0 {
        return refuse("areas on the native stack", u64::from(layout.flags));
    }
    for (what, offset, size) in [
        ("thread_tid", layout.thread_tid, 4),
        ("thread_fragment", layout.thread_fragment, word),
    ] {
        within(what, offset, size, MAX_THREAD_OFFSET)?;
    }
    for (what, offset) in [
        ("frame_link", layout.frame_link),
        ("frame_method", layout.frame_method),
        ("frame_pc", layout.frame_pc),
        ("frame_caller_pc", layout.frame_caller_pc),
    ] {
        within(what, offset, word, area)?;
    }
    for offset in [
        layout.frame_link,
        layout.frame_method,
        layout.frame_pc,
        layout.frame_caller_pc,
    ] {
        if !offset.is_multiple_of(4) {
            return refuse("field of an area that is not aligned", u64::from(offset));
        }
    }
    check_objects(layout)
}

/// The way from a method to its dex file.
fn check_objects(layout: &Layout) -> Result<(), Error> {
    if layout.reference != 4 && layout.reference != 8 {
        return Err(Error::Layout {
            what: "size of a reference",
            value: u64::from(layout.reference),
        });
    }
    let of_areas = [
        layout.method_name,
        layout.method_proto,
        layout.class_descriptor,
    ];
    let of_areas = of_areas
        .into_iter()
        .filter(|_| layout.kind == LAYOUT_SAVE_AREAS);
    for offset in [
        layout.method_class,
        layout.method_code,
        layout.method_index,
        layout.class_dex_cache,
        layout.dex_cache_dex_file,
        layout.dex_file_begin,
    ]
    .into_iter()
    .chain(of_areas)
    {
        if offset != NO_FIELD {
            within(
                "way from a method to its dex file",
                offset,
                8,
                MAX_OBJECT_OFFSET,
            )?;
        }
    }
    Ok(())
}

/// Checks a description against the process it came from, as far as that can be done from
/// outside, where no thread pointer is to be had: the threads that the tunnel lists must
/// know their own tids. Returns how many do. Threads come and go: one is enough, and a
/// tunnel that lists none is not refused.
pub fn validate_layout(description: &Description, memory: &dyn Memory) -> Result<usize, Error> {
    let Layout {
        kind, thread_tid, ..
    } = description.layout;
    let at = match kind {
        LAYOUT_SHADOW => std::mem::offset_of!(Shadow, tid) as u64,
        _ => u64::from(thread_tid),
    };
    let confirmed = description
        .threads
        .iter()
        .filter(|thread| memory.read_u32(thread.base.wrapping_add(at)) == Ok(thread.tid))
        .count();
    match description.threads.first() {
        Some(thread) if confirmed == 0 => Err(Error::Threads {
            tid: thread.tid,
            base: thread.base,
        }),
        _ => Ok(confirmed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builds;

    fn art() -> Layout {
        let build_id = [
            0xd3, 0xba, 0x28, 0x1c, 0x20, 0xe7, 0x25, 0x78, 0x04, 0x67, 0xfb, 0x41, 0xf5, 0x0e,
            0x66, 0x90, 0x82, 0xcc, 0xac, 0x64,
        ];
        builds::lookup(&build_id)
            .unwrap()
            .layout(0, |_| Some((-8i64) as u64))
            .unwrap()
    }

    #[test]
    fn every_known_build_passes() {
        let arm64 = Layout {
            machine: EM_AARCH64,
            reg_pc: 20,
            reg_frame: 21,
            ..art()
        };
        assert_eq!(check(&art()), Ok(()));
        assert_eq!(check(&arm64), Ok(()));
        for build in builds::all() {
            assert_eq!(check(&build.layout(0, |_| Some(8)).unwrap()), Ok(()));
        }
    }

    #[test]
    fn offsets_that_leave_the_window_are_refused() {
        let spoil: [fn(&mut Layout); 9] = [
            |l| l.frame_index = 61,
            |l| l.frame_link = 57,
            |l| l.frame_pc = NO_FIELD,
            |l| l.thread_fragment = 0xffff,
            |l| l.method_class = 0xfffe,
            |l| l.word = 4,
            |l| l.reference = 0,
            |l| l.reg_pc = 200,
            |l| l.kind = 4,
        ];
        for (which, spoil) in spoil.iter().enumerate() {
            let mut layout = art();
            spoil(&mut layout);
            assert!(check(&layout).is_err(), "{which}");
        }
    }

    /// Dalvik 4.4 on x86.
    fn dalvik() -> Layout {
        Layout {
            kind: LAYOUT_SAVE_AREAS,
            machine: EM_386,
            word: 4,
            reference: 4,
            reg_pc: 6,
            reg_frame: 7,
            reg_frame_bias: -20,
            thread_tid: 124,
            thread_fragment: 4,
            frame_link: 0,
            frame_method: 8,
            frame_pc: 12,
            frame_caller_pc: 4,
            method_code: 32,
            method_name: 16,
            method_proto: 24,
            class_descriptor: 24,
            class_dex_cache: 40,
            dex_file_begin: 44,
            ..Layout::default()
        }
    }

    #[test]
    fn areas_that_are_not_what_a_walker_reads_are_refused() {
        assert_eq!(check(&dalvik()), Ok(()));
        let spoil: [fn(&mut Layout); 11] = [
            |l| l.reg_frame_bias = 0,
            |l| l.reg_frame_bias = 20,
            |l| l.reg_frame_bias = -64,
            |l| l.reg_frame_bias = -22,
            |l| l.reg_frame_bias = i16::MIN,
            |l| l.frame_pc = 20,
            |l| l.frame_caller_pc = NO_FIELD,
            |l| l.frame_method = 6,
            |l| l.flags = LAYOUT_ON_NATIVE_STACK,
            |l| l.thread_fragment = 0x4000,
            |l| l.class_descriptor = 0x2000,
        ];
        for (which, spoil) in spoil.iter().enumerate() {
            let mut layout = dalvik();
            spoil(&mut layout);
            assert!(check(&layout).is_err(), "{which}");
        }
    }
}
