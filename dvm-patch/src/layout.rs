//! Checks whether a walker can use a frame layout.

use crate::Description;
use crate::abi::{
    CODE_INFO_COUNTS, LAYOUT_CODE_ADDRESS, LAYOUT_ON_NATIVE_STACK, Layout, MAX_RULES, NO_FIELD,
    NO_REG, NO_RULE, RULE_AT_SP, RULE_CODE_INFO, RULE_LIST, RULE_SAVE_AREA, RULE_SHADOW,
    RULE_SIZED, Rule, SPECIAL_METHODS, Shadow,
};
use crate::{Memory, TunnelError};

/// A walker reads a frame or a fragment in one piece of this many bytes.
const WINDOW: u16 = 64;
/// The saved words of an [`RULE_AT_SP`] frame, and the word at the caller's stack pointer, are read in one piece of at most this
/// many bytes.
const SAVES_WINDOW: u16 = 124;
/// Maximum size of a thread structure.
const MAX_THREAD_OFFSET: u16 = 0x4000;
/// Maximum size of a method, class, dex cache or dex file object.
const MAX_OBJECT_OFFSET: u16 = 0x1000;
/// Maximum distance of a library's thread-local storage from the thread pointer.
const MAX_TLS: u64 = 1 << 30;
/// Maximum size of an interpreter's code, in bytes.
const MAX_CODE: u64 = 1 << 24;
/// No supported machine has higher DWARF register numbers.
const MAX_REGISTER: u8 = 64;

const EM_386: u16 = 3;
const EM_MIPS: u16 = 8;
const EM_ARM: u16 = 40;
const EM_X86_64: u16 = 62;
const EM_AARCH64: u16 = 183;

fn refuse(what: &'static str, value: u64) -> Result<(), TunnelError> {
    Err(TunnelError::Layout { what, value })
}

/// Checks a layout by itself. After this, no field makes a walker read beyond its windows.
pub fn check(layout: &Layout) -> Result<(), TunnelError> {
    let word = match layout.machine {
        EM_X86_64 | EM_AARCH64 => 8,
        EM_386 | EM_ARM | EM_MIPS => 4,
        other => return refuse("unknown machine", u64::from(other)),
    };
    if layout.word != word {
        return refuse("pointer size of another machine", u64::from(layout.word));
    }
    if layout.flags & !(LAYOUT_ON_NATIVE_STACK | LAYOUT_CODE_ADDRESS) != 0 {
        return refuse("unknown flags", u64::from(layout.flags));
    }
    if layout.tls_offset.unsigned_abs() > MAX_TLS {
        return refuse("offset from the thread pointer", layout.tls_offset as u64);
    }
    if layout.rule_count == 0 || usize::from(layout.rule_count) > MAX_RULES {
        return refuse("number of rules", u64::from(layout.rule_count));
    }
    for rule in layout.rules() {
        for register in [rule.reg_pc, rule.reg_frame] {
            if register >= MAX_REGISTER && register != NO_REG {
                return refuse("unknown register", u64::from(register));
            }
        }
    }
    match layout.rules() {
        [only] if only.kind == RULE_SHADOW => Ok(()),
        [only] if only.kind == RULE_SAVE_AREA => check_save_areas(layout, only),
        mixed => check_mixed(layout, mixed),
    }
}

/// Checks the rules of the native stack, which may be mixed.
fn check_mixed(layout: &Layout, rules: &[Rule]) -> Result<(), TunnelError> {
    let quick = rules.get(usize::from(layout.quick_rule));
    match quick {
        None if layout.quick_rule == NO_RULE => {}
        Some(rule) if matches!(rule.kind, RULE_AT_SP | RULE_SIZED) => {}
        _ => return refuse("rule of quick frames", u64::from(layout.quick_rule)),
    }
    check_links(layout)?;
    for (index, rule) in rules.iter().enumerate() {
        match rule.kind {
            RULE_LIST if index == 0 => check_list(layout, rule)?,
            RULE_AT_SP if index == usize::from(layout.quick_rule) => check_at_sp(layout, rule)?,
            // A rule without such code has no effect on the walk.
            RULE_SIZED | RULE_CODE_INFO if index.saturating_add(1) == rules.len() => {
                check_sized(layout, rule)?;
            }
            RULE_LIST | RULE_AT_SP | RULE_SIZED | RULE_CODE_INFO => {
                return refuse("a rule that nothing leads to", u64::from(rule.kind));
            }
            RULE_SHADOW | RULE_SAVE_AREA => {
                return refuse("a rule that cannot be mixed", u64::from(rule.kind));
            }
            other => return refuse("unknown kind", u64::from(other)),
        }
    }
    Ok(())
}

