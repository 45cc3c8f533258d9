//! The constants of the kernel's perf interface (linux/perf_event.h).

/// Constants, each compared with the kernel's header by the tests of `perf`.
macro_rules! constants {
    ($($kind:ty { $($name:ident = $value:expr),* $(,)? })*) => {
        $($(
            #[doc = concat!("`", stringify!($name), "` of linux/perf_event.h.")]
            pub const $name: $kind = $value;
        )*)*
        #[cfg(test)]
        pub(super) const CONSTANTS: &[(&str, u64)] = &[$($((stringify!($name), $name as u64)),*),*];
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
        PERF_SAMPLE_ID = 1 << 6,
        PERF_SAMPLE_CPU = 1 << 7,
        PERF_SAMPLE_PERIOD = 1 << 8,
        PERF_SAMPLE_STREAM_ID = 1 << 9,
        PERF_SAMPLE_RAW = 1 << 10,
        PERF_SAMPLE_BRANCH_STACK = 1 << 11,
        PERF_SAMPLE_REGS_USER = 1 << 12,
        PERF_SAMPLE_STACK_USER = 1 << 13,
        PERF_SAMPLE_IDENTIFIER = 1 << 16,
        PERF_FORMAT_TOTAL_TIME_ENABLED = 1 << 0,
        PERF_FORMAT_TOTAL_TIME_RUNNING = 1 << 1,
        PERF_FORMAT_ID = 1 << 2,
        PERF_FORMAT_GROUP = 1 << 3,
        PERF_FORMAT_LOST = 1 << 4,
        PERF_SAMPLE_BRANCH_CALL_STACK = 1 << 11,
        PERF_SAMPLE_BRANCH_HW_INDEX = 1 << 17,
        PERF_RECORD_MMAP = 1,
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
        // Its number contains the size of a pointer, although it writes a word of eight bytes.
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
        PERF_RECORD_MISC_MMAP_DATA = 1 << 13,
        PERF_RECORD_MISC_COMM_EXEC = 1 << 13,
        PERF_RECORD_MISC_MMAP_BUILD_ID = 1 << 14,
    }
}

/// Size of `perf_event_header` in bytes: the kind of a record (4), the misc flags (2), the size (2).
pub const RECORD_HEADER: usize = 8;

/// `PERF_ATTR_SIZE_VER5`: size of an [`EventAttr`](super::EventAttr) in bytes. It is the first version with `clockid`.
pub const ATTR_SIZE: usize = 112;

/// The offset of `data_head`, eight bytes, in a ring's control page.
pub const DATA_HEAD: usize = 1024;

/// The offset of `data_tail`, eight bytes, in a ring's control page.
pub const DATA_TAIL: usize = 1032;
