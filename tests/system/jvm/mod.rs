//! JVMs that tests start, and whether varid describes them as the JDK's own tools do.

#![allow(dead_code, reason = "each of two programs uses a part of it")]

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;
use varid_model::Pid;
use varid_process::{Images, Process};
use varid_tests::{Running, javac, judge, printed};
use varid_vm::{Jvm, JvmError};

/// Debian 12's JDK.
pub const JDK: &str = "/usr/lib/jvm/java-17-openjdk-amd64";
/// The flags of collectors, with the names that varid has for them in version 17.
pub const COLLECTORS: [(&str, &str); 5] = [
    ("UseSerialGC", "Serial"),
    ("UseParallelGC", "Parallel"),
    ("UseG1GC", "G1"),
    ("UseZGC", "ZGC"),
    ("UseShenandoahGC", "Shenandoah"),
];

/// A JVM that runs until the test ends.
pub struct RunningJvm {
    /// The process that was started.
    running: Running,
    /// The JVM, which is its child in a container.
    pid: u32,
    /// What it has printed, and its class.
    folder: TempDir,
}

/// Where a JVM runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// Beside the test.
    Here,
    /// In user, mount and pid namespaces of its own, from a path that does not exist elsewhere.
    Container,
    /// In mount and pid namespaces of its own, in a folder that is its root, with this JDK. jcmd would look for its socket below this root,
    /// in the same pid namespace.
    Root(&'a Path, &'a str),
}

/// Returns true if Debian 12's JDK is installed.
pub fn has_jdk() -> bool {
    ["java", "javac", "jcmd", "jhsdb"]
        .iter()
        .all(|tool| Path::new(JDK).join("bin").join(tool).exists())
}

impl RunningJvm {
    /// Starts a JVM that waits, with these options.
    pub fn start(place: Place<'_>, options: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/system/jvm/Waits.java");
        let mut javac = javac();
        printed(
            javac
                .args(["--release", "11", "-d"])
                .arg(folder.path())
                .arg(source),
        )?;
        let mut command = command(place, folder.path())?;
        command.args(options).arg("Waits");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let running = Running(command.spawn().with_context(|| format!("{command:?}"))?);
        let pid = running.pid();
        Ok(Self {
            running,
            pid,
            folder,
        })
    }

    /// Waits until its program runs.
    pub fn wait(&mut self) -> Result<()> {
        let output = self.running.0.stdout.take().context("no output")?;
        let mut printed = String::new();
        for line in BufReader::new(output).lines() {
            let line = line?;
            if line == "ready" {
                std::fs::write(self.printed(), printed)?;
                return self.find();
            }
            printed.push_str(&line);
            printed.push('\n');
        }
        bail!("it has ended: {printed}")
    }

    /// Finds the JVM, which is a child of the process in a container.
    fn find(&mut self) -> Result<()> {
        let pid = self.running.pid();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
        if let Some(child) = children.split_whitespace().next() {
            self.pid = child.parse()?;
        }
        Ok(())
    }

    /// Its pid here.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The file with what it has printed.
    pub fn printed(&self) -> PathBuf {
        self.folder.path().join("printed")
    }

    /// Describes it. `images`: files that have been read already.
    pub fn describe(&self, images: &mut Images) -> Option<std::result::Result<Jvm, JvmError>> {
        let mut process = Process::new(Pid::new(self.pid));
        process.read_maps(images);
        Jvm::of_process(&process)
    }

    /// Ends it.
    pub fn kill(&mut self) -> Result<()> {
        self.running.0.kill()?;
        self.running.0.wait()?;
        Ok(())
    }
}

/// Returns the command of a JVM, without options. `folder`: where its class is.
fn command(place: Place<'_>, folder: &Path) -> Result<Command> {
    let java = match place {
        Place::Here => Command::new(format!("{JDK}/bin/java")),
        Place::Container => {
            std::fs::create_dir(folder.join("jdk"))?;
            let mut unshare = Command::new("unshare");
            unshare
                .args(["--user", "--map-root-user", "--mount", "--pid", "--fork"])
                .args(["--kill-child", "--mount-proc", "sh", "-ec"])
                .arg("mount --bind \"$0\" jdk; exec jdk/bin/java \"$@\"")
                .arg(JDK);
            unshare
        }
        Place::Root(root, jdk) => {
            let class = std::fs::read(folder.join("Waits.class"))?;
            std::fs::write(root.join("Waits.class"), class)?;
            let mut unshare = Command::new("unshare");
            unshare
                .args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-ec"])
                .arg("mount -t proc proc \"$0/proc\"; exec chroot \"$0\" \"$@\"")
                .arg(root)
                .arg(format!("{jdk}/bin/java"));
            unshare
        }
    };
    let mut java = java;
    java.current_dir(folder);
    Ok(java)
}

