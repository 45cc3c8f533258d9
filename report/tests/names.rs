//! Are lines, inlined functions and files found that others would find, and no other ones?
#![allow(missing_docs)]

mod common;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use common::{APP, DRAW, Fixture, LIBFOO, RUN};
use varid_recording::{Host, Mapping, Record, SessionReader};
use varid_report::{By, Error, Format, Lack, Names, Options, Pattern, Profile, Table, View};

/// Where the library of these tests is mapped.
const NATIVE: u64 = 0x7500_0000_0000;

/// Functions that are inlined into others, one that calls, one that recurs.
const SOURCE: &str = "\
static volatile int sink;
static inline __attribute__((always_inline)) void store(int n) {
    sink = n;
}
static inline __attribute__((always_inline)) int twice(int n) {
    store(n);
    return n * 2;
}
__attribute__((noinline)) int leaf(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += twice(i);
    return sum;
}
static __attribute__((noinline)) int hidden(int n) {
    sink = n;
    return n ? hidden(n - 1) + leaf(n) : 0;
}
int entry(int n) {
    return hidden(twice(n));
}
";

/// Runs a tool; these tests need a C compiler and binutils.
fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// A session with a sample at each byte of the library's functions; the library is elsewhere.
struct Native {
    fixture: Fixture,
    /// The library, with debug information.
    library: PathBuf,
    /// Where the recording says that it was.
    recorded: PathBuf,
    addresses: Vec<u64>,
}

impl Native {
    fn new(with_build_id: bool) -> Self {
        let mut fixture = Fixture::new();
        let dir = fixture.dir.path().to_owned();
        let (source, library) = (dir.join("native.c"), dir.join("built.so"));
        fs::write(&source, SOURCE).unwrap();
        run(Command::new("cc")
            .args(["-O2", "-g", "-fPIC", "-shared", "-Wl,--build-id=sha1", "-o"])
            .args([&library, &source]));
        let recorded = dir.join("gone/libnative.so");
        let build_id = run(Command::new("readelf").arg("-n").arg(&library))
            .lines()
            .find_map(|line| Some(line.split_once("Build ID: ")?.1.trim().to_owned()))
            .unwrap();
        let build_id: Vec<u8> = (0..build_id.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&build_id[at..at + 2], 16).unwrap())
            .collect();
        let time = fixture.tick();
        fixture.write(&Record::Mapping(Mapping {
            time,
            pid: 100,
            tid: 100,
            start: NATIVE,
            len: 0x10_0000,
            pgoff: 0,
            kernel: false,
            path: recorded.clone(),
            build_id: if with_build_id { build_id } else { Vec::new() },
        }));
        // Text is mapped where it lies in the file: so are addresses and offsets here.
        let addresses: Vec<u64> = run(Command::new("nm").arg("-S").arg(&library))
            .lines()
            .filter_map(|line| {
                let words: Vec<_> = line.split_whitespace().collect();
                let [start, size, _, "leaf" | "hidden" | "entry"] = words[..] else {
                    return None;
                };
                let hex = |word| u64::from_str_radix(word, 16).unwrap();
                Some(hex(start)..hex(start) + hex(size))
            })
            .flatten()
            .collect();
        assert!(addresses.len() > 60);
        for address in &addresses {
            fixture.samples(1, (100, 100), &[NATIVE + address, RUN + 1]);
        }
        fixture.writer.finish().unwrap();
        Self {
            fixture,
            library,
            recorded,
            addresses,
        }
    }

    fn profile(&self, names: Names) -> Profile {
        self.fixture.profile(&options(names))
    }
}

fn options(names: Names) -> Options {
    Options {
        names,
        ..Options::default()
    }
}

fn by(by: By) -> View {
    View {
        table: Table::By(by),
        ..View::default()
    }
}

