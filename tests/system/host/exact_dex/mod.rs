//! Tests that `varid exact` counts each call of dex code by its calling context.
//!
//! One oracle is ART's own method trace of the program as it was. The other one is a program whose counts follow from its text.
#![cfg(target_arch = "x86_64")]

use anyhow::{Context, Result, ensure};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use varid_recording::{NodeId, SessionReader};
use varid_symbolizer::dex::Dialect;
use varid_tests::{App, Code, Release, Scale, judge, printed, scale, testbed};

use super::exact::{self, Values, child_of, ensure_equal, names};

/// Counts a command with varid, which must print `expected`.
fn count(session: &Path, options: &[&str], command: &[String], expected: &str) -> Result<()> {
    let mut varid = testbed()?.varid();
    varid.arg("exact").args(options).arg("-o").arg(session);
    let found = printed(varid.arg("--").args(command))?;
    ensure!(found == expected, "{found} instead of {expected}");
    Ok(())
}

/// Returns the values of a counter in the contexts of methods whose class starts with `prefix`, of all threads: by these methods,
/// outermost first.
fn read(session: &Path, counter: &str, prefix: &str) -> Result<Values> {
    let names = names(session)?;
    let reader = SessionReader::open(session)?;
    let contexts = reader.contexts()?.context("contexts")?;
    let counter = contexts.counter(counter).context("the counter")?;
    let mut paths: HashMap<NodeId, String> = HashMap::new();
    let mut values = Values::new();
    for id in contexts.node_ids() {
        let node = contexts.node(id).context("a node")?;
        let parent = node.parent.and_then(|parent| paths.get(&parent));
        let mut path = parent.cloned().unwrap_or_default();
        let name = names.get(&node.address.get()).context("a name")?;
        if name.starts_with(prefix) {
            if !path.is_empty() {
                path.push('\t');
            }
            path.push_str(name);
            *values.entry(path.clone()).or_default() += contexts.value(id, counter);
        }
        paths.insert(id, path);
    }
    Ok(values)
}

#[test]
fn calls_are_those_of_the_method_trace_interpreted_and_compiled() -> Result<()> {
    let mut apps = vec![("corner", "run")];
    let mut runs = vec![(Release::Art11, Code::Interpreted, &["--bytecodes"][..])];
    if scale() == Scale::Long {
        apps.extend([
            ("math", "run"),
            ("vm", "run"),
            ("alike", "run"),
            ("faults", "run"),
            ("jit", "run"),
            ("truth", "exceptions"),
            ("truth", "interfaces"),
        ]);
        runs.extend([
            (Release::Art11, Code::Jit, &["--bytecodes"][..]),
            (Release::Art11, Code::Interpreted, &[]),
            (Release::Art14, Code::Interpreted, &["--bytecodes"]),
            (Release::Art14, Code::Switch, &["--bytecodes"]),
            (Release::Art14, Code::Jit, &["--bytecodes"]),
        ]);
    }
    let folder = tempfile::tempdir()?;
    for (number, (name, method)) in apps.into_iter().enumerate() {
        let prefix = format!("org.example.{name}.");
        let app = App::new(name, method, 1)?;
        let trace = app.traced()?;
        let expected = judge("method_contexts.py", [trace.as_os_str(), prefix.as_ref()])?;
        let expected: Values = serde_json::from_value(expected)?;
        ensure!(expected.len() > 8, "{expected:?}");
        let output = printed(&mut app.command())?;
        for (run, (release, code, options)) in runs.iter().enumerate() {
            let what = || format!("{name} in {release:?}, {code:?}, {options:?}");
            let app = App::new(name, method, 1)?.in_release(*release);
            let app = app.executed_by(*code).with_context(what)?;
            let session = folder.path().join(format!("{number}.{run}"));
            count(&session, options, &app.arguments(), &output).with_context(what)?;
            let found = read(&session, "calls", &prefix)?;
            ensure_equal(&found, &expected).with_context(what)?;
        }
    }
    Ok(())
}

/// For each method of `exact_dex/Main.smali` in run(8): its calls, and its instructions.
const COUNTED: [(&str, u64, u64); 4] = [
    // Two before the loop; seven in each round, of which the round with an exception has three less and two more; four behind it.
    ("run(I)J", 1, 2 + 7 * 8 - 3 + 2 + 2),
    // Two each of nine (an exception) and of seven (the recursion) and of five (none); ten with the monitor, nine if that throws.
    ("part(I)I", 8, 2 * 9 + 2 * 7 + 2 * 5 + 10 + 9),
    // Three, two if it throws.
    ("leaf(I)I", 2, 3 + 2),
    // Twice three levels of five, and the last of three.
    ("down(I)I", 8, 2 * (3 * 5 + 3)),
];

