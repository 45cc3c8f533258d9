//! The frames of a real VM, which keeps its methods at the stack pointer without links, are those that ran at each sample.
//!
//! tests/stackvm runs each method in a native loop of its own and logs which one. The copy of the stack, the frame pointers and the
//! interrupted instruction in the record show which methods ran, independently of what the walker derives from sp, r12 and r15.
#![cfg(test)] // for the switches of clippy.toml
#![allow(clippy::arithmetic_side_effects)]
#![cfg(target_arch = "x86_64")]

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use varid_model::Machine;
use varid_shim::{Body, CapturedSample, ManagedFrame, Shim, Target, flags, target_flags};
use varid_tunnel::abi::{NAME, RANGE_BODY, RULE_AT_SP};
use varid_tunnel::reader::read_tunnel;
use varid_tunnel::{BytecodeKind, Description, ProcessMemory};

/// The number of samples with managed frames that are checked.
const ENOUGH: usize = 5_000;
const PERIOD_NS: u64 = 100_003;
/// The timeout, for a process that has ended or a busy machine.
const HANGS: Duration = Duration::from_secs(300);
const INVOKE: u8 = 8;
/// DWARF numbers of rbp, and of the register that leads to a frame.
const RBP: u16 = 6;
const FRAME: u16 = 15;

/// Returns true if this user can load BPF programs. If not, prints the reason.
fn can_load() -> bool {
    // SAFETY: geteuid takes nothing and cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    let btf = Path::new("/sys/kernel/btf/vmlinux").exists();
    if !root {
        eprintln!("skipped: only root can load BPF programs");
    } else if !btf {
        eprintln!("skipped: this kernel has no BTF (/sys/kernel/btf/vmlinux)");
    }
    root && btf
}

/// A stackvm that runs until it is dropped.
struct Vm {
    child: Child,
    log: PathBuf,
    program: PathBuf,
}

impl Vm {
    fn start() -> Self {
        let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("stackvm");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/stackvm/build.sh");
        let built = Command::new(script).arg(&out).status().unwrap();
        assert!(built.success());
        let log = out.join(format!("log.{}", std::process::id()));
        let program = out.join("program.stk");
        let child = Command::new(out.join("stackvm"))
            .arg(&program)
            .arg("1000000000")
            .arg(&log)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            child,
            log,
            program,
        }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its description, which it publishes when its threads start.
    fn description(&self) -> Description {
        let started = Instant::now();
        loop {
            assert!(started.elapsed() < HANGS, "no tunnel");
            let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.pid())).unwrap();
            let tunnel = maps.lines().find(|line| line.contains(NAME));
            let span = tunnel.and_then(|line| {
                let (start, end) = line.split_once(' ')?.0.split_once('-')?;
                let address = |text| u64::from_str_radix(text, 16).ok();
                Some((address(start)?, address(end)?))
            });
            if let Some((start, end)) = span {
                let memory = ProcessMemory::new(varid_model::Pid::new(self.pid()));
                if let Ok(found) = read_tunnel(
                    &memory,
                    start,
                    end - start,
                    varid_model::Pid::new(self.pid()),
                ) && !found.codes.is_empty()
                    && found.threads.len() == 2
                {
                    return found;
                }
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let _ = std::fs::remove_file(&self.log);
    }
}

struct Method {
    is_native: bool,
    code: std::ops::Range<u64>,
}

/// The native code of a method.
struct Loop {
    start: u64,
    end: u64,
    /// From here on the pc has advanced.
    next: u64,
    /// The address of each opcode's code, in this order.
    handlers: Vec<u64>,
}

/// The VM's own log.
#[derive(Default)]
struct Truth {
    code: std::ops::Range<u64>,
    body: std::ops::Range<u64>,
    program: std::ops::Range<u64>,
    methods: Vec<Method>,
    pointers: HashMap<u64, usize>,
    loops: Vec<Loop>,
    bytes: Vec<u8>,
}

