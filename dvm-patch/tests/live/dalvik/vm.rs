//! A VM with Dalvik's hooks publishes what happens.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::{GENERATIONS, Generation, apply, contents, said};
use crate::support::{dim, tunnels, wait_for};
use varid_tunnel::Description;
use varid_tunnel::abi;
use varid_tunnel::calls::CallsFile;
use varid_tunnel::control::{ControlPage, Order};
use varid_tunnel::reader::read_tunnel;
use varid_tunnel::{Memory, ProcessMemory, TunnelError};

/// The patched toy VM, running.
struct Vm {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The process that answered last: the child, after a fork.
    pid: u32,
}

impl Vm {
    /// Patches, builds and starts it with a tactic. Also returns the first thread's base.
    fn start(generation: &Generation, dir: &Path, tactic: &str) -> (Self, u64) {
        let vm = generation.tree(dir);
        let output = apply(dir, dir);
        assert!(output.status.success(), "{}", said(&output));
        let (compiler, standard) = match generation.ext {
            "c" => ("cc", "-std=gnu89"),
            _ => ("c++", "-std=gnu++98"),
        };
        let warnings = [
            "-O2",
            "-g",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-DDIM_NO_SHADOW",
            "-DWITH_JIT",
        ];
        let parts: Vec<PathBuf> = dim()
            .iter()
            .map(|part| vm.join("varid").join(part.file_name().unwrap()))
            .collect();
        let objects = parts.iter().map(|source| {
            let object = source.with_extension("o");
            let built = Command::new("cc")
                .args(warnings)
                .args(["-std=gnu89", "-c", "-o"])
                .args([&object, source])
                .status()
                .unwrap();
            assert!(built.success(), "{}", source.display());
            object
        });
        let objects: Vec<PathBuf> = objects.collect();
        let program = vm.join("toy");
        let sources = contents(&vm).into_iter().map(|(path, _)| path);
        let built = Command::new(compiler)
            .args(warnings)
            .args([standard, "-pthread", "-I"])
            .arg(&vm)
            .args(sources.filter(|path| {
                path.extension().is_some_and(|ext| ext == generation.ext) && !parts.contains(path)
            }))
            .args(&objects)
            .arg("-o")
            .arg(&program)
            .status()
            .unwrap();
        assert!(built.success(), "{compiler}");
        let mut child = Command::new(&program)
            .env("VARID_TUNNEL_FOLDER", dir)
            .env("VARID_TACTIC", tactic)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut vm = Self {
            pid: child.id(),
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        };
        let base = vm.answer();
        (vm, base)
    }

    fn answer(&mut self) -> u64 {
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        let mut words = answer.split_whitespace();
        assert_eq!(words.next(), Some("ok"), "{answer}");
        self.pid = words.next().unwrap().parse().unwrap();
        u64::from_str_radix(words.next().unwrap(), 16).unwrap()
    }

    fn tell(&mut self, command: &str) -> u64 {
        writeln!(self.input, "{command}").unwrap();
        self.answer()
    }

    /// Reads the tunnel.
    fn read(&self) -> Description {
        wait_for("a tunnel that is not being changed", || {
            let tunnels = tunnels(self.pid);
            assert_eq!(tunnels.len(), 1, "{tunnels:?}");
            let (start, len, _) = tunnels[0];
            match read_tunnel(
                &ProcessMemory::new(varid_model::Pid::new(self.pid)),
                start,
                len,
                varid_model::Pid::new(self.pid),
            ) {
                // The VM's polling thread may be updating it, and be waiting for a processor.
                Err(TunnelError::Changing { .. }) => None,
                read => Some(read.unwrap()),
            }
        })
    }

    fn end(self) {
        let Self {
            mut child, input, ..
        } = self;
        drop(input);
        assert!(child.wait().unwrap().success());
    }
}