const COUNTED_PREFIX: &str = "org.example.counted.Main.";

/// Assembles `exact_dex/Main.smali`.
fn assemble(folder: &Path) -> Result<PathBuf> {
    let dex = folder.join("counted.dex");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("system/host/exact_dex");
    printed(
        Command::new("smali")
            .args(["assemble", "--api", "29", "-o"])
            .arg(&dex)
            .arg(source),
    )?;
    Ok(dex)
}

/// Returns the command that executes run(`rounds`) of the assembled program.
fn counted(dex: &Path, options: &[&str], rounds: u32) -> Result<Vec<String>> {
    let artvm = testbed()?.release.join("artvm").display().to_string();
    let (dex, rounds) = (dex.display().to_string(), rounds.to_string());
    let mut command = vec![artvm.as_str(), "--no-dim"];
    command.extend(options);
    command.extend(["--dex", &dex, "--name", "org.example.counted"]);
    command.extend(["org.example.counted.Main", "run", &rounds]);
    Ok(command.into_iter().map(str::to_owned).collect())
}

/// Checks an annotation and metrics, which find the dex file in the session: `leaf` is called twice, and throws once.
fn ensure_instructions(session: &Path) -> Result<()> {
    let json = |arguments: &[&str]| -> Result<serde_json::Value> {
        let mut varid = testbed()?.varid();
        varid.args(arguments).args(["--format", "json", "-i"]);
        Ok(serde_json::from_str(&printed(varid.arg(session))?)?)
    };
    let annotation = json(&["annotate", "Main.leaf", "--measure", "bytecodes"])?;
    let lines = annotation["files"].as_array().into_iter().flatten();
    let lines = lines.flat_map(|file| file["lines"].as_array().into_iter().flatten());
    let found = lines.flat_map(|line| line["instructions"].as_array().into_iter().flatten());
    let found: Vec<_> = found
        .map(|one| {
            let text = one["text"].as_str().unwrap_or_default();
            (text.split(' ').next(), one["self"].as_u64())
        })
        .collect();
    let expected = [("add-int/lit8", 2), ("div-int", 2), ("return", 1)];
    let expected = expected.map(|(name, count)| (Some(name), Some(count)));
    ensure!(found == expected, "{annotation:#}");
    let metrics = json(&["metrics"])?;
    let opcodes = metrics["opcodes"].as_array().into_iter().flatten();
    let executions: u64 = opcodes.filter_map(|row| row["executions"].as_u64()).sum();
    let expected: u64 = COUNTED.iter().map(|(.., instructions)| instructions).sum();
    ensure!(
        executions == expected,
        "{executions} of {expected}: {metrics:#}"
    );
    Ok(())
}

/// Checks an estimate in which each instruction costs 2, and that it is refused on a machine that executes another bytecode.
fn ensure_priced(session: &Path, folder: &Path) -> Result<()> {
    let table = folder.join("two.toml");
    let names: BTreeSet<&str> = (0..=0xe2)
        .map(|code| Dialect::Art.opcode(code).name)
        .filter(|name| !name.starts_with("unused"))
        .collect();
    let costs: Vec<String> = names.iter().map(|name| format!("{name:?} = 2\n")).collect();
    let head = "target = \"two\"\nunit = \"ns\"\nbytecode = \"dex\"\n[cost]\n";
    fs::write(&table, format!("{head}{}", costs.concat()))?;
    let mut varid = testbed()?.varid();
    varid
        .args(["estimate", "--summary", "json", "--target"])
        .arg(&table);
    let found: serde_json::Value = serde_json::from_str(&printed(varid.arg(session))?)?;
    let expected: u64 = COUNTED.iter().map(|(.., instructions)| instructions).sum();
    let number = |key: &str| found[key].as_f64();
    let expected = expected as f64;
    ensure!(number("instructions") == Some(expected), "{found:#}");
    ensure!(number("cycles") == Some(2.0 * expected), "{found:#}");
    let mut varid = testbed()?.varid();
    let refused = varid
        .args(["estimate", "--target", "jop-2011"])
        .arg(session)
        .output()?;
    let errors = String::from_utf8_lossy(&refused.stderr);
    let reason = "prices Java's bytecode, and the session has dex code";
    ensure!(
        !refused.status.success() && errors.contains(reason),
        "{errors}"
    );
    Ok(())
}

