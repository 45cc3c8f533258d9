//! Seeds for the symbol readers: files as compilers and a JIT write them.

use crate::Result;
use crate::bytes::Bytes;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

/// A mangled name.
pub const NAMES: &str = "static int twice(int n) { return n * 2; }
int _ZN3org4mainEi(int n) { return twice(n) + 1; }
";

/// Functions inlined into each other.
pub const INLINED: &str = "static inline int twice(int n) { return n * 2 + (n >> 3); }
static inline int often(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += twice(i) ^ n; return sum; }
int first(int n) { return often(n) + 1; }
int second(int n) { return n > 3 ? often(n) : twice(n); }
";

fn run(program: &str, arguments: &[&OsStr]) -> Result {
    match Command::new(program).args(arguments).status()?.success() {
        true => Ok(()),
        false => Err(format!("{program} failed").into()),
    }
}

/// Compiles a shared library with symbols and unwind information.
pub fn compiled(scratch: &Path, source: &str, options: &[&str]) -> Result<Vec<u8>> {
    // The debug information contains the folder, so it is short and the same on every machine.
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

/// Makes a library without symbols, with a debug link and some of its symbols in .gnu_debugdata.
pub fn stripped(scratch: &Path) -> Result<Vec<u8>> {
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

/// Makes a jitdump file with a function that has lines and is moved.
pub fn jitdump() -> Vec<u8> {
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

/// Makes GDB's JIT descriptor as in ART, an entry, and the ELF file of the entry.
pub fn gdb_list(library: &[u8]) -> Vec<u8> {
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