/// Makes a file of this many bytes that starts with a dex file's header with this size.
fn dex(dir: &Path, name: &str, size: u32) -> PathBuf {
    let path = dir.join(name);
    let mut bytes = vec![0; size as usize];
    bytes[4..8].copy_from_slice(&size.to_le_bytes());
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_patched_vm_publishes_its_code_and_a_zygotes_child_inherits_it() {
    if cfg!(not(target_arch = "x86_64")) {
        println!("skipped: the toy VM's layout is known for x86-64");
        return;
    }
    // One generation of each language.
    for generation in [&GENERATIONS[2], &GENERATIONS[3]] {
        let dir = tempfile::tempdir().unwrap();
        let boot = dex(dir.path(), "core.odex", 0x3000);
        let app = dex(dir.path(), "app.odex", 0x1234);
        let (mut vm, main) = Vm::start(generation, dir.path(), "load-from-dex");
        let pid = vm.pid;
        let tids = |description: &Description| -> Vec<(u64, u32)> {
            let of = |thread: &abi::Thread| (thread.base, thread.tid);
            description.threads.iter().map(of).collect()
        };
        assert_eq!(tids(&vm.read()), [(main, pid)]);

        let first = vm.tell(&format!("boot {}", boot.display()));
        let second = vm.tell(&format!("app {}", app.display()));
        vm.tell(&format!("boot {}", boot.display()));
        let codes = |description: &Description| -> Vec<(u64, u64, u32, String)> {
            let mut codes: Vec<_> = description
                .codes
                .iter()
                .map(|code| (code.start, code.size, code.flags, code.location.clone()))
                .collect();
            codes.sort_by_key(|code| code.1);
            codes
        };
        let both = [
            (second, 0x1234, 0, app.display().to_string()),
            (first, 0x3000, abi::CODE_BOOT, boot.display().to_string()),
        ];
        let description = vm.read();
        assert_eq!(codes(&description), both);
        assert_eq!(description.vm, abi::VM_DALVIK);
        let [range] = description.ranges[..] else {
            panic!("{:?}", description.ranges);
        };
        assert_eq!(range.kind, abi::RANGE_HANDLERS);
        assert_eq!(range.end - range.start, 256 * 64);

        // The layout that the compiler computed, compared with one counted by hand.
        let layout = description.layout;
        let (tid, frame) = match generation.ext {
            "c" => (4, 8),
            _ => (16, 8),
        };
        assert_eq!((layout.thread_tid, layout.thread_fragment), (tid, frame));
        let [rule] = layout.rules() else {
            panic!("{layout:?}");
        };
        assert_eq!(
            (rule.frame_link, rule.frame_caller_pc, rule.frame_method),
            (0, 8, 16)
        );
        assert_eq!((rule.frame_pc, rule.frame_bias), (24, -40));
        assert_eq!((layout.method_class, layout.method_code), (0, 8));
        assert_eq!((layout.method_name, layout.method_proto), (16, 32));
        assert_eq!(layout.class_descriptor, 0);
        assert_eq!((layout.class_dex_cache, layout.dex_cache_dex_file), (8, 0));
        assert_eq!((layout.dex_file_begin, layout.word), (8, 8));

        // A repeated report in the same process makes no second entry.
        vm.tell("run");
        let other = vm.tell("thread");
        let threads = tids(&vm.read());
        assert_eq!(threads.len(), 2, "{threads:?}");
        let tid = ProcessMemory::new(varid_model::Pid::new(pid))
            .read_u32(other + u64::from(layout.thread_tid))
            .unwrap();
        assert_eq!(threads[1], (other, tid));
        vm.tell("join");
        assert_eq!(tids(&vm.read()), [(main, pid)]);

        // The VM's own trace gets all events, also those of its compiler.
        assert_eq!(vm.tell("work"), 0x21);
        // Three pieces of bytecode. The third one's code is where the first one's was before a reset.
        let worked = vm.read();
        let [trace] = worked.traces[..] else {
            panic!("{:?}", worked.traces);
        };
        let cache = worked
            .ranges
            .iter()
            .find(|range| range.kind == abi::RANGE_TRACES)
            .unwrap();
        assert_eq!((trace.start, cache.end), (cache.start, cache.start + 16));
        let code = ProcessMemory::new(varid_model::Pid::new(pid));
        assert_eq!(code.read_u32(trace.pc), Ok(0), "no bytecode there");

        let of_parent = description.time;
        vm.tell("fork");
        assert_ne!(vm.pid, pid);
        let child = vm.read();
        assert!(!child.inherited && child.time > of_parent);
        assert_eq!(codes(&child), both);
        assert_eq!(tids(&child), [(main, vm.pid)]);
        vm.tell("shutdown");
        assert_eq!(tunnels(vm.pid), []);
        vm.end();
    }
}

#[test]
fn calls_go_to_dim_and_not_to_the_vms_own_trace() {
    // From 4.0 on.
    let dir = tempfile::tempdir().unwrap();
    let boot = dex(dir.path(), "core.odex", 0x3000);
    let (mut vm, _) = Vm::start(&GENERATIONS[3], dir.path(), "method-invoke");
    let start = vm.tell(&format!("boot {}", boot.display()));
    vm.tell("run");
    let told = vm.tell("calls");
    let calls = vm.read().calls.unwrap();
    let counted = CallsFile::open(varid_model::Pid::new(vm.pid), &calls)
        .unwrap()
        .read()
        .unwrap();
    let [call] = counted.calls[..] else {
        panic!("{:?}", counted.calls);
    };
    assert_eq!(call.method, told - 1, "the VM's own trace is off");
    assert_eq!((call.invokes, call.returns, call.unwinds), (2, 1, 1));
    assert_eq!((call.insns, call.dex), (start + 16, start));
    assert_eq!(call.index, abi::NO_INDEX);

    // A thread that starts while calls are counted.
    vm.tell("thread");
    let counted = CallsFile::open(varid_model::Pid::new(vm.pid), &calls)
        .unwrap()
        .read()
        .unwrap();
    let [call] = counted.calls[..] else {
        panic!("{:?}", counted.calls);
    };
    assert_eq!((call.invokes, call.returns, call.unwinds), (4, 2, 2));
    vm.tell("join");
    vm.end();
}

#[test]
fn counting_and_the_vms_own_trace_do_not_end_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let (mut vm, _) = Vm::start(&GENERATIONS[3], dir.path(), "load-from-dex");
    vm.tell("run");
    let mut control =
        ControlPage::take(varid_model::Pid::new(vm.pid), &vm.read().control.unwrap()).unwrap();
    let mut order = |vm: &Vm, tactic, session| {
        control
            .set(&Order {
                tactic,
                session,
                ..Order::default()
            })
            .unwrap();
        wait_for("the tactic", || (vm.read().tactic == tactic).then_some(()));
    };
    order(&vm, abi::TACTIC_METHOD_INVOKE, 1);
    vm.tell("trace");
    vm.tell("untrace");
    wait_for("its mode", || (vm.tell("modes") != 0).then_some(()));
    vm.tell("trace");
    order(&vm, abi::TACTIC_LOAD_FROM_DEX, 1);
    assert_eq!(vm.tell("modes"), 1, "its own trace was ended");
    vm.tell("untrace");
    assert_eq!(vm.tell("modes"), 0);
    vm.end();
}
