//! Compares the names of generated code with those of GDB and perf.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use varid_symbolizer::jit::{
    CodeMap, JitAbi, JitDescriptor, JitDump, PerfMap, descriptors_of, symfile_codes,
};

/// The folder of the programs that generate code.
const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/jit");

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output();
    let has = found.is_ok_and(|output| output.status.success());
    if !has {
        println!("skipped: there is no {program} here");
    }
    has
}

fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn cc(arguments: &[&str], to: &Path) {
    run(Command::new("cc")
        .args(arguments)
        .arg("-o")
        .arg(to)
        .current_dir(PROGRAMS));
}

#[test]
#[cfg(target_pointer_width = "64")]
fn every_byte_of_registered_code_has_the_name_that_gdb_gives_it() {
    if !has("gdb") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (object, program) = (folder.path().join("hot.o"), folder.path().join("registrar"));
    cc(
        &["-O1", "-fno-asynchronous-unwind-tables", "-c", "hot.c"],
        &object,
    );
    cc(&["-O1", "-fno-pie", "-no-pie", "registrar.c"], &program);
    let mut child = Command::new(&program)
        .arg(&object)
        .arg("0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let (code, length) = line.trim().split_once(' ').unwrap();
    let code = u64::from_str_radix(code.trim_start_matches("0x"), 16).unwrap();
    let length: u64 = length.parse().unwrap();

    let found = descriptors_of(&File::open(&program).unwrap(), "registrar")
        .unwrap()
        .unwrap();
    assert_eq!((found.abi, found.dex), (JitAbi::Bits64, None));
    let memory = File::open(format!("/proc/{}/mem", child.id())).unwrap();
    let mut read = |address: u64, to: &mut [u8]| memory.read_exact_at(to, address).is_ok();
    let descriptor = JitDescriptor::read(found.abi, found.jit.unwrap(), &mut read).unwrap();
    let list = descriptor.list(&mut read);
    assert!(list.is_whole && list.entries.len() == 1, "{list:?}");
    let symfile = list.entries[0].symfile.clone();
    let mut bytes = vec![0; (symfile.end - symfile.start) as usize];
    assert!(read(symfile.start, &mut bytes));
    let mut map = CodeMap::default();
    map.appear(symfile_codes(&bytes, "in memory").unwrap(), 1);

    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-p", &child.id().to_string()]);
    for address in code..code + length {
        gdb.args(["-ex", &format!("info symbol {address:#x}")]);
    }
    let said = run(&mut gdb);
    drop(child.stdin.take());
    child.wait().unwrap();
    let said: Vec<&str> = said
        .lines()
        .filter(|line| line.contains(" in section ") || line.starts_with("No symbol"))
        .collect();
    assert_eq!(said.len() as u64, length, "{said:?}");
    let mut named = 0;
    for (address, said) in (code..).zip(said) {
        // "jit_leaf + 4 in section .text of ..."; gdb does not use sizes and names padding after the function before it.
        let gdb = said.split([' ', '+']).next().unwrap();
        if let Some(frame) = map.frame(1, address) {
            assert_eq!(frame.function, gdb, "{address:#x}");
            named += 1;
        }
    }
    let names: Vec<&str> = map.codes().iter().map(|code| &*code.name).collect();
    assert_eq!(names, ["jit_leaf", "jit_entry"]);
    assert!(named * 10 > length * 8, "{named} of {length}");
    assert_eq!(map.frame(1, code - 1), None);
}

/// Start, size and name of each function that perf finds in a jitdump: it writes an ELF file for each.
fn by_perf(folder: &Path, data: &Path) -> Vec<(u64, u64, String)> {
    let script = run(Command::new("perf")
        .args(["script", "--show-mmap-events", "-i"])
        .arg(data)
        .current_dir(folder));
    // PERF_RECORD_MMAP2 1/1: [0x7f00(0x100) @ 0x80 08:01 1 1]: --xp /path/jitted-1-1.so
    let mapped: Vec<(u64, &str)> = script
        .lines()
        .filter(|line| line.contains("PERF_RECORD_MMAP2") && line.contains("jitted-"))
        .map(|line| {
            let (_, rest) = line.split_once(": [0x").unwrap();
            let (start, _) = rest.split_once('(').unwrap();
            let start = u64::from_str_radix(start, 16).unwrap();
            (start, line.rsplit(' ').next().unwrap())
        })
        .collect();
    let files = mapped.iter().map(|(_, file)| file);
    let symbols = run(Command::new("readelf").arg("-sW").args(files));
    let mut functions: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    let mut file = "";
    for line in symbols.lines() {
        if let Some(next) = line.strip_prefix("File: ") {
            file = next;
        } else if let Some((place, symbol)) = line.split_once(" FUNC ") {
            //  1: 0000000000000080   768 FUNC    LOCAL  DEFAULT    1 a name with spaces
            let section = symbol.trim_start().split_once("DEFAULT").unwrap().1;
            let (_, name) = section.trim_start().split_once(' ').unwrap();
            let size = place.split_whitespace().last().unwrap().parse().unwrap();
            functions.insert(file, (size, name));
        }
    }
    // A mapping includes the unwind information. The symbol has the size of the function alone.
    let function = |(start, file)| {
        let (size, name) = functions[file];
        (start, size, name.to_owned())
    };
    mapped.into_iter().map(function).collect()
}

#[test]
fn a_jitdump_of_node_says_what_perf_inject_reads_in_it() {
    if !(has("node") && has("perf") && has("readelf")) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let script = Path::new(PROGRAMS).join("spin.js");
    let mut record = Command::new("perf");
    record.current_dir(folder.path());
    record
        .args(["record", "-q", "-k", "mono", "-e", "cpu-clock", "-o"])
        .arg(at("perf.data"));
    let output = record
        .args(["node", "--perf-prof"])
        .arg(script)
        .output()
        .unwrap();
    if !output.status.success() {
        println!("skipped: perf cannot record here");
        return;
    }
    let mut inject = Command::new("perf");
    inject
        .current_dir(folder.path())
        .args(["inject", "-j", "-i"])
        .arg(at("perf.data"));
    run(inject.arg("-o").arg(at("jit.data")));
    let dump: PathBuf = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| {
            path.extension()
                .is_some_and(|extension| extension == "dump")
        })
        .unwrap();
    let dump = JitDump::parse(&std::fs::read(dump).unwrap()).unwrap();
    assert_eq!((dump.broken(), dump.has_machine_times()), (0, false));
    let ours: Vec<(u64, u64, String)> = dump
        .map()
        .codes()
        .iter()
        .map(|code| {
            let size = code.range.end - code.range.start;
            (code.range.start, size, code.name.to_string())
        })
        .collect();
    let perf = by_perf(folder.path(), &at("jit.data"));
    println!("{} functions, perf has {}", ours.len(), perf.len());
    assert!(ours.len() > 100);
    let (mut ours, mut perf) = (ours, perf);
    ours.sort();
    perf.sort();
    for (ours, perf) in ours.iter().zip(&perf) {
        assert_eq!(ours, perf);
    }
    assert_eq!(ours.len(), perf.len());
}

