//! Seeds of the data that a VM publishes, and of frame walks.

use crate::bytes::Bytes;
use varid_tunnel::abi::{
    CALLS_ENTRIES, CALLS_MAGIC, CALLS_VERSION, CODE_BOOT, CODE_DEX, CONTROL_MAGIC, CONTROL_VERSION,
    Control, Layout, MAGIC, MAX_CALLS, RANGE_BODY, RANGE_VM, Rule, TACTIC_METHOD_INVOKE,
    TunnelHeader, VERSION, VM_ART,
};

impl Bytes {
    fn layout(self, layout: &Layout) -> Self {
        let l = layout;
        let head = self
            .u16s([l.machine])
            .put([l.word, l.reference, l.rule_count, l.quick_rule])
            .u16s([l.thread_tid])
            .u32s([l.flags])
            .u16s([l.thread_fragment, l.fragment_quick])
            .put(l.tls_offset.to_le_bytes())
            .u16s([l.fragment_link, l.fragment_top])
            .u16s([l.method_class, l.method_code, l.method_index])
            .u16s([l.class_dex_cache, l.dex_cache_dex_file, l.dex_file_begin])
            .u16s([
                l.method_name,
                l.method_proto,
                l.class_descriptor,
                l.reserved,
            ]);
        l.rules.iter().fold(head, Self::rule)
    }

    fn rule(self, r: &Rule) -> Self {
        self.put([r.kind, r.reg_pc, r.reg_frame, r.special_count])
            .put(r.frame_bias.to_le_bytes())
            .u16s([r.frame_link, r.frame_method, r.frame_pc, r.frame_insns])
            .u16s([r.frame_index, r.frame_caller_pc])
            .put(r.cfa_word.to_le_bytes())
            .put(r.cfa_bias.to_le_bytes())
            .u16s([r.saved_pc, r.saved_frame, r.saved_return])
            .u16s([r.method_flags, r.native_size])
            .u32s([r.native_flag])
            .u16s(r.special_sizes)
            .u64s([r.special_methods, r.code_start, r.code_end])
            .u16s([
                r.method_entry,
                r.code_cache,
                r.code_cache_map,
                r.code_cache_counts,
            ])
    }
}

/// Makes a tunnel with two ranges, a dex file and a thread.
pub fn tunnel(layout: &Layout) -> Vec<u8> {
    const HEAD: u32 = size_of::<TunnelHeader>() as u32;
    const SIZE: u32 = HEAD + 2 * 24 + 256 + 2 * 16 + 16;
    Bytes::default()
        .put(MAGIC)
        .u32s([VERSION, HEAD])
        .u64s([u64::from(SIZE), 1])
        .u32s([VM_ART, 1, 2, 0])
        .layout(layout)
        .u32s([HEAD, 24, 2, 2])
        .u32s([HEAD + 48, 256, 1, 1])
        .u32s([HEAD + 48 + 256, 16, 2, 1])
        .u32s([HEAD + 48 + 256 + 32, 16, 1, 1])
        .u64s([0; 6])
        .u64s([
            0x1000,
            0x2000,
            u64::from(RANGE_BODY),
            0x2000,
            0x3000,
            u64::from(RANGE_VM),
        ])
        .u64s([0x9000, 0x800, 1])
        .u32s([CODE_DEX, CODE_BOOT])
        .put(*b"boot.dex")
        .pad((HEAD + 48 + 256) as usize)
        .u64s([0x7f00_0000_0000])
        .u32s([1, 0])
        .pad((HEAD + 48 + 256 + 32) as usize)
        .u64s([0xb000, 0x9010])
        .0
}

/// Makes a VM's counts of two methods.
pub fn calls() -> Vec<u8> {
    let entry = |bytes: Bytes, method: u64| {
        bytes
            .u64s([method, 0x9010, 0x9000])
            .u32s([method as u32, 0])
            .u64s([7, 6, 1, 0])
    };
    let head = Bytes::default()
        .put(CALLS_MAGIC)
        .u32s([CALLS_VERSION, 64, MAX_CALLS, 2])
        .u64s([1, 0, 0])
        .u32s([0, 0])
        .pad(CALLS_ENTRIES as usize);
    entry(entry(head, 0x5000), 0x5020).0
}

/// Makes an unused control page, and an order with two filters.
pub fn control() -> Vec<u8> {
    let page = Bytes::default()
        .put(CONTROL_MAGIC)
        .u32s([CONTROL_VERSION, size_of::<Control>() as u32])
        .pad(size_of::<Control>());
    page.u32s([TACTIC_METHOD_INVOKE])
        .u64s([1])
        .put(*b"/run/log\0org.example.\0a.B.c")
        .0
}