fn json(profile: &Profile, view: &View) -> serde_json::Value {
    let mut out = Vec::new();
    varid_report::render(profile, view, Format::Json, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

/// Symbol, whether it is inlined, file and line: self and total.
type Lines = BTreeMap<(String, bool, String, u64), (u64, u64)>;

/// The rows of the library.
fn lines(profile: &Profile) -> Lines {
    lines_of(profile, "libnative.so")
}

/// The rows of an image.
fn lines_of(profile: &Profile, image: &str) -> Lines {
    let report = json(profile, &by(By::Line));
    let rows = report["rows"].as_array().unwrap().iter();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    rows.filter(|row| row["image"] == image)
        .map(|row| {
            let key = (
                text(&row["symbol"]),
                row["inlined"] == true,
                text(&row["file"]),
                row["line"].as_u64().unwrap_or(0),
            );
            let share = (
                row["self"].as_u64().unwrap(),
                row["total"].as_u64().unwrap(),
            );
            (key, share)
        })
        .collect()
}

/// What addr2line says of the same addresses.
fn lines_by_addr2line(library: &Path, addresses: &[u64]) -> Lines {
    let mut found = Lines::new();
    for address in addresses {
        let printed = run(Command::new("addr2line")
            .args(["-fie"])
            .arg(library)
            .arg(format!("{address:#x}")));
        let printed: Vec<_> = printed.lines().collect();
        let frames = printed.len() / 2;
        for (depth, frame) in printed.chunks(2).enumerate() {
            let (file, line) = frame[1].split_once(':').unwrap();
            // 12 (discriminator 3)
            let line = line.split(' ').next().unwrap().parse().unwrap();
            let key = (
                frame[0].to_owned(),
                depth + 1 < frames,
                file.to_owned(),
                line,
            );
            let share = found.entry(key).or_default();
            share.0 += u64::from(depth == 0);
            share.1 += 1;
        }
    }
    found
}

fn all(symbols: &Path) -> Names {
    Names {
        symbols: vec![symbols.to_owned()],
        inlined: true,
        lines: true,
        ..Names::default()
    }
}

#[test]
fn lines_and_inlined_functions_are_those_of_addr2line() {
    let native = Native::new(true);
    let found = lines(&native.profile(all(native.fixture.dir.path())));
    let expected = lines_by_addr2line(&native.library, &native.addresses);
    assert_eq!(found, expected);
    assert!(
        found
            .keys()
            .any(|(name, inlined, ..)| name == "store" && *inlined)
    );
}

#[test]
fn without_inlining_a_line_stays_and_its_function_is_the_one_that_is_there() {
    let native = Native::new(true);
    let names = Names {
        inlined: false,
        ..all(native.fixture.dir.path())
    };
    let found = lines(&native.profile(names));
    assert!(
        found
            .keys()
            .all(|(name, inlined, ..)| !inlined && name != "store")
    );
    let expected = lines_by_addr2line(&native.library, &native.addresses);
    let own = |lines: &Lines| {
        let mut own = BTreeMap::new();
        for ((_, _, file, line), (samples, _)) in lines {
            *own.entry((file.clone(), *line)).or_insert(0) += samples;
        }
        own.retain(|_, samples| *samples > 0);
        own
    };
    assert_eq!(own(&found), own(&expected));
}

#[test]
fn the_call_graph_marks_what_is_inlined() {
    let native = Native::new(true);
    let profile = native.profile(Names {
        lines: false,
        ..all(native.fixture.dir.path())
    });
    let view = View {
        table: Table::Callgraph,
        symbol: Some(Pattern::new("twice")),
        ..View::default()
    };
    let report = json(&profile, &view);
    let [twice] = &report["rows"].as_array().unwrap()[..] else {
        panic!("{report}");
    };
    assert_eq!(twice["inlined"], true);
    let names = |calls: &str| -> Vec<String> {
        let calls = twice[calls].as_array().unwrap().iter();
        let name = |call: &serde_json::Value| call["symbol"].as_str().unwrap().to_owned();
        let mut names: Vec<_> = calls.map(name).collect();
        names.sort();
        names
    };
    assert_eq!(names("callers"), ["entry", "leaf"]);
    assert_eq!(names("callees"), ["store"]);
    let mut text = Vec::new();
    varid_report::render(&profile, &view, Format::Text, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("twice (inlined)"), "{text}");
    assert!(text.contains("  store (inlined)"), "{text}");
}

#[test]
fn names_do_not_depend_on_lines_and_totals_do_not_on_inlining() {
    let native = Native::new(true);
    let shares = |names: Names| {
        let report = json(&native.profile(names), &by(By::Symbol));
        let rows = report["rows"].as_array().unwrap().clone();
        let row = |row: &serde_json::Value| {
            let own = row["self"].as_u64().unwrap();
            let total = row["total"].as_u64().unwrap();
            (row["symbol"].as_str().unwrap().to_owned(), (own, total))
        };
        rows.iter().map(row).collect::<BTreeMap<_, _>>()
    };
    let folder = native.fixture.dir.path();
    let plain = shares(Names {
        symbols: vec![folder.to_owned()],
        ..Names::default()
    });
    let (lines, inlined) = (
        shares(Names {
            inlined: false,
            ..all(folder)
        }),
        shares(all(folder)),
    );
    assert_eq!(plain, lines);
    for (name, (own, total)) in &plain {
        assert_eq!(inlined[name].1, *total, "{name}");
        assert!(inlined[name].0 <= *own, "{name}");
    }
    assert!(inlined.contains_key("twice") && !plain.contains_key("twice"));
}

/// The only thing that is missing of the library.
fn missing(profile: &Profile, path: &Path) -> Option<(Lack, u64, String)> {
    let of_it = profile
        .missing
        .iter()
        .filter(|missing| missing.file == path);
    let mut of_it =
        of_it.map(|missing| (missing.lack, missing.weight.samples, missing.why.clone()));
    let found = of_it.next();
    assert!(of_it.next().is_none());
    found
}

#[test]
fn a_library_that_is_gone_is_named_and_found_again_in_each_place() {
    let native = Native::new(true);
    let samples = native.addresses.len() as u64;
    let gone = native.profile(Names::default());
    let (lack, weight, why) = missing(&gone, &native.recorded).unwrap();
    assert_eq!((lack, weight), (Lack::File, samples));
    assert!(why.contains("No such file"), "{why}");
    assert_eq!(
        gone.missing[0].file, native.recorded,
        "what helps most comes first"
    );
    assert_eq!(gone.missing[0].build_id.len(), 40);

    let dir = native.fixture.dir.path();
    let expected = lines_by_addr2line(&native.library, &native.addresses);
    // As the recorded machine's file system.
    let symfs = dir.join("symfs");
    let inside = symfs.join(native.recorded.strip_prefix("/").unwrap());
    fs::create_dir_all(inside.parent().unwrap()).unwrap();
    fs::copy(&native.library, &inside).unwrap();
    let names = Names {
        symfs: Some(symfs),
        inlined: true,
        lines: true,
        ..Names::default()
    };
    assert_eq!(lines(&native.profile(names.clone())), expected);
    // Stripped there, with its debug information in a folder of files with any names.
    let folder = dir.join("symbols/deep");
    fs::create_dir_all(&folder).unwrap();
    run(Command::new("objcopy")
        .arg("--only-keep-debug")
        .args([&native.library, &folder.join("any.debug")]));
    run(Command::new("strip").arg(&inside));
    let stripped = native.profile(names.clone());
    let lack = missing(&stripped, &native.recorded).map(|(lack, ..)| lack);
    assert_eq!(lack, Some(Lack::Lines));
    let names = Names {
        symbols: vec![dir.join("symbols")],
        ..names
    };
    let whole = native.profile(names);
    assert_eq!(lines(&whole), expected);
    assert_eq!(missing(&whole, &native.recorded), None);
    // Both in that folder.
    fs::rename(&inside, dir.join("symbols/libnative.so")).unwrap();
    let whole = native.profile(all(&dir.join("symbols")));
    assert_eq!(lines(&whole), expected);
}

#[test]
fn a_stripped_library_has_names_of_an_unstripped_copy() {
    let native = Native::new(true);
    let dir = native.fixture.dir.path();
    let symfs = dir.join("symfs");
    let inside = symfs.join(native.recorded.strip_prefix("/").unwrap());
    fs::create_dir_all(inside.parent().unwrap()).unwrap();
    run(Command::new("strip")
        .args(["-o"])
        .args([&inside, &native.library]));
    let names = |symbols: &[PathBuf]| Names {
        symfs: Some(symfs.clone()),
        symbols: symbols.to_vec(),
        ..Names::default()
    };
    let has = |profile: &Profile, name: &str| profile.symbols.iter().any(|s| s.name == name);
    let stripped = native.profile(names(&[]));
    assert!(has(&stripped, "leaf") && !has(&stripped, "hidden"));
    let (lack, ..) = missing(&stripped, &native.recorded).unwrap();
    assert_eq!(lack, Lack::Names);
    // With symbols only: no debug information.
    let folder = dir.join("unstripped");
    fs::create_dir(&folder).unwrap();
    run(Command::new("strip")
        .args(["-g", "-o"])
        .args([&folder.join("lib.so"), &native.library]));
    let whole = native.profile(names(&[folder]));
    assert!(has(&whole, "leaf") && has(&whole, "hidden"));
    assert_eq!(missing(&whole, &native.recorded), None);
}

#[test]
fn another_build_is_used_from_nowhere() {
    let native = Native::new(true);
    let dir = native.fixture.dir.path();
    let other = dir.join("other");
    let inside = other.join(native.recorded.strip_prefix("/").unwrap());
    fs::create_dir_all(inside.parent().unwrap()).unwrap();
    fs::write(dir.join("native.c"), SOURCE.replace("n * 2", "n * 3")).unwrap();
    run(Command::new("cc")
        .args(["-O2", "-g", "-fPIC", "-shared", "-Wl,--build-id=sha1", "-o"])
        .args([&inside, &dir.join("native.c")]));
    let profile = native.profile(Names {
        symfs: Some(other.clone()),
        symbols: vec![other],
        ..Names::default()
    });
    assert!(!profile.symbols.iter().any(|symbol| symbol.name == "leaf"));
    let (lack, _, why) = missing(&profile, &native.recorded).unwrap();
    assert_eq!(lack, Lack::File);
    assert!(why.contains("build-id"), "{why}");
}

#[test]
fn a_file_without_build_id_is_believed_on_the_machine_of_the_recording_only() {
    let native = Native::new(false);
    fs::create_dir(native.recorded.parent().unwrap()).unwrap();
    fs::copy(&native.library, &native.recorded).unwrap();
    let elsewhere = native.profile(Names::default());
    assert!(!elsewhere.symbols.iter().any(|symbol| symbol.name == "leaf"));
    let (_, _, why) = missing(&elsewhere, &native.recorded).unwrap();
    assert!(why.contains("the recording is another one's"), "{why}");
    // The user may say so, and the machine may be the one.
    let root = native.fixture.dir.path().join("root");
    let inside = root.join(native.recorded.strip_prefix("/").unwrap());
    fs::create_dir_all(inside.parent().unwrap()).unwrap();
    fs::copy(&native.library, &inside).unwrap();
    let told = native.profile(Names {
        symfs: Some(root),
        ..Names::default()
    });
    assert!(told.symbols.iter().any(|symbol| symbol.name == "leaf"));
    let path = native.fixture.session.join("session.json");
    let text = fs::read_to_string(&path).unwrap();
    let mut manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    manifest["host"] = serde_json::to_value(Host::this_machine()).unwrap();
    fs::write(&path, manifest.to_string()).unwrap();
    let here = native.profile(Names::default());
    assert!(here.symbols.iter().any(|symbol| symbol.name == "leaf"));
}

#[test]
fn the_kernel_has_lines_wherever_it_was_loaded() {
    let mut fixture = Fixture::new();
    let dir = fixture.dir.path().to_owned();
    let (source, vmlinux) = (dir.join("kernel.c"), dir.join("vmlinux"));
    fs::write(&source, SOURCE.replace("entry", "_start")).unwrap();
    run(Command::new("cc")
        .args(["-O2", "-g", "-nostdlib", "-static", "-no-pie", "-fno-pie"])
        .args(["-mcmodel=kernel", "-Wl,--build-id=0x1234567890"])
        .args(["-Wl,-Ttext-segment=0xffffffff80fff000"])
        .args(["-Wl,--section-start=.text=0xffffffff81000000"])
        .args(["-Wl,--defsym=_text=0xffffffff81000000", "-o"])
        .args([&vmlinux, &source]));
    let moved = 0x1d20_0000;
    let mut symbols = String::new();
    let mut addresses = Vec::new();
    for line in run(Command::new("nm").arg("-S").arg(&vmlinux)).lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if let [start, size, _, name @ ("leaf" | "hidden" | "_start")] = words[..] {
            let hex = |word| u64::from_str_radix(word, 16).unwrap();
            symbols += &format!("{:x}\t{size}\t{name}\t\n", hex(start) + moved);
            addresses.extend(hex(start)..hex(start) + hex(size));
        }
    }
    fs::write(fixture.writer.symbols().join("kernel.sym"), symbols).unwrap();
    let start = common::KERNEL + moved;
    let time = fixture.tick();
    fixture.write(&Record::Mapping(Mapping {
        time,
        pid: u32::MAX,
        tid: 0,
        start,
        len: 0x10_0000,
        pgoff: start,
        kernel: true,
        path: "[kernel.kallsyms]_text".into(),
        build_id: vec![0x12, 0x34, 0x56, 0x78, 0x90],
    }));
    for address in &addresses {
        fixture.kernel_samples(1, (100, 100), &[address + moved], &[RUN]);
    }
    fixture.writer.finish().unwrap();
    let names = |vmlinux: Option<PathBuf>| Names {
        vmlinux,
        inlined: true,
        lines: true,
        ..Names::default()
    };
    let profile = fixture.profile(&options(names(Some(vmlinux.clone()))));
    let expected = lines_by_addr2line(&vmlinux, &addresses);
    assert_eq!(lines_of(&profile, "[kernel]"), expected);
    let without = fixture.profile(&options(names(None)));
    let note = without.notes.iter().find(|note| note.contains("--vmlinux"));
    assert!(note.is_some_and(|note| note.contains("1234567890")));
    // Another kernel's is not used.
    let other = fixture.profile(&options(names(Some(fixture.dir.path().join("libfoo.so")))));
    assert!(other.notes[0].contains("build-id"), "{:?}", other.notes);
    assert!(lines_of(&other, "[kernel]").keys().all(|key| key.3 == 0));
}

#[test]
fn a_mapping_file_gives_the_apps_methods_their_names_back() {
    let mut fixture = Fixture::new();
    fixture.samples(3, (100, 100), &[DRAW, RUN + 1]);
    fixture.samples(1, (100, 100), &[LIBFOO + 0x1010, APP + 0x1211]);
    fixture.writer.finish().unwrap();
    let path = fixture.dir.path().join("mapping.txt");
    let mapping = "\
com.acme.Ball -> org.example.Balls:
    void paint() -> draw
    int fibonacci(int) -> fib
java.lang.Wrong -> java.lang.Math:
    double no(double) -> sqrt
";
    fs::write(&path, mapping).unwrap();
    let names = Names {
        mapping: Some(path.clone()),
        ..Names::default()
    };
    let profile = fixture.profile(&options(names.clone()));
    for name in ["paint", "draw"] {
        let view = View {
            symbol: Some(Pattern::new(format!("*.{name}"))),
            ..by(By::Symbol)
        };
        let report = json(&profile, &view);
        let [row] = &report["rows"].as_array().unwrap()[..] else {
            panic!("{report}");
        };
        assert_eq!(row["symbol"], "com.acme.Ball.paint");
        assert_eq!(row["recorded_symbol"], "org.example.Balls.draw");
        assert_eq!(row["self"], 3);
    }
    let found: Vec<_> = profile
        .symbols
        .iter()
        .map(|symbol| symbol.name.as_str())
        .collect();
    assert!(found.contains(&"com.acme.Ball.run"), "{found:?}");
    assert!(found.contains(&"com.acme.Ball.fibonacci"), "{found:?}");

    // R8 has bytecode offsets in place of lines where it left lines out: DRAW is at unit 8.
    let mapping = "\
# compiler: R8
com.acme.Ball -> org.example.Balls:
    0:7:void before():10 -> draw
    8:20:void com.acme.Inner.paint():33 -> draw
    8:20:void after():11 -> draw
";
    fs::write(&path, mapping).unwrap();
    let profile = fixture.profile(&options(Names {
        lines: true,
        inlined: true,
        ..names.clone()
    }));
    let report = json(&profile, &by(By::Line));
    let row = |symbol: &str| {
        let mut rows = report["rows"].as_array().unwrap().iter();
        rows.find(|row| row["symbol"] == symbol).unwrap()
    };
    let inner = row("com.acme.Inner.paint");
    assert_eq!((&inner["self"], &inner["line"]), (&3.into(), &33.into()));
    assert_eq!(row("com.acme.Ball.after")["line"], 11);
    // Not in the file: its offset is no line.
    assert!(row("com.acme.Ball.run")["line"].is_null());

    fs::write(&path, "no mapping\n").unwrap();
    let session = SessionReader::open(&fixture.session).unwrap();
    let error = Profile::from_session(&session, &options(names.clone())).unwrap_err();
    assert!(matches!(error, Error::Symbols { .. }), "{error}");
    assert!(error.to_string().contains("line 1"), "{error}");
    fs::remove_file(&path).unwrap();
    let error = Profile::from_session(&session, &options(names)).unwrap_err();
    assert!(matches!(error, Error::File { .. }), "{error}");
    let error = Profile::from_session(&session, &options(all(&path))).unwrap_err();
    assert!(matches!(error, Error::Folder { .. }), "{error}");
}