fn within(what: &'static str, offset: u16, size: u16, limit: u16) -> Result<(), TunnelError> {
    match offset.checked_add(size) {
        Some(end) if end <= limit => Ok(()),
        _ => Err(TunnelError::Layout {
            what,
            value: u64::from(offset),
        }),
    }
}

/// Checks the offsets in the thread and in its fragments.
fn check_links(layout: &Layout) -> Result<(), TunnelError> {
    let word = u16::from(layout.word);
    within("thread_tid", layout.thread_tid, 4, MAX_THREAD_OFFSET)?;
    within(
        "thread_fragment",
        layout.thread_fragment,
        WINDOW,
        MAX_THREAD_OFFSET,
    )?;
    // A VM without a list does not need some of these.
    let is_absent = |offset| offset == NO_FIELD && !layout.has_rule(RULE_LIST);
    for (what, offset) in [
        ("fragment_quick", layout.fragment_quick),
        ("fragment_link", layout.fragment_link),
        ("fragment_top", layout.fragment_top),
    ] {
        if !is_absent(offset) {
            within(what, offset, word, WINDOW)?;
        }
    }
    Ok(())
}

fn check_list(layout: &Layout, rule: &Rule) -> Result<(), TunnelError> {
    let word = u16::from(layout.word);
    within("frame_link", rule.frame_link, word, WINDOW)?;
    within("frame_method", rule.frame_method, word, WINDOW)?;
    within("frame_pc", rule.frame_pc, word, WINDOW)?;
    within("frame_insns", rule.frame_insns, word, WINDOW)?;
    within("frame_index", rule.frame_index, 4, WINDOW)?;
    check_objects(layout)
}

fn check_at_sp(layout: &Layout, rule: &Rule) -> Result<(), TunnelError> {
    let word = u16::from(layout.word);
    if layout.flags & LAYOUT_ON_NATIVE_STACK == 0 {
        return refuse(
            "frames at the stack pointer of another stack",
            u64::from(layout.flags),
        );
    }
    // From the lowest of them to the word at the CFA.
    let most = SAVES_WINDOW.saturating_sub(word);
    for (what, offset) in [
        ("saved_pc", rule.saved_pc),
        ("saved_frame", rule.saved_frame),
        ("saved_return", rule.saved_return),
    ] {
        if offset < word || offset > most || !offset.is_multiple_of(4) {
            return refuse(what, u64::from(offset));
        }
    }
    match rule.code_end.checked_sub(rule.code_start) {
        Some(1..=MAX_CODE) => {}
        _ => return refuse("code of a rule", rule.code_start),
    }
    check_noted(layout, rule)?;
    check_objects(layout)
}

/// Checks the fields for noted frames.
fn check_noted(layout: &Layout, rule: &Rule) -> Result<(), TunnelError> {
    let word = u16::from(layout.word);
    if usize::from(rule.special_count) > SPECIAL_METHODS {
        return refuse("number of special methods", u64::from(rule.special_count));
    }
    if rule.native_flag != 0 {
        within("method_flags", rule.method_flags, 4, MAX_OBJECT_OFFSET)?;
    }
    let natives = (rule.native_flag != 0).then_some(rule.native_size);
    let specials = rule.special_sizes.into_iter();
    for size in specials.take(rule.special_count.into()).chain(natives) {
        if size < word || !size.is_multiple_of(4) {
            return refuse("size of a frame", u64::from(size));
        }
    }
    Ok(())
}

