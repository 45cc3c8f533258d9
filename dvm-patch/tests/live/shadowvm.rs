//! A shadow stack contains the program's calls. With the shadow interpreter.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::support::{crate_dir, tunnels};
use varid_tunnel::Description;
use varid_tunnel::abi::{RANGE_BRIDGE, RANGE_INTERPRETER, Shadow, ShadowRecord, VM_OTHER};
use varid_tunnel::layout::validate_layout;
use varid_tunnel::reader::read_tunnel;
use varid_tunnel::{Memory, ProcessMemory};

fn build(dir: &Path) {
    let built = Command::new(crate_dir().join("../tests/shadowvm/build.sh"))
        .arg(dir)
        .status()
        .unwrap();
    assert!(built.success(), "it takes java and libsmali-java");
}

fn start(dir: &Path, arguments: &[&str]) -> Child {
    Command::new(dir.join("shadowvm"))
        .arg("--dex")
        .arg(dir.join("shadow.dex"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Reads "holding PID" and the methods' first instructions, outermost first.
fn held(output: &mut BufReader<ChildStdout>, depth: usize) -> (u32, Vec<u64>) {
    let mut line = || {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line
    };
    let pid = line().strip_prefix("holding ").unwrap().trim().parse();
    let insns = (0..depth).map(|_| {
        let line = line();
        let (_, address) = line.trim().split_once(" 0x").unwrap();
        u64::from_str_radix(address, 16).unwrap()
    });
    (pid.unwrap(), insns.collect())
}

fn read(pid: u32) -> Description {
    let tunnels = tunnels(pid);
    assert_eq!(tunnels.len(), 1, "{tunnels:?}");
    let (start, len, _) = tunnels[0];
    read_tunnel(
        &ProcessMemory::new(varid_model::Pid::new(pid)),
        start,
        len,
        varid_model::Pid::new(pid),
    )
    .unwrap()
}

/// Each listed thread's records are the chain, at descending stack pointers.
fn check_shadows(pid: u32, description: &Description, chain: &[u64]) {
    let memory = ProcessMemory::new(varid_model::Pid::new(pid));
    for thread in &description.threads {
        assert_eq!(memory.read_u32(thread.base), Ok(thread.tid));
        assert_eq!(memory.read_word(thread.base + 8, 8), Ok(chain.len() as u64));
        let mut above = u64::MAX;
        for (index, insns) in chain.iter().enumerate() {
            let offset = size_of::<Shadow>() + index * size_of::<ShadowRecord>();
            let at = thread.base + offset as u64;
            assert_eq!(memory.read_word(at, 8), Ok(*insns));
            let sp = memory.read_word(at + 8, 8).unwrap();
            assert!(sp != 0 && sp < above, "{sp:#x} {above:#x}");
            above = sp;
        }
    }
}

#[test]
fn every_threads_chain_is_read_from_outside_and_from_a_forked_child() {
    let dir = tempfile::tempdir().unwrap();
    build(dir.path());
    let depth = 7;
    let name = "org.example.shadow";
    let arguments = ["--name", name, "--threads", "3", "--fork", "--hold", "7"];
    let mut vm = start(dir.path(), &arguments);
    let mut output = BufReader::new(vm.stdout.take().unwrap());
    let both = [held(&mut output, depth), held(&mut output, depth)];
    assert!(both.iter().any(|(pid, _)| *pid == vm.id()));
    for (pid, chain) in &both {
        let description = read(*pid);
        assert_eq!(description.vm, VM_OTHER);
        assert_eq!(description.pid.get(), *pid);
        assert!(!description.inherited);
        let mut kinds: Vec<u32> = description.ranges.iter().map(|range| range.kind).collect();
        kinds.sort_unstable();
        assert_eq!(kinds, [RANGE_INTERPRETER, RANGE_BRIDGE]);
        let memory = ProcessMemory::new(varid_model::Pid::new(*pid));
        assert_eq!(validate_layout(&description, &memory), Ok(4));
        check_shadows(*pid, &description, chain);
        let [dex] = &description.codes[..] else {
            panic!("{:?}", description.codes)
        };
        assert!(dex.location.ends_with("/shadow.dex"));
        assert!(
            chain
                .iter()
                .all(|insns| (dex.start..dex.start + dex.size).contains(insns))
        );
        let cmdline = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        assert_eq!(
            cmdline.split(|byte| *byte == 0).next(),
            Some(name.as_bytes())
        );
    }
    drop(vm.stdin.take());
    assert!(vm.wait().unwrap().success());
}

#[test]
fn results_are_the_same_with_and_without_dim() {
    let dir = tempfile::tempdir().unwrap();
    build(dir.path());
    let results = |arguments: &[&str]| {
        let mut vm = start(dir.path(), arguments);
        let mut output = String::new();
        let mut stdout = vm.stdout.take().unwrap();
        stdout.read_to_string(&mut output).unwrap();
        assert!(vm.wait().unwrap().success());
        // "result PID VALUE", "child PID VALUE"
        let values = output.lines().map(|line| line.rsplit(' ').next().unwrap());
        values.map(str::to_owned).collect::<Vec<_>>()
    };
    let plain = results(&["--rounds", "3", "--threads", "2", "--no-dim"]);
    assert_eq!(plain.len(), 1);
    for more in [&[][..], &["--records", "4"], &["--fork"]] {
        let with = results(&[&["--rounds", "3", "--threads", "2"], more].concat());
        assert!(with.iter().all(|value| *value == plain[0]), "{more:?}");
    }
}