#[test]
fn a_perf_map_of_node_says_what_its_lines_say() {
    if !has("node") {
        return;
    }
    let mut node = Command::new("node");
    let folder = tempfile::tempdir().unwrap();
    node.arg("--perf-basic-prof")
        .arg(Path::new(PROGRAMS).join("spin.js"))
        .current_dir(folder.path());
    let child = node.stdout(Stdio::null()).spawn().unwrap();
    let path = format!("/tmp/perf-{}.map", child.id());
    assert!(child.wait_with_output().unwrap().status.success());
    let text = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let text = String::from_utf8_lossy(&text);
    let map = PerfMap::parse(text.as_bytes());
    // The names by address: a table of single bytes, in which later lines overwrite earlier ones.
    let mut bytes: BTreeMap<u64, &str> = BTreeMap::new();
    let mut lines = 0;
    for line in text.lines() {
        let mut words = line.splitn(3, ' ');
        let mut number = || u64::from_str_radix(words.next().unwrap(), 16).unwrap();
        let (start, size) = (number(), number());
        let name = words.next().unwrap();
        (start..start + size).for_each(|address| {
            bytes.insert(address, name);
        });
        lines += 1;
    }
    assert!(lines > 100 && map.broken() == 0);
    for (address, name) in &bytes {
        let found = map.lookup(0, *address).unwrap();
        assert_eq!(found.function, *name, "{address:#x}");
    }
    println!("{lines} lines, {} bytes", bytes.len());
}
