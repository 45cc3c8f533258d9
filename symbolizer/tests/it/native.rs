//! Tests that functions and lines are found wherever debug information is kept, and never in a wrong file.

use crate::common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use object::{Object, ObjectSection};
use varid_symbolizer::elf::{DebugFiles, ElfSource, ElfSymbols, SymbolOrigin};

/// The small program in all its forms, compiled once. None if there is no compiler; the reason is printed.
fn programs() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER
        .get_or_init(|| {
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("native");
            let _ = std::fs::remove_dir_all(&folder);
            let made = Command::new(common::fixtures().join("native.sh"))
                .arg(&folder)
                .status()
                .is_ok_and(|status| status.success());
            if !made {
                eprintln!("not tried: native.sh could not build the program");
            }
            made.then_some(folder)
        })
        .as_deref()
}

/// All addresses of the functions `hidden`, `shown` and `main`.
fn addresses(program: &Path) -> Vec<u64> {
    let symbols = ElfSymbols::open(program).unwrap();
    let all = (0..0x20_000u64).filter(|&address| {
        symbols
            .lookup(address)
            .is_some_and(|symbol| ["hidden", "shown", "main"].contains(&&*symbol.raw))
    });
    let all: Vec<u64> = all.collect();
    assert!(all.len() > 50);
    all
}

/// The functions and lines at all these addresses.
fn frames(source: &ElfSource, addresses: &[u64]) -> Vec<String> {
    let frame = |address: &u64| {
        source
            .frames(*address)
            .into_iter()
            .map(|frame| {
                let line = frame
                    .location
                    .map(|line| (line.file.into_owned(), line.line));
                format!("{} {line:?};", frame.function)
            })
            .collect()
    };
    addresses.iter().map(frame).collect()
}

fn open(path: &Path, debug_files: &DebugFiles) -> ElfSource {
    ElfSource::open(path, debug_files).unwrap()
}

/// Returns true if a form of the program gives the same results as the complete one.
fn is_whole(folder: &Path, form: &str, debug_files: &DebugFiles) -> bool {
    let whole = folder.join("whole");
    let addresses = addresses(&whole);
    let expected = frames(&open(&whole, &DebugFiles::none()), &addresses);
    assert!(
        expected
            .iter()
            .any(|frames| frames.matches("native.c").count() == 3)
    );
    frames(&open(&folder.join(form), debug_files), &addresses) == expected
}

#[test]
fn a_debug_file_is_found_by_link_by_build_id_and_in_a_symbol_folder() {
    let Some(folder) = programs() else { return };
    let none = DebugFiles::none();
    assert!(is_whole(folder, "linked/beside", &none));
    assert!(is_whole(folder, "linked/within", &none));
    assert!(!is_whole(folder, "stripped", &none));
    assert!(is_whole(
        folder,
        "stripped",
        &DebugFiles::none().with_root(folder.join("root"))
    ));
    let symbols = DebugFiles::none().with_folder(folder.join("symbols"));
    assert!(is_whole(folder, "stripped", &symbols));
    assert!(symbols.missing().is_empty());
    let id = ElfSymbols::open(&folder.join("whole")).unwrap();
    assert!(
        symbols
            .file_with(id.build_id().unwrap())
            .unwrap()
            .ends_with("deep/unstripped")
    );
}

/// Like the level SYMBOL_TABLE in Android's native-debug-symbols.zip, and unstripped libraries that were built without `-g`.
#[test]
fn a_file_with_symbols_only_names_functions_unless_there_is_one_with_debug_information() {
    let Some(folder) = programs() else { return };
    let plain = addresses(&folder.join("plain"));
    let stripped = folder.join("plain.stripped");
    for named in [&folder.join("symbols-only"), folder] {
        let files = DebugFiles::none().with_folder(named);
        let expected = frames(&open(&folder.join("plain"), &DebugFiles::none()), &plain);
        assert_eq!(frames(&open(&stripped, &files), &plain), expected);
        assert_eq!(files.missing().len(), 1, "lines are missing");
    }
    let both = DebugFiles::none().with_folder(folder.join("both"));
    assert!(is_whole(folder, "stripped", &both));
}

