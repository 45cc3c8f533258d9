//! Tests that `varid exact --switch` counts what runs while counting is on, in whole contexts, and nothing else.
//!
//! The truth is a run of the same program that counts all of it, and what the program does between its switches.
#![cfg(target_arch = "x86_64")]

use crate::exact::{Program, Values, ensure_equal, read, skip, varid};
use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, Stdio};
use varid_tests::{JDK, compile_class, printed, testbed};

/// The program, which switches counting itself.
const SWITCHED: Program = Program {
    class: "Switched",
    arguments: &[],
    threads: &["main", "worker"],
    left_out: &[],
};
/// The same, which waits for others that do.
const PAUSING: Program = Program {
    arguments: &["pausing"],
    ..SWITCHED
};

/// Returns the counts whose contexts have one of these parts.
fn parts<K: Ord + Clone>(
    all: &BTreeMap<K, u64>,
    context: impl Fn(&K) -> &str,
    parts: &[&str],
) -> BTreeMap<K, u64> {
    let counts = all
        .iter()
        .filter(|(key, count)| **count > 0 && parts.iter().any(|part| context(key).contains(part)));
    counts.map(|(key, count)| (key.clone(), *count)).collect()
}

fn called(calls: &Values) -> Values {
    parts(calls, String::as_str, &["\t"])
}

#[test]
fn a_program_switches_counting_in_the_middle_of_its_calls() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    compile_class(SWITCHED.class, folder.path())?;
    let counted = |name: &str, options: &[&str]| {
        let session = folder.path().join(name);
        SWITCHED.exact(folder.path(), &session, options, &["-Xmixed"])?;
        read(&session, &SWITCHED)
    };
    let all = counted("all", &["--bytecodes"])?;
    let on = counted("on", &["--bytecodes", "--switch", "off"])?;
    // `off` is called while counting is on. The worker's calls have no caller.
    let counted_parts = [":Switched.counted()V", ":Switched.inner(I)I", "worker\t"];
    let with_off = [&counted_parts[..], &[":Switched.off()V"]].concat();
    let expected = parts(&all.calls, String::as_str, &with_off);
    ensure!(expected.len() > 10, "{expected:?}");
    let inner = expected
        .iter()
        .find(|(context, _)| context.ends_with(":Switched.inner(I)I"));
    let (inner, calls) = inner.context("inner")?;
    ensure!(
        inner.contains(":Switched.outer(I)I") && *calls == 1,
        "{inner}"
    );
    ensure_equal(&called(&on.calls), &expected)?;
    let steps = |counts: &BTreeMap<(String, u32), u64>| {
        parts(counts, |(context, _)| context, &counted_parts)
    };
    let expected = steps(&all.steps);
    ensure!(expected.len() > 50, "{expected:?}");
    ensure_equal(&steps(&on.steps), &expected)
}

/// Lets the program go on.
fn go_on(program: &mut ChildStdin) -> Result<()> {
    program.write_all(b"\n")?;
    Ok(program.flush()?)
}

#[test]
fn counting_is_switched_by_process_and_by_signal() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    compile_class(PAUSING.class, folder.path())?;
    let on = switched_from_outside(folder.path(), &folder.path().join("on"))?;
    let session = folder.path().join("all");
    SWITCHED.exact(folder.path(), &session, &[], &["-Xmixed"])?;
    let all = read(&session, &SWITCHED)?.calls;
    // Its call site in `main` is another one.
    let below = |calls: &Values| {
        let mut below = Values::new();
        for (context, count) in parts(calls, String::as_str, &[":Switched.", "worker\t"]) {
            let main = context.split_once(":Switched.counted()V");
            match main {
                Some((_, below_it)) => below.insert(below_it.to_owned(), count),
                None if context.starts_with("worker\t") => below.insert(context, count),
                None => None,
            };
        }
        below
    };
    let expected = below(&all);
    ensure!(expected.len() > 8, "{expected:?}");
    ensure_equal(&below(&on), &expected)?;
    let elsewhere = [":Switched.before()V", ":Switched.after()V"];
    let elsewhere = parts(&on, String::as_str, &elsewhere);
    ensure!(elsewhere.is_empty(), "{elsewhere:?}");
    Ok(())
}

/// Counts the program while it is between its pauses.
fn switched_from_outside(folder: &Path, session: &Path) -> Result<Values> {
    let mut varid = varid(&["--switch", "off"], session)?
        .arg("--")
        .arg(format!("{JDK}/java"))
        .arg("-cp")
        .arg(folder)
        .args([PAUSING.class, "pausing"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut input = varid.stdin.take().context("its input")?;
    let mut lines = BufReader::new(varid.stdout.take().context("its output")?).lines();
    let mut said = BufReader::new(varid.stderr.take().context("its messages")?).lines();
    let pid = lines.next().context("the process")??;
    let mut switch = testbed()?.varid();
    printed(switch.args(["exact", "--switch", "on", "--pid", &pid]))?;
    go_on(&mut input)?;
    lines.next().context("the second pause")??;
    kill(Pid::from_raw(varid.id().try_into()?), Signal::SIGUSR2)?;
    loop {
        let line = said.next().context("what the signal does")??;
        if line == "varid: counting is off" {
            break;
        }
    }
    go_on(&mut input)?;
    let rest: Vec<_> = said.collect::<std::io::Result<_>>()?;
    ensure!(varid.wait()?.success(), "{rest:?}");
    Ok(read(session, &PAUSING)?.calls)
}
