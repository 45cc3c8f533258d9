//! Tests that each sample of a Java program is attributed to methods that have called each other, interpreted and compiled.
#![cfg(target_arch = "x86_64")]

use anyhow::{Context, Result, ensure};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use varid_tests::{
    JAVA_PACKAGE, JDK, MOST_RUNS, SampleCounts, Scale, Stack, has_jdk, java_classes,
    judge as judge_by, oracle, printed, scale, skip_without_root, skipped, testbed,
};

/// Of so many samples one may be wrong: in the few instructions of a stub before and after it has a frame.
const SAMPLES_FOR_A_WRONG_ONE: u64 = 2_000;
/// The maximum number of complaints of the oracle that are shown for each mode.
const SHOWN: usize = 60;

/// How the VM executes the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Code {
    Interpreted,
    /// By the first compiler only.
    C1,
    Tiered,
}

impl Code {
    const fn option(self) -> &'static str {
        match self {
            Self::Interpreted => "-Xint",
            Self::C1 => "-XX:TieredStopAtLevel=1",
            Self::Tiered => "-XX:+TieredCompilation",
        }
    }

    /// Returns the number of rounds that take about two seconds.
    const fn rounds(self) -> u32 {
        match self {
            Self::Interpreted => 60,
            Self::C1 => 1000,
            Self::Tiered => 1500,
        }
    }

    /// Returns the same of the deep recursion.
    const fn deep_rounds(self) -> u32 {
        match self {
            Self::Interpreted => 1_500,
            Self::C1 | Self::Tiered => 30_000,
        }
    }
}

/// The source of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shim {
    Bpf,
    Perf,
}

/// A way to execute and sample the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mode {
    code: Code,
    stack: Stack,
    shim: Shim,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, stack, shim } = self;
        write!(f, "Java 17, {code:?}, {}, {shim:?}", stack.option())
    }
}

/// Records a program, which must print what it prints without varid.
fn record(code: Code, main: &str, rounds: u32, options: &[&str], session: &Path) -> Result<()> {
    let mut java = vec![format!("{JDK}/java"), code.option().to_owned()];
    java.extend(["-cp".to_owned(), java_classes()?.display().to_string()]);
    java.extend([format!("{JAVA_PACKAGE}.{main}"), rounds.to_string()]);
    let expected = printed(Command::new(&java[0]).args(&java[1..]))?;
    let mut varid = testbed()?.varid();
    varid.args(["record", "--ring-pages", "8192"]).args(options);
    varid.arg("-o").arg(session).arg("--").args(&java);
    let found = printed(varid.stdin(Stdio::null()))?;
    ensure!(found == expected, "it printed {found:?}");
    Ok(())
}

impl Mode {
    /// Returns the maximum per mille of stacks of Java code that may end in a reason, other than `[vm-gone]`: four to seven were measured. A VM's
    /// start has thirty of them, in stubs that tell its processor's features, and weighs more with few samples. A copy of a stack holds the
    /// deepest one of the workload.
    fn most_reasons() -> u64 {
        match scale() {
            Scale::Long => 10,
            Scale::Gate => 20,
        }
    }

    /// Records the program, with the kernel's own samples where they say which instruction was interpreted.
    fn record(self, session: &Path) -> Result<()> {
        let raw = self.code == Code::Interpreted && self.stack == Stack::Vertical;
        let shim = match self.shim {
            Shim::Bpf if raw => &["--shim", "bpf", "--keep-raw"][..],
            Shim::Bpf => &["--shim", "bpf"],
            Shim::Perf => &["--shim", "perf"],
        };
        let frequency = match scale() {
            Scale::Long => "5000",
            Scale::Gate => "2000",
        };
        let options = [&["-F", frequency, "--stack", self.stack.option()], shim].concat();
        record(self.code, "Truth", self.code.rounds(), &options, session)
    }

    /// Records until there are enough samples in the workload's methods, and judges them. Returns the counts and the first complaints.
    fn judged(self, enough: u64) -> Result<(SampleCounts, String)> {
        let (mut counts, mut complaints) = (SampleCounts::default(), String::new());
        for _ in 0..MOST_RUNS {
            if counts.of("of the workload") >= enough {
                return Ok((counts, complaints));
            }
            let folder = tempfile::tempdir()?;
            let session = folder.path().join("session");
            self.record(&session)?;
            let arguments = [
                session,
                java_classes()?.to_owned(),
                PathBuf::from(JAVA_PACKAGE),
            ];
            let (_, counted, complained) = oracle("java.py", arguments)?;
            let mut of_this = SampleCounts::default();
            of_this.add(&counted)?;
            // On a busy machine varid is behind, and reads nothing more of a VM that has ended.
            if of_this.of("ends: [vm-gone]") * 20 > of_this.of("in generated code") {
                continue;
            }
            counts.add(&counted)?;
            if complaints.is_empty() {
                let shown = complained.lines().take(SHOWN);
                complaints = shown.collect::<Vec<_>>().join("\n");
            }
        }
        anyhow::bail!("{self}: too few samples: {counts:?}");
    }