#[test]
fn another_programs_debug_file_is_not_taken_and_the_right_one_named_as_missing() {
    let Some(folder) = programs() else { return };
    for (form, files) in [
        ("wrong/beside", DebugFiles::none()),
        (
            "stripped",
            DebugFiles::none().with_root(folder.join("lying")),
        ),
    ] {
        assert!(!is_whole(folder, form, &files));
        let missing = files.missing();
        assert_eq!(missing.len(), 1);
        assert!(missing[0].file.ends_with(form));
        let whole = ElfSymbols::open(&folder.join("whole")).unwrap();
        let id: String = whole
            .build_id()
            .unwrap()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(missing[0].build_id.as_deref(), Some(&*id));
        assert!(missing[0].to_string().contains("install its debug package"));
    }
}

#[test]
fn compressed_and_split_debug_information_is_read() {
    let Some(folder) = programs() else { return };
    for form in [
        "zlib",
        "zlib-gnu",
        "zstd",
        "split",
        "split-4",
        "package/split-4",
    ] {
        if !folder.join(form).exists()
            || form.starts_with("package") && !folder.join("package/split-4.dwp").exists()
        {
            eprintln!("not tried: {form}");
            continue;
        }
        assert!(is_whole(folder, form, &DebugFiles::none()), "{form}");
    }
}

#[test]
fn a_compressed_section_of_a_false_size_is_a_problem() {
    let Some(folder) = programs() else { return };
    // The lowest byte of the size: in the header of a section, or in big-endian order after `ZLIB`.
    for (form, section, size) in [("zlib", ".debug_info", 8), ("zlib-gnu", ".zdebug_info", 11)] {
        let Ok(mut bytes) = std::fs::read(folder.join(form)) else {
            eprintln!("not tried: {form}");
            continue;
        };
        let file = object::File::parse(&*bytes).unwrap();
        let mut sections = file.sections();
        let found = sections.find(|found| found.name() == Ok(section)).unwrap();
        let at = found.file_range().unwrap().0 as usize + size;
        bytes[at] = bytes[at].wrapping_add(1);
        let source = ElfSource::from_bytes(bytes, form, &DebugFiles::none()).unwrap();
        assert_eq!(source.debug_problem(), None, "before it is asked for");
        let _ = source.frames(0);
        let problem = source.debug_problem().unwrap();
        assert!(problem.starts_with(".debug_info: ") && problem.contains(" bytes of "));
    }
}

#[test]
fn a_split_file_with_many_names_is_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let mut source = String::from(
        "template <class T, int N> static inline __attribute__((always_inline)) int within(volatile int *x)\n\
         {\n    return *x + N;\n}\n\
         template <class T, int N> __attribute__((noinline)) int around(volatile int *x)\n\
         {\n    return within<T, N>(x) * 2;\n}\n",
    );
    let long = "long_".repeat(40);
    source += &format!("struct {long} {{}};\nint main(int x, char **)\n{{\n    int sum = 0;\n");
    for number in 0..600 {
        source += &format!("    sum += around<{long}, {number}>(&x);\n");
    }
    source += "    return sum;\n}\n";
    std::fs::write(folder.path().join("many.cpp"), source).unwrap();
    let mut answers = Vec::new();
    for arguments in [&["-o", "whole"][..], &["-gsplit-dwarf", "-o", "split"]] {
        let made = Command::new("g++")
            .current_dir(folder.path())
            .args(["-O2", "-g", "many.cpp"])
            .args(arguments)
            .status();
        if !made.is_ok_and(|status| status.success()) {
            eprintln!("not tried: there is no g++");
            return;
        }
        let path = folder.path().join(arguments[arguments.len() - 1]);
        let source = open(&path, &DebugFiles::none());
        let all: Vec<u64> = (0..0x40_000)
            .filter(|&at| {
                let symbol = source.symbols().lookup(at);
                symbol.is_some_and(|symbol| symbol.raw.starts_with("_Z6around"))
            })
            .collect();
        answers.push(frames(&source, &all));
    }
    let inlined = |frames: &&String| frames.contains("within");
    assert!(answers[0].iter().filter(inlined).count() >= 600);
    assert_eq!(answers[0], answers[1]);
}

#[test]
fn a_split_file_that_is_missing_is_named_and_lines_stay() {
    let Some(folder) = programs() else { return };
    let copy = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(folder.join("split")).unwrap();
    // The new name has the same length, so it can be patched in place.
    let name = b"split-native.dwo";
    let at = bytes
        .windows(name.len())
        .position(|part| part == name)
        .unwrap();
    let mut bytes = bytes;
    bytes[at..at + 5].copy_from_slice(b"XXXXX");
    let path = copy.path().join("split");
    std::fs::write(&path, bytes).unwrap();
    let files = DebugFiles::none();
    let source = open(&path, &files);
    let addresses = addresses(&path);
    assert!(
        frames(&source, &addresses)
            .iter()
            .all(|frames| frames.contains("native.c"))
    );
    assert!(files.missing()[0].file.ends_with("XXXXX-native.dwo"));
}

