//! ART with the agent publishes correct data.
//!
//! Uses a real VM: `artvm` of the same build, or the one that VARID_ARTVM names.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::{compile, crate_dir, tunnels, wait_for};
use varid_tunnel::Description;
use varid_tunnel::abi::{CODE_BOOT, RANGE_BODY, RANGE_HANDLERS, RANGE_VM, VM_ART};
use varid_tunnel::builds;
use varid_tunnel::method::{CodeItem, MethodId, resolve_method};
use varid_tunnel::reader::read_tunnel;
use varid_tunnel::{Memory, ProcessMemory, TunnelError};

/// The programs that the tests run, built in a folder that is removed at the end.
struct Setup {
    dir: tempfile::TempDir,
    artvm: PathBuf,
}

impl Setup {
    /// `None` if there is no VM to test with.
    fn new() -> Option<Self> {
        // target/release/deps/live-... and target/release/artvm
        let here = std::env::current_exe().unwrap();
        let built = here.parent().and_then(Path::parent).unwrap().join("artvm");
        let artvm = match std::env::var_os("VARID_ARTVM") {
            Some(named) => PathBuf::from(named),
            None => built,
        };
        if !artvm.exists() || !artvm.with_file_name("boot.dex").exists() {
            eprintln!("not tested: no {} with its boot.dex", artvm.display());
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        build_agent(dir.path());
        let jars = [
            "smali",
            "smali-util",
            "dexlib2",
            "jcommander",
            "guava",
            "antlr3-runtime",
        ];
        let classpath = jars
            .map(|jar| format!("/usr/share/java/{jar}.jar"))
            .join(":");
        let smali = Command::new("java")
            .args(["-cp", &classpath, "org.jf.smali.Main", "assemble", "-o"])
            .arg(dir.path().join("app.dex"))
            .arg(crate_dir().join("tests/programs/Main.smali"))
            .status()
            .unwrap();
        assert!(smali.success());
        Some(Self { dir, artvm })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Builds a library that loads a dex file late.
    fn late_library(&self) -> PathBuf {
        let library = self.path("liblate.so");
        compile(
            &[crate_dir().join("tests/programs/late_dex.c")],
            &["-shared", "-fPIC"],
            &library,
        );
        library
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.artvm);
        command
            .arg("--dex")
            .arg(self.path("app.dex"))
            .env("VARID_ART_AGENT", self.path("libvarid_art.so"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        command
    }
}

/// A VM that is killed on drop, even if the test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn build_agent(out: &Path) {
    let built = Command::new(crate_dir().join("build.sh"))
        .arg(out)
        .status()
        .unwrap();
    assert!(built.success());
}

fn read(pid: u32) -> Result<Description, TunnelError> {
    let tunnels = tunnels(pid);
    assert_eq!(tunnels.len(), 1, "{tunnels:?}");
    let (start, len, _) = tunnels[0];
    read_tunnel(
        &ProcessMemory::new(varid_model::Pid::new(pid)),
        start,
        len,
        varid_model::Pid::new(pid),
    )
}

/// Returns the outermost frame's method and bytecode pc, by the layout, of a running thread. Errors are likely, because it
/// continues to run.
fn outermost(pid: u32, of: &Description, base: u64) -> Result<(MethodId, u64), TunnelError> {
    let memory = ProcessMemory::new(varid_model::Pid::new(pid));
    let (layout, rule) = (&of.layout, &of.layout.rules[0]);
    let word = |at: u64| memory.read_word(at, layout.word);
    let mut fragment = base + u64::from(layout.thread_fragment);
    let mut outermost = 0;
    for _ in 0..100 {
        let mut frame = word(fragment + u64::from(layout.fragment_top))?;
        while frame != 0 && frame > outermost {
            outermost = frame;
            frame = word(frame + u64::from(rule.frame_link))?;
        }
        fragment = word(fragment + u64::from(layout.fragment_link))?;
        if fragment == 0 {
            break;
        }
    }
    let method = word(outermost + u64::from(rule.frame_method))?;
    let pc = word(outermost + u64::from(rule.frame_pc))?;
    let id = resolve_method(layout, &memory, method)?;
    id.map(|id| (id, pc)).ok_or(TunnelError::Method {
        method,
        what: "runtime method",
    })
}

#[test]
fn layout_dex_files_and_methods_are_those_of_the_running_vm() {
    let Some(setup) = Setup::new() else { return };
    let late = setup.late_library();
    let child = setup
        .command()
        .arg("--lib")
        .arg(&late)
        .args(["--name", "org.example.tunnel"])
        .args(["org.example.tunnel.Main", "run", "-1"])
        .env("LATE_DEX", setup.path("app.dex"))
        .spawn()
        .unwrap();
    let mut vm = Running(child);
    let pid = vm.0.id();
    let mut line = String::new();
    BufReader::new(vm.0.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[0], "ready", "{line}");
    let hex = |word: &str| u64::from_str_radix(word, 16).unwrap();
    let (thread, kept, gone) = (hex(words[1]), hex(words[3]), hex(words[4]));

    let description = read(pid).unwrap();
    assert_eq!(description.vm, VM_ART);
    assert!(!description.inherited);
    // The loop of linked frames: the code before its handlers, the handlers, and the code that they share.
    let of_list = description.ranges.iter().filter(|range| range.rule == 0);
    let kinds = of_list.map(|range| range.kind);
    let body: Vec<_> = kinds
        .filter(|kind| [RANGE_BODY, RANGE_HANDLERS].contains(kind))
        .collect();
    assert_eq!(body, [RANGE_BODY, RANGE_HANDLERS, RANGE_BODY]);
    let named = |name: &str| {
        let mut codes = description.codes.iter();
        codes.find(|code| code.location.ends_with(name)).unwrap()
    };
    assert_eq!(named("/boot.dex").flags, CODE_BOOT);
    let late = description.codes.iter().find(|code| code.start == kept);
    assert_eq!(late.unwrap().flags, 0);
    assert!(description.codes.iter().all(|code| code.start != gone));
    let app = description
        .codes
        .iter()
        .find(|code| code.location.ends_with("/app.dex") && code.start != kept)
        .unwrap();
    let size = std::fs::metadata(setup.path("app.dex")).unwrap().len();
    assert_eq!((app.size, app.flags), (size, 0));
    assert_eq!(description.codes.len(), 3);

    let memory = ProcessMemory::new(varid_model::Pid::new(pid));
    let tid = memory.read_u32(thread + u64::from(description.layout.thread_tid));
    assert_eq!(tid.unwrap().to_string(), words[2]);
    // The thread may not have entered the method, or not have exported its pc yet.
    let (method, pc) = wait_for("a frame", || {
        let found = outermost(pid, &description, thread).ok();
        found.filter(|(_, pc)| *pc != 0)
    });
    assert_eq!(method.dex_begin, app.start);
    // Methods are sorted by name: leaf, run. The code follows the code item's 16 bytes.
    assert_eq!(method.method_index, 1);
    let code = app.start
        + match method.code {
            CodeItem::Offset(offset) => u64::from(offset) + 16,
            other => panic!("{other:?}"),
        };
    assert!((code..code + 24).contains(&pc), "{pc:#x} {code:#x}");
}

#[test]
fn a_vm_with_the_agent_ends_as_one_without() {
    let Some(setup) = Setup::new() else { return };
    let run = |no_dim: bool| {
        let output = setup
            .command()
            .args(if no_dim { &["--no-dim"][..] } else { &[] })
            .args(["--name", "org.example.tunnel"])
            .args(["org.example.tunnel.Main", "run", "1000"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        (output.stdout, output.stderr)
    };
    assert_eq!(run(true), run(false));
}

/// A zygote's child, which runs until it is killed. Its zygote then ends.
struct Forked(u32);

impl Drop for Forked {
    fn drop(&mut self) {
        // A separate program, so that no unsafe code is needed here.
        let _ = Command::new("kill").arg(self.0.to_string()).status();
    }
}

fn with_child(command: &mut Command) -> (Running, Forked) {
    let mut zygote = Running(command.arg("--zygote").spawn().unwrap());
    let parent = zygote.0.id();
    let input = zygote.0.stdin.as_mut().unwrap();
    writeln!(input, "org.example.child org.example.tunnel.Main run -1").unwrap();
    let children = format!("/proc/{parent}/task/{parent}/children");
    let child = wait_for("a child", || {
        std::fs::read_to_string(&children).ok()?.trim().parse().ok()
    });
    (zygote, Forked(child))
}

#[test]
fn a_zygotes_child_has_a_tunnel_of_its_own() {
    let Some(setup) = Setup::new() else { return };
    let (zygote, forked) = with_child(&mut setup.command());
    let (parent, child) = (zygote.0.id(), forked.0);
    // Its start-up may be in progress: until it is done, it has its parent's tunnel or none.
    let own = wait_for("the child's own tunnel", || {
        let (start, len, _) = tunnels(child).first()?.clone();
        let read = read_tunnel(
            &ProcessMemory::new(varid_model::Pid::new(child)),
            start,
            len,
            varid_model::Pid::new(child),
        )
        .ok()?;
        (!read.inherited).then_some(read)
    });
    let parents = read(parent).unwrap();
    assert_eq!((own.pid.get(), parents.pid.get()), (child, parent));
    assert_eq!(own.layout, parents.layout);
    assert_eq!(own.codes, parents.codes);
}

#[test]
fn a_zygotes_child_has_no_thread_of_ours_until_its_app_is_there() {
    let Some(setup) = Setup::new() else { return };
    let late = setup.late_library();
    for loads_dex in [false, true] {
        let mut command = setup.command();
        if loads_dex {
            command.arg("--lib").arg(&late);
            command.env("LATE_DEX", setup.path("app.dex"));
        }
        let (_zygote, forked) = with_child(&mut command);
        let child = forked.0;
        let has_name = || {
            let name = std::fs::read(format!("/proc/{child}/cmdline"));
            name.is_ok_and(|name| name.starts_with(b"org.example.child"))
        };
        let polls = || {
            let threads = std::fs::read_dir(format!("/proc/{child}/task")).unwrap();
            threads.flatten().any(|thread| {
                let comm = std::fs::read_to_string(thread.path().join("comm"));
                comm.is_ok_and(|comm| comm == "varid\n")
            })
        };
        // It sets its name when the fork returns.
        wait_for("the child's name", || has_name().then_some(()));
        if loads_dex {
            wait_for("the thread", || polls().then_some(()));
        } else {
            assert!(!polls());
        }
    }
}

#[test]
fn the_agent_publishes_nothing_where_it_knows_nothing() {
    let dir = tempfile::tempdir().unwrap();
    build_agent(dir.path());
    let program = dir.path().join("load_agent");
    compile(
        &[crate_dir().join("tests/programs/load_agent.c")],
        &["-ldl"],
        &program,
    );
    let library = dir.path().join("libart.so.0");
    let source = dir.path().join("empty.c");
    std::fs::write(&source, "int empty;\n").unwrap();
    let build_id = ["-shared", "-fPIC", "-Wl,--build-id=0x0123456789abcdef"];
    compile(&[source], &build_id, &library);
    for (library, line) in [
        (None, "varid: no libart.so in this process: no tunnel\n"),
        (
            Some(library),
            "varid: libart with build-id 0123456789abcdef is none of the known builds: no tunnel\n",
        ),
    ] {
        let output = Command::new(&program)
            .arg(dir.path().join("libvarid_art.so"))
            .args(library)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "0 0\n");
        assert_eq!(String::from_utf8_lossy(&output.stderr), line);
    }
}

/// The bounds of a library's functions in .eh_frame.
fn functions(library: &Path) -> Vec<(u64, u64)> {
    let output = Command::new("readelf")
        .arg("--debug-dump=frames")
        .arg(library)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let bounds = text.lines().filter(|line| line.contains(" FDE "));
    bounds
        .filter_map(|line| line.split_once("pc=")?.1.split_once(".."))
        .map(|(start, end)| {
            let hex = |text: &str| u64::from_str_radix(text.trim(), 16).unwrap();
            (hex(start), hex(end))
        })
        .collect()
}

#[test]
fn the_tables_ranges_are_whole_functions_of_the_installed_library() {
    let library = Path::new("/usr/lib/x86_64-linux-gnu/android/libart.so.0");
    if !library.exists() {
        eprintln!("not tested: there is no {}", library.display());
        return;
    }
    let build_id = [
        0xd3, 0xba, 0x28, 0x1c, 0x20, 0xe7, 0x25, 0x78, 0x04, 0x67, 0xfb, 0x41, 0xf5, 0x0e, 0x66,
        0x90, 0x82, 0xcc, 0xac, 0x64,
    ];
    let functions = functions(library);
    let ranges = builds::lookup(&build_id).unwrap().ranges(0);
    let mut parts = Vec::new();
    for range in ranges.iter().filter(|range| range.kind != RANGE_VM) {
        parts.push((range.start, range.end));
        // The loop's prologue, body and epilogue are one function. nterp's ranges are several consecutive functions.
        let whole = |part: &(u64, u64)| {
            let mut end = part.0;
            while end < range.end
                && let Some(next) = functions
                    .iter()
                    .find(|(start, past)| *start == end && *past > end)
            {
                end = next.1;
            }
            end == range.end
        };
        if let Some(first) = parts.iter().position(whole) {
            assert!(
                parts
                    .windows(2)
                    .skip(first)
                    .all(|pair| pair[0].1 == pair[1].0)
            );
            parts.truncate(first);
        }
    }
    assert_eq!(parts, [], "no function ends where these do");
}
