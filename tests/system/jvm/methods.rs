//! Compares what varid says of the compiled code of a JVM with what an agent in it writes by JVMTI.

use anyhow::{Context, Result, bail, ensure};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use tempfile::TempDir;
use varid_model::{Address, FrameAddress, Pid};
use varid_process::reader::ForeignMemory;
use varid_process::{Images, Process};
use varid_tests::{Running, compile_agent, compile_class};
use varid_vm::Jvm;
use varid_vm::java_methods::{
    CodeBlob, CompiledCode, JavaCode, JavaFrame, JavaMethod, MethodError, Precision,
};

/// The JDK that compiles the program and has the headers of the agent.
pub const JDK: &str = "/usr/lib/jvm/java-17-openjdk-amd64";

/// A JVM whose program has written what it executes, and waits.
pub struct WrittenJvm {
    running: Running,
    folder: TempDir,
}

impl WrittenJvm {
    /// Starts the JVM of this home with options, and waits until it has written. `rounds`: of its program.
    pub fn start(home: &Path, options: &[&str], rounds: u32) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        compile_class("Inlines", folder.path())?;
        let agent = compile_agent("methods", folder.path())?;
        let mut java = Command::new(home.join("bin/java"));
        java.arg(format!("-agentpath:{}", agent.display()));
        // A compiler's thread that ends frees its scratch memory, of which the agent has been told as of code.
        java.arg("-XX:-UseDynamicNumberOfCompilerThreads");
        java.args(options).arg("-cp").arg(folder.path());
        java.arg("Inlines").arg(&agent);
        java.arg(folder.path().join("truth"))
            .arg(rounds.to_string());
        java.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut running = Running(java.spawn().with_context(|| format!("{java:?}"))?);
        let output = running.0.stdout.take().context("no output")?;
        let mut lines = BufReader::new(output).lines();
        while lines.next().context("it has ended")?? != "ready" {}
        Ok(Self { running, folder })
    }

    fn process(&self) -> Process {
        let mut process = Process::new(Pid::new(self.running.pid()));
        process.read_maps(&mut Images::default());
        process
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Reads what it has written.
    fn truth(&self) -> Result<Truth> {
        let text = std::fs::read_to_string(self.file("truth"))?;
        Truth::parse(&text)
    }

    /// Returns the addresses of compiled methods that have come or gone since it has written.
    fn changed(&self) -> Result<HashSet<u64>> {
        let text = std::fs::read_to_string(self.file("truth.changes"))?;
        let addresses = text.lines().map(|line| u64::from_str_radix(line, 16));
        Ok(addresses.collect::<std::result::Result<_, _>>()?)
    }
}

/// What the agent has written.
#[derive(Default)]
struct Truth {
    methods: HashMap<u32, TrueMethod>,
    codes: Vec<TrueCode>,
    stubs: Vec<TrueStub>,
}

struct TrueMethod {
    /// As JVMTI has it: `Lorg/example/App;`.
    class: String,
    name: String,
    signature: String,
    modifiers: u16,
    /// Of bytecode. 0: none.
    bytes: u64,
    source: String,
    lines: Vec<(u16, u16)>,
}

struct TrueCode {
    address: u64,
    method: u32,
    /// By address: numbers of methods and bytecode indices, innermost first. -1: none.
    pcs: BTreeMap<u64, Vec<(u32, i32)>>,
}

struct TrueStub {
    address: u64,
    name: String,
}

impl Truth {
    fn parse(text: &str) -> Result<Self> {
        let mut truth = Self::default();
        let hex = |text: &str| u64::from_str_radix(text, 16);
        for line in text.lines() {
            let parts: Vec<_> = line.split('\t').collect();
            match *parts {
                [
                    "method",
                    id,
                    class,
                    name,
                    signature,
                    modifiers,
                    bytes,
                    source,
                    lines,
                ] => {
                    let method = TrueMethod {
                        class: class.to_owned(),
                        name: name.to_owned(),
                        signature: signature.to_owned(),
                        modifiers: modifiers.parse::<u32>()? as u16,
                        bytes: bytes.parse::<i64>()?.try_into().unwrap_or(0),
                        source: source.to_owned(),
                        lines: pairs(lines.split(',').filter(|line| !line.is_empty()))?,
                    };
                    truth.methods.insert(id.parse()?, method);
                }
                ["code", address, _, method] => truth.codes.push(TrueCode {
                    address: hex(address)?,
                    method: method.parse()?,
                    pcs: BTreeMap::new(),
                }),
                ["pc", address, ref frames @ ..] => {
                    let code = truth.codes.last_mut().context("a pc of no code")?;
                    code.pcs
                        .insert(hex(address)?, pairs(frames.iter().copied())?);
                }
                ["stub", address, _, name] => truth.stubs.push(TrueStub {
                    address: hex(address)?,
                    name: name.to_owned(),
                }),
                _ => bail!("{line}"),
            }
        }
        Ok(truth)
    }
}

