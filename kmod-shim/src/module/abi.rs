//! The Rust mirror of `include/varid_module.h`.

use crate::abi;

/// The path of the module's device.
pub const DEVICE: &str = "/dev/varid";
/// The version of this interface.
pub const VERSION: u32 = 7;
/// `perf_event_header.type` of a record.
pub const RECORD: u32 = 0x5641_5249;

/// Flags of a [`RawCounter`].
pub mod counter_flags {
    /// The rate is samples per second, not a period.
    pub const FREQUENCY: u32 = 1;
    /// Do not count user code.
    pub const EXCLUDE_USER: u32 = 2;
    /// Do not count the kernel.
    pub const EXCLUDE_KERNEL: u32 = 4;
    /// Each period is drawn from a range around the rate.
    pub const JITTER: u32 = 8;
}

/// `struct varid_module_session`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct RawSession {
    pub version: u32,
    pub ring_pages: u32,
    pub raw_stack: u32,
    pub machine: u32,
    pub raw_regs: u64,
}

/// `struct varid_module_counter`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct RawCounter {
    pub cpu: u32,
    pub kind: u32,
    pub config: u64,
    pub config1: u64,
    pub config2: u64,
    pub rate: u64,
    pub flags: u32,
    pub id: u32,
}

/// `struct varid_module_target`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct RawTarget {
    pub pid: u32,
    pub reserved: u32,
    pub target: abi::RawTarget,
}

/// `struct varid_module_value`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct RawValue {
    pub id: u32,
    pub reserved: u32,
    pub value: u64,
    pub enabled: u64,
    pub running: u64,
}

/// `struct varid_module_counts`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct RawCounts {
    pub samples: u64,
    pub no_space: u64,
    pub throttled: u64,
}

const WRITE: u32 = 1;
const READ: u32 = 2;

/// `_IOC` of asm-generic/ioctl.h.
const fn request(direction: u32, number: u32, size: usize) -> u32 {
    direction << 30 | (size as u32) << 16 | (b'V' as u32) << 8 | number
}

pub const SESSION: u32 = request(READ | WRITE, 1, size_of::<RawSession>());
pub const COUNTER: u32 = request(READ | WRITE, 2, size_of::<RawCounter>());
pub const TARGET: u32 = request(WRITE, 3, size_of::<RawTarget>());
pub const FORGET: u32 = request(0, 4, 0);
pub const ENABLE: u32 = request(0, 5, 0);
pub const DISABLE: u32 = request(0, 6, 0);
pub const VALUE: u32 = request(READ | WRITE, 7, size_of::<RawValue>());
pub const COUNTS: u32 = request(READ, 8, size_of::<RawCounts>());

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;
    use std::mem::offset_of;
    use std::process::Command;

    /// Every size, offset, request and constant must equal the header's.
    #[test]
    fn mirror_equals_the_header() {
        let here = env!("CARGO_MANIFEST_DIR");
        let dir = std::env::temp_dir().join(format!("varid-module-abi-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let mut program = String::from(
            "#include <stddef.h>\n#include <stdio.h>\n#include \"varid_module.h\"\nint main(void){\n",
        );
        let mut expected = String::new();
        let mut check = |expression: String, value: usize| {
            writeln!(
                program,
                "printf(\"%s %zu\\n\", {expression:?}, (size_t)({expression}));"
            )
            .unwrap();
            writeln!(expected, "{expression} {value}").unwrap();
        };
        macro_rules! field { ($c:literal, $t:ty, $($f:ident $(= $in_c:literal)?),*) => {
            check(format!("sizeof(struct {})", $c), size_of::<$t>());
            $(
                let name = [$($in_c,)? stringify!($f)][0];
                check(format!("offsetof(struct {}, {name})", $c), offset_of!($t, $f));
            )*
        } }
        field!(
            "varid_module_session",
            RawSession,
            version,
            ring_pages,
            raw_stack,
            machine,
            raw_regs
        );
        field!(
            "varid_module_counter",
            RawCounter,
            cpu,
            kind = "type",
            config,
            config1,
            config2,
            rate,
            flags,
            id
        );
        field!("varid_module_target", RawTarget, pid, reserved, target);
        field!(
            "varid_module_value",
            RawValue,
            id,
            reserved,
            value,
            enabled,
            running
        );
        field!(
            "varid_module_counts",
            RawCounts,
            samples,
            no_space,
            throttled
        );
        for (name, value) in [
            ("VARID_MODULE_VERSION", VERSION),
            ("VARID_MODULE_RECORD", RECORD),
            ("VARID_COUNTER_FREQUENCY", counter_flags::FREQUENCY),
            ("VARID_COUNTER_EXCLUDE_USER", counter_flags::EXCLUDE_USER),
            (
                "VARID_COUNTER_EXCLUDE_KERNEL",
                counter_flags::EXCLUDE_KERNEL,
            ),
            ("VARID_COUNTER_JITTER", counter_flags::JITTER),
            ("VARID_MODULE_SESSION", SESSION),
            ("VARID_MODULE_COUNTER", COUNTER),
            ("VARID_MODULE_TARGET", TARGET),
            ("VARID_MODULE_FORGET", FORGET),
            ("VARID_MODULE_ENABLE", ENABLE),
            ("VARID_MODULE_DISABLE", DISABLE),
            ("VARID_MODULE_VALUE", VALUE),
            ("VARID_MODULE_COUNTS", COUNTS),
            // The ring has perf's layout: its positions are at perf's offsets.
            ("offsetof(struct varid_module_ring, head)", 1024),
            ("offsetof(struct varid_module_ring, tail)", 1032),
        ] {
            check(name.to_owned(), value as usize);
        }
        let device = format!("\"{DEVICE}\"");
        writeln!(
            program,
            "printf(\"%d\\n\", !__builtin_strcmp(VARID_MODULE_DEVICE, {device}));return 0;}}"
        )
        .unwrap();
        expected += "1\n";
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
