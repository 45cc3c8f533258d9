//! Tests that `varid exact` counts only within a method, or only some classes, and what it counts then.
#![cfg(target_arch = "x86_64")]

use crate::exact::{CONTEXTS, Values, ensure_equal, read, skip};
use anyhow::{Result, ensure};
use std::path::Path;
use varid_tests::{Scale, compile_class, scale};

/// Returns the calls of a run with these options.
fn calls(folder: &Path, name: &str, options: &[&str]) -> Result<Values> {
    let session = folder.join(name);
    CONTEXTS.exact(folder, &session, options, &["-Xmixed"])?;
    Ok(read(&session, &CONTEXTS)?.calls)
}

#[test]
fn within_a_method_counts_are_those_below_it() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    compile_class(CONTEXTS.class, folder.path())?;
    let all = calls(folder.path(), "all", &[])?;
    let method = ":Contexts.inThread(I)V";
    let mut expected = Values::new();
    for (context, count) in &all {
        if let Some((before, below)) = context.split_once(method) {
            let thread = before.split('\t').next().unwrap_or_default();
            *expected
                .entry(format!("{thread}\t-{method}{below}"))
                .or_default() += count;
        }
    }
    ensure!(expected.len() > 10, "{all:?}");
    let found = calls(
        folder.path(),
        "within",
        &["--within", "Contexts.inThread(int)"],
    )?;
    ensure_equal(&found, &expected)?;
    if scale() == Scale::Long {
        let found = calls(folder.path(), "short", &["--within", "inThread"])?;
        ensure_equal(&found, &expected)?;
        let none = calls(folder.path(), "none", &["--within", "inThread(long)"])?;
        ensure!(none.is_empty(), "{none:?}");
    }
    Ok(())
}

/// Returns contexts without the frames of methods that are not the program's. A frame behind such ones has the site of the first of them.
fn own_frames(all: &Values) -> Values {
    let mut own = Values::new();
    for (context, count) in all {
        let mut frames = context.split('\t');
        let mut kept = frames.next().unwrap_or_default().to_owned();
        let mut first = None;
        for frame in frames {
            let (site, method) = frame.split_once(':').unwrap_or_default();
            let site = first.take().unwrap_or(site);
            match method.starts_with(CONTEXTS.class) {
                true => kept += &format!("\t{site}:{method}"),
                false => first = Some(site),
            }
        }
        *own.entry(kept).or_default() += count;
    }
    own
}

#[test]
fn callers_that_are_not_included_are_left_out() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    compile_class(CONTEXTS.class, folder.path())?;
    let expected = own_frames(&calls(folder.path(), "all", &[])?);
    let options = ["--bytecodes", "--include", "Contexts*"];
    let found = calls(folder.path(), "included", &options)?;
    ensure_equal(&found, &expected)
}
