//! Tests that a recording has a note if a process's methods are missing, with the reason.
#![cfg(target_arch = "x86_64")] // The library is Debian's for x86-64.

use anyhow::{Result, ensure};
use varid_tests::{App, Libart, Says, processes_noted, record, skip_without_root, testbed};

/// Maps a VM's library without relocating it, and runs long enough to be found.
const MAPS_A_VM: &str = "
import mmap, os, sys, time
file = open(sys.argv[1], 'rb')
library = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
while time.process_time() < 1:
    pass
";

/// Returns the notes of a command's session.
fn notes_of(command: &[&str]) -> Result<Vec<String>> {
    let folder = tempfile::tempdir()?;
    let session = folder.path().join("session");
    let mut varid = testbed()?.varid();
    varid.args(["record", "-F", "1999", "-o"]).arg(&session);
    let output = varid.arg("--").args(command).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{varid:?}: {said}");
    processes_noted(&session)
}

fn is_one_with(notes: &[String], words: &str) -> Result<()> {
    ensure!(notes.len() == 1 && notes[0].contains(words), "{notes:?}");
    Ok(())
}

#[test]
fn a_vm_that_never_came_up_is_named() -> Result<()> {
    if skip_without_root("unseen") {
        return Ok(());
    }
    // Until it ends or executes another program. There are no notes about its children.
    for next in [
        "",
        "os.execv('/bin/true', ['true'])",
        "os.system('/bin/true; /bin/true')",
    ] {
        let script = format!("{MAPS_A_VM}{next}");
        let notes = notes_of(&["python3", "-c", &script, Libart::KNOWN])?;
        is_one_with(&notes, "its VM was not up")?;
    }
    Ok(())
}

#[test]
fn a_vm_of_which_nothing_is_known_is_named_and_others_are_not() -> Result<()> {
    if skip_without_root("unseen") {
        return Ok(());
    }
    // It runs long enough to be found on a busy machine.
    let app = App::new("truth", "shares", 600)?;
    let libart = Libart::unknown(Says::Nothing)?;
    let path = libart.path().display().to_string();
    let options = ["--any-build", "--libart", &path];
    let unknown = app.clone().options(&options);
    let notes_of = |app: &App| processes_noted(&record(app, &[])?.session());
    is_one_with(&notes_of(&unknown)?, &libart.build_id)?;
    let known = notes_of(&app)?;
    ensure!(known.is_empty(), "{known:?}");
    Ok(())
}
