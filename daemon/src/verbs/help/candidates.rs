//! `varid complete`: prints the values that a shell offers, one per line.

use super::topics;
use crate::cli::{Values, selection};
use crate::{output, paths, sessions};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use varid_model::Pid;
use varid_process::reader;
use varid_recording::{Manifest, SESSION_JSON, TargetKind};
use varid_sampler::event::{JvmEvent, TimeEvent, all_names, pmu::Pmu};

/// Prints the values, one per line. Sources that cannot be read offer none.
pub fn run(values: Values) -> anyhow::Result<ExitCode> {
    let found = match values {
        Values::Sessions => session_names(),
        Values::Events => {
            let events = all_names(&Pmu::all(Path::new("/"))).into_iter();
            let by_shim = TimeEvent::ALL.map(TimeEvent::name).into_iter();
            let by_shim = by_shim.chain(JvmEvent::ALL.map(JvmEvent::name));
            let by_shim = by_shim.map(str::to_owned);
            events.chain(by_shim).chain(tracepoints()).collect()
        }
        Values::RecordedEvents => recorded_events(),
        Values::Apps => running_apps().chain(recorded_apps()).collect(),
        Values::Topics => topics().into_iter().collect(),
    };
    let is_line = |value: &&String| !value.contains('\n');
    let lines: String = (found.iter().filter(is_line))
        .flat_map(|value| [value.as_str(), "\n"])
        .collect();
    output::text(&lines)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the kernel's tracepoints that are visible to this user, such as `sched:sched_switch`.
fn tracepoints() -> impl Iterator<Item = String> {
    let folders = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let systems = folders(Path::new("/sys/kernel/tracing/events"));
    systems.flat_map(move |system| {
        let of = system.file_name().to_string_lossy().into_owned();
        let points = folders(&system.path()).filter(|point| point.path().join("id").is_file());
        let name = move |point: fs::DirEntry| format!("{of}:{}", point.file_name().display());
        points.map(name).collect::<Vec<_>>()
    })
}

/// Returns the names that `varid sessions` lists.
fn session_names() -> BTreeSet<String> {
    let own = paths::sessions();
    let folders = sessions::folders().unwrap_or_default().into_iter();
    let name = |folder: std::path::PathBuf| match folder.parent() == Some(&*own) {
        true => sessions::file_name(&folder),
        false => folder.display().to_string(),
    };
    folders.map(name).collect()
}

fn recorded_events() -> BTreeSet<String> {
    let manifest = selection::folder(None)
        .ok()
        .and_then(|folder| Manifest::read(&folder.join(SESSION_JSON)).ok());
    let events = manifest.iter().flat_map(|manifest| manifest.events.iter());
    events.map(|event| event.name.clone()).collect()
}

/// Returns the processes whose command line starts with a package name, such as `org.example.app` or `org.example.app:remote`.
fn running_apps() -> impl Iterator<Item = String> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|process| {
        let pid = process.file_name().to_str()?.parse().ok()?;
        let line = reader::contents(Pid::new(pid), "cmdline").ok()?;
        let name = line.split(|byte| *byte == 0).next()?;
        let name = str::from_utf8(name).ok()?;
        is_package(name).then(|| name.to_owned())
    })
}

fn is_package(name: &str) -> bool {
    let is_letter = |char: char| char.is_ascii_alphanumeric() || "._:".contains(char);
    let begins = name.starts_with(|first: char| first.is_ascii_lowercase());
    begins && name.contains('.') && name.chars().all(is_letter)
}

fn recorded_apps() -> impl Iterator<Item = String> {
    let folders = sessions::folders().unwrap_or_default().into_iter();
    let manifests = folders.filter_map(|folder| Manifest::read(&folder.join(SESSION_JSON)).ok());
    manifests
        .filter(|manifest| manifest.target.kind == TargetKind::App)
        .flat_map(|manifest| {
            let names = manifest.target.value.split(',');
            let names: Vec<_> = names.map(|name| name.trim().to_owned()).collect();
            names
        })
}

#[cfg(test)]
mod tests {
    use super::is_package;

    #[test]
    fn packages_are_told_from_programs() {
        assert!(is_package("org.example.app"));
        assert!(is_package("com.example.app:remote"));
        for name in [
            "systemd",
            "/usr/bin/python3.11",
            "./a.out",
            "nginx: worker",
            "(sd-pam)",
            "",
        ] {
            assert!(!is_package(name), "{name}");
        }
    }
}
