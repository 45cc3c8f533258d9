//! What does the kernel's perf interface look like (linux/perf_event.h)?
//!
//! What the kernel takes and gives, and what perf.data has of it. It is alike on every processor but for the size of pointers.
//! Each constant and offset is compared with the kernel's header by the test below.

/// Constants, each checked against the kernel's header by the test below.
macro_rules! constants {
    ($($kind:ty { $($name:ident = $value:expr),* $(,)? })*) => {
        $($(
            #[doc = concat!("`", stringify!($name), "` of linux/perf_event.h.")]
            pub const $name: $kind = $value;
        )*)*
        #[cfg(test)]
        const CONSTANTS: &[(&str, u64)] = &[$($((stringify!($name), $name as u64)),*),*];
    };
}

constants! {
    u32 {
        PERF_TYPE_HARDWARE = 0,
        PERF_TYPE_SOFTWARE = 1,
        PERF_TYPE_TRACEPOINT = 2,
        PERF_TYPE_HW_CACHE = 3,
        PERF_TYPE_RAW = 4,
        PERF_TYPE_BREAKPOINT = 5,
        PERF_COUNT_HW_CPU_CYCLES = 0,
        PERF_COUNT_HW_INSTRUCTIONS = 1,
        PERF_COUNT_HW_CACHE_REFERENCES = 2,
        PERF_COUNT_HW_CACHE_MISSES = 3,
        PERF_COUNT_HW_BRANCH_INSTRUCTIONS = 4,
        PERF_COUNT_HW_BRANCH_MISSES = 5,
        PERF_COUNT_HW_BUS_CYCLES = 6,
        PERF_COUNT_HW_STALLED_CYCLES_FRONTEND = 7,
        PERF_COUNT_HW_STALLED_CYCLES_BACKEND = 8,
        PERF_COUNT_HW_REF_CPU_CYCLES = 9,
        PERF_COUNT_SW_CPU_CLOCK = 0,
        PERF_COUNT_SW_TASK_CLOCK = 1,
        PERF_COUNT_SW_PAGE_FAULTS = 2,
        PERF_COUNT_SW_CONTEXT_SWITCHES = 3,
        PERF_COUNT_SW_CPU_MIGRATIONS = 4,
        PERF_COUNT_SW_PAGE_FAULTS_MIN = 5,
        PERF_COUNT_SW_PAGE_FAULTS_MAJ = 6,
        PERF_COUNT_SW_ALIGNMENT_FAULTS = 7,
        PERF_COUNT_SW_EMULATION_FAULTS = 8,
        PERF_COUNT_SW_DUMMY = 9,
        PERF_COUNT_SW_BPF_OUTPUT = 10,
        PERF_SAMPLE_IP = 1 << 0,
        PERF_SAMPLE_TID = 1 << 1,
        PERF_SAMPLE_TIME = 1 << 2,
        PERF_SAMPLE_ADDR = 1 << 3,
        PERF_SAMPLE_READ = 1 << 4,
        PERF_SAMPLE_CALLCHAIN = 1 << 5,
        PERF_SAMPLE_CPU = 1 << 7,
        PERF_SAMPLE_PERIOD = 1 << 8,
        PERF_SAMPLE_RAW = 1 << 10,
        PERF_SAMPLE_REGS_USER = 1 << 12,
        PERF_SAMPLE_STACK_USER = 1 << 13,
        PERF_SAMPLE_IDENTIFIER = 1 << 16,
        PERF_FORMAT_TOTAL_TIME_ENABLED = 1 << 0,
        PERF_FORMAT_TOTAL_TIME_RUNNING = 1 << 1,
        PERF_FORMAT_ID = 1 << 2,
        PERF_FORMAT_GROUP = 1 << 3,
        PERF_RECORD_LOST = 2,
        PERF_RECORD_COMM = 3,
        PERF_RECORD_EXIT = 4,
        PERF_RECORD_THROTTLE = 5,
        PERF_RECORD_UNTHROTTLE = 6,
        PERF_RECORD_FORK = 7,
        PERF_RECORD_SAMPLE = 9,
        PERF_RECORD_MMAP2 = 10,
        PERF_RECORD_LOST_SAMPLES = 13,
        PERF_EVENT_IOC_ENABLE = 0x2400,
        PERF_EVENT_IOC_DISABLE = 0x2401,
        PERF_EVENT_IOC_PERIOD = 0x4008_2404,
        PERF_EVENT_IOC_SET_OUTPUT = 0x2405,
        // Its number holds the size of a pointer, although what it writes is a word of eight bytes.
        PERF_EVENT_IOC_ID = 0x8000_2407 | ((size_of::<usize>() as u32) << 16),
    }
    u64 {
        PERF_CONTEXT_KERNEL = 128u64.wrapping_neg(),
        PERF_CONTEXT_USER = 512u64.wrapping_neg(),
        PERF_CONTEXT_MAX = 4095u64.wrapping_neg(),
        PERF_FLAG_FD_CLOEXEC = 8,
    }
    u16 {
        PERF_RECORD_MISC_CPUMODE_MASK = 7,
        PERF_RECORD_MISC_KERNEL = 1,
        PERF_RECORD_MISC_USER = 2,
        PERF_RECORD_MISC_COMM_EXEC = 1 << 13,
        PERF_RECORD_MISC_MMAP_BUILD_ID = 1 << 14,
    }
}