impl Truth {
    fn read(vm: &Vm) -> Self {
        let mut truth = Self {
            bytes: std::fs::read(&vm.program).unwrap(),
            ..Self::default()
        };
        let log = std::fs::read_to_string(&vm.log).unwrap();
        assert!(log.ends_with("done\n"), "the log is whole");
        for line in log.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let address = |at: usize| u64::from_str_radix(words[at], 16).unwrap();
            match words[0] {
                "code" => truth.code = address(1)..address(2),
                "body" => truth.body = address(1)..address(2),
                "program" => truth.program = address(1)..address(2),
                "method" => {
                    truth.pointers.insert(address(3), truth.methods.len());
                    truth.methods.push(Method {
                        is_native: address(4) == 0,
                        code: address(4)..address(5),
                    });
                }
                "loop" => truth.loops.push(Loop {
                    start: address(2),
                    end: address(3),
                    next: address(4),
                    handlers: Vec::new(),
                }),
                "handler" => {
                    let of = truth.loops.last_mut().unwrap();
                    of.handlers.push(address(3));
                }
                _ => {}
            }
        }
        truth
    }

    /// Returns the method whose loop contains an address.
    fn loop_at(&self, address: u64) -> Option<usize> {
        self.loops
            .iter()
            .position(|of| (of.start..of.end).contains(&address))
    }

    /// Returns the method whose bytecode contains a pc, and the instruction's first bytes.
    fn instruction(&self, pc: u64) -> Option<(usize, [u8; 4])> {
        let method = self
            .methods
            .iter()
            .position(|method| method.code.contains(&pc))?;
        let at = (pc - self.program.start) as usize;
        Some((method, self.bytes.get(at..at + 4)?.try_into().unwrap()))
    }

    fn instruction_of(&self, frame: &ManagedFrame) -> Option<(usize, [u8; 4])> {
        self.instruction(frame.absolute_pc()?.get())
    }

    /// Returns the native method of a frame.
    fn method_at(&self, frame: &ManagedFrame) -> Option<usize> {
        self.pointers.get(&frame.method()?.get()).copied()
    }

    /// Returns the opcode that a loop's native code at an address executes, or None in the dispatch to the next one.
    fn opcode(&self, method: usize, ip: u64) -> Option<u8> {
        let of = &self.loops[method];
        let after = of.handlers.partition_point(|start| *start <= ip);
        let opcode = u8::try_from(after.checked_sub(1)?).ok()?;
        (ip < of.next).then_some(opcode)
    }
}

/// What the machine's code shows of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ran {
    Method(usize),
    Native,
}

