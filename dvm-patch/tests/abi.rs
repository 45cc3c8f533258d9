//! The Rust mirror equals the header. Compiles the header with the C compiler and compares.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;

use varid_tunnel::abi;

/// (C expression, value in Rust)
fn mirrored() -> Vec<(String, u64)> {
    let mut all = Vec::new();
    macro_rules! structure {
        ($c:literal, $rust:ident, $($field:ident)*) => {
            all.push((format!("sizeof(struct {})", $c), size_of::<abi::$rust>() as u64));
            let mut covered = 0;
            $(
                all.push((
                    format!("offsetof(struct {}, {})", $c, stringify!($field)),
                    offset_of!(abi::$rust, $field) as u64,
                ));
                all.push((
                    format!("sizeof(((struct {} *)0)->{})", $c, stringify!($field)),
                    field_size(|s: &abi::$rust| &s.$field) as u64,
                ));
                covered += field_size(|s: &abi::$rust| &s.$field);
            )*
            assert_eq!(covered, size_of::<abi::$rust>(), "padding or a field missing in {}", $c);
        };
    }
    structure!("varid_rule", Rule, kind reg_pc reg_frame special_count frame_bias frame_link
        frame_method frame_pc frame_insns frame_index frame_caller_pc cfa_word cfa_bias saved_pc
        saved_frame saved_return method_flags native_size native_flag special_sizes
        special_methods code_start code_end method_entry code_cache code_cache_map code_cache_counts);
    structure!("varid_layout", Layout, machine word reference rule_count quick_rule thread_tid
        flags thread_fragment fragment_quick tls_offset fragment_link fragment_top method_class
        method_code method_index class_dex_cache dex_cache_dex_file dex_file_begin method_name
        method_proto class_descriptor reserved rules);
    structure!("varid_range", CodeRange, start end kind rule);
    structure!("varid_code", Code, start size time kind flags location);
    structure!("varid_thread", Thread, base tid reserved);
    structure!("varid_trace", Trace, start pc);
    structure!("varid_part", Part, offset entry_size capacity count);
    structure!("varid_tunnel", TunnelHeader, magic version header_size size time vm pid generation
        tactic layout ranges codes threads traces control calls);
    structure!("varid_file", VmFile, address size fd reserved);
    structure!("varid_control", Control, magic version size generation tactic session filter_count
        reserved log filters);
    structure!("varid_calls", CallsHeader, magic version entry_size capacity count session uncounted
        unlogged refused reserved);
    structure!("varid_call", Call, method insns dex index flags invokes returns unwinds reserved);
    structure!("varid_shadow_record", ShadowRecord, method sp);
    structure!("varid_shadow", Shadow, tid capacity depth);
    for (name, value) in [
        ("VARID_TUNNEL_VERSION", u64::from(abi::VERSION)),
        ("VARID_NO_FIELD", u64::from(abi::NO_FIELD)),
        ("VARID_NO_REG", u64::from(abi::NO_REG)),
        ("VARID_VM_DALVIK", u64::from(abi::VM_DALVIK)),
        ("VARID_VM_ART", u64::from(abi::VM_ART)),
        ("VARID_VM_HOTSPOT", u64::from(abi::VM_HOTSPOT)),
        ("VARID_VM_OTHER", u64::from(abi::VM_OTHER)),
        ("VARID_NO_RULE", u64::from(abi::NO_RULE)),
        ("VARID_NO_WORD", abi::NO_WORD as u64),
        ("VARID_RULE_LIST", u64::from(abi::RULE_LIST)),
        ("VARID_RULE_SHADOW", u64::from(abi::RULE_SHADOW)),
        ("VARID_RULE_SAVE_AREA", u64::from(abi::RULE_SAVE_AREA)),
        ("VARID_RULE_AT_SP", u64::from(abi::RULE_AT_SP)),
        ("VARID_RULE_SIZED", u64::from(abi::RULE_SIZED)),
        ("VARID_RULE_FP", u64::from(abi::RULE_FP)),
        ("VARID_MAX_RULES", abi::MAX_RULES as u64),
        ("VARID_SPECIAL_METHODS", abi::SPECIAL_METHODS as u64),
        ("VARID_CODE_IMAGE", u64::from(abi::CODE_IMAGE)),
        ("VARID_CONTROL_VERSION", u64::from(abi::CONTROL_VERSION)),
        ("VARID_CALLS_VERSION", u64::from(abi::CALLS_VERSION)),
        (
            "VARID_LAYOUT_CODE_ADDRESS",
            u64::from(abi::LAYOUT_CODE_ADDRESS),
        ),
        (
            "VARID_LAYOUT_ON_NATIVE_STACK",
            u64::from(abi::LAYOUT_ON_NATIVE_STACK),
        ),
        ("VARID_RANGE_BODY", u64::from(abi::RANGE_BODY)),
        ("VARID_RANGE_INTERPRETER", u64::from(abi::RANGE_INTERPRETER)),
        ("VARID_RANGE_BRIDGE", u64::from(abi::RANGE_BRIDGE)),
        ("VARID_RANGE_VM", u64::from(abi::RANGE_VM)),
        ("VARID_RANGE_QUICK", u64::from(abi::RANGE_QUICK)),
        ("VARID_RANGE_HANDLERS", u64::from(abi::RANGE_HANDLERS)),
        ("VARID_RANGE_TRACES", u64::from(abi::RANGE_TRACES)),
        ("VARID_LOAD_FROM_DEX", u64::from(abi::TACTIC_LOAD_FROM_DEX)),
        ("VARID_METHOD_INVOKE", u64::from(abi::TACTIC_METHOD_INVOKE)),
        ("VARID_CONTROL_LOG", abi::CONTROL_LOG as u64),
        ("VARID_FILTERS", abi::FILTERS as u64),
        ("VARID_FILTER_SIZE", abi::FILTER_SIZE as u64),
        ("VARID_CALLS_ENTRIES", abi::CALLS_ENTRIES),
        ("VARID_REMAP_FIRST", abi::REMAP_FIRST),
        ("VARID_REMAP_END", abi::REMAP_END),
        ("VARID_MAX_CALLS", u64::from(abi::MAX_CALLS)),
        ("VARID_CALL_LEFT_OUT", u64::from(abi::CALL_LEFT_OUT)),
        ("VARID_RETIRED", abi::RETIRED),
        ("VARID_NO_INDEX", u64::from(abi::NO_INDEX)),
        (
            "*(const uint64_t *)VARID_CONTROL_MAGIC",
            u64::from_ne_bytes(abi::CONTROL_MAGIC),
        ),
        (
            "*(const uint64_t *)VARID_CALLS_MAGIC",
            u64::from_ne_bytes(abi::CALLS_MAGIC),
        ),
        (
            "sizeof(VARID_CONTROL_NAME) - 1",
            abi::CONTROL_NAME.len() as u64,
        ),
        ("sizeof(VARID_CALLS_NAME) - 1", abi::CALLS_NAME.len() as u64),
        ("VARID_CODE_DEX", u64::from(abi::CODE_DEX)),
        ("VARID_CODE_BOOT", u64::from(abi::CODE_BOOT)),
        ("VARID_CODE_LOCATION", abi::CODE_LOCATION as u64),
        ("sizeof(VARID_TUNNEL_NAME) - 1", abi::NAME.len() as u64),
        (
            "*(const uint64_t *)VARID_TUNNEL_MAGIC",
            u64::from_ne_bytes(abi::MAGIC),
        ),
    ] {
        all.push((name.to_string(), value));
    }
    all
}

