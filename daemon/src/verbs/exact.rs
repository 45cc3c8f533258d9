//! `varid exact`: counts each call of a Java program, or of dex code, by its calling context.

mod switch;

use super::launch::Held;
use super::record;
use crate::cli::{ExactArgs, IntrinsicsArg};
use crate::{output, sessions};
use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use switch::{Switch, TREES};
use varid_exact::{
    DexProgram, Summary, Vm, free_bytes, read_vms, tool_options, write_classes, write_session,
};
use varid_exact_agent::{Counting, Options};
use varid_instrument::{ClassPattern, Counted, MethodPattern};
use varid_recording::{
    EventDesc, Manifest, SampleSource, SessionTarget, SessionWriter, TargetKind,
};
use varid_sampler::monotonic_ns;
use varid_session::request::TargetSpec;

/// The agent's library.
const AGENT: &str = "libvarid_exact_agent.so";
/// The room for calling contexts of a VM in bytes, if the disk has twice as much: some 12 million. A session has room for 16 million.
const NODES: u64 = 1 << 30;
/// The most room for calling contexts whose order is recorded: an event is the number of one of 2^32 words of 8 bytes.
const MOST_ORDERED: u64 = 31 << 30;
/// The event of the session, of which there are no samples.
const EVENT: &str = "java-calls";

/// Launches the program, and makes a session of what its VMs have counted. The exit code is the program's.
pub fn run(args: ExactArgs) -> anyhow::Result<ExitCode> {
    let switched = args.switch.map(Counting::from);
    if let Some((pid, counting)) = args.pid.zip(switched) {
        switch::switch(pid, counting)?;
        return Ok(ExitCode::SUCCESS);
    }
    let agent = find_agent()?;
    let arguments = args.command.iter().map(|one| one.to_string_lossy());
    let line = arguments.collect::<Vec<_>>().join(" ");
    let target = TargetSpec::Command(varid_model::Pid::default(), line.clone());
    let folder = match &args.output {
        Some(folder) => folder.clone(),
        None => sessions::create(&target)?,
    };
    if let Some(classes) = &args.dump_classes
        && fs::read_dir(classes).is_ok_and(|mut inside| inside.next().is_some())
    {
        bail!(
            "{} is not empty: --dump-classes takes a new folder",
            classes.display()
        );
    }
    let trees = Trees::create(&folder)?;
    let free = free_bytes(&trees.0)?;
    let bytes = args.nodes.unwrap_or_else(|| NODES.min(free / 2));
    if args.call_order && bytes > MOST_ORDERED {
        bail!("--call-order takes at most 31G of --nodes: an event has 32 bits");
    }
    if bytes > free {
        bail!(
            "{} has {} free, less than --nodes asks for",
            trees.0.display(),
            output::size(free)
        );
    }
    let options = Options {
        counted: match (args.call_order, args.bytecodes) {
            (true, _) => Counted::Order,
            (false, true) => Counted::Blocks,
            (false, false) => Counted::Calls,
        },
        intrinsics: args.intrinsics.into(),
        bytes,
        within: args.within.as_deref().map(MethodPattern::new),
        include: args
            .include
            .iter()
            .map(|it| ClassPattern::new(it))
            .collect(),
        class_files: args.dump_classes.is_some(),
        is_switched: args.switch.is_some(),
        folder: trees.0.clone(),
    };
    let dex = DexProgram::prepare(&args.command, &agent, &options)?;
    let switch = switched.map(|counting| Switch::create(&trees.0, counting));
    let switch = switch.transpose()?;
    let start = monotonic_ns();
    let manifest = Manifest::new(
        EventDesc::without_samples(EVENT),
        SampleSource::Agent,
        SessionTarget {
            kind: TargetKind::Command,
            value: line,
        },
        start,
    );
    let mut writer = SessionWriter::create(&folder, manifest)?;
    if let Some(dex) = &dex {
        dex.keep_files(&mut writer)?;
    }
    let status = match &dex {
        Some(dex) => launch(&dex.command, dex.environment.clone(), switch.as_ref())?,
        None => launch(
            &args.command,
            tool_options(&agent, &options)?,
            switch.as_ref(),
        )?,
    };
    let vms = read_vms(&trees.0)?;
    if vms.is_empty() {
        tracing::warn!(
            "{}",
            match dex {
                Some(_) => "artvm has not loaded the library that counts",
                None => "the command has started no Java VM of HotSpot, version 11 or later",
            }
        );
    }
    if let Some(folder) = &args.dump_classes {
        dump_classes(&vms, folder);
    }
    let summary = write_session(&mut writer, vms, options.counted, start)?;
    let manifest = writer.manifest_mut();
    manifest.notes.extend(restrictions(&args, dex.is_some()));
    if let Some(within) = args.within.as_ref().filter(|_| summary.calls == 0) {
        tracing::warn!("no method {within} was called");
    } else if summary.calls == 0 && args.switch.is_some() {
        tracing::warn!("nothing was called while counting was on");
    } else if summary.calls == 0 && !args.include.is_empty() {
        tracing::warn!("no method of {} was called", args.include.join(", "));
    }
    manifest.duration_ns = monotonic_ns().since(start).as_nanos().try_into()?;
    writer.finish()?;
    sessions::list_elsewhere(&folder, &target)?;
    let is_last = sessions::set_last(&folder);
    report(&summary, &folder, is_last.is_ok());
    Ok(record::code(status))
}

