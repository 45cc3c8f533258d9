//! Compares the interface with the kernel's header, for every processor that varid runs on.

use super::abi::CONSTANTS;
use super::attr::FLAGS;
use super::*;
use std::fmt::Write as _;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

/// The names of a compiler and its objcopy, and the size of a pointer in bytes.
const COMPILERS: [(&str, &str, u64); 3] = [
    ("cc", "objcopy", size_of::<usize>() as u64),
    ("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-objcopy", 8),
    ("arm-linux-gnueabihf-gcc", "arm-linux-gnueabihf-objcopy", 4),
];

/// Constant expressions in C, and their values here.
fn expected(pointer: u64) -> Vec<(String, u64)> {
    let mut expected: Vec<(String, u64)> = CONSTANTS
        .iter()
        .map(|(name, value)| match *name {
            // The only number that contains the size of a pointer.
            "PERF_EVENT_IOC_ID" => (*name, 0x8000_2407 | pointer << 16),
            _ => (*name, *value),
        })
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    let sizes = [
        ("PERF_ATTR_SIZE_VER5", size_of::<EventAttr>()),
        ("sizeof(struct perf_event_header)", RECORD_HEADER),
        ("offsetof(PAGE, data_head)", DATA_HEAD),
        ("offsetof(PAGE, data_tail)", DATA_TAIL),
    ];
    expected.extend(sizes.map(|(c, rust)| (c.to_owned(), rust as u64)));
    macro_rules! offsets {
        ($($c:ident $rust:ident)*) => {
            $(expected.push((
                format!("offsetof(ATTR, {})", stringify!($c)),
                offset_of!(EventAttr, $rust) as u64,
            ));)*
        };
    }
    offsets! {
        type type_ size size config config sample_period sample_period sample_type sample_type
        read_format read_format wakeup_watermark wakeup_watermark bp_type bp_type config1 config1
        config2 config2 branch_sample_type branch_sample_type sample_regs_user sample_regs_user
        sample_stack_user sample_stack_user clockid clockid sample_regs_intr sample_regs_intr
        aux_watermark aux_watermark sample_max_stack sample_max_stack
    }
    expected
}

/// A C source. Its object has the values of the expressions in section `numbers`, and an attribute for each flag in section `flags`.
fn source(expected: &[(String, u64)]) -> String {
    let mut c = String::from(
        "#include <linux/perf_event.h>\n#include <stddef.h>\n\
         #define ATTR struct perf_event_attr\n#define PAGE struct perf_event_mmap_page\n\
         const unsigned long long all_numbers[] __attribute__((section(\"numbers\"))) = {\n",
    );
    for (expression, _) in expected {
        writeln!(c, "(unsigned long long)({expression}),").unwrap();
    }
    c.push_str("};\nconst ATTR all_flags[] __attribute__((section(\"flags\"))) = {\n");
    for (name, _) in FLAGS {
        writeln!(c, "{{ .{name} = 1 }},").unwrap();
    }
    c.push_str("};\n");
    c
}

fn section(objcopy: &str, object: &Path, section: &str) -> Vec<u8> {
    let bytes = object.with_extension(section);
    let copied = Command::new(objcopy)
        .args(["-O", "binary", "--only-section", section])
        .args([object, &bytes])
        .status()
        .unwrap();
    assert!(copied.success());
    std::fs::read(bytes).unwrap()
}

#[test]
fn the_interface_is_that_of_the_kernel_s_header_on_every_processor() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("abi.c");
    for (compiler, objcopy, pointer) in COMPILERS {
        let expected = expected(pointer);
        std::fs::write(&path, source(&expected)).unwrap();
        let object = folder.path().join(format!("{compiler}.o"));
        let compile = Command::new(compiler)
            .arg("-c")
            .arg(&path)
            .arg("-o")
            .arg(&object)
            .status();
        match compile {
            Ok(status) => assert!(status.success(), "{compiler}"),
            Err(error) if compiler != "cc" => {
                eprintln!("not compared with the header of {compiler}: {error}");
                continue;
            }
            Err(error) => panic!("{compiler}: {error}"),
        }
        let word = |word: &[u8]| u64::from_le_bytes(word.try_into().unwrap());
        let numbers = section(objcopy, &object, "numbers");
        assert_eq!(numbers.len(), 8 * expected.len());
        for ((what, ours), theirs) in expected.iter().zip(numbers.chunks(8)) {
            assert_eq!(*ours, word(theirs), "{compiler}: {what}");
        }
        let attrs = section(objcopy, &object, "flags");
        let size = attrs.len() / FLAGS.len();
        assert_eq!(offset_of!(EventAttr, flags), 40);
        for ((flag, ours), theirs) in FLAGS.iter().zip(attrs.chunks(size)) {
            assert_eq!(*ours, word(&theirs[40..48]), "{compiler}: {flag}");
        }
    }
}