/// Parses `A:B` of each text.
fn pairs<'t, A, B>(texts: impl Iterator<Item = &'t str>) -> Result<Vec<(A, B)>>
where
    A: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>,
    B: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    let pair = |text: &'t str| {
        let (a, b) = text.split_once(':').context("no pair")?;
        Ok((a.parse()?, b.parse()?))
    };
    texts.map(pair).collect()
}

/// What was compared, and what differs.
#[derive(Debug, Default)]
pub struct Compared {
    /// Compiled methods.
    pub codes: usize,
    /// Code addresses with debug information.
    pub pcs: usize,
    /// Frames of these addresses: methods and bytecode indices.
    pub frames: usize,
    /// Methods: names, flags, sizes, source files, tables of lines.
    pub methods: usize,
    /// Other code.
    pub stubs: usize,
    /// Compiled methods that have come or gone meanwhile: they are not compared.
    pub changed: usize,
    /// What is not the same.
    pub different: Vec<String>,
}

/// Compares all compiled code of a JVM, and all methods that are in it.
pub fn compare(written: &WrittenJvm) -> Result<Compared> {
    let truth = written.truth()?;
    let process = written.process();
    let memory = ForeignMemory::new(process.pid);
    let jvm = Jvm::of_process(&process).context("it has no HotSpot")??;
    let mut code = JavaCode::new(Rc::new(jvm));
    let mut compared = Compared::default();
    let mut found = Vec::new();
    for known in &truth.codes {
        let read = code
            .blob_at(Address::new(known.address), &memory)
            .and_then(|blob| blob.key().ok_or(MethodError::NoCode(blob.code.start)))
            .and_then(|key| code.compiled(key, &memory));
        found.push(read);
    }
    let changed = written.changed()?;
    // The last one of several at an address.
    let mut last = HashMap::new();
    last.extend((0..truth.codes.len()).map(|index| (truth.codes[index].address, index)));
    let mut methods = HashMap::new();
    for (index, (known, read)) in truth.codes.iter().zip(found).enumerate() {
        if changed.contains(&known.address) || last[&known.address] != index {
            compared.changed += 1;
            continue;
        }
        match read {
            Ok(read) => same_code(&truth, known, &read, &mut compared, &mut methods),
            Err(error) => compared
                .different
                .push(format!("{:x}: {error}", known.address)),
        }
    }
    for (id, method) in &methods {
        let known = &truth.methods[id];
        let differs = same_method(known, method);
        compared.methods += 1;
        compared.different.extend(differs);
    }
    for stub in &truth.stubs {
        let blob = code.blob_at(Address::new(stub.address), &memory);
        compared.stubs += 1;
        compared
            .different
            .extend(different_stub(stub, blob, code.jvm()));
    }
    Ok(compared)
}

type FoundMethods = HashMap<u32, std::rc::Rc<JavaMethod>>;

/// Compares the methods and bytecode indices at all addresses of a compiled method.
fn same_code(
    truth: &Truth,
    known: &TrueCode,
    read: &CompiledCode,
    compared: &mut Compared,
    methods: &mut FoundMethods,
) {
    compared.codes += 1;
    let different = &mut compared.different;
    let compiled = &read.compiled;
    if compiled.code.start != Address::new(known.address) {
        different.push(format!(
            "{:x}: starts at {}",
            known.address, compiled.code.start
        ));
    }
    let described: Vec<_> = compiled.described_addresses().map(Address::get).collect();
    if described != known.pcs.keys().copied().collect::<Vec<_>>() {
        different.push(format!(
            "{:x}: other addresses are described",
            known.address
        ));
    }
    if known.pcs.is_empty() {
        let frames = read.frames_at(FrameAddress::Return(compiled.code.start));
        let expected = [(known.method, -1)];
        let same = frames.is_ok_and(|found| {
            found.precision == Precision::MethodOnly
                && same_frames(truth, &expected, &found.frames, methods)
        });
        if !same {
            different.push(format!("{:x}: another method", known.address));
        }
    }
    for (pc, frames) in &known.pcs {
        compared.pcs += 1;
        compared.frames += frames.len();
        let found = read.frames_at(FrameAddress::Return(Address::new(*pc)));
        let same = found.as_ref().is_ok_and(|found| {
            found.precision == Precision::Exact
                && same_frames(truth, frames, &found.frames, methods)
        });
        if !same {
            different.push(format!("{pc:x}: {frames:?}, {found:?}"));
        }
    }
}

