//! Tests that what a killed VM has counted satisfies the flow equations, up to the frames in flight.

use super::programs::{CONTEXTS, skip, varid};
use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};
use varid_tests::{JDK, Scale, compile_class, judge, scale};

const KILLS: u64 = 100;
/// The longest delay. Half of the kills come after the program's start, and hit the VM's, main, or the loop. The others hit the loop.
const LONGEST: Duration = Duration::from_millis(2500);

/// Returns the child of a process as soon as it has one.
pub(crate) fn child_of(pid: u32) -> Result<i32> {
    loop {
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
        if let Some(child) = children.split_whitespace().next() {
            return Ok(child.parse()?);
        }
        std::thread::yield_now();
    }
}

/// Counts the program and kills it. Returns what the oracle of flow equations has found.
fn killed(folder: &Path, number: u64, delay: Duration) -> Result<serde_json::Value> {
    let session = folder.join(format!("session-{number}"));
    let mut varid = varid(&["--bytecodes"], &session)?
        .arg("--")
        .arg(format!("{JDK}/java"))
        .arg("-cp")
        .arg(folder)
        .arg(CONTEXTS.class)
        .args(CONTEXTS.arguments)
        .arg("forever")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let pid = child_of(varid.id())?;
    if number % 2 == 1 {
        let mut lines = BufReader::new(varid.stdout.as_mut().context("its output")?).lines();
        for _ in 0..2 {
            lines.next().context("a line")??;
        }
    }
    std::thread::sleep(delay);
    let kill = nix::sys::signal::Signal::SIGKILL;
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), kill)?;
    ensure!(varid.wait()?.code() == Some(128 + 9));
    let found = match session.join("contexts.data").exists() {
        true => judge("flow.py", [session.as_os_str(), CONTEXTS.class.as_ref()])?,
        false => serde_json::Value::Null,
    };
    std::fs::remove_dir_all(&session)?;
    Ok(found)
}

#[test]
fn what_a_vm_killed_at_any_moment_has_counted_satisfies_the_flow_equations() -> Result<()> {
    if skip() || scale() != Scale::Long {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    compile_class(CONTEXTS.class, folder.path())?;
    let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let mut random = u64::from(seed.subsec_nanos());
    println!("seed {random}");
    let (mut equations, mut in_flight) = (0, 0);
    for number in 0..KILLS {
        // Knuth's generator; its high bits are random.
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let delay = LONGEST.mul_f64((random >> 32) as f64 / f64::from(u32::MAX));
        let found = killed(folder.path(), number, delay)
            .with_context(|| format!("kill {number} after {delay:?}"))?;
        equations += found["equations"].as_u64().unwrap_or(0);
        in_flight += found["in flight"].as_u64().unwrap_or(0);
    }
    println!("{equations} equations, {in_flight} contexts in flight");
    ensure!(equations > 1000 * KILLS, "{equations} equations");
    Ok(())
}
