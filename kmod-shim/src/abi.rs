//! The Rust mirror of `include/varid_record.h`.

use varid_model::RECORD_REGS;
use varid_tunnel::abi::{Layout, MAX_RULES};

/// Maximum number of managed frames in a record. Compiled code has half as many.
pub const MAX_FRAMES: usize = 512;

/// Bytes of stack that `--stack vertical` copies if managed frames are not on it.
pub const STACK_SLICE: usize = 4096;

/// Maximum number of bytes that `--stack vertical` copies to reach the first managed frame, or for a thread without any.
pub const STACK_REACH: usize = 16384;

/// Maximum number of bytes of stack that `--stack full` copies.
pub const STACK_FULL: usize = 53248;

/// A slice starts this many bytes below the stack pointer.
pub const RED_ZONE: u64 = 128;

/// Flags of a [`crate::CapturedSample`].
pub mod flags {
    /// The sampled ip is the kernel's.
    pub const IN_KERNEL: u32 = 1;
    /// The user ip is in the interpreter loop's body: the first frame comes from registers.
    pub const IN_BODY: u32 = 2;
    /// The thread has no base: it is not, or not yet, one of the VM's.
    pub const NO_BASE: u32 = 4;
    /// The frames end early: a read failed or was inconsistent.
    pub const TORN: u32 = 8;
    /// More frames than [`super::MAX_FRAMES`].
    pub const FRAMES_TRUNCATED: u32 = 16;
    /// The slice does not cover all that it should.
    pub const STACK_TRUNCATED: u32 = 32;
    /// The shim had no layout for the process (yet).
    pub const NOT_READY: u32 = 64;
    /// Admitted as a target's child.
    pub const INHERITED: u32 = 128;
    /// The source cannot read frames at the sample: walk the slice.
    pub const NO_WALK: u32 = 256;
    /// A 32-bit process of a 64-bit kernel: the registers are its own machine's.
    pub const COMPAT: u32 = 512;
    /// The first compiled frames are the innermost ones, if unwinding confirms them.
    pub const INNER: u32 = 1024;
    /// Only linked and noted frames were walked: frames of other rules are in the copy of the stack.
    pub const LINKED_ONLY: u32 = 2048;
    /// A signal handler runs on an alternate stack: the frames are those of the interrupted code.
    pub const INTERRUPTED: u32 = 4096;
    /// Only the instruction of user code is known: no stacks were captured. No shim sets it.
    pub const LEAF_ONLY: u32 = 1 << 31;
}

/// Flags of a [`crate::ManagedFrame`].
pub mod frame_flags {
    /// A compiled or native method: the address is its native frame, and there is no pc.
    pub const QUICK: u64 = 1;
    /// The last of its fragment: called by native code.
    pub const OUTERMOST: u64 = 2;
    /// The pc is in bytes from the method's first instruction.
    pub const RELATIVE: u64 = 4;
    /// The pc is the last exported one: it may be outdated, or not of this method.
    pub const EXPORTED: u64 = 8;
    /// A compiled method: the pc is the return address in its code.
    pub const COMPILED: u64 = 16;
    /// Both the method and the pc are needed.
    pub const PAIR: u64 = RELATIVE | EXPORTED | COMPILED;
    /// Position of a frame's flags in its record's word, above the address.
    pub const SHIFT: u32 = 56;
}

/// Flags of a [`crate::Target`].
pub mod target_flags {
    /// The layout and the body are valid.
    pub const READY: u32 = 1;
    /// Children are admitted until the daemon knows them.
    pub const FOLLOW: u32 = 2;
    /// Keep the kernel's own sample, too.
    pub const KEEP_RAW: u32 = 4;
    /// Copy the whole stack with every sample.
    pub const FULL_STACK: u32 = 8;
    /// Only leaves.
    pub const NO_STACK: u32 = 16;
    /// The process's threads have other ids in its own pid namespace.
    pub const NAMESPACED: u32 = 32;
    /// Not sampled, whatever its parent is.
    pub const IGNORE: u32 = 64;
    /// It has a [`super::RawJvm`].
    pub const JAVA: u32 = 128;
}

/// The body of an interpreter loop, in which the registers of a rule are valid.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Body {
    /// Its first address.
    pub start: u64,
    /// The first address after it; 0: there is none.
    pub end: u64,
}

/// Maximum number of states of a rule's code.
pub const MAX_STATES: usize = 256;

/// Flags of a [`RawState`].
pub mod state_flags {
    /// A register leads to the CFA.
    pub const KNOWN: u8 = 1;
    /// The frame's method is at the stack pointer, its bytecode pc in a register.
    pub const HAS_PC: u8 = 2;
    /// The caller's pc is saved where the rule defines.
    pub const SAVED_PC: u8 = 4;
    /// The same for the caller's frame register.
    pub const SAVED_FRAME: u8 = 8;
    /// The same for the return address.
    pub const SAVED_RETURN: u8 = 16;
}

