//! Where do the seeds come from? This writes them, a folder of small valid inputs per target:
//! cargo run --release --example seeds seeds

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;
use varid_fuzz::manifest;
use varid_recording::{
    CpuMode, Mapping, Marker, PERF_DATA, REMAP_BASE, REMAP_SIZE, Reason, Record, Sample,
    SessionWriter,
};
use varid_symbolizer::dex::DexFile;
use varid_symbolizer::substitute::Substitute;
use varid_tunnel::abi::{
    CODE_BOOT, CODE_DEX, LAYOUT_SHADOW, Layout, MAGIC, RANGE_BODY, RANGE_VM, VERSION, VM_ART,
};
use varid_tunnel::builds;

#[path = "../../symbolizer/tests/common/containers.rs"]
mod containers;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Debian's android-libart 11 for x86_64.
const ART: [u8; 20] = [
    0xd3, 0xba, 0x28, 0x1c, 0x20, 0xe7, 0x25, 0x78, 0x04, 0x67, 0xfb, 0x41, 0xf5, 0x0e, 0x66, 0x90,
    0x82, 0xcc, 0xac, 0x64,
];

fn main() -> Result {
    let folder = std::env::args_os().nth(1).ok_or("usage: seeds FOLDER")?;
    let folder = Path::new(&folder);
    let save = |target: &str, name: &str, bytes: &[u8]| -> Result {
        std::fs::create_dir_all(folder.join(target))?;
        Ok(std::fs::write(folder.join(target).join(name), bytes)?)
    };
    let dex = include_bytes!("../../symbolizer/tests/fixtures/names.dex");
    let items = include_bytes!("../../symbolizer/tests/fixtures/items.dex");
    let compact = include_bytes!("../../symbolizer/tests/fixtures/items.cdex");
    save("dex", "names", dex)?;
    save("dex", "items", items)?;
    save("dex", "compact", compact)?;
    save("substitute", "names", dex)?;
    save("substitute", "items", items)?;
    let scratch = tempfile::tempdir()?;
    let substitute = scratch.path().join("substitute");
    Substitute::of_dex(&DexFile::parse(dex)?)?.write(&substitute)?;
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
    let art = builds::lookup(&ART)
        .ok_or("the build is known")?
        .layout(0, |_| Some((-8i64) as u64))?;
    let shadow = Layout {
        kind: LAYOUT_SHADOW,
        ..art
    };
    save("tunnel", "art", &tunnel(&art))?;
    save("tunnel", "shadow", &tunnel(&shadow))?;
    save("record", "record", &record())?;
    save("walk", "art", &walk_art(&art))?;
    save("walk", "shadow", &walk_shadow(&shadow))
}

/// A mangled name.
const NAMES: &str = "static int twice(int n) { return n * 2; }
int _ZN3org4mainEi(int n) { return twice(n) + 1; }
";

/// Functions inlined into each other.
const INLINED: &str = "static inline int twice(int n) { return n * 2 + (n >> 3); }
static inline int often(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += twice(i) ^ n; return sum; }
int first(int n) { return often(n) + 1; }
int second(int n) { return n > 3 ? often(n) : twice(n); }
";

/// What R8 writes: classes, fields, methods, inlined ones, one without a line, and what it says of itself.
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

fn run(program: &str, arguments: &[&OsStr]) -> Result {
    match Command::new(program).args(arguments).status()?.success() {
        true => Ok(()),
        false => Err(format!("{program} failed").into()),
    }
}

/// A shared library with symbols and unwind information.
fn compiled(scratch: &Path, source: &str, options: &[&str]) -> Result<Vec<u8>> {
    // Its folder is recorded: a short one, the same everywhere.
    std::fs::write(scratch.join("library.c"), source)?;
    let built = Command::new("cc")
        .current_dir(scratch)
        .args([
            "-shared",
            "-fPIC",
            "-nostdlib",
            "-fno-ident",
            "-Wl,-z,max-page-size=512",
            "-Wl,--build-id",
        ])
        .args(["-Wl,-z,noseparate-code", "-ffile-prefix-map=.=src"])
        .arg(format!("-fdebug-prefix-map={}=/src", scratch.display()))
        .args(options)
        .args(["-o", "library.so", "library.c"])
        .status()?;
    if !built.success() {
        return Err("cc cannot build a library".into());
    }
    Ok(std::fs::read(scratch.join("library.so"))?)
}

