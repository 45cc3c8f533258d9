//! Writes the seeds, a folder of small valid inputs for each target:
//! cargo run --release --example seeds seeds

mod bytes;
mod libraries;
mod sessions;
mod vm;

use bytes::Bytes;
use libraries::{INLINED, NAMES, compiled, gdb_list, jitdump, stripped};
use sessions::{call_order, compact, compiled_code, contexts, old_counts, session};
use std::path::Path;
use varid_symbolizer::dex::DexFile;
use varid_symbolizer::substitute::Substitute;
use varid_testing::containers;
use varid_testing::hotspot::{MadeUpCode, MadeUpJvm};
use varid_tunnel::abi::{Layout, NO_FIELD, RULE_AT_SP, RULE_SAVE_AREA, RULE_SHADOW, Rule};
use varid_tunnel::builds;
use vm::{calls, control, record, tunnel, walk_areas, walk_art, walk_at_sp, walk_shadow};

#[allow(dead_code, reason = "the tests use all of it")]
#[path = "../../../import/tests/it/jfr_file.rs"]
mod jfr_file;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The build-id of Debian's android-libart 11 for x86_64.
const ART: [u8; 20] = [
    0xd3, 0xba, 0x28, 0x1c, 0x20, 0xe7, 0x25, 0x78, 0x04, 0x67, 0xfb, 0x41, 0xf5, 0x0e, 0x66, 0x90,
    0x82, 0xcc, 0xac, 0x64,
];

/// Instructions of several formats: addi, lw, sw, beq, jal, jalr, mul, lui, csrrs, and compressed li, mv, j, lwsp.
fn riscv_code() -> Vec<u8> {
    let words: [u32; 9] = [
        0xff01_0113,
        0x0005_a503,
        0x00a5_a023,
        0xfe05_0ee3,
        0x0080_00ef,
        0x0000_8067,
        0x02b5_0533,
        0x0001_0537,
        0xc000_2573,
    ];
    let halves: [u16; 4] = [0x4505, 0x852e, 0xa001, 0x4502];
    let words = words.into_iter().flat_map(u32::to_le_bytes);
    words
        .chain(halves.into_iter().flat_map(u16::to_le_bytes))
        .collect()
}

/// A loop of loads, stores, a call and a division, with its choice of a processor before it.
fn riscv_loop(choice: u8) -> Vec<u8> {
    let words: [u32; 13] = [
        0x1000_0493, // li    s1, 256
        0x0000_0513, // li    a0, 0
        0xff01_2583, // loop: lw a1, -16(sp)
        0x0140_00ef, // jal   ra, work
        0xfea1_2823, // sw    a0, -16(sp)
        0xfff4_8493, // addi  s1, s1, -1
        0xfe04_98e3, // bnez  s1, loop
        0x0000_006f, // j     .
        0x00b5_0533, // work: add a0, a0, a1
        0x0015_6593, // ori   a1, a0, 1
        0x02b4_c633, // div   a2, s1, a1
        0x00c5_4533, // xor   a0, a0, a2
        0x0000_8067, // ret
    ];
    let words = words.into_iter().flat_map(u32::to_le_bytes);
    [choice].into_iter().chain(words).collect()
}

