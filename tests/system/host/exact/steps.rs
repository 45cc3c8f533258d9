//! Tests that each context has executed each instruction as often as the interpreter has stepped.

use super::counts::{Counts, ensure_equal, read};
use super::programs::{CONTEXTS, Program, STEPS, UGLY, skip};
use anyhow::{Result, ensure};
use std::path::Path;
use std::process::Command;
use varid_tests::{JDK, Scale, compile_class, compile_generator, printed, scale};

/// Removes contexts of which the oracle has no steps. HotSpot hides them while it links a call or a field
/// (`JvmtiHideSingleStepping`): initialisers of classes, and what links a lambda. Their first instruction must have run with each call.
fn remove_hidden(found: &mut Counts, expected: &Counts) -> Result<usize> {
    let with_steps: std::collections::HashSet<_> =
        expected.steps.keys().map(|(context, _)| context).collect();
    let hidden: std::collections::HashSet<_> = expected
        .calls
        .keys()
        .filter(|context| !with_steps.contains(context))
        .cloned()
        .collect();
    for context in &hidden {
        let initialises = context.contains(".<clinit>()V") || context.contains(".linkCallSite(");
        ensure!(initialises, "no steps of {context}");
        let first = found.steps.get(&(context.clone(), 0));
        ensure!(
            first == expected.calls.get(context),
            "{first:?} of {context}"
        );
    }
    found
        .steps
        .retain(|(context, _), _| !hidden.contains(context));
    Ok(hidden.len())
}

/// Compares a program's counts, interpreted or compiled, with the oracle's.
fn ensure_steps(program: &Program, folder: &Path, runs: &[&str]) -> Result<Counts> {
    let expected = program.oracle(folder, true)?;
    ensure!(
        expected.steps.len() > 1000,
        "{} cells",
        expected.steps.len()
    );
    for java in runs {
        let session = folder.join(format!("{}{java}", program.class));
        program.exact(folder, &session, &["--bytecodes"], &[java])?;
        let mut found = read(&session, program)?;
        ensure_equal(&found.calls, &expected.calls)?;
        let hidden = remove_hidden(&mut found, &expected)?;
        ensure_equal(&found.steps, &expected.steps)?;
        println!(
            "{} {java}: {} contexts, {} cells, {hidden} contexts without steps",
            program.class,
            expected.calls.len(),
            expected.steps.len()
        );
    }
    Ok(expected)
}

#[test]
fn instructions_are_those_of_single_steps_with_exceptions_in_the_middle_of_blocks() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    compile_class(STEPS.class, folder.path())?;
    let mut runs = vec!["-Xmixed"];
    if scale() == Scale::Long {
        runs.extend(["-Xint", "-Xcomp"]);
        compile_class(CONTEXTS.class, folder.path())?;
        ensure_steps(&CONTEXTS, folder.path(), &["-Xmixed"])?;
    }
    ensure_steps(&STEPS, folder.path(), &runs)?;
    Ok(())
}

#[test]
fn instructions_of_class_files_that_no_compiler_makes_are_those_of_single_steps() -> Result<()> {
    if skip() || scale() != Scale::Long {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let generator = tempfile::tempdir()?;
    compile_generator(UGLY.class, generator.path())?;
    let mut java = Command::new(format!("{JDK}/java"));
    java.args(varid_tests::GENERATOR_OPTIONS)
        .arg("-cp")
        .arg(generator.path())
        .arg(UGLY.class)
        .arg(folder.path())
        .arg("61");
    printed(&mut java)?;
    ensure_steps(&UGLY, folder.path(), &["-Xint", "-Xcomp"])?;
    Ok(())
}