/// `struct varid_state`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RawState {
    pub start: u32,
    pub reg: u8,
    pub flags: u8,
    pub cfa_word: i16,
    pub cfa_bias: i16,
    pub reserved: u16,
}

/// `struct varid_states`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawStates {
    pub count: u32,
    pub reserved: u32,
    pub states: [RawState; MAX_STATES],
}

/// Maximum number of HotSpot's frames in a record.
pub const MAX_JAVA: usize = 1024;
/// Code heaps of a [`RawJvm`].
pub const CODE_HEAPS: usize = 4;
/// Bytes of a code blob that contain some of its fields.
pub const BLOB_FIELDS: u16 = 48;
/// Bytes of a thread's anchor.
pub const ANCHOR: u16 = 40;
/// Bytes from an interpreter frame's link down to the caller's stack pointer.
pub const JAVA_SENDER: u64 = 8;
/// Bytes from an interpreter frame's link down to its method.
pub const JAVA_METHOD: u64 = 24;
/// Bytes from an interpreter frame's link down to its bytecode pc.
pub const JAVA_BCP: u64 = 64;
/// [`RawJavaFrame::sender`]: no frame, but where frames go on behind native ones.
pub const JAVA_RESUMES: u32 = 1;

/// `struct varid_code_heap`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RawCodeHeap {
    pub start: u64,
    pub end: u64,
    pub segments: u64,
    pub log2_segment: u32,
    pub reserved: u32,
}

/// `struct varid_jvm`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RawJvm {
    pub heaps: [RawCodeHeap; CODE_HEAPS],
    pub code_start: u64,
    pub code_end: u64,
    pub interpreter_start: u64,
    pub interpreter_end: u64,
    pub call_returns: u64,
    pub block_header: u16,
    pub blob_fields: u16,
    pub blob_size: u16,
    pub blob_frame: u16,
    pub blob_complete: u16,
    pub blob_code: u16,
    pub compile_id: u16,
    pub frame_wrapper: u16,
    pub wrapper_anchor: u16,
    pub anchor_sp: u16,
    pub anchor_pc: u16,
    pub anchor_fp: u16,
    pub thread_anchor: u16,
    pub has_code_offset: u8,
    pub has_short_complete: u8,
    pub reserved: [u8; 4],
}

/// `struct varid_java_frame`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RawJavaFrame {
    pub at: u32,
    pub sender: u32,
    pub caller_fp: u64,
    pub returns: u64,
    pub code: u64,
    pub detail: u64,
}

/// `struct varid_target`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct RawTarget {
    pub layout: Layout,
    pub body: [Body; MAX_RULES],
    pub flags: u32,
    pub rules: u32,
    pub states: u32,
    pub reserved: u32,
}

/// The fixed part of a record.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawRecord {
    pub time: u64,
    pub pid: u32,
    pub tid: u32,
    pub cpu: u32,
    pub flags: u32,
    pub period: u64,
    pub ip: u64,
    pub stack_addr: u64,
    pub stack_len: u32,
    pub frames: u16,
    pub kernel: u16,
    pub regs: [u64; RECORD_REGS],
    pub allocated: u64,
    pub interrupted_addr: u64,
    pub interrupted_len: u32,
    pub stack_holes: u16,
    pub interrupted_holes: u16,
    pub links: u32,
    pub beyond: u32,
    pub java: u32,
    pub reserved: u32,
}

/// The words of `struct varid_frame_link`.
pub type RawFrameLink = [[u8; 8]; 3];

/// A frame as the walker returns it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct RawFrame {
    pub addr: u64,
    pub method: u64,
    pub pc: u64,
    pub flags: u64,
}

/// Counters of the shim, by index in its map.
pub const COUNTER_SAMPLES: u32 = 0;
pub const COUNTER_NO_SPACE: u32 = 1;
pub const COUNTER_WAITS: u32 = 2;
pub const COUNTER_NO_THREAD: u32 = 3;

/// Kinds of waits: blocked, runnable.
pub const WAIT_KINDS: usize = 2;

/// `struct varid_wait`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct RawWait {
    pub since: u64,
    pub woken: u64,
    pub unsampled: [u64; WAIT_KINDS],
    pub captured: [u64; WAIT_KINDS],
    pub ip: u64,
    pub window: u64,
    pub pid: u32,
    pub switches: u32,
    pub stride: u32,
    pub assumed: u32,
}

/// Flags of a [`RawWaitEnd`].
pub mod wait_flags {
    pub const END: u32 = 1 << 16;
    pub const CAPTURED: u32 = 1 << 17;
    pub const THREAD_ENDS: u32 = 1 << 18;
}

