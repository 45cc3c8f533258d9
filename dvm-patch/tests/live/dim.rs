//! dim publishes what happens, as seen from outside, and needs no other process for it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::support::{compile, crate_dir, dim, tunnels};
use varid_tunnel::Description;
use varid_tunnel::abi::{self, Shadow, ShadowRecord};
use varid_tunnel::layout::validate_layout;
use varid_tunnel::reader::read_tunnel;
use varid_tunnel::{Memory, ProcessMemory, TunnelError};

/// A VM that carries out commands.
pub struct Vm {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The process that answered last: the child, after a fork.
    pub pid: u32,
}

impl Vm {
    pub fn start(dir: &Path) -> Self {
        let program = dir.join("events");
        let mut sources = dim();
        sources.push(crate_dir().join("tests/programs/events.c"));
        compile(&sources, &["-std=gnu11", "-pthread"], &program);
        Self::run(&mut Command::new(&program))
    }

    /// Starts it with a small file system mounted at a folder.
    pub fn start_beside(dir: &Path, folder: &Path, bytes: u64) -> Self {
        drop(Self::start(dir));
        let script = "mount -t tmpfs -o size=$3 none $1 && exec $2";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, "sh"]);
        command.arg(folder).arg(dir.join("events"));
        Self::run(command.arg(bytes.to_string()))
    }

    fn run(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            pid: child.id(),
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    pub fn tell(&mut self, command: &str) -> u64 {
        writeln!(self.input, "{command}").unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        let mut words = answer.split_whitespace();
        assert_eq!(words.next(), Some("ok"), "{command}: {answer}");
        self.pid = words.next().unwrap().parse().unwrap();
        u64::from_str_radix(words.next().unwrap(), 16).unwrap()
    }

    pub fn read(&self) -> Description {
        let tunnels = tunnels(self.pid);
        assert_eq!(tunnels.len(), 1, "{tunnels:?}");
        let (start, len, _) = tunnels[0];
        read_tunnel(
            &ProcessMemory::new(varid_model::Pid::new(self.pid)),
            start,
            len,
            varid_model::Pid::new(self.pid),
        )
        .unwrap()
    }

    fn codes(&self) -> Vec<(u64, u64, String)> {
        self.read()
            .codes
            .into_iter()
            .map(|code| (code.start, code.size, code.location))
            .collect()
    }

    pub fn shadow(&self, base: u64) -> (u32, u64, Vec<u64>) {
        let memory = ProcessMemory::new(varid_model::Pid::new(self.pid));
        let tid = memory.read_u32(base).unwrap();
        let capacity = memory.read_u32(base + 4).unwrap();
        let depth = memory.read_word(base + 8, 8).unwrap();
        let record = |index| {
            let at = base + size_of::<Shadow>() as u64 + index * size_of::<ShadowRecord>() as u64;
            let sp = memory.read_word(at + 8, 8).unwrap();
            assert_ne!(sp, 0);
            memory.read_word(at, 8).unwrap()
        };
        let methods = (0..depth.min(u64::from(capacity))).map(record).collect();
        (tid, depth, methods)
    }

    pub fn end(self) {
        let Self {
            mut child, input, ..
        } = self;
        drop(input);
        assert!(child.wait().unwrap().success());
    }
}

fn expected(codes: &[(u64, u64, &str)]) -> Vec<(u64, u64, String)> {
    codes
        .iter()
        .map(|(start, size, name)| (*start, *size, (*name).to_owned()))
        .collect()
}

#[test]
fn dex_files_come_go_and_replace_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let mut vm = Vm::start(dir.path());
    assert_eq!(vm.tell("init"), 1);
    assert_eq!(vm.tell("init"), 0, "a second tunnel");
    vm.tell("dex 10000 1000 a");
    vm.tell("dex 20000 1000 b");
    vm.tell("dex 10000 1000 told-again");
    let both = expected(&[(0x10000, 0x1000, "a"), (0x20000, 0x1000, "b")]);
    assert_eq!(vm.codes(), both);
    vm.tell("dex 10800 1000 over-a");
    let replaced = expected(&[(0x10800, 0x1000, "over-a"), (0x20000, 0x1000, "b")]);
    assert_eq!(vm.codes(), replaced);
    vm.tell("gone 20000");
    vm.tell("gone 20001");
    vm.tell("dex 30000 0 empty");
    vm.tell("dex fffffffffffff000 2000 wraps");
    assert_eq!(vm.codes(), expected(&[(0x10800, 0x1000, "over-a")]));
    let long = "x".repeat(400);
    vm.tell(&format!("dex 40000 10 {long}"));
    let codes = vm.read().codes;
    assert_eq!(codes[1].location, long[..abi::CODE_LOCATION - 1]);
    assert_eq!(codes[1].flags, abi::CODE_BOOT);
    assert!(codes[1].time >= vm.read().time);
    vm.end();
}

