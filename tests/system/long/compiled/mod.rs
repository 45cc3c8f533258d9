//! Tests that every sample in compiled code of ART 11 and 14 is attributed to the correct methods, including inlined
//! ones.

mod modes;
mod profile;
mod replaced;

use anyhow::{Context, Result, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};
use varid_tests::{
    App, Code, DexFormat, JitLog, Release, Scale, Stack, judge, lines_by_perf_script,
    methods_by_perf, methods_by_varid, perf_annotates_as_varid_reports, sample, scale,
    skip_without_root,
};

/// Runs of a workload's method that outlast the sampling.
const WORKLOADS: [(&str, &str, u32); 7] = [
    ("math", "run", 100_000),
    ("truth", "run", 100_000),
    ("vm", "run", 100_000),
    ("alike", "quiet", 10_000_000),
    ("cradle", "run", 10_000_000),
    ("scene", "run", 10_000_000),
    ("faults", "run", 100_000),
];

/// Options for samples with the kernel's own in addition.
const OPTIONS: [&str; 8] = [
    "-e",
    "cpu-clock",
    "--shim",
    "bpf",
    "--keep-raw",
    "--ring-pages",
    "8192",
    "--stack",
];

/// A sampled workload.
struct Run {
    release: Release,
    code: Code,
    stack: Stack,
    workload: (&'static str, &'static str, u32),
    vm_options: Vec<&'static str>,
    /// The duration of sampling.
    time: &'static str,
    /// The rate in Hz.
    rate: &'static str,
}

impl Run {
    fn new(
        (code, stack): (Code, Stack),
        workload: (&'static str, &'static str, u32),
        time: &'static str,
    ) -> Self {
        Self {
            release: Release::Art11,
            code,
            stack,
            workload,
            vm_options: Vec::new(),
            time,
            rate: "10000",
        }
    }

    /// Records the workload, and returns the oracle's counts.
    fn judged(&self) -> Result<Counts> {
        let (name, method, rounds) = self.workload;
        let code = self.code;
        let mut app = App::new(name, method, rounds)?
            .in_release(self.release)
            .executed_by(code)?;
        for option in &self.vm_options {
            app = app.option("--vm-option").option(*option);
        }
        let log = code.has_jit().then(JitLog::new).transpose()?;
        if let Some(log) = &log {
            app = log.written_by(app);
        }
        let options = [
            &OPTIONS[..],
            &[self.stack.option(), "--duration", self.time],
            &["-F", self.rate],
        ];
        let recording = sample(&mut app.command(), &app.mapped_files(), &options.concat())?;
        if recording.counts()?["samples"] == 0 {
            // perf rejects a file without records as invalid.
            println!("{name} {method} in {code:?}: the machine had no time for it");
            return Ok(Counts::default());
        }
        let mut truth = app.oat_files_with_symbols(code)?;
        truth.extend(log.iter().map(JitLog::file));
        let files = [recording.session(), recording.maps(), app.traced()?];
        let value = judge("compiled.py", files.into_iter().chain(truth))
            .with_context(|| format!("{name} {method} in {code:?} of {:?}", self.release))?;
        println!("{name} {method} in {code:?} of {:?}: {value}", self.release);
        Counts::of(&value)
    }
}

/// The counts, summed over runs.
#[derive(Debug, Default)]
struct Counts(BTreeMap<String, u64>);

impl Counts {
    fn of(value: &serde_json::Value) -> Result<Self> {
        let counts = value.as_object().context("no JSON object")?.iter();
        let counts = counts.map(|(name, count)| {
            let count = count.as_u64().context("no count")?;
            Ok((name.clone(), count))
        });
        Ok(Self(counts.collect::<Result<_>>()?))
    }

    fn add(&mut self, other: &Self) {
        for (name, count) in &other.0 {
            *self.0.entry(name.clone()).or_default() += count;
        }
    }

    fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Returns the number of samples of a VM that varid has found.
    fn judged(&self) -> u64 {
        self.get("samples").saturating_sub(self.get("vm not ready"))
    }
}