/// Bytes of `perf_event_header`: the kind of a record (4), what else there is to know (2), its size (2).
pub const RECORD_HEADER: usize = 8;

/// `PERF_ATTR_SIZE_VER5`: bytes of an [`EventAttr`], the smallest that has the clock.
pub const ATTR_SIZE: usize = size_of::<EventAttr>();

/// Where a ring's control page has `data_head`, eight bytes.
pub const DATA_HEAD: usize = 1024;

/// Where a ring's control page has `data_tail`, eight bytes.
pub const DATA_TAIL: usize = 1032;

/// `struct perf_event_attr` as of Linux 4.8 (`PERF_ATTR_SIZE_VER5`). Older kernels take it as long as what they do not
/// know is zero; nothing that came later is used. perf_event_open(2) tells what each field is.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventAttr {
    /// `PERF_TYPE_*`, or the number of a PMU.
    pub type_: u32,
    /// Bytes of this structure.
    pub size: u32,
    /// Which event of its type.
    pub config: u64,
    /// Or the frequency, if `freq` is set.
    pub sample_period: u64,
    /// `PERF_SAMPLE_*`.
    pub sample_type: u64,
    /// `PERF_FORMAT_*`.
    pub read_format: u64,
    /// The fields of one bit: see the setters.
    pub flags: u64,
    /// Bytes, if `watermark` is set, else events.
    pub wakeup_watermark: u32,
    /// Of breakpoints.
    pub bp_type: u32,
    /// More of the event's configuration.
    pub config1: u64,
    /// Still more of it.
    pub config2: u64,
    /// Of branch stacks.
    pub branch_sample_type: u64,
    /// Which registers, by their bits.
    pub sample_regs_user: u64,
    /// Bytes of a copy of the stack.
    pub sample_stack_user: u32,
    /// Whose times samples have, if `use_clockid` is set.
    pub clockid: i32,
    /// Which registers of the interrupt.
    pub sample_regs_intr: u64,
    /// Of AUX areas.
    pub aux_watermark: u32,
    /// Most frames of a callchain; 0: the system's limit.
    pub sample_max_stack: u16,
    /// Zero.
    pub reserved_2: u16,
}

/// The attribute's one-bit fields by their positions, on a little-endian machine.
macro_rules! flags {
    ($($set:ident $name:ident $bit:literal)*) => {
        impl EventAttr {
            $(
                #[doc = concat!("Sets or clears `", stringify!($name), "`.")]
                pub fn $set(&mut self, on: bool) {
                    self.flags = self.flags & !(1 << $bit) | u64::from(on) << $bit;
                }
            )*
        }
        #[cfg(test)]
        const FLAGS: &[(&str, u64)] = &[$((stringify!($name), 1 << $bit)),*];
    };
}

flags! {
    set_disabled disabled 0
    set_inherit inherit 1
    set_pinned pinned 2
    set_exclusive exclusive 3
    set_exclude_user exclude_user 4
    set_exclude_kernel exclude_kernel 5
    set_exclude_hv exclude_hv 6
    set_exclude_idle exclude_idle 7
    set_mmap mmap 8
    set_comm comm 9
    set_freq freq 10
    set_task task 13
    set_watermark watermark 14
    set_mmap_data mmap_data 17
    set_sample_id_all sample_id_all 18
    set_exclude_host exclude_host 19
    set_exclude_guest exclude_guest 20
    set_exclude_callchain_user exclude_callchain_user 22
    set_mmap2 mmap2 23
    set_comm_exec comm_exec 24
    set_use_clockid use_clockid 25
    set_build_id build_id 34
}

impl Default for EventAttr {
    /// No event, but its size.
    fn default() -> Self {
        Self {
            type_: 0,
            size: size_of::<Self>() as u32,
            config: 0,
            sample_period: 0,
            sample_type: 0,
            read_format: 0,
            flags: 0,
            wakeup_watermark: 0,
            bp_type: 0,
            config1: 0,
            config2: 0,
            branch_sample_type: 0,
            sample_regs_user: 0,
            sample_stack_user: 0,
            clockid: 0,
            sample_regs_intr: 0,
            aux_watermark: 0,
            sample_max_stack: 0,
            reserved_2: 0,
        }
    }
}

impl EventAttr {
    const PRECISE_IP: u64 = 3 << 15;

    /// Sets `precise_ip`: 0 (any skid) to 3 (none).
    pub fn set_precise_ip(&mut self, precise: u8) {
        self.flags = self.flags & !Self::PRECISE_IP | u64::from(precise.min(3)) << 15;
    }