fn check_sized(layout: &Layout, rule: &Rule) -> Result<(), TunnelError> {
    /// Maximum size of a runtime object and of a code cache.
    const MAX_CACHE_OFFSET: u16 = 0x4000;
    /// Size of a map in bytes.
    const MAP: u16 = 48;
    /// The end of the last counter, in bytes.
    const COUNTS: u16 = CODE_INFO_COUNTS.collections + 8;
    let word = layout.word;
    if layout.flags & LAYOUT_ON_NATIVE_STACK == 0 {
        return refuse("compiled frames on another stack", u64::from(layout.flags));
    }
    check_noted(layout, rule)?;
    within("method_entry", rule.method_entry, 8, MAX_OBJECT_OFFSET)?;
    if word != 8 {
        return refuse("compiled frames of words", u64::from(word));
    }
    // It is directly preceded by the map of the stubs.
    if rule.code_cache != 0 && rule.code_cache_map < MAP {
        return refuse("code_cache_map", u64::from(rule.code_cache_map));
    }
    within("code_cache", rule.code_cache, 8, MAX_CACHE_OFFSET)?;
    within("code_cache_map", rule.code_cache_map, MAP, MAX_CACHE_OFFSET)?;
    within(
        "code_cache_counts",
        rule.code_cache_counts,
        COUNTS,
        MAX_CACHE_OFFSET,
    )?;
    check_objects(layout)
}

fn check_save_areas(layout: &Layout, rule: &Rule) -> Result<(), TunnelError> {
    /// An area is read by itself, because the frame above it may end the stack.
    const MAX_AREA: u16 = WINDOW - 4;
    let word = u16::from(layout.word);
    let area = rule.frame_bias.unsigned_abs();
    if rule.frame_bias >= 0 || area > MAX_AREA || !area.is_multiple_of(4) {
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
        ("frame_link", rule.frame_link),
        ("frame_method", rule.frame_method),
        ("frame_pc", rule.frame_pc),
        ("frame_caller_pc", rule.frame_caller_pc),
    ] {
        within(what, offset, word, area)?;
        if !offset.is_multiple_of(4) {
            return refuse("field of an area that is not aligned", u64::from(offset));
        }
    }
    check_objects(layout)
}