#[test]
fn instructions_are_those_that_the_program_executes() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dex = assemble(folder.path())?;
    // The JIT takes ART's compiler, which the long lane builds.
    let modes = match scale() {
        Scale::Gate => &[&[][..]][..],
        Scale::Long => &[&[][..], &["--jit"]],
    };
    for code in modes {
        let command = counted(&dex, code, 8)?;
        let session = folder.path().join(format!("session{}", code.len()));
        count(&session, &["--bytecodes"], &command, "7\n")?;
        let prefix = COUNTED_PREFIX;
        for (counter, of) in [("calls", 1), ("bytecodes", 2)] {
            let mut found: BTreeMap<String, u64> = BTreeMap::new();
            for (path, value) in read(&session, counter, prefix)? {
                let method = path.rsplit('\t').next().unwrap_or_default();
                let method = method.trim_start_matches(prefix).to_owned();
                *found.entry(method).or_default() += value;
            }
            let expected = COUNTED.map(|(method, calls, instructions)| {
                let value = if of == 1 { calls } else { instructions };
                (method.to_owned(), value)
            });
            ensure!(found == BTreeMap::from(expected), "{counter}: {found:?}");
        }
        ensure_instructions(&session)?;
        ensure_priced(&session, folder.path())?;
        exact::ensure_xml(folder.path(), &session)?;
    }
    Ok(())
}

const KILLS: u32 = 20;

/// Checks that counts are those of the first calls of part(i). The last one may not have ended.
fn ensure_prefix(session: &Path) -> Result<u64> {
    let of = |counter: &str| -> Result<Values> { read(session, counter, COUNTED_PREFIX) };
    let calls = of("calls")?;
    let path = |methods: &[&str]| {
        let methods = methods.iter().map(|one| format!("{COUNTED_PREFIX}{one}"));
        methods.collect::<Vec<_>>().join("\t")
    };
    let value =
        |values: &Values, methods: &[&str]| values.get(&path(methods)).copied().unwrap_or(0);
    let (run, part, leaf, down) = ("run(I)J", "part(I)I", "leaf(I)I", "down(I)I");
    let parts = value(&calls, &[run, part]);
    let ensure_of = |name: &str, found: u64, of: &dyn Fn(u64) -> u64| -> Result<()> {
        let expected = of(parts.saturating_sub(1))..=of(parts);
        ensure!(
            expected.contains(&found),
            "{name}: {found} for {parts} parts"
        );
        Ok(())
    };
    let leaves = value(&calls, &[run, part, leaf]);
    // One for each i of 1, 5, 9 …, and the recursion for each of 2, 6, 10 ….
    ensure_of("leaf", leaves, &|parts| (parts + 2) / 4)?;
    for depth in 1..=4 {
        let mut methods = vec![run, part];
        methods.extend(vec![down; depth]);
        ensure_of("down", value(&calls, &methods), &|parts| (parts + 1) / 4)?;
    }
    // All instructions but the last one of the first call, which throws.
    let instructions = value(&of("bytecodes")?, &[run, part, leaf]);
    let expected = (3 * leaves).saturating_sub(1);
    ensure!(
        instructions == expected,
        "{instructions} instructions of {leaves} calls"
    );
    Ok(parts)
}

#[test]
fn what_a_vm_killed_at_any_moment_has_counted_is_that_of_the_first_calls() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dex = assemble(folder.path())?;
    let mut all = 0;
    // The JIT takes ART's compiler, which the long lane builds.
    let (kills, modes) = match scale() {
        Scale::Gate => (5..6, &[&[][..]][..]),
        Scale::Long => (0..KILLS, &[&[][..], &["--jit"]][..]),
    };
    for kill in kills {
        let code = modes[kill as usize % modes.len()];
        let session = folder.path().join(format!("killed{kill}"));
        let mut varid = testbed()?.varid();
        varid.args(["exact", "--bytecodes", "-o"]).arg(&session);
        let command = counted(&dex, code, i32::MAX.unsigned_abs())?;
        let mut varid = varid
            .arg("--")
            .args(command)
            .stderr(Stdio::null())
            .spawn()?;
        let pid = child_of(varid.id())?;
        // Most are killed in the loop, behind the VM's start.
        std::thread::sleep(Duration::from_millis(150) * kill);
        let signal = nix::sys::signal::Signal::SIGKILL;
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal)?;
        let status = varid.wait()?.code();
        if session.join("contexts.data").exists() {
            ensure!(status == Some(128 + 9), "kill {kill}: {status:?}");
            all += ensure_prefix(&session).with_context(|| format!("kill {kill}"))?;
        } else {
            // It was killed before it counted, of which varid complains.
            ensure!(kill < 3 && status == Some(125), "kill {kill}: {status:?}");
        }
    }
    ensure!(all > 1000, "{all} calls");
    Ok(())
}