/// A library without symbols, with a debug link and some of its symbols in .gnu_debugdata.
fn stripped(scratch: &Path) -> Result<Vec<u8>> {
    compiled(scratch, INLINED, &["-O2", "-g"])?;
    let path = |name: &str| scratch.join(name).into_os_string();
    let (library, debug, mini, packed) = (
        path("library.so"),
        path("library.debug"),
        path("mini"),
        path("mini.xz"),
    );
    let option = |text: &str, file: &OsStr| {
        let mut option = OsString::from(text);
        option.push(file);
        option
    };
    let word = OsStr::new;
    run("objcopy", &[word("--only-keep-debug"), &library, &debug])?;
    run(
        "objcopy",
        &[
            word("-S"),
            word("--remove-section=.debug*"),
            word("--keep-symbol=first"),
            &debug,
            &mini,
        ],
    )?;
    run("xz", &[word("-kf"), &mini])?;
    run(
        "objcopy",
        &[
            word("-S"),
            &option("--add-gnu-debuglink=", &debug),
            &option("--add-section=.gnu_debugdata=", &packed),
            &library,
        ],
    )?;
    Ok(std::fs::read(library)?)
}

/// One file of each kind that holds dex files.
fn save_containers(save: &impl Fn(&str, &str, &[u8]) -> Result, dex: &[u8]) -> Result {
    let files: [(&str, &[u8]); 2] = [("a.apk", dex), ("a.apk:classes2.dex", dex)];
    let compact = containers::compact(dex, (dex.len() + 8, 16));
    let jar = include_bytes!("../../symbolizer/tests/fixtures/container/small.jar");
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

/// A jitdump file of a function with lines that is moved.
fn jitdump() -> Vec<u8> {
    let text = |bytes: Bytes, text: &str| {
        let bytes = text.bytes().fold(bytes, |bytes, byte| bytes.put([byte]));
        bytes.put([0])
    };
    let record = |kind: u32, time: u64, body: Bytes| {
        let head = Bytes::default()
            .u32s([kind, 16 + body.0.len() as u32])
            .u64s([time]);
        [head.0, body.0].concat()
    };
    let header = Bytes::default()
        .u32s([0x4a69_5444, 1, 40, 62, 0, 10])
        .u64s([1, 0]);
    let lines = text(
        Bytes::default().u64s([0x1000, 2, 0x1000]).u32s([17, 0]),
        "Balls.java",
    );
    let lines = text(lines.u64s([0x1008]).u32s([18, 0]), "\u{00ff}");
    let load = text(
        Bytes::default()
            .u32s([10, 10])
            .u64s([0x1000, 0x1000, 16, 1]),
        "Balls.draw",
    )
    .pad(40 + 11 + 16);
    let moved = Bytes::default()
        .u32s([10, 10])
        .u64s([0x2000, 0x1000, 0x2000, 16, 1]);
    [
        header.0,
        record(2, 5, lines),
        record(0, 6, load),
        record(1, 7, moved),
        record(3, 8, Bytes::default()),
    ]
    .concat()
}

/// ART's descriptor, an entry, and the ELF file that it leads to.
fn gdb_list(library: &[u8]) -> Vec<u8> {
    let descriptor = Bytes::default()
        .u32s([1, 0])
        .u64s([0, 0x40])
        .put(*b"Android2")
        .u32s([0, 56, 48, 6]);
    let entry = descriptor
        .pad(0x40)
        .u64s([0, 0, 0x80, library.len() as u64, 77])
        .u32s([2, 0]);
    [entry.pad(0x80).0, library.to_vec()].concat()
}

/// A recording of every kind of record.
fn session(folder: &Path) -> Result<Vec<u8>> {
    let mut writer = SessionWriter::create(folder, manifest())?;
    let (pid, tid) = (10, 10);
    let mapping = |start, len, path: &str, kernel| {
        let (pid, pgoff) = if kernel { (u32::MAX, start) } else { (pid, 0) };
        Record::Mapping(Mapping {
            time: 1,
            pid,
            tid,
            start,
            len,
            pgoff,
            kernel,
            path: path.into(),
            build_id: ART.to_vec(),
        })
    };
    let sample = |time, kernel: Vec<u64>, user: Vec<u64>| {
        let mode = if kernel.is_empty() {
            CpuMode::User
        } else {
            CpuMode::Kernel
        };
        Record::Sample(Sample {
            event: 0,
            time,
            pid,
            tid,
            cpu: 0,
            period: 1_000_000,
            original_ip: 0x2000,
            mode,
            kernel,
            user,
        })
    };
    let torn = Marker::Reason(Reason::TornFrames).address();
    for record in [
        mapping(
            0xffff_ffff_8100_0000,
            0x100_0000,
            "[kernel.kallsyms]_text",
            true,
        ),
        Record::Comm {
            time: 1,
            pid,
            tid,
            exec: true,
            name: "org.example".into(),
        },
        mapping(0x1000, 0x4000, "/nonexistent/app.elf", false),
        mapping(REMAP_BASE, REMAP_SIZE, "/nonexistent/remap.elf", false),
        sample(2, vec![], vec![0x2000, 0x3001]),
        Record::Fork {
            time: 3,
            pid: 11,
            ppid: pid,
            tid: 11,
            ptid: tid,
        },
        sample(4, vec![0xffff_ffff_8100_0010], vec![0x2000, torn + 1]),
        Record::Lost { time: 5, count: 3 },
        Record::Exit {
            time: 6,
            pid: 11,
            ppid: pid,
            tid: 11,
            ptid: tid,
        },
    ] {
        writer.write(&record)?;
    }
    // Not finished: perf's features would hold this machine's name.
    writer.flush()?;
    Ok(std::fs::read(folder.join(PERF_DATA))?)
}

/// Little-endian fields, one after the other.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn put<const N: usize>(mut self, bytes: [u8; N]) -> Self {
        self.0.extend(bytes);
        self
    }
    fn u16s<const N: usize>(self, values: [u16; N]) -> Self {
        values
            .into_iter()
            .fold(self, |bytes, value| bytes.put(value.to_le_bytes()))
    }
    fn u32s<const N: usize>(self, values: [u32; N]) -> Self {
        values
            .into_iter()
            .fold(self, |bytes, value| bytes.put(value.to_le_bytes()))
    }
    fn u64s<const N: usize>(self, values: [u64; N]) -> Self {
        values
            .into_iter()
            .fold(self, |bytes, value| bytes.put(value.to_le_bytes()))
    }
    fn pad(mut self, len: usize) -> Self {
        self.0.resize(len, 0);
        self
    }
    fn layout(self, layout: &Layout) -> Self {
        let l = layout;
        self.u32s([l.kind, l.flags])
            .u16s([l.machine])
            .put([l.word, l.reference, l.reg_pc, l.reg_frame])
            .put(l.reg_frame_bias.to_le_bytes())
            .put(l.tls_offset.to_le_bytes())
            .u16s([
                l.thread_tid,
                l.thread_fragment,
                l.fragment_quick,
                l.fragment_link,
                l.fragment_top,
            ])
            .u16s([
                l.frame_link,
                l.frame_method,
                l.frame_pc,
                l.frame_insns,
                l.frame_index,
            ])
            .u16s([l.method_class, l.method_code, l.method_index])
            .u16s([l.class_dex_cache, l.dex_cache_dex_file, l.dex_file_begin])
    }
}