/// `struct varid_wait_end`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawWaitEnd {
    pub time: u64,
    pub pid: u32,
    pub tid: u32,
    pub cpu: u32,
    pub flags: u32,
    pub ip: u64,
    pub ns: [u64; WAIT_KINDS],
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};
    use std::process::Command;
    use varid_model::{ADDRESS_MASK, Machine};

    /// The size and offset of every field must equal the header's.
    #[test]
    fn each_flag_of_a_record_is_a_bit_of_its_own() {
        let all = [
            flags::IN_KERNEL,
            flags::IN_BODY,
            flags::NO_BASE,
            flags::TORN,
            flags::FRAMES_TRUNCATED,
            flags::STACK_TRUNCATED,
            flags::NOT_READY,
            flags::INHERITED,
            flags::NO_WALK,
            flags::COMPAT,
            flags::INNER,
            flags::LINKED_ONLY,
            flags::INTERRUPTED,
            flags::LEAF_ONLY,
        ];
        assert!(all.iter().all(|flag| flag.count_ones() == 1));
        let union = all.iter().fold(0, |union, flag| union | flag);
        assert_eq!(union.count_ones() as usize, all.len());
    }

    #[test]
    fn mirror_equals_the_header() {
        let here = env!("CARGO_MANIFEST_DIR");
        let dir = std::env::temp_dir().join(format!("varid-shim-abi-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let mut program = String::from(
            "#include <stddef.h>\n#include <stdio.h>\n#include \"varid_record.h\"\nint main(void){\n",
        );
        let mut expected = String::new();
        let mut check = |expression: String, value: usize| {
            program += &format!("printf(\"{expression} %zu\\n\", (size_t){expression});\n");
            expected += &format!("{expression} {value}\n");
        };
        macro_rules! field { ($c:literal, $t:ty, $($f:ident),*) => {
            check(format!("sizeof(struct {})", $c), size_of::<$t>());
            $( check(format!("offsetof(struct {}, {})", $c, stringify!($f)), offset_of!($t, $f)); )*
        } }
        field!(
            "varid_target",
            RawTarget,
            layout,
            body,
            flags,
            rules,
            states,
            reserved
        );
        field!("varid_states", RawStates, count, reserved, states);
        field!(
            "varid_state",
            RawState,
            start,
            reg,
            flags,
            cfa_word,
            cfa_bias,
            reserved
        );
        field!("varid_body", Body, start, end);
        field!(
            "varid_record",
            RawRecord,
            time,
            pid,
            tid,
            cpu,
            flags,
            period,
            ip,
            stack_addr,
            stack_len,
            frames,
            kernel,
            regs,
            allocated,
            interrupted_addr,
            interrupted_len,
            stack_holes,
            interrupted_holes,
            links,
            beyond,
            java,
            reserved
        );
        field!(
            "varid_code_heap",
            RawCodeHeap,
            start,
            end,
            segments,
            log2_segment,
            reserved
        );
        field!(
            "varid_jvm",
            RawJvm,
            heaps,
            code_start,
            code_end,
            interpreter_start,
            interpreter_end,
            call_returns,
            block_header,
            blob_fields,
            blob_size,
            blob_frame,
            blob_complete,
            blob_code,
            compile_id,
            frame_wrapper,
            wrapper_anchor,
            anchor_sp,
            anchor_pc,
            anchor_fp,
            thread_anchor,
            has_code_offset,
            has_short_complete,
            reserved
        );
        field!(
            "varid_java_frame",
            RawJavaFrame,
            at,
            sender,
            caller_fp,
            returns,
            code,
            detail
        );
        field!("varid_frame", RawFrame, addr, method, pc, flags);
        field!(
            "varid_wait",
            RawWait,
            since,
            woken,
            unsampled,
            captured,
            ip,
            window,
            pid,
            switches,
            stride,
            assumed
        );
        field!(
            "varid_wait_end",
            RawWaitEnd,
            time,
            pid,
            tid,
            cpu,
            flags,
            ip,
            ns
        );
        for (name, value) in [
            ("sizeof(struct varid_packed_frame)", 16),
            ("sizeof(struct varid_frame_link)", size_of::<RawFrameLink>()),
            ("VARID_MAX_FRAMES", MAX_FRAMES),
            ("VARID_STACK_SLICE", STACK_SLICE),
            ("VARID_STACK_REACH", STACK_REACH),
            ("VARID_STACK_FULL", STACK_FULL),
            ("VARID_RED_ZONE", RED_ZONE as usize),
            ("VARID_REGS", RECORD_REGS),
            ("VARID_IN_KERNEL", flags::IN_KERNEL as usize),
            ("VARID_IN_BODY", flags::IN_BODY as usize),
            ("VARID_NO_BASE", flags::NO_BASE as usize),
            ("VARID_TORN", flags::TORN as usize),
            ("VARID_FRAMES_TRUNCATED", flags::FRAMES_TRUNCATED as usize),
            ("VARID_STACK_TRUNCATED", flags::STACK_TRUNCATED as usize),
            ("VARID_NOT_READY", flags::NOT_READY as usize),
            ("VARID_INHERITED", flags::INHERITED as usize),
            ("VARID_NO_WALK", flags::NO_WALK as usize),
            ("VARID_LINKED_ONLY", flags::LINKED_ONLY as usize),
            ("VARID_COMPAT", flags::COMPAT as usize),
            ("VARID_INNER", flags::INNER as usize),
            ("VARID_INTERRUPTED", flags::INTERRUPTED as usize),
            ("VARID_FRAME_QUICK", frame_flags::QUICK as usize),
            ("VARID_FRAME_OUTERMOST", frame_flags::OUTERMOST as usize),
            ("VARID_FRAME_RELATIVE", frame_flags::RELATIVE as usize),
            ("VARID_FRAME_EXPORTED", frame_flags::EXPORTED as usize),
            ("VARID_FRAME_COMPILED", frame_flags::COMPILED as usize),
            ("VARID_FRAME_PAIR", frame_flags::PAIR as usize),
            ("VARID_FRAME_FLAGS_SHIFT", frame_flags::SHIFT as usize),
            ("VARID_ADDRESS(~0ull)", ADDRESS_MASK as usize),
            ("VARID_X86_COUNT", Machine::X86_64.regs().len()),
            ("VARID_I386_COUNT", Machine::X86.regs().len()),
            ("VARID_ARM64_COUNT", Machine::Aarch64.regs().len()),
            ("VARID_ARM_COUNT", Machine::Arm.regs().len()),
            ("VARID_TARGET_READY", target_flags::READY as usize),
            ("VARID_TARGET_FOLLOW", target_flags::FOLLOW as usize),
            ("VARID_TARGET_KEEP_RAW", target_flags::KEEP_RAW as usize),
            ("VARID_TARGET_FULL_STACK", target_flags::FULL_STACK as usize),
            ("VARID_TARGET_NO_STACK", target_flags::NO_STACK as usize),
            ("VARID_TARGET_NAMESPACED", target_flags::NAMESPACED as usize),
            ("VARID_TARGET_IGNORE", target_flags::IGNORE as usize),
            ("VARID_TARGET_JAVA", target_flags::JAVA as usize),
            ("VARID_MAX_JAVA", MAX_JAVA),
            ("VARID_CODE_HEAPS", CODE_HEAPS),
            ("VARID_BLOB_FIELDS", BLOB_FIELDS.into()),
            ("VARID_ANCHOR", ANCHOR.into()),
            ("VARID_JAVA_SENDER", JAVA_SENDER as usize),
            ("VARID_JAVA_METHOD", JAVA_METHOD as usize),
            ("VARID_JAVA_BCP", JAVA_BCP as usize),
            ("VARID_MAX_STATES", MAX_STATES),
            ("VARID_STATE_KNOWN", state_flags::KNOWN.into()),
            ("VARID_STATE_HAS_PC", state_flags::HAS_PC.into()),
            ("VARID_STATE_SAVED_PC", state_flags::SAVED_PC.into()),
            ("VARID_STATE_SAVED_FRAME", state_flags::SAVED_FRAME.into()),
            ("VARID_STATE_SAVED_RETURN", state_flags::SAVED_RETURN.into()),
            ("VARID_COUNT_SAMPLES", COUNTER_SAMPLES as usize),
            ("VARID_COUNT_NO_SPACE", COUNTER_NO_SPACE as usize),
            ("VARID_COUNT_WAITS", COUNTER_WAITS as usize),
            ("VARID_COUNT_NO_THREAD", COUNTER_NO_THREAD as usize),
            ("VARID_WAIT_KINDS", WAIT_KINDS),
            ("VARID_BLOCKED", 0),
            ("VARID_RUNNABLE", 1),
            ("VARID_WAIT_END", wait_flags::END as usize),
            ("VARID_WAIT_CAPTURED", wait_flags::CAPTURED as usize),
            ("VARID_THREAD_ENDS", wait_flags::THREAD_ENDS as usize),
        ] {
            check(name.to_owned(), value);
        }
        program += "return 0;}\n";
        std::fs::write(dir.join("abi.c"), &program).unwrap();
        let built = Command::new("cc")
            .arg(dir.join("abi.c"))
            .args([
                format!("-I{here}/include"),
                format!("-I{here}/../dvm-patch/include"),
                "-o".into(),
            ])
            .arg(dir.join("abi"))
            .status()
            .unwrap();
        assert!(built.success());
        let printed = Command::new(dir.join("abi")).output().unwrap().stdout;
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(String::from_utf8(printed).unwrap(), expected);
    }
}
