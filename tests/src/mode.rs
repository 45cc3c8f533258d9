//! Runs the workload `corner` in all modes in which an app of ART can be executed and sampled, and judges each sample.

use crate::app::App;
use crate::code::Code;
use crate::jit_log::JitLog;
use crate::oracle::oracle;
use crate::per_sample::{MOST_RUNS, SampleCounts};
use crate::release::Release;
use crate::scale::{Scale, scale};
use crate::session::{processes_noted, record};
use anyhow::{Result, bail, ensure};
use std::fmt;
use std::path::PathBuf;
use std::sync::{PoisonError, RwLock};

/// Recordings need an idle machine: app and recorder use one processor each. Judging runs in parallel.
static RECORDING: RwLock<()> = RwLock::new(());
/// The maximum number of complaints of an oracle that are shown per mode.
const SHOWN: usize = 30;
/// The maximum per mille of samples in methods that were not read before the process was gone. They are from its last
/// tens of milliseconds.
const MOST_GONE: u64 = 10;

/// The part of each stack that is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stack {
    /// Walked managed frames, and native frames unwound up to them.
    Vertical,
    /// The whole stack.
    Full,
}

impl Stack {
    /// Returns the value of `--stack`.
    #[must_use]
    pub const fn option(self) -> &'static str {
        match self {
            Self::Vertical => "vertical",
            Self::Full => "full",
        }
    }
}

/// The source of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// BPF, which walks the managed frames in the kernel, with the kernel's own samples in addition.
    Bpf,
    /// Only the kernel's copies of registers and stacks.
    Copies,
}

impl Source {
    const fn options(self) -> &'static [&'static str] {
        match self {
            Self::Bpf => &["--shim", "bpf", "--keep-raw"],
            Self::Copies => &["--shim", "perf"],
        }
    }
}

/// Judges at least `enough` samples of an app, for each kind of stack from each source.
///
/// # Errors
///
/// Samples are wrong, or too many stacks end before the thread's outermost frame.
pub fn every_mode_is_right(
    release: Release,
    code: Code,
    sources: &[Source],
    enough: u64,
) -> Result<()> {
    let mut wrong = Vec::new();
    for mode in Mode::all(release, code, sources) {
        wrong.extend(mode.wrong(enough)?);
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    Ok(())
}

/// A way to execute and sample an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mode {
    release: Release,
    code: Code,
    stack: Stack,
    source: Source,
}

impl Mode {
    /// Returns all combinations of stacks and sources.
    fn all(release: Release, code: Code, sources: &[Source]) -> Vec<Self> {
        let of = |source: &Source| {
            [Stack::Vertical, Stack::Full].map(|stack| Self {
                release,
                code,
                stack,
                source: *source,
            })
        };
        sources.iter().flat_map(of).collect()
    }