fn word(record: &CapturedSample, address: u64) -> Option<u64> {
    let bytes = record.stack_at(address, 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// Returns the methods whose code the frame pointers lead to, or None if the copy of the stack is too short.
fn callers(record: &CapturedSample, truth: &Truth) -> Option<Vec<Ran>> {
    let mut found = Vec::new();
    let mut frame = record.regs.get(RBP)?;
    while frame != 0 {
        let returns = word(record, frame + 8)?;
        if let Some(method) = truth.loop_at(returns) {
            found.push(Ran::Method(method));
        } else if truth.code.contains(&returns) {
            found.push(Ran::Native);
        }
        let next = word(record, frame)?;
        if next <= frame {
            break;
        }
        frame = next;
    }
    Some(found)
}

#[derive(Debug, Default)]
struct Counts {
    judged: usize,
    in_loop: usize,
    exact_opcode: usize,
    in_native: usize,
    between: usize,
    torn: usize,
    frames: usize,
    too_long: usize,
}

/// Returns true if a frame equals what the machine's code shows.
fn is_same(frame: &ManagedFrame, ran: Ran, truth: &Truth) -> bool {
    match ran {
        Ran::Native => {
            let method = truth.method_at(frame);
            method.is_some_and(|method| truth.methods[method].is_native)
        }
        Ran::Method(method) => truth.instruction_of(frame).is_some_and(|of| of.0 == method),
    }
}

/// Returns the error in a record, if there is one.
fn judge(record: &CapturedSample, truth: &Truth, counts: &mut Counts) -> Result<(), String> {
    let frames = &record.frames;
    let ip = record.regs.ip().unwrap();
    if record.has(flags::TORN) {
        // A frame is incomplete there: the walker must not guess.
        let has_frame = record.regs.get(FRAME) != Some(0);
        let is_transition = truth.code.contains(&ip) && !(truth.body.contains(&ip) && has_frame);
        counts.torn += 1;
        return match is_transition && frames.is_empty() {
            true => Ok(()),
            false => Err("torn".to_owned()),
        };
    }
    let Some(mut ran) = callers(record, truth) else {
        counts.too_long += 1;
        return Ok(());
    };
    let leaf = truth.loop_at(ip);
    let is_between = leaf.is_none() && truth.code.contains(&ip);
    if let Some(method) = leaf {
        ran.insert(0, Ran::Method(method));
        counts.in_loop += 1;
    } else if is_between {
        counts.between += 1;
    } else if !frames.is_empty() || !ran.is_empty() {
        counts.in_native += 1;
    } else {
        return Ok(());
    }
    counts.judged += 1;
    counts.frames += frames.len();

    // A function without a frame of its own hides its caller from the frame pointers.
    let more = match frames.len().checked_sub(ran.len()) {
        Some(0) => 0,
        Some(1) if is_between => 1,
        Some(1) if leaf.is_none() && frames[0].is_quick() => 1,
        // A callee in between has its frame already, and does not run yet, or has stopped running.
        None if is_between && ran.len() == frames.len() + 1 => {
            ran.remove(0);
            0
        }
        _ => return Err(format!("{} frames of {}", frames.len(), ran.len())),
    };
    // While the outermost method is entered or left, the frame pointer is that of the function that starts the VM.
    let is_outermost_between = is_between && frames.len() == 1 && frames[0].is_outermost();
    if more == 1 && ran.is_empty() && !is_outermost_between {
        return Err("a frame that nothing called".to_owned());
    }
    let outer = &frames[more..];
    if let Some((at, _)) = (0..)
        .zip(outer.iter().zip(&ran))
        .find(|(_, (frame, ran))| !is_same(frame, **ran, truth))
    {
        return Err(format!("frame {at} is not {:?}", ran[at]));
    }
    // Each caller is at an invoke of its callee.
    for pair in frames.windows(2) {
        let called = match pair[0].is_quick() {
            true => truth.method_at(&pair[0]),
            false => truth.instruction_of(&pair[0]).map(|of| of.0),
        };
        // A native caller has no invoke instruction.
        if pair[1].is_quick() {
            continue;
        }
        let at = truth.instruction_of(&pair[1]);
        let invokes =
            |(_, bytes): (usize, [u8; 4])| bytes[0] == INVOKE && Some(bytes[2].into()) == called;
        if !at.is_some_and(invokes) {
            return Err(format!("{called:?} was called by {at:?}"));
        }
    }
    if let Some(opcode) = leaf.and_then(|method| truth.opcode(method, ip)) {
        counts.exact_opcode += 1;
        let at = frames.first().and_then(|frame| truth.instruction_of(frame));
        if at.is_none_or(|(_, bytes)| bytes[0] != opcode) {
            return Err(format!("opcode {opcode} was running, not {at:?}"));
        }
    }
    Ok(())
}

/// A software event of a CPU: `config` is the kernel's PERF_COUNT_SW_*.
fn event(config: u64, period: u64, cpu: u32) -> OwnedFd {
    let mut attr = [0u64; 16]; // struct perf_event_attr, 128 bytes
    attr[0] = 1 | 128 << 32; // PERF_TYPE_SOFTWARE, its size
    attr[1] = config;
    attr[2] = period;
    attr[3] = 1 << 10; // PERF_SAMPLE_RAW
    attr[5] = 1; // disabled
    // SAFETY: the kernel reads 128 bytes at `attr`; the rest are numbers.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, attr.as_ptr(), -1, cpu, -1, 8) };
    assert!(fd >= 0, "{}", io::Error::last_os_error());
    // SAFETY: a new descriptor, which nothing else owns.
    unsafe { OwnedFd::from_raw_fd(fd as i32) }
}

#[test]
fn every_sample_has_the_frames_that_ran() {
    if !can_load() {
        return;
    }
    let vm = Vm::start();
    let description = vm.description();
    let truth = Truth::read(&vm);
    assert!(description.layout.has_rule(RULE_AT_SP));
    assert_eq!(description.codes[0].kind, BytecodeKind::Image);
    assert_eq!(description.codes[0].start, truth.program.start);
    let body = description
        .ranges
        .iter()
        .find(|range| range.kind == RANGE_BODY)
        .unwrap();
    let body = Body {
        start: body.start,
        end: body.end,
    };
    let target = Target::ready(
        &description.layout,
        &[body],
        Machine::X86_64,
        target_flags::FULL_STACK,
    );
    let mut shim = Shim::load(4096).unwrap();
    if target.needs_walker() {
        shim.walker().load().unwrap();
    }
    shim.set_target(vm.pid(), &target).unwrap();
    // SAFETY: sysconf takes a number and touches no memory of ours.
    let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    let clocks: Vec<_> = (0..cpus as u32)
        .map(|cpu| {
            let (clock, output) = (event(0, PERIOD_NS, cpu), event(10, 1, cpu));
            shim.attach(cpu, clock.as_fd(), output.as_fd()).unwrap();
            // SAFETY: PERF_EVENT_IOC_ENABLE takes no memory.
            assert_eq!(unsafe { libc::ioctl(clock.as_raw_fd(), 0x2400, 0) }, 0);
            (clock, output)
        })
        .collect();
    let (mut counts, mut wrong) = (Counts::default(), Vec::new());
    let started = Instant::now();
    while counts.judged < ENOUGH {
        assert!(started.elapsed() < HANGS, "{counts:?}");
        shim.drain(|bytes| {
            let record = CapturedSample::decode(bytes).unwrap();
            assert!(!record.has(flags::NOT_READY | flags::NO_BASE), "{record:?}");
            if let Err(why) = judge(&record, &truth, &mut counts) {
                wrong.push((why, record.regs.ip(), record.frames.clone()));
            }
        });
        std::thread::yield_now();
    }
    drop(clocks);
    println!("{counts:?}");
    assert!(
        wrong.is_empty(),
        "{} wrong: {:x?}",
        wrong.len(),
        &wrong[..wrong.len().min(5)]
    );
    assert!(counts.torn * 100 < counts.judged, "{counts:?}");
    assert!(counts.too_long * 100 < counts.judged, "{counts:?}");
    assert!(counts.exact_opcode * 3 > counts.in_loop, "{counts:?}");
    assert!(
        counts.in_native > 0 && counts.frames > 3 * counts.judged,
        "{counts:?}"
    );
}
