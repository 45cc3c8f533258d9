//! In which modes is an app of ART executed and sampled, and is each sample of the workload `corner` right in them?

use crate::app::App;
use crate::code::{Code, DexFormat};
use crate::jit_log::JitLog;
use crate::oracle::oracle;
use crate::per_sample::{MOST_RUNS, SampleCounts};
use crate::release::Release;
use crate::session::{processes_noted, record};
use anyhow::{Result, bail};
use std::fmt;
use std::path::PathBuf;

/// Samples a second.
const RATE: &str = "10000";
/// Lines of an oracle's complaints that are shown of a mode.
const SHOWN: usize = 30;

/// How much of each stack is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stack {
    /// What is walked, and what is unwound up to there.
    Vertical,
    /// All of it.
    Full,
}

impl Stack {
    /// `--stack`.
    #[must_use]
    pub const fn option(self) -> &'static str {
        match self {
            Self::Vertical => "vertical",
            Self::Full => "full",
        }
    }
}

/// What delivers the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// BPF, which walks the managed frames in the kernel; with the kernel's own samples beside.
    Bpf,
    /// The kernel's copies of registers and stacks alone.
    Copies,
}

impl Source {
    const fn options(self) -> &'static [&'static str] {
        match self {
            Self::Bpf => &["--shim", "bpf", "--keep-raw"],
            Self::Copies => &["--shim", "perf"],
        }
    }

    /// How many of a thousand stacks may end in a reason, beside recursions and a VM that is not known yet. Most are of a VM's start, of which
    /// each run has one; a copy has 32 KB of a stack, and of a signal's handler its own stack alone.
    const fn most_reasons(self) -> u64 {
        match self {
            Self::Bpf => 15,
            Self::Copies => 50,
        }
    }
}

/// How an app is executed and sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    release: Release,
    code: Code,
    /// ART 14: the switch interpreter instead of nterp.
    switch: bool,
    stack: Stack,
    source: Source,
}

impl Mode {
    /// All in which nothing is compiled, and samples come from this source.
    #[must_use]
    pub fn interpreted(source: Source) -> Vec<Self> {
        let (interpreted, nterp) = (Code::Interpreted, Release::Art14);
        let executed = [
            (Release::Art11, interpreted, false),
            (nterp, interpreted, false),
            (nterp, interpreted, true),
        ];
        let all = Self::all(&executed).into_iter();
        all.filter(|mode| mode.source == source).collect()
    }

    /// All with compiled code.
    #[must_use]
    pub fn compiled() -> Vec<Self> {
        let odex = Code::Odex(DexFormat::Compact);
        Self::all(&[
            (Release::Art11, Code::Jit, false),
            (Release::Art11, Code::Image, false),
            (Release::Art11, odex, false),
            (Release::Art11, Code::Mixed, false),
            (Release::Art14, Code::Jit, false),
            (Release::Art14, odex, false),
        ])
    }

    /// Each way of execution with each stack and source.
    fn all(executed: &[(Release, Code, bool)]) -> Vec<Self> {
        let mut all = Vec::new();
        for (release, code, switch) in executed {
            for stack in [Stack::Vertical, Stack::Full] {
                for source in [Source::Bpf, Source::Copies] {
                    all.push(Self {
                        release: *release,
                        code: *code,
                        switch: *switch,
                        stack,
                        source,
                    });
                }
            }
        }
        all
    }

    /// Samples of `corner` until there are enough, judged: the counts, and the first complaints.
    fn judged(&self, enough: u64) -> Result<(SampleCounts, String)> {
        let (mut counts, mut complaints) = (SampleCounts::default(), String::new());
        // Twice as many as it takes on this machine: a third of a millisecond a sample.
        let rounds = if enough > 5000 { 500 } else { 150 };
        for _ in 0..MOST_RUNS {
            if counts.of("samples") >= enough {
                return Ok((counts, complaints));
            }
            let app = App::new("corner", "run", rounds)?.in_release(self.release);
            let app = if self.switch {
                app.option("--int")
            } else {
                app
            };
            let app = app.executed_by(self.code)?;
            let log = self.code.has_jit().then(JitLog::new).transpose()?;
            let app = log.iter().fold(app, |app, log| log.written_by(app));
            let (options, stack) = (self.source.options(), ["--stack", self.stack.option()]);
            let recording = record(
                &app,
                &[&["-F", RATE, "--ring-pages", "8192"], options, &stack].concat(),
            )?;
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

    /// The oracle, and the files that it takes.
    fn truth(&self, app: &App, log: Option<&JitLog>) -> Result<(&'static str, Vec<PathBuf>)> {
        if self.code == Code::Interpreted {
            return Ok(("per_sample.py", vec![app.dex(), app.boot_dex()]));
        }
        let mut files = app.oat_files_with_symbols(self.code)?;
        files.extend(log.map(JitLog::file));
        Ok(("compiled.py", files))
    }

    /// What is wrong with so many samples, or None; prints how stacks end.
    pub fn wrong(&self, enough: u64) -> Result<Option<String>> {
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
        let reasons = ends.iter().filter(|(end, _)| end.starts_with('['));
        let (starting, others): (Vec<_>, Vec<_>) =
            reasons.partition(|(end, _)| *end == "[vm-not-ready]");
        let sum = |some: Vec<&(&str, u64)>| some.iter().map(|(_, n)| n).sum::<u64>();
        // How much a VM does until it is seen is a matter of how busy the machine is.
        if sum(starting) * 3 > samples {
            what.push("the VM is not seen in time".to_owned());
        }
        let others = sum(others);
        let most = self.source.most_reasons();
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
        Ok((!what.is_empty()).then(|| format!("{line}\n{}", what.join("\n"))))
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let release = match self.release {
            Release::Art11 => 11,
            Release::Art14 => 14,
        };
        let code = match (self.code, self.release, self.switch) {
            (Code::Interpreted, Release::Art11, _) => "interpreted",
            (Code::Interpreted, Release::Art14, false) => "nterp",
            (Code::Interpreted, Release::Art14, true) => "--int",
            (Code::Jit, ..) => "JIT",
            (Code::Image, ..) => "boot image",
            (Code::Odex(_), ..) => ".odex",
            (Code::Mixed, ..) => ".odex and JIT",
        };
        let (stack, source) = (self.stack.option(), self.source);
        write!(f, "ART {release}, {code}, {stack}, {source:?}")
    }
}
