//! Whether a frame layout can be used: what a walker may rely on.

use crate::abi::{
    LAYOUT_LIST, LAYOUT_ON_NATIVE_STACK, LAYOUT_SHADOW, Layout, NO_FIELD, NO_REG, Shadow,
};
use crate::reader::Description;
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
        other => refuse("unknown kind", u64::from(other)),
    }
}

fn check_list(layout: &Layout) -> Result<(), Error> {
    let word = u16::from(layout.word);
    let within = |what, offset: u16, size: u16, limit: u16| match offset.checked_add(size) {
        Some(end) if end <= limit => Ok(()),
        _ => Err(Error::Layout {
            what,
            value: u64::from(offset),
        }),
    };
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
    if layout.reference != 4 && layout.reference != 8 {
        return Err(Error::Layout {
            what: "size of a reference",
            value: u64::from(layout.reference),
        });
    }
    for offset in [
        layout.method_class,
        layout.method_code,
        layout.method_index,
        layout.class_dex_cache,
        layout.dex_cache_dex_file,
        layout.dex_file_begin,
    ] {
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
            |l| l.kind = 3,
        ];
        for (which, spoil) in spoil.iter().enumerate() {
            let mut layout = art();
            spoil(&mut layout);
            assert!(check(&layout).is_err(), "{which}");
        }
    }
}