/// Samples all workloads in a kind of code until there are enough samples, and compares each with the compiler's
/// information about its code.
fn check(release: Release, code: Code, stack: Stack) -> Result<()> {
    if skip_without_root("compiled code") {
        return Ok(());
    }
    let (time, enough) = match scale() {
        Scale::Gate => ("400ms", 4000),
        Scale::Long => ("2s", 20_000),
    };
    let mut all = Counts::default();
    let mut interpreted: BTreeSet<&str> = WORKLOADS.iter().map(|(name, ..)| *name).collect();
    // A busy machine takes fewer samples of these workloads, and almost none of one of them.
    for _ in 0..20 {
        for workload in WORKLOADS {
            let run = Run::new((code, stack), workload, time);
            let counts = Run { release, ..run }.judged()?;
            if counts.get("compiled") > 0 {
                interpreted.remove(workload.0);
            }
            all.add(&counts);
        }
        if all.judged() >= enough && (interpreted.is_empty() || scale() == Scale::Gate) {
            break;
        }
    }
    ensure!(
        interpreted.is_empty() || scale() == Scale::Gate,
        "no compiled code of {interpreted:?}: {all:?}"
    );
    println!("{code:?} of {release:?}: {all:?}");
    let judged = all.judged();
    if judged < enough {
        bail!("too few samples: {all:?}");
    }
    ensure!(all.get("wrong") == 0, "{all:?}");
    ensure!(all.get("approximate") > 0, "nothing is marked: {all:?}");
    ensure!(
        all.get("compiled") * 10 > judged,
        "little compiled code: {all:?}"
    );
    // Compiled code identifies which of several methods with the same bytecode ran. An interpreted virtual call may
    // not.
    let of_several = all.get("of several methods");
    ensure!(
        of_several == 0 || code.has_jit() && of_several * 100 < judged,
        "1 % have a name of several methods: {all:?}"
    );
    let compared: &[&str] = match stack {
        Stack::Vertical => &["calls", "in a signal's handler"],
        Stack::Full => &[
            "compiled, partial",
            "compiled, edges",
            "inlined edges",
            "in a signal's handler",
        ],
    };
    for what in compared {
        ensure!(all.get(what) > 0, "no {what}: {all:?}");
    }
    // A walk ends at the outermost method. Its native callers are not shown.
    if stack == Stack::Vertical {
        let unattributed = all.get("unattributed");
        ensure!(unattributed * 200 < judged, "0.5 % unattributed: {all:?}");
        return Ok(());
    }
    for what in ["unattributed", "broken stacks"] {
        ensure!(all.get(what) * 200 < judged, "0.5 % {what}: {all:?}");
    }
    let unresolved = all.get("nterp, unresolved");
    ensure!(
        unresolved * 20 < judged,
        "5 % in nterp, unresolved: {all:?}"
    );
    Ok(())
}

/// An unmodified perf shows the methods of compiled code and their lines.
#[test]
fn perf_annotates_and_prints_lines_of_compiled_code() -> Result<()> {
    if skip_without_root("perf and compiled code") {
        return Ok(());
    }
    for code in Code::COMPILED {
        let app = App::new("math", "run", 100_000)?.executed_by(code)?;
        let options = ["-e", "cpu-clock", "-F", "4000", "--duration", "1s"];
        let recording = sample(&mut app.command(), &app.mapped_files(), &options)?;
        let session = recording.session();
        let file = session.join("perf.data");
        let (perf, varid) = (methods_by_perf(&file, &[])?, methods_by_varid(&session)?);
        ensure!(
            perf == varid,
            "{code:?}: perf report says\n{perf:?}\nvarid report\n{varid:?}"
        );
        let mut methods: Vec<_> = varid.into_iter().collect();
        methods.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
        for (method, _) in methods.iter().take(3) {
            let lines = perf_annotates_as_varid_reports(&session, method)
                .with_context(|| format!("{code:?}"))?;
            let script = lines_by_perf_script(&file, method)?;
            println!("{method} in {code:?}: {lines:?}");
            ensure!(
                script == lines,
                "{code:?}, {method}: perf script says\n{script:?}\nvarid report\n{lines:?}"
            );
        }
    }
    Ok(())
}

#[test]
fn every_sample_in_compiled_code_of_the_jit_is_what_its_log_says() -> Result<()> {
    check(Release::Art11, Code::Jit, Stack::Full)
}

#[test]
fn every_sample_in_compiled_code_of_art_14s_jit_is_what_its_log_says() -> Result<()> {
    check(Release::Art14, Code::Jit, Stack::Full)
}

#[test]
fn every_sample_in_compiled_code_of_art_14s_boot_image_is_what_its_symbols_say() -> Result<()> {
    check(Release::Art14, Code::Image, Stack::Full)
}

#[test]
fn every_sample_in_compiled_code_of_an_app_of_art_14_is_what_its_symbols_say() -> Result<()> {
    for format in [DexFormat::Plain, DexFormat::Compact] {
        check(Release::Art14, Code::Odex(format), Stack::Full)?;
    }
    Ok(())
}

#[test]
fn every_sample_in_compiled_code_of_an_app_and_the_jit_of_art_14_is_what_both_say() -> Result<()> {
    check(Release::Art14, Code::Mixed, Stack::Full)
}

#[test]
fn every_sample_in_compiled_code_of_a_boot_image_is_what_its_symbols_say() -> Result<()> {
    check(Release::Art11, Code::Image, Stack::Full)
}

#[test]
fn every_sample_in_compiled_code_of_an_app_with_compact_dex_is_what_its_symbols_say() -> Result<()>
{
    check(Release::Art11, Code::Odex(DexFormat::Compact), Stack::Full)
}

#[test]
fn every_sample_in_compiled_code_of_an_app_with_plain_dex_is_what_its_symbols_say() -> Result<()> {
    check(Release::Art11, Code::Odex(DexFormat::Plain), Stack::Full)
}

#[test]
fn every_sample_in_compiled_code_of_an_app_and_the_jit_is_what_both_say() -> Result<()> {
    check(Release::Art11, Code::Mixed, Stack::Full)
}

#[test]
fn walked_callers_in_compiled_code_are_called_as_their_bytecode_says() -> Result<()> {
    for release in [Release::Art11, Release::Art14] {
        for code in Code::COMPILED {
            check(release, code, Stack::Vertical)?;
        }
    }
    Ok(())
}