    /// Returns the rate in Hz. `corner` has stacks of hundreds of frames. varid does not keep up with whole ones at a
    /// higher rate on two processors: it reads methods too late, and loses samples.
    const fn rate(self) -> &'static str {
        match self.stack {
            Stack::Full => "2000",
            Stack::Vertical => "10000",
        }
    }

    /// Returns the maximum per mille of stacks that may end with a reason, other than recursions that are deeper than
    /// the copy, and an unknown VM. With few samples, the start of the VM weighs more. The kernel copies nothing while
    /// the stack pointer's own page is touched for the first time, as when `corner` overflows its stack. 32 KB hold few
    /// frames of the switch interpreter.
    fn most_reasons(self) -> u64 {
        match (self.source, scale()) {
            (Source::Bpf, Scale::Long) => 5,
            (Source::Bpf, Scale::Gate) => 15,
            (Source::Copies, _) if self.code == Code::Switch => 200,
            (Source::Copies, _) if !self.code.is_compiled() => 30,
            (Source::Copies, Scale::Long) => 15,
            (Source::Copies, Scale::Gate) => 20,
        }
    }

    /// Records `corner` until there are enough samples, and judges them. Returns the counts and the first complaints.
    fn judged(&self, enough: u64) -> Result<(SampleCounts, String)> {
        let (mut counts, mut complaints) = (SampleCounts::default(), String::new());
        // A quarter more than needed on this machine.
        let rounds = match (self.stack, enough) {
            (_, ..=5000) => 150,
            (Stack::Vertical, _) => 280,
            (Stack::Full, _) => 500,
        };
        for _ in 0..MOST_RUNS {
            if counts.of("samples") >= enough {
                return Ok((counts, complaints));
            }
            let app = App::new("corner", "run", rounds)?.in_release(self.release);
            let app = app.executed_by(self.code)?;
            let log = self.code.has_jit().then(JitLog::new).transpose()?;
            let app = log.iter().fold(app, |app, log| log.written_by(app));
            let (options, stack) = (self.source.options(), ["--stack", self.stack.option()]);
            let options = [
                &["-F", self.rate(), "--ring-pages", "8192"],
                options,
                &stack,
            ]
            .concat();
            let recording = {
                let _alone = RECORDING.write().unwrap_or_else(PoisonError::into_inner);
                record(&app, &options)?
            };
            let _beside_others = RECORDING.read().unwrap_or_else(PoisonError::into_inner);
            let notes = processes_noted(&recording.session())?;
            if !recording.maps().exists()
                || notes.iter().any(|note| note.contains("not long enough"))
            {
                continue;
            }
            let (program, files) = self.truth(&app, log.as_ref())?;
            let recorded = [recording.session(), recording.maps(), app.traced()?];
            let (_, counted, complained) = oracle(program, recorded.into_iter().chain(files))?;
            counts.add(&counted)?;
            if complaints.is_empty() {
                let shown = complained.lines().take(SHOWN);
                complaints = shown.collect::<Vec<_>>().join("\n");
            }
        }
        bail!("{self}: too few samples: {counts:?}");
    }

    /// Returns the oracle and its input files.
    fn truth(&self, app: &App, log: Option<&JitLog>) -> Result<(&'static str, Vec<PathBuf>)> {
        if !self.code.is_compiled() {
            return Ok(("per_sample.py", vec![app.dex(), app.boot_dex()]));
        }
        let mut files = app.oat_files_with_symbols(self.code)?;
        files.extend(log.map(JitLog::file));
        Ok(("compiled.py", files))
    }

    /// Judges at least `enough` samples. Returns the errors, or None if there are none. Prints how stacks end.
    fn wrong(&self, enough: u64) -> Result<Option<String>> {
        let (counts, complaints) = self.judged(enough)?;
        let ends: Vec<_> = counts.beginning_with("ends: ").collect();
        let shown: Vec<_> = ends.iter().map(|(end, n)| format!("{end} {n}")).collect();
        let (samples, wrong) = (counts.of("samples"), counts.of("wrong"));
        let line = format!(
            "{self}: {samples} samples, {wrong} wrong; {}",
            shown.join(", ")
        );
        println!("{line}");
        let mut what = Vec::new();
        if wrong > 0 {
            what.push(format!("{wrong} wrong, such as\n{complaints}"));
        }
        let of = |reason: &str| counts.of(&format!("ends: {reason}"));
        let reasons = ends.iter().filter(|(end, _)| end.starts_with('['));
        let reasons: u64 = reasons.map(|(_, count)| count).sum();
        // The work of a VM before it is found depends on the load of the machine.
        let starting = of("[vm-not-ready]");
        if starting * 3 > samples {
            what.push("the VM is not seen in time".to_owned());
        }
        // A copy contains the stack of a signal handler, but not the interrupted stack.
        let in_handlers = match self.source {
            Source::Bpf => 0,
            Source::Copies => of("[truncated] behind a signal's handler"),
        };
        // The load also determines how many methods of the last moments are not read before the process is gone.
        let gone = of("[vm-gone]");
        if gone * 1000 > samples * MOST_GONE {
            what.push("methods are read too late".to_owned());
        }
        let others = reasons - starting - in_handlers - gone;
        let most = self.most_reasons();
        if others * 1000 > samples * most {
            what.push(format!(
                "{others} stacks end in a reason: more than {most} in a thousand"
            ));
        }
        if !counts.ends_elsewhere_seldom() {
            what.push(format!(
                "stacks end where no thread begins, such as\n{complaints}"
            ));
        }
        let found = (!what.is_empty()).then(|| format!("{line}\n{}", what.join("\n")));
        // The other modes take minutes, so errors are printed immediately.
        found.iter().for_each(|found| eprintln!("{found}"));
        Ok(found)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let release = match self.release {
            Release::Art11 => 11,
            Release::Art14 => 14,
        };
        let code = match (self.code, self.release) {
            (Code::Interpreted, Release::Art11) => "interpreted",
            (Code::Interpreted, Release::Art14) => "nterp",
            (Code::Switch, _) => "--int",
            (Code::Jit, _) => "JIT",
            (Code::Image, _) => "boot image",
            (Code::Odex(_), _) => ".odex",
            (Code::Mixed, _) => ".odex and JIT",
        };
        let (stack, source) = (self.stack.option(), self.source);
        write!(f, "ART {release}, {code}, {stack}, {source:?}")
    }
}