#[test]
fn more_dex_files_than_there_is_room_for_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut vm = Vm::start(dir.path());
    vm.tell("init");
    for index in 0..1100u64 {
        vm.tell(&format!("dex {:x} 1000 n", (index + 1) << 16));
    }
    assert_eq!(vm.read().codes.len(), 1024);
    vm.tell("gone 10000");
    vm.tell("dex 90000000 1000 late");
    assert_eq!(vm.read().codes.last().unwrap().location, "late");
    vm.end();
}

#[test]
fn what_is_read_while_it_changes_is_never_torn() {
    let dir = tempfile::tempdir().unwrap();
    let mut vm = Vm::start(dir.path());
    vm.tell("init");
    let (start, len, _) = tunnels(vm.pid).remove(0);
    let memory = ProcessMemory::new(varid_model::Pid::new(vm.pid));
    writeln!(vm.input, "churn 40000").unwrap();
    let (mut first, mut second, mut changing) = (0, 0, 0);
    for _ in 0..20_000 {
        match read_tunnel(&memory, start, len, varid_model::Pid::new(vm.pid)) {
            Ok(description) => {
                for code in &description.codes {
                    let (letter, seen) = match (code.start, code.size, code.flags) {
                        (0x10000, 0x1000, 0) => ("a", &mut first),
                        (0x10800, 0x2000, abi::CODE_BOOT) => ("b", &mut second),
                        _ => panic!("torn: {code:?}"),
                    };
                    assert_eq!(code.location, letter.repeat(24));
                    *seen += 1;
                }
            }
            Err(TunnelError::Changing { .. }) => changing += 1,
            Err(error) => panic!("{error}"),
        }
    }
    eprintln!("seen: {first}, {second}; at work: {changing}");
    let mut answer = String::new();
    vm.output.read_line(&mut answer).unwrap();
    assert!(answer.starts_with("ok"));
    assert_eq!(vm.codes().len(), 1);
    vm.end();
}

#[test]
fn a_shadow_stack_holds_its_calls_and_survives_overflow() {
    let dir = tempfile::tempdir().unwrap();
    let mut vm = Vm::start(dir.path());
    assert_eq!(vm.tell("enter 1"), 0, "off: no harm");
    vm.tell("leave");
    vm.tell("init");
    let base = vm.tell("thread 3");
    let description = vm.read();
    assert_eq!(description.threads.len(), 1);
    assert_eq!(description.threads[0].base, base);
    assert_eq!(
        validate_layout(
            &description,
            &ProcessMemory::new(varid_model::Pid::new(vm.pid))
        ),
        Ok(1)
    );
    for method in 0x10..0x15 {
        assert_eq!(vm.tell(&format!("enter {method:x}")), method - 0x10);
    }
    assert_eq!(vm.shadow(base), (vm.pid, 5, vec![0x10, 0x11, 0x12]));
    vm.tell("leave");
    vm.tell("leaveto 1");
    assert_eq!(vm.shadow(base), (vm.pid, 1, vec![0x10]));
    vm.tell("enter 20");
    assert_eq!(vm.shadow(base), (vm.pid, 2, vec![0x10, 0x20]));
    vm.tell("exit");
    assert_eq!(vm.read().threads, []);
    assert_eq!(vm.tell("enter 1"), 0);
    vm.end();
}

#[test]
fn a_forked_child_has_its_own_tunnel_at_dims_first_event() {
    let dir = tempfile::tempdir().unwrap();
    let mut vm = Vm::start(dir.path());
    vm.tell("init");
    vm.tell("dex 10000 1000 parents");
    let base = vm.tell("thread 10");
    vm.tell("enter 77");
    let parent = vm.pid;
    let before = tunnels(parent);
    vm.tell("fork");
    assert_ne!(vm.pid, parent);
    let inherited = vm.read();
    assert!(inherited.inherited);
    assert_eq!(inherited.pid.get(), parent);

    vm.tell("dex 20000 1000 childs");
    let own = vm.read();
    assert!(!own.inherited);
    assert_eq!(own.pid.get(), vm.pid);
    let both = expected(&[(0x10000, 0x1000, "parents"), (0x20000, 0x1000, "childs")]);
    assert_eq!(vm.codes(), both);
    assert_eq!(own.threads.len(), 1);
    assert_eq!(own.threads[0].tid, vm.pid);
    assert_eq!(vm.shadow(base), (vm.pid, 1, vec![0x77]));

    assert_eq!(tunnels(parent), before);
    let (start, len, _) = &before[0];
    let parents = read_tunnel(
        &ProcessMemory::new(varid_model::Pid::new(parent)),
        *start,
        *len,
        varid_model::Pid::new(parent),
    )
    .unwrap();
    assert!(!parents.inherited);
    assert_eq!(parents.codes.len(), 1);
    assert_eq!(parents.threads[0].tid, parent);
    vm.end();
}

