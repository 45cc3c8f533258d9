//! What does the kernel's perf interface look like (linux/perf_event.h)? Alike on every processor but for pointers' size.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Constants, each checked against the kernel's header by the test below.
macro_rules! constants {
    ($($kind:ty { $($name:ident = $value:expr),* $(,)? })*) => {
        $($(
            #[doc = concat!("`", stringify!($name), "` of linux/perf_event.h.")]
            #[cfg_attr(not(test), allow(dead_code, reason = "some are for tests"))]
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
        PERF_RECORD_MISC_USER = 2,
        PERF_RECORD_MISC_COMM_EXEC = 1 << 13,
        PERF_EVENT_IOC_ENABLE = 0x2400,
        PERF_EVENT_IOC_DISABLE = 0x2401,
        PERF_EVENT_IOC_PERIOD = 0x4008_2404,
        PERF_EVENT_IOC_SET_OUTPUT = 0x2405,
        // Its number holds the size of a pointer, although what it writes is a word of eight bytes.
        PERF_EVENT_IOC_ID = 0x8000_2407 | ((size_of::<usize>() as u32) << 16),
    }
    libc::c_ulong {
        PERF_FLAG_FD_CLOEXEC = 8,
    }
}

/// Bytes of `perf_event_header`: the kind of a record (4), what else there is to know (2), its size (2).
pub const RECORD_HEADER: usize = 8;

/// Where a ring's control page has `data_head`, eight bytes.
pub const DATA_HEAD: usize = 1024;

/// Where a ring's control page has `data_tail`, eight bytes.
pub const DATA_TAIL: usize = 1032;

/// `struct perf_event_attr` as of Linux 4.8 (`PERF_ATTR_SIZE_VER5`). Older kernels take it as long as what they do not
/// know is zero; nothing that came later is used. perf_event_open(2) tells what each field is.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct perf_event_attr {
    pub type_: u32,
    pub size: u32,
    pub config: u64,
    /// Or the frequency, if `freq` is set.
    pub sample_period: u64,
    pub sample_type: u64,
    pub read_format: u64,
    /// The fields of one bit: see the setters.
    pub flags: u64,
    /// Bytes, if `watermark` is set, else events.
    pub wakeup_watermark: u32,
    pub bp_type: u32,
    pub config1: u64,
    pub config2: u64,
    pub branch_sample_type: u64,
    pub sample_regs_user: u64,
    pub sample_stack_user: u32,
    pub clockid: i32,
    pub sample_regs_intr: u64,
    pub aux_watermark: u32,
    pub sample_max_stack: u16,
    pub reserved_2: u16,
}

/// The attribute's one-bit fields by their positions, on a little-endian machine.
macro_rules! flags {
    ($($set:ident $name:ident $bit:literal)*) => {
        impl perf_event_attr {
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
}

impl perf_event_attr {
    const PRECISE_IP: u64 = 3 << 15;

    /// Sets `precise_ip`: 0 (any skid) to 3 (none).
    pub fn set_precise_ip(&mut self, precise: u8) {
        self.flags = self.flags & !Self::PRECISE_IP | u64::from(precise.min(3)) << 15;
    }

    /// `precise_ip`.
    #[cfg(test)]
    pub fn precise_ip(&self) -> u8 {
        (self.flags >> 15 & 3) as u8
    }
}

/// perf_event_open(2): a process (-1: all), a CPU (-1: all), the leader of its group (-1: none), `PERF_FLAG_*`.
pub fn perf_event_open(
    attr: &mut perf_event_attr,
    pid: i32,
    cpu: i32,
    group: i32,
    flags: libc::c_ulong,
) -> io::Result<OwnedFd> {
    // SAFETY: `attr` is a whole attribute; the kernel reads it, and writes at most what it knows into its size field.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw mut *attr,
            pid,
            cpu,
            group,
            flags,
        )
    };
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
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
            size_of::<perf_event_attr>() as u64,
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
                    offset_of!(perf_event_attr, $rust) as u64,
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
        assert_eq!(offset_of!(perf_event_attr, flags), 40);
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
}