/// Who prints the tables of a JVM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TablesBy {
    /// The JDK's debugger, of the same version.
    Jhsdb,
    /// A reader of them in Python.
    Python,
}

/// Compares the description of a JVM with what the JDK's tools say of it. `prints_interpreter`: it has printed its codelets.
pub fn compare(running: &RunningJvm, by: TablesBy, prints_interpreter: bool) -> Result<Jvm> {
    let described = running.describe(&mut Images::default());
    let jvm = described.context("it has no HotSpot")??;
    let mut arguments = vec![running.pid().to_string()];
    if prints_interpreter {
        arguments.push(running.printed().display().to_string());
    }
    arguments.extend((by == TablesBy::Jhsdb).then(|| "--jhsdb".to_owned()));
    let truth = judge("jvm.py", &arguments)?;
    ensure!(truth["release"] == jvm.version.release, "{truth}");
    let flag = |name: &str| truth["flags"][name] == "true";
    let flags = [
        (
            "UseCompressedClassPointers",
            jvm.flags.compressed_class_pointers,
        ),
        ("SegmentedCodeCache", jvm.flags.segmented_code_cache),
    ];
    for (name, is_set) in flags {
        ensure!(flag(name) == is_set, "{name}: {is_set}");
    }
    ensure!(jvm.class_pointers.is_some() == flag("UseCompressedClassPointers"));
    let unloaded = jvm.unloaded_classes.map(|classes| classes.described);
    ensure!(unloaded == truth["unloaded"].as_u64(), "{unloaded:?}");
    same_numbers(&jvm, &truth)?;
    same_heaps(&jvm, &truth)?;
    if prints_interpreter {
        same_codelets(&jvm, &truth)?;
    }
    println!("jvm: {jvm}: {} numbers of its tables", jvm.taken.len());
    Ok(jvm)
}

/// All offsets, sizes and constants are those of the tables.
fn same_numbers(jvm: &Jvm, truth: &Value) -> Result<()> {
    ensure!(jvm.taken.len() > 70, "{:?}", jvm.taken);
    for (name, number) in &jvm.taken {
        ensure!(truth["numbers"][name] == *number, "{name}: {number}");
    }
    Ok(())
}

/// The code heaps grow, but not their reserved memory.
fn same_heaps(jvm: &Jvm, truth: &Value) -> Result<()> {
    let heaps = truth["heaps"].as_array().context("no heaps")?;
    ensure!(jvm.code_heaps.len() == heaps.len(), "{truth}");
    for (heap, bounds) in jvm.code_heaps.iter().zip(heaps) {
        let (start, end) = (heap.reserved.start.get(), heap.reserved.end.get());
        ensure!(bounds[0] == start && bounds[2] == end, "{heap:?}: {bounds}");
        let committed = heap.committed_end.get();
        ensure!(bounds[1].as_u64() >= Some(committed), "{heap:?}: {bounds}");
    }
    Ok(())
}

/// The interpreter is what the JVM has printed of it.
fn same_codelets(jvm: &Jvm, truth: &Value) -> Result<()> {
    let codelets = truth["codelets"].as_array().context("no codelets")?;
    let found = &jvm.interpreter.codelets;
    ensure!(codelets.len() == found.len() && found.len() > 200);
    for (codelet, printed) in found.iter().zip(codelets) {
        let code = [codelet.code.start, codelet.code.end].map(|at| Value::from(at.get()));
        let bytecode = codelet.bytecode.map_or(Value::Null, Value::from);
        let same = printed[0] == code[0] && printed[1] == code[1] && printed[2] == bytecode;
        ensure!(
            same && printed[3] == codelet.description,
            "{codelet:?}: {printed}"
        );
    }
    Ok(())
}