#[test]
fn the_tunnel_is_sealed() {
    let dir = tempfile::tempdir().unwrap();
    let mut vm = Vm::start(dir.path());
    vm.tell("init");
    let (_, len, line) = tunnels(vm.pid).remove(0);
    assert!(line.contains("/memfd:varid-tunnel"), "{line}");
    let range = line.split_whitespace().next().unwrap();
    let range: Vec<String> = range
        .split('-')
        .map(|at| at.trim_start_matches('0').to_owned())
        .collect();
    let path = format!("/proc/{}/map_files/{}-{}", vm.pid, range[0], range[1]);
    match std::fs::OpenOptions::new().write(true).open(&path) {
        Ok(file) => {
            assert!(file.set_len(0).is_err(), "it can be truncated");
            assert!(file.set_len(2 * len).is_err(), "it can grow");
            assert_eq!(vm.read().ranges.len(), 1);
        }
        Err(error) => {
            eprintln!("not tested: {path} cannot be opened ({error}); it takes CAP_SYS_ADMIN");
        }
    }
    vm.end();
}

#[test]
fn without_memfd_a_nameless_file_takes_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("run");
    std::fs::create_dir(&folder).unwrap();
    let mut vm = Vm::start(dir.path());
    assert_eq!(vm.tell("nomemfd"), 0);
    assert_eq!(vm.tell("init"), 0, "there is nowhere to put it");
    assert!(tunnels(vm.pid).is_empty());
    assert_eq!(vm.tell(&format!("init {}", folder.display())), 1);
    vm.tell("dex 10000 1000 a");
    assert_eq!(vm.codes().len(), 1);
    let line = &tunnels(vm.pid)[0].2;
    let name = format!("run/varid-tunnel.{:010} (deleted)", vm.pid);
    assert!(line.ends_with(&name), "{line}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    vm.end();
}

#[test]
fn storage_that_is_full_costs_the_tunnel_and_not_the_app() {
    let allowed = Command::new("unshare")
        .args(["--mount", "true"])
        .status()
        .is_ok_and(|status| status.success());
    if !allowed {
        eprintln!("not tested: mounting takes CAP_SYS_ADMIN");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("small");
    std::fs::create_dir(&folder).unwrap();
    // Space for less than the tunnel, for the tunnel only, and also for the counts.
    for (bytes, init, calls) in [(64 << 10, 0, 0), (2 << 20, 1, 0), (8 << 20, 1, 1)] {
        let mut vm = Vm::start_beside(dir.path(), &folder, bytes);
        vm.tell("nomemfd");
        assert_eq!(vm.tell(&format!("init {}", folder.display())), init);
        assert_eq!(vm.tell("calls method-invoke"), calls);
        let mut traces = 0;
        if init == 1 {
            // Fills the tunnel and the calls completely.
            vm.tell("trace 10000 10 8000");
            traces = vm.read().traces.len();
            vm.tell("sweep 7f0000000000 20 f000");
        }
        assert_eq!(traces, 0x8000 * usize::from(init == 1));
        vm.end();
    }
}

#[test]
fn traces_without_room_do_not_replace_other_traces() {
    let dir = tempfile::tempdir().unwrap();
    let mut vm = Vm::start(dir.path());
    vm.tell("init");
    vm.tell("trace 100000 10 7fff");
    assert_eq!(vm.read().traces.len(), 0x7fff);
    vm.tell("trace 200000 10");
    assert_eq!(vm.read().traces.len(), 0x8000);
    for start in ["200010", "200020"] {
        vm.tell(&format!("trace {start} 10"));
        assert_eq!(vm.read().traces.len(), 0);
    }
    vm.tell("tracesgone");
    vm.tell("trace 100000 10");
    assert_eq!(vm.read().traces.len(), 1);
    vm.end();
}

#[test]
fn dim_needs_no_library() {
    let dir = tempfile::tempdir().unwrap();
    let sources = dim();
    let strict = [
        "-std=c99",
        "-pedantic",
        "-ffreestanding",
        "-nostdlib",
        "-fPIC",
        "-c",
    ];
    let flags = ["-O2", "-O0", "-O3", "-DDIM_NO_SHADOW"];
    for (more, source) in flags
        .iter()
        .flat_map(|more| sources.iter().map(move |s| (*more, s)))
    {
        let object = dir.path().join("dim.o");
        compile(
            std::slice::from_ref(source),
            &[&strict[..], &[more]].concat(),
            &object,
        );
        let output = Command::new("nm").arg("-u").arg(&object).output().unwrap();
        let undefined = String::from_utf8(output.stdout).unwrap();
        let foreign: Vec<&str> = undefined
            .split_whitespace()
            .filter(|word| *word != "U" && *word != "_GLOBAL_OFFSET_TABLE_")
            .filter(|word| !word.starts_with("dim_"))
            .collect();
        assert!(foreign.is_empty(), "{more}: {foreign:?}");
    }
}