/// An executable of one segment with this code.
fn riscv_executable() -> Vec<u8> {
    let code = riscv_code();
    let size = code.len() as u32;
    // ELF32, little-endian; an executable for RISC-V with one program header.
    let header = Bytes::default()
        .put(*b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0")
        .u16s([2, 243])
        .u32s([1, 0x10000, 52, 0, 1])
        .u16s([52, 32, 1, 40, 0, 0]);
    let segment = header.u32s([1, 84, 0x10000, 0x10000, size, size + 16, 5, 4]);
    [segment.0, code].concat()
}

fn main() -> Result {
    let folder = std::env::args_os().nth(1).ok_or("usage: seeds FOLDER")?;
    let folder = Path::new(&folder);
    let save = |target: &str, name: &str, bytes: &[u8]| -> Result {
        std::fs::create_dir_all(folder.join(target))?;
        Ok(std::fs::write(folder.join(target).join(name), bytes)?)
    };
    let dex = include_bytes!("../../../symbolizer/tests/fixtures/names.dex");
    let items = include_bytes!("../../../symbolizer/tests/fixtures/items.dex");
    let compact_dex = include_bytes!("../../../symbolizer/tests/fixtures/items.cdex");
    let class = include_bytes!("../../../symbolizer/tests/fixtures/Opcodes.class");
    save("class", "opcodes", class)?;
    save("instrument", "opcodes", class)?;
    save("dex", "names", dex)?;
    save("dex", "items", items)?;
    save("dex", "compact", compact_dex)?;
    save("instrument_dex", "names", dex)?;
    save("instrument_dex", "items", items)?;
    save("substitute", "names", dex)?;
    save("substitute", "items", items)?;
    let scratch = tempfile::tempdir()?;
    let substitute = scratch.path().join("substitute");
    Substitute::of_dex(&DexFile::parse(dex)?)?.write(&substitute)?;
    for processor in varid_processor::SHIPPED {
        save("processor", processor.name, processor.text.as_bytes())?;
    }
    save("riscv", "code", &riscv_code())?;
    save("riscv", "executable", &riscv_executable())?;
    save("machine", "code", &riscv_code())?;
    save("machine", "executable", &riscv_executable())?;
    for (choice, processor) in ["ibex", "vexriscv"].into_iter().enumerate() {
        save("translate", processor, &riscv_loop(choice as u8))?;
    }
    // What the call returns to is no instruction.
    let mut unknown = riscv_loop(0);
    unknown[1 + 4 * 4] = 0x22;
    save("translate", "returns_to_nothing", &unknown)?;
    save("elf", "substitute", &std::fs::read(&substitute)?)?;
    Substitute::of_dex(&DexFile::parse(items)?)?.write(&substitute)?;
    save("lines", "substitute", &std::fs::read(&substitute)?)?;
    let library = compiled(scratch.path(), NAMES, &[])?;
    save("elf", "library", &library)?;
    save("gdb_jit", "list", &gdb_list(&library))?;
    for version in ["4", "5"] {
        let lines = compiled(
            scratch.path(),
            INLINED,
            &["-O2", &format!("-gdwarf-{version}")],
        )?;
        save("lines", &format!("dwarf{version}"), &lines)?;
    }
    save("lines", "stripped", &stripped(scratch.path())?)?;
    save_containers(&save, dex)?;
    save(
        "perf_map",
        "map",
        b"7f0000001000 40 Interpreter\n7f0000001040 20 LBalls;->draw(I)V\r\n1 x\n",
    )?;
    save("jitdump", "functions", &jitdump())?;
    save("retrace", "r8", MAPPING.as_bytes())?;
    save("demangle", "names", CPP_NAMES.as_bytes())?;
    save(
        "kernel",
        "kallsyms",
        b"ffffffff81000000 T _text\nffffffff81000040 t do_one\t[ext4]\nffffffff81000100 D data\n",
    )?;
    save(
        "kernel",
        "kernel.sym",
        b"ffffffff81000000\t40\tschedule\t\nffffffffc0000000\t10\text4_read\text4\n",
    )?;
    let session = session(&scratch.path().join("session"))?;
    save("session", "session", &session)?;
    save("report", "session", &session)?;
    let simpleperf = include_bytes!("../../../import/tests/fixtures/simpleperf/perf.data");
    save("import_perf_data", "simpleperf", simpleperf)?;
    for (name, integers) in [
        ("compressed", jfr_file::Integers::Compressed),
        ("fixed", jfr_file::Integers::Fixed),
    ] {
        save("import_jfr", name, &jfr_file::example(integers).encode())?;
    }
    save("import_text", "script", SCRIPT.as_bytes())?;
    save(
        "import_text",
        "folded",
        b"main;run;work 3\nmain;run_[j];read_[k] 2\n",
    )?;
    let art = builds::lookup(&ART)
        .ok_or("the build is known")?
        .layout(0, |_| Some((-8i64) as u64))?;
    let mut shadow = art;
    shadow.rules[0].kind = RULE_SHADOW;
    save("tunnel", "art", &tunnel(&art))?;
    save("tunnel", "shadow", &tunnel(&shadow))?;
    save(
        "tunnel",
        "version-1",
        include_bytes!("../../../dvm-patch/tests/fixtures/tunnel-v1/list.bin"),
    )?;
    save("record", "record", &record())?;
    save("walk", "art", &walk_art(&art))?;
    save("walk", "shadow", &walk_shadow(&shadow))?;
    let area = Rule {
        kind: RULE_SAVE_AREA,
        reg_pc: 6,
        reg_frame: 7,
        frame_bias: -20,
        frame_caller_pc: 4,
        frame_method: 8,
        frame_pc: 12,
        ..Rule::default()
    };
    let areas = Layout {
        machine: 3,
        word: 4,
        reference: 4,
        thread_tid: 124,
        thread_fragment: 4,
        ..Layout::with_rules(&[area])
    };
    let at_sp = Rule {
        kind: RULE_AT_SP,
        reg_pc: 12,
        reg_frame: 15,
        cfa_word: -8,
        cfa_bias: 88,
        saved_pc: 40,
        saved_frame: 16,
        saved_return: 8,
        method_flags: 4,
        native_size: 208,
        native_flag: 0x100,
        code_start: 0x8000,
        code_end: 0xa000,
        ..Rule::default()
    };
    let at_sp = Layout {
        quick_rule: 0,
        fragment_top: NO_FIELD,
        rules: Layout::with_rules(&[at_sp]).rules,
        ..art
    };
    save("tunnel", "at-sp", &tunnel(&at_sp))?;
    save("walk", "at-sp", &walk_at_sp(&at_sp))?;
    save("walk", "areas", &walk_areas(&areas))?;
    save(
        "configuration",
        "sample",
        include_bytes!("../../../docs/varid.toml"),
    )?;
    save("configuration", "small", SMALL.as_bytes())?;
    save("calls", "two", &calls())?;
    save("control", "page", &control())?;
    let oat = include_bytes!("../../../vm/tests/fixtures/art11/code.oat");
    save("oat_file", "code", oat)?;
    let oat_14 = include_bytes!("../../../vm/tests/fixtures/art14/code.oat");
    save("oat_file", "code_14", oat_14)?;
    // Code infos of `outer`, with inlined methods, and of `twice`, which shares the table of another method.
    for (name, offset) in [("inlined", 0x3c7u32), ("shared", 0x3f2)] {
        let place = (offset << 2).to_le_bytes();
        save("code_info", name, &[&place[..], oat].concat())?;
    }
    for (name, machine, code) in [
        ("x86_64", 0u8, X86_64_INIT_TID),
        ("aarch64", 1, AARCH64_INIT_TID),
        ("arm", 2, ARM_INIT_TID),
    ] {
        save("layout", name, &[&[machine], code].concat())?;
    }
    for (name, tables, major) in [("jdk17", JDK_17, 17), ("jdk25", JDK_25, 25)] {
        save("jvm", name, &MadeUpJvm::new(tables, major).bytes)?;
        let code = MadeUpCode::new(tables, major).bytes;
        let version = [u8::from(major > 17)];
        save("nmethod", name, &[&version[..], &code].concat())?;
    }
    save(
        "call_order",
        "events",
        &call_order(&scratch.path().join("order"))?,
    )?;
    save(
        "compact",
        "session",
        &compact(&scratch.path().join("compact"))?,
    )?;
    let folder = scratch.path().join("code");
    save("compiled_code", "processes", &compiled_code(&folder)?)?;
    save("contexts", "old", old_counts().as_bytes())?;
    save(
        "contexts",
        "tree",
        &contexts(&scratch.path().join("contexts"))?,
    )
}

/// What HotSpot exports, of two versions.
const JDK_17: &str = include_str!("../../../vm/tests/fixtures/hotspot/jdk17.tsv");
const JDK_25: &str = include_str!("../../../vm/tests/fixtures/hotspot/jdk25.tsv");

/// `art::Thread::InitTid` of Debian's ART 11. It calls a function and stores the result.
const X86_64_INIT_TID: &[u8] = b"\x55\x48\x89\xe5\x53\x50\x48\x89\xfb\xe8\x02\xac\xb2\xff\x89\x43\x10\x48\x83\xc4\x08\x5b\x5d\xc3";
/// The same function for arm64.
const AARCH64_INIT_TID: &[u8] = b"\xfd\x7b\xbe\xa9\xf3\x0b\x00\xf9\xfd\x03\x00\x91\xf3\x03\x00\xaa\x03\x38\xee\x97\x60\x12\x00\xb9\xf3\x0b\x40\xf9\xfd\x7b\xc2\xa8\xc0\x03\x5f\xd6";
/// The same function for armhf.
const ARM_INIT_TID: &[u8] = b"\x10\x4c\x2d\xe9\x08\xb0\x8d\xe2\x00\x40\xa0\xe1\xfd\x2a\xeb\xeb\x10\x00\x84\xe5\x10\x8c\xbd\xe8";

/// A configuration with settings that the sample does not have.
const SMALL: &str = "all = true\nperiod = 0x10\n[limits]\nsize = 1000000\n";

/// Mangled C++ names, one per line.
const CPP_NAMES: &str = "_ZN3art6Thread6AttachEPKcbP8_jobjectb
_ZNSt6vectorIjSaIjEE17_M_realloc_insertIJRKjEEEvN9__gnu_cxx17__normal_iteratorIPjS1_EEDpOT_
_ZN3art10VariantMapINS_18RuntimeArgumentMapENS_21RuntimeArgumentMapKeyEE6RemoveIbEEvRKNS2_IT_EE
_ZNSsC1IPcEET_S1_RKSaIcE
_ZGTtNSt13runtime_errorD0Ev
_ZThn152_N3art2gc5space11ZygoteSpace27RevokeAllThreadLocalBuffersEv
_ZZN3art9hiddenapi3runEvENKUlTyT_RKT0_E0_clIibEEDaS2_S5_
_ZN1AcvT_IiEEv.cold
_Z1fIiEDTplfp_Lm16EET_
_Z3sumIJilEEDaDpT_RAsZT__i
_ZNKR1AixEM1BKFvPDoFvzEE
";

/// A mapping as R8 writes it: classes, fields, methods, inlined methods, one method without a line, and metadata.
const MAPPING: &str = "# compiler: R8
# {\"id\":\"com.android.tools.r8.mapping\",\"version\":\"2.2\"}
org.example.Balls -> a.a:
# {\"id\":\"sourceFile\",\"fileName\":\"Balls.kt\"}
    int count -> a
    1:1:void <init>():12:12 -> <init>
    2:4:int org.example.Ball.size(int):40:42 -> a
    2:4:void draw(int,org.example.Ball[]):17 -> a
    5:5:boolean org.example.Outer$Inner.isEmpty():0:0 -> a
    5:5:void draw(int,org.example.Ball[]):19 -> a
    # {\"id\":\"com.android.tools.r8.synthesized\"}
    void old() -> b
org.example.Ball -> a.b:
";

/// Saves one file of each kind that can contain dex files.
fn save_containers(save: &impl Fn(&str, &str, &[u8]) -> Result, dex: &[u8]) -> Result {
    let files: [(&str, &[u8]); 2] = [("a.apk", dex), ("a.apk:classes2.dex", dex)];
    let compact = containers::compact(dex, (dex.len() + 8, 16));
    let jar = include_bytes!("../../../symbolizer/tests/fixtures/container/small.jar");
    save("container", "jar", jar)?;
    save("container", "optimized", &containers::optimized(dex))?;
    save(
        "container",
        "vdex-006",
        &containers::vdex("006", &[dex, dex], &[]),
    )?;
    let vdex = containers::vdex("027", &[dex, &compact], &[0x5a; 64]);
    save("container", "vdex-027", &vdex)?;
    save("container", "oat-039", &containers::oat("039", &files))?;
    Ok(())
}

/// The output of `perf script` for two samples.
const SCRIPT: &str = "\
# arch : x86_64
prog 12/13 [002] 5.000001: 250000 cycles:u:
\t55d0c01 inner+0x5 (/usr/bin/prog)
\t55d0c21 inlined (inlined)
\t55d0c41 main+0x25 (/usr/bin/prog (deleted))

prog 12/13 [002] 5.000003: 250000 cpu-clock: ffffffff81000010 do_idle ([kernel.kallsyms])
";