fn same_frames(
    truth: &Truth,
    known: &[(u32, i32)],
    found: &[JavaFrame],
    methods: &mut FoundMethods,
) -> bool {
    let mut same = known.len() == found.len();
    for ((id, bci), frame) in known.iter().zip(found) {
        let Ok(method) = &frame.method else {
            return false;
        };
        let known = &truth.methods[id];
        same &= *bci == frame.bci.map_or(-1, |bci| bci.get().into());
        // JVMTI gives all methods that the VM makes for method handles, such as linkToStatic, the number of the first one.
        if is_intrinsic(known, method) {
            continue;
        }
        same &= known.name == method.name && known.signature == method.signature;
        methods.insert(*id, method.clone());
    }
    same
}

fn is_intrinsic(known: &TrueMethod, found: &JavaMethod) -> bool {
    let class = "java/lang/invoke/MethodHandle";
    found.class.vm_name() == class
        && known.class == format!("L{class};")
        && found.access.is_native()
        && found.access.is_synthetic()
}

/// Returns what differs of a method.
fn same_method(known: &TrueMethod, found: &JavaMethod) -> Option<String> {
    // JVMTI writes the suffix of hidden classes in another way.
    let class = format!("L{};", found.class.vm_name().replace('+', "."));
    let access = [
        (0x8, found.access.is_static()),
        (0x100, found.access.is_native()),
        (0x400, found.access.is_abstract()),
        (0x1000, found.access.is_synthetic()),
    ];
    let entries = found.lines.entries().iter();
    let lines: Vec<_> = entries.map(|line| (line.start.get(), line.line)).collect();
    let bytes = found.bytecode.end.offset_from(found.bytecode.start);
    let same = [
        class == known.class,
        found.name == known.name && found.signature == known.signature,
        access
            .iter()
            .all(|(flag, is_set)| (known.modifiers & flag != 0) == *is_set),
        bytes == Some(known.bytes),
        found.source_file.as_deref().unwrap_or_default() == known.source,
        lines == known.lines,
    ];
    let differs = same.contains(&false);
    differs.then(|| format!("{}.{}: {same:?}: {found:?}", known.class, known.name))
}

/// Returns what differs of other code. Several routines may be in a blob.
fn different_stub(
    stub: &TrueStub,
    found: std::result::Result<CodeBlob, MethodError>,
    jvm: &Jvm,
) -> Option<String> {
    use varid_vm::java_methods::BlobKind;
    // A compiler frees them when it has compiled a method, or when its thread ends.
    let scratch = [
        "Compile::Fill_buffer",
        "Compile::scratch_buffer",
        "C1 temporary CodeBuffer",
    ];
    if scratch.contains(&stub.name.as_str()) {
        return None;
    }
    let address = Address::new(stub.address);
    let blob = match found {
        Ok(blob) => blob,
        Err(error) => return Some(format!("{}: {error}", stub.name)),
    };
    let has_parts = [
        BlobKind::StubRoutines,
        BlobKind::VtableStub,
        BlobKind::MethodHandle,
    ];
    let same = match blob.kind {
        BlobKind::Interpreter => {
            let display = blob.display_name(address, jvm);
            let description = display.split_once('[').map(|(_, description)| description);
            description.is_none_or(|description| description.starts_with(&stub.name))
                || stub.name == blob.name
        }
        kind if has_parts.contains(&kind) => true,
        // The routines that ask for the processor's features have a blob of another name.
        _ if stub.name.contains("cpu_info") || stub.name.contains("CPUID") => true,
        _ if stub.name == "detect_virt_stub" => true,
        BlobKind::Adapter => stub.name.starts_with("I2C/C2I adapters"),
        kind => !kind.has_method() && blob.name == stub.name,
    };
    (!same).then(|| format!("{}: {} {:?}", stub.name, blob.name, blob.kind))
}

/// Fails where anything differs.
pub fn check(what: &str, compared: &Compared) -> Result<()> {
    println!(
        "jvm: {what}: {} compiled methods, {} addresses, {} frames, {} methods, {} stubs, {} changed: {} differ",
        compared.codes,
        compared.pcs,
        compared.frames,
        compared.methods,
        compared.stubs,
        compared.changed,
        compared.different.len(),
    );
    ensure!(
        compared.different.is_empty(),
        "{:#?}",
        compared.different.iter().take(20).collect::<Vec<_>>()
    );
    // The VM compiles on.
    ensure!(compared.changed < compared.codes, "too much has changed");
    Ok(())
}