#[test]
fn parts_that_two_debug_files_share_are_found() {
    let Some(folder) = programs() else { return };
    if !folder.join("shared.dwz").exists() {
        eprintln!("not tried: there is no dwz");
        return;
    }
    let shared = std::fs::read(folder.join("shared-1.debug")).unwrap();
    let link = b".gnu_debugaltlink";
    assert!(shared.windows(link.len()).any(|part| part == link));
    let addresses = addresses(&folder.join("whole"));
    let whole = open(&folder.join("whole"), &DebugFiles::none());
    let source = open(&folder.join("shared-1.debug"), &DebugFiles::none());
    assert_eq!(frames(&source, &addresses), frames(&whole, &addresses));
    // If the shared part is missing, names in it are left out, and the file is reported.
    let alone = tempfile::tempdir().unwrap();
    let copy = alone.path().join("shared-1.debug");
    let dwz = folder.join("shared.dwz");
    let hidden = folder.join("shared.hidden");
    std::fs::rename(&dwz, &hidden).unwrap();
    std::fs::write(&copy, shared).unwrap();
    let files = DebugFiles::none();
    let source = open(&copy, &files);
    assert_eq!(frames(&source, &addresses).len(), addresses.len());
    std::fs::rename(&hidden, &dwz).unwrap();
    assert!(files.missing()[0].file.ends_with("shared.dwz"));
}

#[test]
fn symbols_of_a_mini_symbol_table_are_read() {
    let Some(folder) = programs() else { return };
    let symbols = ElfSymbols::open(&folder.join("mini.stripped")).unwrap();
    for address in addresses(&folder.join("whole")) {
        let symbol = symbols.lookup(address).unwrap();
        assert_eq!(symbol.origin, SymbolOrigin::Symbol);
        assert!(["hidden", "shown", "main"].contains(&&*symbol.raw));
    }
}

#[test]
fn functions_are_separated_without_an_eh_frame() {
    let Some(folder) = programs() else { return };
    for (whole, stripped) in [("frames", "frames.stripped"), ("thumb", "thumb.stripped")] {
        if !folder.join(whole).exists() {
            eprintln!("not tried: {whole}");
            continue;
        }
        let symbols = ElfSymbols::open(&folder.join(whole)).unwrap();
        let unnamed = ElfSymbols::open(&folder.join(stripped)).unwrap();
        let mut starts = Vec::new();
        for address in addresses(&folder.join(whole)) {
            let symbol = symbols.lookup(address).unwrap();
            let found = unnamed.lookup(address).unwrap();
            assert_eq!(found.origin, SymbolOrigin::Unnamed);
            assert!(found.start <= symbol.start && found.start.is_multiple_of(2));
            starts.push(found.start);
            // ARM's table has one entry for neighbours with equal unwind instructions.
            assert!(whole == "thumb" || found.start == symbol.start);
        }
        starts.dedup();
        assert!(starts.len() > 1, "{whole}");
    }
}

#[test]
fn thumb_functions_have_frames() {
    let Some(folder) = programs().filter(|folder| folder.join("thumb").exists()) else {
        return;
    };
    let source = open(&folder.join("thumb"), &DebugFiles::none());
    let addresses = addresses(&folder.join("thumb"));
    for frames in frames(&source, &addresses) {
        assert!(frames.contains("native.c"), "{frames}");
    }
}