fn field_size<S, F>(_: impl Fn(&S) -> &F) -> usize {
    size_of::<F>()
}

#[test]
fn every_size_and_offset_is_the_headers() {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mirrored = mirrored();
    let mut source = String::from(
        "#include <stddef.h>\n#include <stdio.h>\n#include \"varid_tunnel.h\"\nint main(void) {\n",
    );
    for (expression, _) in &mirrored {
        let _ = writeln!(
            source,
            "printf(\"%llu\\n\", (unsigned long long)({expression}));"
        );
    }
    source.push_str("return 0; }\n");

    let dir = tempfile::tempdir().unwrap();
    let c = dir.path().join("abi.c");
    let program = dir.path().join("abi");
    std::fs::write(&c, source).unwrap();
    let compiled = Command::new("cc")
        .args(["-std=c99", "-fno-strict-aliasing", "-I"])
        .arg(crate_dir.join("include"))
        .arg(&c)
        .arg("-o")
        .arg(&program)
        .status()
        .unwrap();
    assert!(compiled.success());
    let output = Command::new(&program).output().unwrap();
    let header: Vec<u64> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    assert_eq!(header.len(), mirrored.len());
    let differing: BTreeMap<_, _> = mirrored
        .iter()
        .zip(&header)
        .filter(|((_, rust), c)| rust != *c)
        .map(|((expression, rust), c)| (expression, (rust, c)))
        .collect();
    assert!(
        differing.is_empty(),
        "(Rust, header) differ: {differing:#?}"
    );
}