    /// Judges samples in at least `enough` stacks of the workload. Returns the errors, or None if there are none. Prints how stacks end.
    fn wrong(self, enough: u64) -> Result<Option<String>> {
        let (counts, complaints) = self.judged(enough)?;
        let ends: Vec<_> = counts.beginning_with("ends: ").collect();
        let shown: Vec<_> = ends.iter().map(|(end, n)| format!("{end} {n}")).collect();
        let of = |name: &str| counts.of(name);
        let (in_java, wrong) = (of("in generated code"), of("wrong"));
        let line = format!(
            "{self}: {} samples, {in_java} in Java, {wrong} wrong, {} approximate; {}",
            of("samples"),
            of("approximate"),
            shown.join(", ")
        );
        println!("{line}");
        let mut what = Vec::new();
        if wrong * SAMPLES_FOR_A_WRONG_ONE > of("samples") {
            what.push(format!("{wrong} wrong, such as\n{complaints}"));
        }
        // The load of the machine determines how much is read too late of a process that ends.
        let is_reason = |end: &str| end.starts_with('[') && !end.ends_with("(native)");
        let reasons = ends.iter().filter(|(end, _)| is_reason(end));
        let reasons: u64 = reasons.map(|(_, count)| count).sum();
        let others = reasons.saturating_sub(of("ends: [vm-gone]"));
        let most = Self::most_reasons();
        if others * 1000 > in_java * most {
            what.push(format!(
                "{others} stacks end in a reason: more than {most} in a thousand"
            ));
        }
        Ok((!what.is_empty()).then(|| format!("{line}\n{}", what.join("\n"))))
    }
}

/// Judges each combination.
fn judge(codes: &[Code], stacks: &[Stack], shims: &[Shim], enough: u64) -> Result<()> {
    let mut wrong = Vec::new();
    for &code in codes {
        for &stack in stacks {
            for &shim in shims {
                wrong.extend(
                    Mode { code, stack, shim }
                        .wrong(enough)
                        .with_context(|| format!("{code:?}, {}, {shim:?}", stack.option()))?,
                );
            }
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    Ok(())
}

fn skip() -> bool {
    let skip = !has_jdk();
    if skip {
        skipped("java", "there is no openjdk-17-jdk-headless");
    }
    skip || skip_without_root("java")
}

#[test]
fn every_sample_of_interpreted_and_compiled_java_is_of_methods_that_called_each_other() -> Result<()>
{
    if skip() {
        return Ok(());
    }
    match scale() {
        Scale::Gate => judge(
            &[Code::Interpreted, Code::Tiered],
            &[Stack::Vertical],
            &[Shim::Bpf],
            1_500,
        ),
        Scale::Long => judge(
            &[Code::Interpreted, Code::C1, Code::Tiered],
            &[Stack::Vertical, Stack::Full],
            &[Shim::Bpf, Shim::Perf],
            15_000,
        ),
    }
}

/// The same loops cost the same where the same code executes them: in the interpreter. Compilers align and unroll each differently.
#[test]
fn shares_of_known_work_in_java_are_right_in_self_and_total() -> Result<()> {
    if skip() {
        return Ok(());
    }
    // A percentage point is two standard deviations of a share of 13,000 samples. Interference on a shared machine is transient.
    let once = || -> Result<serde_json::Value> {
        let folder = tempfile::tempdir()?;
        let session = folder.path().join("session");
        record(Code::Interpreted, "Shares", 2500, &["-F", "3989"], &session)?;
        judge_by("java_shares.py", [session])
    };
    let found = once().or_else(|_| once()).or_else(|_| once())?;
    println!("shares in Java: {found}");
    ensure!(found["samples"].as_u64() > Some(8_000), "{found}");
    Ok(())
}

/// A stack of a thousand frames is deeper than its copy: the shim takes the words that unwinding needs beyond it.
#[test]
fn a_thousand_java_frames_are_whole_up_to_the_threads_start() -> Result<()> {
    if skip() {
        return Ok(());
    }
    for code in [Code::Interpreted, Code::C1, Code::Tiered] {
        let folder = tempfile::tempdir()?;
        let session = folder.path().join("session");
        let options = ["-F", "997", "--shim", "bpf"];
        record(code, "Deep", code.deep_rounds(), &options, &session)?;
        let found = judge_deep(&session, "Deep", 1000).with_context(|| format!("{code:?}"))?;
        println!("a thousand frames, {code:?}: {found}");
        ensure!(found["at work"].as_u64() > Some(300), "{found}");
    }
    Ok(())
}

/// Beyond the copy are frames of the VM, which no word of the walk leads through: the VM's own notes lead behind them.
#[test]
fn java_frames_behind_calls_of_the_vm_beyond_the_copy_are_whole() -> Result<()> {
    if skip() {
        return Ok(());
    }
    for code in [Code::Interpreted, Code::Tiered] {
        let folder = tempfile::tempdir()?;
        let session = folder.path().join("session");
        let options = ["-F", "997", "--shim", "bpf"];
        record(
            code,
            "Reflected",
            code.deep_rounds() / 2,
            &options,
            &session,
        )?;
        let found = judge_deep(&session, "Reflected", 150).with_context(|| format!("{code:?}"))?;
        println!("calls of the VM, {code:?}: {found}");
        ensure!(found["at work"].as_u64() > Some(100), "{found}");
    }
    Ok(())
}

fn judge_deep(session: &Path, class: &str, depth: u32) -> Result<serde_json::Value> {
    let class = format!("{JAVA_PACKAGE}.{class}");
    judge_by(
        "java_deep.py",
        [
            session.as_os_str(),
            class.as_ref(),
            depth.to_string().as_ref(),
        ],
    )
}
