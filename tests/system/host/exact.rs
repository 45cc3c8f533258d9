//! Tests that `varid exact` counts each call and instruction of a Java program by its calling context.
//!
//! The oracle is an agent in C, which follows JVMTI's events of entries, exits and steps in the interpreter. Compared are the contexts of the
//! program's own methods, with all their callers and call sites. Others depend on which classes are loaded when.
#![cfg(target_arch = "x86_64")]

mod counts;
mod example;
mod intrinsics;
mod killed;
mod programs;
mod runs;
mod steps;
mod xml;

use anyhow::{Context, Result, ensure};
pub(crate) use counts::{Values, ensure_equal, names, read};
pub(crate) use killed::child_of;
pub(crate) use programs::{CONTEXTS, Program, skip, varid};
use std::fs;
use std::path::Path;
use std::process::Output;
use varid_tests::{Scale, compile_class, judge, printed, scale, testbed};
pub(crate) use xml::ensure_xml;

/// Checks that an annotation and metrics, which find the class file in the session, have so many calls of `product`.
fn ensure_instructions(session: &Path, calls: u64) -> Result<()> {
    let json = |arguments: &[&str]| -> Result<serde_json::Value> {
        let mut varid = testbed()?.varid();
        varid.args(arguments).args(["--format", "json", "-i"]);
        Ok(serde_json::from_str(&printed(varid.arg(session))?)?)
    };
    let annotation = json(&["annotate", "Contexts.product", "--measure", "bytecodes"])?;
    let lines = annotation["files"].as_array().into_iter().flatten();
    let lines = lines.flat_map(|file| file["lines"].as_array().into_iter().flatten());
    let found: Vec<_> = lines
        .flat_map(|line| line["instructions"].as_array().into_iter().flatten())
        .map(|one| (one["text"].as_str(), one["self"].as_u64()))
        .collect();
    let expected = ["iload_0", "iload_1", "imul", "ireturn"];
    let expected = expected.map(|name| (Some(name), Some(calls)));
    ensure!(found == expected, "{calls} calls: {annotation:#}");
    let metrics = json(&["metrics"])?;
    let methods = metrics["methods"].as_array().into_iter().flatten();
    let mut products = methods.filter(|row| row["method"] == "Contexts.product");
    let product = products.next().context("product")?;
    ensure!(
        product["calls"] == calls && product["size"] == 4,
        "{product}"
    );
    ensure!(product["bytecodes"] == 4 * calls, "{product}");
    let opcodes = metrics["opcodes"].as_array().into_iter().flatten();
    let executions = opcodes.filter_map(|row| row["executions"].as_u64());
    let methods = metrics["methods"].as_array().into_iter().flatten();
    let bytecodes = methods.filter_map(|row| row["bytecodes"].as_u64());
    ensure!(
        executions.sum::<u64>() == bytecodes.sum::<u64>(),
        "opcodes of other executions"
    );
    Ok(())
}

/// Checks each number of all metrics by an oracle that reads the session's files.
fn ensure_metrics(folder: &Path, session: &Path) -> Result<()> {
    let mut varid = testbed()?.varid();
    varid
        .args(["metrics", "--format", "json", "-i"])
        .arg(session);
    let file = folder.join("metrics.json");
    fs::write(&file, printed(&mut varid)?)?;
    let rows = judge("metrics.py", [session, &file])?;
    ensure!(rows["rows"]["contexts"].as_u64() > Some(10_000), "{rows}");
    Ok(())
}

#[test]
fn calls_are_those_of_jvmti_interpreted_and_compiled() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    compile_class(CONTEXTS.class, folder.path())?;
    let expected = CONTEXTS.oracle(folder.path(), false)?.calls;
    ensure!(expected.len() > 300, "{expected:?}");
    let mut runs = vec![("mixed", &["--bytecodes"][..], "-Xmixed")];
    if scale() == Scale::Long {
        runs.push(("interpreted", &[], "-Xint"));
        runs.push(("compiled", &["--bytecodes"], "-Xcomp"));
        runs.push(("calls only", &[], "-Xmixed"));
    }
    for (name, options, java) in runs {
        let session = folder.path().join(name);
        CONTEXTS.exact(folder.path(), &session, options, &[java])?;
        let counts = read(&session, &CONTEXTS)?;
        let calls = &counts.calls;
        ensure_equal(calls, &expected).context(name)?;
        if !options.is_empty() {
            // Two loads, a multiplication and a return.
            let is_product = |context: &String| context.ends_with(".product(II)I");
            let products = counts
                .bytecodes()
                .into_iter()
                .filter(|(context, _)| is_product(context));
            let four = |(context, count): (&String, &u64)| (context.clone(), 4 * count);
            let called = calls.iter().filter(|(context, _)| is_product(context));
            ensure_equal(&products.collect(), &called.map(four).collect())?;
        }
        if name == "mixed" {
            let called = calls
                .iter()
                .filter(|(context, _)| context.contains(".product(II)I"));
            ensure_instructions(&session, called.map(|(_, count)| count).sum())?;
            ensure_metrics(folder.path(), &session)?;
            if scale() == Scale::Long {
                ensure_xml(folder.path(), &session)?;
            }
        }
    }
    Ok(())
}

#[test]
fn a_killed_vm_has_all_that_it_has_counted() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    compile_class(CONTEXTS.class, folder.path())?;
    let expected = CONTEXTS.oracle(folder.path(), false)?.calls;
    let session = folder.path().join("session");
    CONTEXTS.killed_after_its_work(folder.path(), &session, &[])?;
    let mut found = read(&session, &CONTEXTS)?.calls;
    // What the program does forever is one more call of `switched`, and what that calls. How much of it there is depends on when the VM is killed.
    let after = found
        .keys()
        .filter(|context| !expected.contains_key(*context));
    let after: Vec<_> = after.collect();
    let call = after
        .iter()
        .find(|context| context.ends_with(".switched(I)I"));
    let is_of_loop =
        |context: &&String| call.is_some_and(|call| context.starts_with(call.as_str()));
    ensure!(
        after.iter().all(is_of_loop),
        "contexts of the loop: {after:#?}"
    );
    found.retain(|context, _| expected.contains_key(context));
    ensure_equal(&found, &expected)
}

#[test]
fn what_cannot_be_counted_is_said() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let session = folder.path().join("session");
    let run = |options: &[&str], command: &[&str]| -> Result<(Output, String)> {
        let output = varid(options, &session)?.args(command).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok((output, said))
    };
    for (options, command, code, sentence) in [
        (&[][..], &[][..], 2, "required arguments"),
        (&["--nodes", "1"][..], &["true"][..], 2, "64K at least"),
        (
            &["--nodes", "9999999G"],
            &["true"],
            125,
            "less than --nodes asks for",
        ),
        (&[], &["/nowhere/java"], 127, "cannot run '/nowhere/java'"),
        (&[], &["true"], 0, "no Java VM"),
    ] {
        let (output, said) = run(options, command)?;
        ensure!(
            output.status.code() == Some(code) && said.contains(sentence),
            "{options:?} {command:?}: {output:?}"
        );
    }
    // Nothing else is left beside the session.
    let left = fs::read_dir(folder.path())?.count();
    ensure!(left == 1, "{left} files");
    Ok(())
}