#[test]
fn a_library_in_an_archive_answers_at_the_archives_offsets() {
    let Some(folder) = programs() else { return };
    let apk = folder.join("base.apk");
    let script = "import sys, zipfile\n\
        z = zipfile.ZipFile(sys.argv[1], 'w')\n\
        z.writestr('AndroidManifest.xml', 'x' * 5000, zipfile.ZIP_DEFLATED)\n\
        z.write(sys.argv[2], 'lib/x86_64/libwhole.so', zipfile.ZIP_STORED)\n\
        z.write(sys.argv[2], 'lib/x86_64/packed.so', zipfile.ZIP_DEFLATED)\n";
    let made = Command::new("python3")
        .args(["-c", script])
        .args([&apk, &folder.join("whole")])
        .status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("not tried: python3 makes no archive");
        return;
    }
    let whole = std::fs::read(folder.join("whole")).unwrap();
    let bytes = std::fs::read(&apk).unwrap();
    let start = bytes
        .windows(64)
        .position(|part| part == &whole[..64])
        .unwrap() as u64;
    let source = ElfSource::open_at(&apk, start + 0x1000, &DebugFiles::none()).unwrap();
    assert_eq!(source.symbols().module(), "libwhole.so");
    let plain = open(&folder.join("whole"), &DebugFiles::none());
    // Its code has file offsets that equal its addresses.
    for offset in addresses(&folder.join("whole")) {
        assert_eq!(
            source.frames_at_offset(start + offset),
            plain.frames_at_offset(offset)
        );
    }
    let open_entry = |name| ElfSource::open_entry(&apk, name, &DebugFiles::none());
    let named = open_entry("lib/x86_64/libwhole.so").unwrap();
    for offset in addresses(&folder.join("whole")) {
        assert_eq!(
            named.frames_at_offset(offset),
            plain.frames_at_offset(offset)
        );
    }
    let error = open_entry("lib/x86_64/packed.so").unwrap_err();
    assert!(
        error.to_string().contains("no uncompressed entry"),
        "{error}"
    );
    let error = ElfSource::open_at(&apk, 4, &DebugFiles::none()).unwrap_err();
    assert!(
        error.to_string().contains("no uncompressed entry"),
        "{error}"
    );
    assert!(ElfSource::open_at(&folder.join("whole"), 0, &DebugFiles::none()).is_ok());
}

/// The part of the debuginfod test that runs in a separate process, because its environment has the server's address.
#[test]
#[ignore = "run by the test of debuginfod"]
fn asks_debuginfod() {
    let folder = programs_made();
    let files = DebugFiles::system();
    println!("whole: {}", is_whole(&folder, "stripped", &files));
    println!("{:?}", files.missing());
}

/// The folder with the programs that the parent process has compiled.
fn programs_made() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("native")
}

fn child(urls: &str, cache: &Path, path: Option<&str>) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args([
            "--exact",
            "native::asks_debuginfod",
            "--ignored",
            "--nocapture",
        ])
        .env("DEBUGINFOD_URLS", urls)
        .env("DEBUGINFOD_CACHE_PATH", cache)
        .env("DEBUGINFOD_TIMEOUT", "20");
    if let Some(path) = path {
        child.env("PATH", path);
    }
    String::from_utf8_lossy(&child.output().unwrap().stdout).into_owned()
}

#[test]
fn debuginfod_is_queried_and_missing_files_are_named() {
    let Some(folder) = programs() else { return };
    let cache = tempfile::tempdir().unwrap();
    let said = child("http://127.0.0.1:9/", cache.path(), Some("/nonexistent"));
    assert!(said.contains("install the package debuginfod"), "{said}");

    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let server = Command::new("debuginfod")
        .args(["-F", "-d", ":memory:", "-p", &port.to_string()])
        .arg(folder.join("root"))
        .env("HOME", cache.path())
        .env_remove("DEBUGINFOD_URLS")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut server) = server else {
        eprintln!("not tried: there is no debuginfod");
        return;
    };
    // Ready when it has scanned the only file.
    let has_scanned = || {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
            return false;
        };
        let mut answer = String::new();
        let asked = stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n");
        asked.is_ok()
            && stream.read_to_string(&mut answer).is_ok()
            && answer.contains("scanned_files_total{source=\"file\"} 1")
            || answer.contains("found_debuginfo_total{source=\"files\"} 1")
    };
    /// Scanning takes about a second.
    const PATIENCE: Duration = Duration::from_secs(120);
    let begun = Instant::now();
    let mut scanned = false;
    while !scanned && matches!(server.try_wait(), Ok(None)) && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
        scanned = has_scanned();
    }
    let said = child(&format!("http://127.0.0.1:{port}/"), cache.path(), None);
    let _ = server.kill();
    let _ = server.wait();
    assert!(scanned, "the server does not come up");
    assert!(said.contains("whole: true\n[]"), "{said}");
    let empty = tempfile::tempdir().unwrap();
    let said = child("http://127.0.0.1:9/", empty.path(), None);
    assert!(
        said.contains("whole: false") && said.contains("debuginfod-find:"),
        "{said}"
    );
}