    /// `precise_ip`.
    #[must_use]
    pub fn precise_ip(&self) -> u8 {
        (self.flags >> 15 & 3) as u8
    }

    /// Its bytes, as the kernel takes it and perf.data has it, on a little-endian machine.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; ATTR_SIZE] {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let words = [
            pair(self.type_, self.size),
            self.config,
            self.sample_period,
            self.sample_type,
            self.read_format,
            self.flags,
            pair(self.wakeup_watermark, self.bp_type),
            self.config1,
            self.config2,
            self.branch_sample_type,
            self.sample_regs_user,
            pair(self.sample_stack_user, self.clockid.cast_unsigned()),
            self.sample_regs_intr,
            pair(
                self.aux_watermark,
                u32::from(self.sample_max_stack) | u32::from(self.reserved_2) << 16,
            ),
        ];
        let mut bytes = [0; ATTR_SIZE];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;
    use std::mem::offset_of;
    use std::process::Command;

    /// Prints what the kernel's header says.
    fn program() -> (String, Vec<(String, u64)>) {
        let mut expected = Vec::new();
        let mut c = String::from(
            "#include <linux/perf_event.h>\n#include <stddef.h>\n#include <stdio.h>\n#include <string.h>\n\
             #define ATTR struct perf_event_attr\n#define PAGE struct perf_event_mmap_page\n\
             #define SHOW(e) printf(\"%llu\\n\", (unsigned long long)(e))\n\
             #define FLAG(f) do { ATTR a; unsigned long long w; memset(&a, 0, sizeof a); a.f = 1; \
             memcpy(&w, (char *)&a + 40, 8); SHOW(w); } while (0)\nint main(void) {\n",
        );
        let mut show = |statement: String, value: u64| {
            writeln!(c, "{statement};").unwrap();
            expected.push((statement, value));
        };
        for (name, value) in CONSTANTS {
            show(format!("SHOW({name})"), *value);
        }
        for (name, value) in FLAGS {
            show(format!("FLAG({name})"), *value);
        }
        show(
            "SHOW(PERF_ATTR_SIZE_VER5)".to_owned(),
            size_of::<EventAttr>() as u64,
        );
        show(
            "SHOW(sizeof(struct perf_event_header))".to_owned(),
            RECORD_HEADER as u64,
        );
        show(
            "SHOW(offsetof(PAGE, data_head))".to_owned(),
            DATA_HEAD as u64,
        );
        show(
            "SHOW(offsetof(PAGE, data_tail))".to_owned(),
            DATA_TAIL as u64,
        );
        macro_rules! offsets {
            ($($c:ident $rust:ident)*) => {
                $(show(
                    format!("SHOW(offsetof(ATTR, {}))", stringify!($c)),
                    offset_of!(EventAttr, $rust) as u64,
                );)*
            };
        }
        offsets! {
            type type_ size size config config sample_period sample_period sample_type sample_type
            read_format read_format wakeup_watermark wakeup_watermark bp_type bp_type config1 config1
            config2 config2 branch_sample_type branch_sample_type sample_regs_user sample_regs_user
            sample_stack_user sample_stack_user clockid clockid sample_regs_intr sample_regs_intr
            aux_watermark aux_watermark sample_max_stack sample_max_stack
        }
        assert_eq!(offset_of!(EventAttr, flags), 40);
        c.push_str("return 0; }\n");
        (c, expected)
    }

    #[test]
    fn the_interface_is_that_of_the_kernel_s_header() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("abi.c");
        let binary = folder.path().join("abi");
        let (c, expected) = program();
        std::fs::write(&source, c).unwrap();
        let built = Command::new("cc")
            .arg(&source)
            .arg("-o")
            .arg(&binary)
            .status()
            .unwrap();
        assert!(built.success());
        let output = Command::new(&binary).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let said: Vec<u64> = said.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(said.len(), expected.len());
        for ((what, ours), theirs) in expected.iter().zip(said) {
            assert_eq!(*ours, theirs, "{what}");
        }
    }

    #[test]
    fn an_attribute_s_bytes_are_those_of_its_fields() {
        let attr = EventAttr {
            type_: 1,
            config: 2,
            clockid: -3,
            sample_max_stack: 4,
            reserved_2: 5,
            ..EventAttr::default()
        };
        let bytes = attr.to_bytes();
        let at = |offset: usize| u32::from_le_bytes(bytes[offset..][..4].try_into().unwrap());
        assert_eq!(at(offset_of!(EventAttr, type_)), 1);
        assert_eq!(at(offset_of!(EventAttr, size)), 112);
        assert_eq!(at(offset_of!(EventAttr, config)), 2);
        assert_eq!(at(offset_of!(EventAttr, clockid)), (-3i32).cast_unsigned());
        assert_eq!(at(offset_of!(EventAttr, sample_max_stack)), 5 << 16 | 4);
    }
}
