//! Tests that what a killed VM has counted satisfies the flow equations, up to the frames in flight.

use super::programs::{CONTEXTS, skip, varid};
use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};
use varid_tests::{JDK, Scale, compile_class, judge, scale};

const KILLS: u64 = 100;
/// In each so many kills one is of a VM that counts all classes. The others count those of the program, so that a session is read in a tenth of
/// the time. Odd: so both kinds of VMs have both kinds of kills.
const ALL_CLASSES: u64 = 9;
/// The longest delay of kills that hit the program's loop. The others hit any moment from the VM's start to the loop.
const IN_LOOP: Duration = Duration::from_millis(200);

/// When a VM is killed.
#[derive(Debug, Clone, Copy)]
enum Kill {
    /// So long after its start.
    AfterStart(Duration),
    /// So long after its program has begun to loop.
    InLoop(Duration),
}

/// What is known of a VM that was killed.
struct Killed {
    /// How long it took until the program began to loop, if it did.
    start: Option<Duration>,
    /// What the oracle of flow equations has found. None: it was killed before it counted.
    found: Option<serde_json::Value>,
}

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

/// Counts the program and kills it.
fn killed(folder: &Path, number: u64, kill: Kill) -> Result<Killed> {
    let session = folder.join(format!("session-{number}"));
    let own = format!("{}*", CONTEXTS.class);
    let mut options = vec!["--bytecodes"];
    if !number.is_multiple_of(ALL_CLASSES) {
        options.extend(["--include", &own]);
    }
    let start = Instant::now();
    let mut varid = varid(&options, &session)?
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
    let (delay, start) = match kill {
        Kill::AfterStart(delay) => (delay, None),
        Kill::InLoop(delay) => {
            let mut lines = BufReader::new(varid.stdout.as_mut().context("its output")?).lines();
            for _ in 0..2 {
                lines.next().context("a line")??;
            }
            (delay, Some(start.elapsed()))
        }
    };
    std::thread::sleep(delay);
    let signal = nix::sys::signal::Signal::SIGKILL;
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal)?;
    let status = varid.wait()?.code();
    let is_counted = session.join("contexts.data").exists();
    // A process that is killed before it becomes the VM is one that varid could not start.
    ensure!(
        status == Some(128 + 9) || status == Some(125) && !is_counted,
        "{status:?}"
    );
    let found = is_counted
        .then(|| judge("flow.py", [session.as_os_str(), CONTEXTS.class.as_ref()]))
        .transpose()?;
    if session.exists() {
        std::fs::remove_dir_all(&session)?;
    }
    Ok(Killed { start, found })
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
    let (mut equations, mut in_flight, mut before_main) = (0, 0, 0);
    // How long a start takes on this machine, of a VM that counts the program's classes, and of one that counts all.
    let mut starts = [Duration::ZERO; 2];
    for number in 0..KILLS {
        // Knuth's generator; its high bits are random.
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let part = (random >> 32) as f64 / f64::from(u32::MAX);
        let start = &mut starts[usize::from(number.is_multiple_of(ALL_CLASSES))];
        let kill = match number % 2 == 0 || start.is_zero() {
            true => Kill::InLoop(IN_LOOP.mul_f64(part)),
            false => Kill::AfterStart(start.mul_f64(part)),
        };
        let killed = killed(folder.path(), number, kill)
            .with_context(|| format!("kill {number}: {kill:?}"))?;
        *start = killed.start.unwrap_or(*start);
        let of = |name: &str| killed.found.as_ref().and_then(|found| found[name].as_u64());
        equations += of("equations").unwrap_or(0);
        in_flight += of("in flight").unwrap_or(0);
        before_main += u64::from(of("equations").is_none_or(|count| count == 0));
    }
    println!("{equations} equations, {in_flight} contexts in flight, {before_main} before main");
    ensure!(equations > 1000 * KILLS, "{equations} equations");
    Ok(())
}