/// Checks the path from a method to its dex file.
fn check_objects(layout: &Layout) -> Result<(), TunnelError> {
    if layout.reference != 4 && layout.reference != 8 {
        return refuse("size of a reference", u64::from(layout.reference));
    }
    let of_areas = [
        layout.method_name,
        layout.method_proto,
        layout.class_descriptor,
    ];
    let of_areas = of_areas
        .into_iter()
        .filter(|_| layout.has_rule(RULE_SAVE_AREA));
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

/// Checks a description against its process. From outside no thread pointer can be read, so only the listed threads are checked:
/// they must contain their own tids. Returns the number of threads that do. Threads start and end, so one is enough, and a tunnel
/// that lists none is not refused.
pub fn validate_layout(
    description: &Description,
    memory: &dyn Memory,
) -> Result<usize, TunnelError> {
    let at = match description.layout.has_rule(RULE_SHADOW) {
        true => std::mem::offset_of!(Shadow, tid) as u64,
        false => u64::from(description.layout.thread_tid),
    };
    let confirmed = description
        .threads
        .iter()
        .filter(|thread| memory.read_u32(thread.base.wrapping_add(at)) == Ok(thread.tid))
        .count();
    match description.threads.first() {
        Some(thread) if confirmed == 0 => Err(TunnelError::Threads {
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
        let mut arm64 = Layout {
            machine: EM_AARCH64,
            ..art()
        };
        (arm64.rules[0].reg_pc, arm64.rules[0].reg_frame) = (20, 21);
        assert_eq!(check(&art()), Ok(()));
        assert_eq!(check(&arm64), Ok(()));
        for build in builds::all() {
            assert_eq!(check(&build.layout(0, |_| Some(8)).unwrap()), Ok(()));
        }
    }

    #[test]
    fn offsets_that_leave_the_window_are_refused() {
        let spoil: [fn(&mut Layout); 10] = [
            |l| l.rules[0].frame_index = 61,
            |l| l.rules[0].frame_link = 57,
            |l| l.rules[0].frame_pc = NO_FIELD,
            |l| l.thread_fragment = 0xffff,
            |l| l.fragment_top = NO_FIELD,
            |l| l.method_class = 0xfffe,
            |l| l.word = 4,
            |l| l.reference = 0,
            |l| l.rules[0].reg_pc = 200,
            |l| l.rules[0].kind = 4,
        ];
        for (which, spoil) in spoil.iter().enumerate() {
            let mut layout = art();
            spoil(&mut layout);
            assert!(check(&layout).is_err(), "{which}");
        }
    }

    /// Dalvik 4.4 on x86.
    fn dalvik() -> Layout {
        let rule = Rule {
            kind: RULE_SAVE_AREA,
            reg_pc: 6,
            reg_frame: 7,
            frame_bias: -20,
            frame_link: 0,
            frame_method: 8,
            frame_pc: 12,
            frame_caller_pc: 4,
            ..Rule::default()
        };
        Layout {
            machine: EM_386,
            word: 4,
            reference: 4,
            thread_tid: 124,
            thread_fragment: 4,
            method_code: 32,
            method_name: 16,
            method_proto: 24,
            class_descriptor: 24,
            class_dex_cache: 40,
            dex_file_begin: 44,
            ..Layout::with_rules(&[rule])
        }
    }

    #[test]
    fn areas_that_are_not_what_a_walker_reads_are_refused() {
        assert_eq!(check(&dalvik()), Ok(()));
        let spoil: [fn(&mut Layout); 11] = [
            |l| l.rules[0].frame_bias = 0,
            |l| l.rules[0].frame_bias = 20,
            |l| l.rules[0].frame_bias = -64,
            |l| l.rules[0].frame_bias = -22,
            |l| l.rules[0].frame_bias = i16::MIN,
            |l| l.rules[0].frame_pc = 20,
            |l| l.rules[0].frame_caller_pc = NO_FIELD,
            |l| l.rules[0].frame_method = 6,
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

    /// ART 14 on x86-64: frames of its switch interpreter are in a list, those of nterp at sp.
    fn mixed() -> Layout {
        let nterp = Rule {
            kind: RULE_AT_SP,
            reg_pc: 12,
            reg_frame: 15,
            special_count: 6,
            cfa_word: -8,
            cfa_bias: 88,
            saved_pc: 40,
            saved_frame: 16,
            saved_return: 8,
            method_flags: 4,
            native_size: 208,
            native_flag: 0x100,
            special_sizes: [96, 96, 208, 272, 272, 272],
            special_methods: 0x7000,
            code_start: 0x8a_b560,
            code_end: 0x8b_aa12,
            ..Rule::default()
        };
        let list = art().rules[0];
        Layout {
            quick_rule: 1,
            rule_count: 2,
            rules: Layout::with_rules(&[list, nterp]).rules,
            ..art()
        }
    }

    #[test]
    fn rules_of_the_native_stack_can_be_mixed_and_others_cannot() {
        assert_eq!(check(&mixed()), Ok(()));
        // Without the list, fragment_top is unused.
        let only = Layout {
            quick_rule: 0,
            fragment_top: NO_FIELD,
            ..Layout {
                rules: Layout::with_rules(&mixed().rules[1..]).rules,
                rule_count: 1,
                ..mixed()
            }
        };
        assert_eq!(check(&only), Ok(()));
        let spoil: [fn(&mut Layout); 17] = [
            |l| l.quick_rule = 0,
            |l| l.quick_rule = 2,
            |l| l.quick_rule = NO_RULE,
            |l| l.rules.swap(0, 1),
            |l| l.rule_count = 0,
            |l| l.rule_count = 5,
            |l| l.rule_count = 3,
            |l| l.rules[0].kind = RULE_SHADOW,
            |l| l.rules[0].kind = RULE_SAVE_AREA,
            |l| l.rules[0].kind = crate::abi::RULE_SIZED,
            |l| l.flags = 0,
            |l| l.rules[1].saved_pc = 120,
            |l| l.rules[1].saved_frame = 0,
            |l| l.rules[1].saved_return = 6,
            |l| l.rules[1].special_count = 7,
            |l| l.rules[1].special_sizes[5] = 0,
            |l| l.rules[1].code_end = 0,
        ];
        for (which, spoil) in spoil.iter().enumerate() {
            let mut layout = mixed();
            spoil(&mut layout);
            assert!(check(&layout).is_err(), "{which}");
        }
    }

    #[test]
    fn a_machine_that_varid_does_not_know_is_refused() {
        /// RISC-V, whose frames a VM may describe, but which is not supported.
        const EM_RISCV: u16 = 243;
        for (mut layout, word) in [(art(), 8), (mixed(), 8), (dalvik(), 4)] {
            for machine in [0, EM_RISCV, u16::MAX] {
                (layout.machine, layout.word) = (machine, word);
                let expected = TunnelError::Layout {
                    what: "unknown machine",
                    value: u64::from(machine),
                };
                assert_eq!(check(&layout), Err(expected));
            }
        }
    }
}