/// Makes a record with two frames, an interpreted and a compiled one of Java, a kernel callchain and some stack, both of
/// a signal handler and of the code that it interrupted.
pub fn record() -> Vec<u8> {
    Bytes::default()
        .u64s([1])
        .u32s([10, 10, 0, 2])
        .u64s([1_000_000, 0x1000, 0x7ffe_0000])
        .u32s([8])
        .u16s([2, 1])
        .u64s([0; 16])
        .u64s([0x7fff_0000])
        .u32s([8, 0, 0, 0, 2, 0])
        .u64s([0x7ffe_1000, 0x9010, 2 << 56 | 0x7ffe_2000, 0x9040])
        .u32s([0x100, 0x20])
        .u64s([0x7ffe_0200, 0xa010, 0x5000, 0x5040])
        .u32s([0x120, 0])
        .u64s([0x7ffe_0200, 0xa020, 0xb000, 0x100 << 32 | 7])
        .u64s([
            0xffff_ffff_8100_0000,
            0x1122_3344_5566_7788,
            0x99aa_bbcc_ddee_ff00,
        ])
        .0
}

/// Makes the header of a walk's input, which precedes the memory: layout, base, tid, stack pointer, frame, pc.
fn walk_head(layout: &Layout, base: u64, sp: u64, frame: u64, pc: u64) -> Bytes {
    Bytes::default()
        .layout(layout)
        .u64s([base])
        .u32s([10])
        .u64s([sp, frame, pc])
}

/// Makes a thread with a fragment of two frames. The memory repeats every 4 KiB.
pub fn walk_art(layout: &Layout) -> Vec<u8> {
    let head = walk_head(layout, 0x1000, 0x1300, 0x1400, 0x9010);
    let at = head.0.len();
    let mut bytes = head.pad(at + 0x1000).0;
    let mut put = |offset: u16, into: usize, value: u64| {
        let start = at + into + usize::from(offset);
        bytes[start..start + 8].copy_from_slice(&value.to_le_bytes());
    };
    put(layout.thread_tid, 0, 10);
    put(
        layout.fragment_top,
        usize::from(layout.thread_fragment),
        0x1400,
    );
    put(layout.rules[0].frame_link, 0x400, 0x1500);
    put(layout.rules[0].frame_method, 0x400, 0x5000);
    put(layout.rules[0].frame_insns, 0x400, 0x9000);
    put(layout.rules[0].frame_method, 0x500, 0x5020);
    put(layout.rules[0].frame_pc, 0x500, 0x9040);
    bytes
}

/// Makes a method with save areas that calls native code, which calls another method. The memory repeats every 4 KiB.
pub fn walk_areas(layout: &Layout) -> Vec<u8> {
    let head = walk_head(layout, 0x1000, 0x1300, 0x1400, 0x9010);
    let at = head.0.len();
    let mut bytes = head.pad(at + 0x1000).0;
    let mut put = |offset: u16, into: usize, value: u32| {
        let start = at + into + usize::from(offset);
        bytes[start..start + 4].copy_from_slice(&value.to_le_bytes());
    };
    put(layout.thread_tid, 0, 10);
    put(layout.thread_fragment, 0, 0x1414);
    put(layout.rules[0].frame_link, 0x400, 0x1514);
    put(layout.rules[0].frame_method, 0x400, 0x5000);
    put(layout.rules[0].frame_link, 0x500, 0x1614);
    put(layout.rules[0].frame_method, 0x600, 0x5020);
    put(layout.rules[0].frame_pc, 0x600, 0x9040);
    bytes
}

/// Makes two frames with their methods at sp. The memory repeats every 4 KiB.
pub fn walk_at_sp(layout: &Layout) -> Vec<u8> {
    let head = walk_head(layout, 0x1000, 0x1300, 0x1340, 0x9010);
    let at = head.0.len();
    let mut bytes = head.pad(at + 0x1000).0;
    let mut put = |into: usize, value: u64| {
        let start = at + into;
        bytes[start..start + 8].copy_from_slice(&value.to_le_bytes());
    };
    put(layout.thread_tid.into(), 10);
    // Frames at 0x1300 to 0x1400 and 0x1400 to 0x1500, each with registers at offset 0x40.
    put(0x338, 0x1400 - 88);
    put(0x400 - 40, 0x9020);
    put(0x400 - 16, 0x1440);
    put(0x400 - 8, 0x9000);
    put(0x400, 0x5000);
    put(0x438, 0x1500 - 88);
    bytes
}

/// Makes a shadow stack of two records.
pub fn walk_shadow(layout: &Layout) -> Vec<u8> {
    walk_head(layout, 0, 0x7ffd_f000, 0, 0)
        .u32s([10, 16])
        .u64s([2, 0x9000, 0x7ffe_1000, 0x9040, 0x7ffe_0000])
        .0
}