/// A tunnel with two ranges, a dex file and a thread.
fn tunnel(layout: &Layout) -> Vec<u8> {
    const HEAD: u32 = 152;
    const SIZE: u32 = HEAD + 2 * 24 + 256 + 2 * 16;
    Bytes::default()
        .put(MAGIC)
        .u32s([VERSION, HEAD])
        .u64s([u64::from(SIZE), 1])
        .u32s([VM_ART, 1, 2, 0])
        .layout(layout)
        .u32s([HEAD, 24, 2, 2])
        .u32s([HEAD + 48, 256, 1, 1])
        .u32s([HEAD + 48 + 256, 16, 2, 1])
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
        .pad(SIZE as usize)
        .0
}

/// A record of two frames, a kernel callchain and some stack.
fn record() -> Vec<u8> {
    Bytes::default()
        .u64s([1])
        .u32s([10, 10, 0, 2])
        .u64s([1_000_000, 0x1000, 0x7ffe_0000])
        .u32s([8])
        .u16s([2, 1])
        .u64s([0; 16])
        .u64s([0x7ffe_1000, 0x9010, 2 << 56 | 0x7ffe_2000, 0x9040])
        .u64s([0xffff_ffff_8100_0000, 0x1122_3344_5566_7788])
        .0
}

/// What the target takes before the memory: the layout, base, tid, stack pointer, frame, pc.
fn walk_head(layout: &Layout, base: u64, sp: u64, frame: u64, pc: u64) -> Bytes {
    Bytes::default()
        .layout(layout)
        .u64s([base])
        .u32s([10])
        .u64s([sp, frame, pc])
}

/// A thread with a fragment of two frames, the memory repeated every 4 KiB.
fn walk_art(layout: &Layout) -> Vec<u8> {
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
    put(layout.frame_link, 0x400, 0x1500);
    put(layout.frame_method, 0x400, 0x5000);
    put(layout.frame_insns, 0x400, 0x9000);
    put(layout.frame_method, 0x500, 0x5020);
    put(layout.frame_pc, 0x500, 0x9040);
    bytes
}

/// A shadow stack of two records.
fn walk_shadow(layout: &Layout) -> Vec<u8> {
    walk_head(layout, 0, 0x7ffd_f000, 0, 0)
        .u32s([10, 16])
        .u64s([2, 0x9000, 0x7ffe_1000, 0x9040, 0x7ffe_0000])
        .0
}