/// Returns what a reader of the session must know of what was not counted.
fn restrictions(args: &ExactArgs, is_dex: bool) -> Vec<String> {
    let within = args.within.as_ref();
    let within = within.map(|method| format!("only what runs within calls of {method} is counted"));
    let include = (!args.include.is_empty()).then(|| {
        let classes = args.include.join(", ");
        format!("only the methods of {classes} are counted: other callees and callers are missing")
    });
    let intrinsics = (!is_dex && args.intrinsics == IntrinsicsArg::Leaf).then(|| {
        "methods that HotSpot's compilers replace, such as Math.max, count no calls: --intrinsics expand"
            .to_owned()
    });
    let switch = args.switch.map(|_| {
        "only what ran while counting was on is counted; callers may have been called before"
            .to_owned()
    });
    within
        .into_iter()
        .chain(switch)
        .chain(include)
        .chain(intrinsics)
        .collect()
}

/// Writes the class files of VMs. The session is made even if that fails.
fn dump_classes(vms: &[Vm], folder: &Path) {
    match write_classes(vms.iter().map(|vm| &vm.tables), folder) {
        Ok(classes) => {
            let (written, folder) = (classes.written, folder.display());
            output::notice(&format!("varid: {written} class files in {folder}"));
            if classes.left_out > 0 {
                let left_out = classes.left_out;
                tracing::warn!("the names of {left_out} classes are no paths: they are left out");
            }
        }
        Err(error) => tracing::warn!("no class files: {error}"),
    }
}

/// Says what was counted, and what is missing.
fn report(summary: &Summary, folder: &Path, is_last: bool) {
    let Summary {
        contexts, calls, ..
    } = summary;
    output::notice(&format!(
        "varid: {calls} calls in {contexts} calling contexts in {}",
        folder.display()
    ));
    if let Some(events) = summary.events {
        output::notice(&format!("varid: the order of {events} calls and blocks"));
    }
    for sentence in &summary.incomplete {
        output::notice(&format!("varid: incomplete: {sentence}"));
    }
    let command = record::report_command(is_last, folder);
    output::notice(&format!("varid: {command} shows it"));
}

/// Starts the command, and waits until it has ended. A signal to varid ends the command first.
fn launch(
    command: &[OsString],
    environment: (&str, String),
    switch: Option<&Switch>,
) -> anyhow::Result<ExitStatus> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGHUP,
    ] {
        signal_hook::flag::register(signal, stop.clone()).context("cannot watch for signals")?;
    }
    let mut held = Held::start(command)?;
    held.release(&[environment])?;
    loop {
        if let Some(status) = held
            .child
            .try_wait()
            .context("cannot wait for the command")?
        {
            return Ok(status);
        }
        if let Some(switch) = switch {
            switch.follow();
        }
        if stop.swap(false, Ordering::Relaxed) {
            let pid = nix::unistd::Pid::from_raw(held.child.id().cast_signed());
            // It may have ended meanwhile.
            let _ = kill(pid, Signal::SIGTERM);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the agent's library: beside the program, as it is built and unpacked, or where it is installed.
fn find_agent() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("cannot find this program's file")?;
    let beside = program.parent().unwrap_or(Path::new("/"));
    let places = [".", "deps", "../lib/varid"].map(|place| beside.join(place).join(AGENT));
    match places.iter().find(|place| place.exists()) {
        Some(agent) => Ok(std::path::absolute(agent)?),
        None => bail!("{} is missing beside {}", AGENT, program.display()),
    }
}

/// The folder of the trees, beside the session. It is removed with what it has.
struct Trees(PathBuf);

impl Trees {
    fn create(session: &Path) -> anyhow::Result<Self> {
        let mut name = std::path::absolute(session)?.into_os_string();
        name.push(format!("{TREES}{}", std::process::id()));
        let folder = PathBuf::from(name);
        fs::DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(&folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Trees {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!("cannot remove {}: {error}", self.0.display());
        }
    }
}
