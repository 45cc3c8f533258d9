//! Tests that runs of a deterministic program count the same.

use super::programs::{CONTEXTS, skip};
use anyhow::{Result, ensure};
use std::path::Path;
use varid_tests::{Scale, compile_class, printed, scale, testbed};

/// Returns the lines of an export of the contexts of the program's own methods in its threads, sorted, with their callers in the JDK. Addresses
/// of hidden classes are left out. What the VM's own threads call depends on time, and what maps of the JDK execute on a number that each VM
/// draws (`ImmutableCollections.SALT`).
fn sorted(session: &Path, measure: &str) -> Result<Vec<String>> {
    let mut varid = testbed()?.varid();
    varid.args(["export", "-f", "folded", "--no-lines", "--measure", measure]);
    let printed = printed(varid.arg("-i").arg(session))?;
    // A line begins with the thread's name.
    let is_own = |line: &&str| {
        let thread = line.split(';').next().unwrap_or_default();
        let method = line.rsplit(';').next().unwrap_or_default();
        CONTEXTS.threads.contains(&thread) && method.starts_with(CONTEXTS.class)
    };
    let lines = printed.lines().filter(is_own);
    let mut lines: Vec<_> = lines.map(without_addresses).collect();
    lines.sort_unstable();
    ensure!(lines.len() > 100, "{} lines", lines.len());
    Ok(lines)
}

/// Returns a line without the parts `.0x1234` of names.
fn without_addresses(line: &str) -> String {
    let mut parts = line.split(".0x");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text += part.trim_start_matches(|letter: char| letter.is_ascii_hexdigit());
    }
    text
}

#[test]
fn two_runs_and_an_interpreted_one_have_the_same_contexts() -> Result<()> {
    if skip() || scale() != Scale::Long {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    compile_class(CONTEXTS.class, folder.path())?;
    let sessions = [
        ("first", "-Xmixed"),
        ("second", "-Xmixed"),
        ("third", "-Xint"),
    ];
    for (name, java) in sessions {
        let session = folder.path().join(name);
        CONTEXTS.exact(folder.path(), &session, &["--bytecodes"], &[java])?;
    }
    for measure in ["calls", "bytecodes"] {
        let [first, others @ ..] = sessions.map(|(name, _)| folder.path().join(name));
        let expected = sorted(&first, measure)?;
        for other in others {
            let found = sorted(&other, measure)?;
            let mut pairs = expected.iter().zip(&found);
            let differ = pairs.find(|(expected, found)| expected != found);
            ensure!(
                found.len() == expected.len() && differ.is_none(),
                "{measure}: {} lines, not {}: {differ:?}",
                found.len(),
                expected.len()
            );
        }
    }
    Ok(())
}
