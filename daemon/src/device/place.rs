//! Finds varid's folder on the device, which no other user can replace.

use super::abi::{self, Binary};
use super::access::Access;
use super::adb::{Device, SILENCE};
use super::error::{DeviceError, Result};
use super::shell::{quote, quoted, unique};
use crate::output;
use crate::paths::DEVICE_HOMES;

/// The environment variable for varid's folder on the device, instead of [`DEVICE_HOMES`].
pub const HOME: &str = "VARID_DEVICE_HOME";

/// A folder on a device, as accessed by one of its users.
#[derive(Debug, Clone)]
pub struct Place {
    /// The device, accessed as that user.
    pub device: Device,
    /// The absolute path.
    pub home: String,
    /// The device's time when it was found, in seconds.
    now: u64,
    /// The names of the programs in the folder, including partial ones.
    programs: Vec<String>,
}

/// Selects the first of the folders that is safe for this user: it belongs to the user, others cannot write to it, and nobody else
/// can rename it. For the latter, the folder above must belong to the user or to root, and be sticky or not writable by others. A
/// group with the owner's number counts as the owner's own, as Android's shell and every app have one. A link is not accepted as a
/// folder. `ls` of early Android prints no link count: then the date is where others have the group.
const SCRIPT: &str = r#"umask 077
for home in HOMES; do
    above=${home%/*}
    set -- $(ls -ldn "$above" 2>/dev/null)
    case $4 in
    *-*) owner=$2 group=$3 ;;
    *) owner=$3 group=$4 ;;
    esac
    [ "$owner" = 0 ] || [ -O "$above" ] || continue
    case $1 in
    d????????[tT]*) ;;
    d???????w*) continue ;;
    d????w*) [ "$group" = "$owner" ] || continue ;;
    d*) ;;
    *) continue ;;
    esac
    [ -d "$home" ] || mkdir "$home"
    case $(ls -ld "$home" 2>/dev/null) in
    d????-??-*) [ -O "$home" ] || continue ;;
    *) continue ;;
    esac
    mkdir -p "$home/bin" || continue
    echo "$home"
    date +%s
    ls "$home/bin"
    exit 0
done
exit 1"#;

impl Place {
    /// Finds or creates the folder.
    pub fn find(device: Device) -> Result<Self> {
        let configured = std::env::var(HOME).ok().filter(|home| !home.is_empty());
        let homes = match (&device.access, &configured) {
            // The app's own folder is the working folder.
            (Access::RunAs(_), _) => r#""$(pwd)/varid""#.to_owned(),
            (_, Some(home)) => quote(home),
            (_, None) => quoted(DEVICE_HOMES),
        };
        let answer = device.ask(&SCRIPT.replace("HOMES", &homes))?;
        let mut lines = answer.out.lines().map(str::to_owned);
        match lines.next() {
            Some(home) if answer.status == 0 => Ok(Self {
                device,
                home,
                now: lines
                    .next()
                    .and_then(|now| now.trim().parse().ok())
                    .unwrap_or(0),
                programs: lines.collect(),
            }),
            _ => Err(DeviceError::NoHome {
                serial: device.serial,
                tried: homes.replace(' ', ", "),
                said: match answer.said.as_str() {
                    SILENCE => String::new(),
                    said => format!(" ({})", said.replace('\n', "; ")),
                },
            }),
        }
    }

    /// Returns true if varid has been installed in the folder.
    pub fn has_varid(&self) -> bool {
        let is_whole = |name: &String| name.starts_with("varid-");
        self.programs.iter().any(is_whole)
    }

    /// For root: returns the folder that varid uses while adb's shell is not root, if that is a different one.
    pub fn shells(&self) -> Option<&'static str> {
        let [shells, own] = DEVICE_HOMES;
        (self.home == own).then_some(shells)
    }

    /// Returns the path of a file in the folder.
    pub fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.home)
    }

    /// Pushes varid unless it is there already. Returns the program's path.
    pub fn install(&self) -> Result<String> {
        let binary = abi::binary_for(&self.device)?;
        let name = format!("varid-{}", binary.hash);
        let program = self.path(&format!("bin/{name}"));
        // It is marked as used, so that the installation of another version does not remove it.
        if self.programs.contains(&name) && self.device.ask(&mark(&program))?.status == 0 {
            return Ok(program);
        }
        tracing::info!(
            "{}: pushing {} ({}) to {}",
            self.device.serial,
            binary.path.display(),
            output::size(binary.size),
            self.home
        );
        // Another terminal may be pushing it at the same time.
        let new = self.path(&format!("bin/{PART}{}-{}", self.now, unique()));
        let left = self.programs.iter().filter(|name| is_left(name, self.now));
        let left: Vec<String> = left.map(|name| self.path(&format!("bin/{name}"))).collect();
        if !left.is_empty() {
            let left = quoted(left.iter().map(String::as_str));
            self.device.shell("make room", &format!("rm -f {left}"))?;
        }
        let pushed = self
            .device
            .push(&binary.path, &new)
            .and_then(|()| self.device.shell("install varid", &adopt(&new, &program)));
        match pushed {
            Ok(version) => {
                if version.trim() != VERSION {
                    tracing::warn!(
                        "{} is {}, this is {VERSION}: build or install both alike",
                        binary.path.display(),
                        version.trim()
                    );
                }
                Ok(program)
            }
            Err(error) => {
                // A partial program is useless, and occupies space that may be scarce.
                let _ = self.device.ask(&format!("rm -f {}", quote(&new)));
                Err(self.full(error, &binary))
            }
        }
    }

    fn full(&self, error: DeviceError, binary: &Binary) -> DeviceError {
        if !error.to_string().contains("No space left") {
            return error;
        }
        DeviceError::Full {
            serial: self.device.serial.clone(),
            home: self.home.clone(),
            needed: output::size(binary.size),
        }
    }
}

/// The version text of the program that was built with this one.
const VERSION: &str = concat!("varid ", env!("CARGO_PKG_VERSION"));

/// The prefix of the name of a program that is being pushed. It is followed by the start time, in seconds of the device's clock.
const PART: &str = "new-";

/// Maximum duration of a push, in seconds.
const LEFT: u64 = 600;

/// Returns true if a file is a partial program of an aborted push.
fn is_left(name: &str, now: u64) -> bool {
    let began = name
        .strip_prefix(PART)
        .and_then(|rest| rest.split('-').next());
    began.is_some_and(|began| {
        !began
            .parse()
            .is_ok_and(|began: u64| now.abs_diff(began) < LEFT)
    })
}

/// Returns a script that stores the time of a program's use in a file beside it, if the program exists.
fn mark(program: &str) -> String {
    let program = quote(program);
    format!("[ -x {program} ] && date +%s > {program}.used")
}

/// Returns a script that renames a completely pushed program and prints its version. It removes other programs that no command has
/// used recently and no process runs.
fn adopt(new: &str, program: &str) -> String {
    const SCRIPT: &str = r#"chmod 700 "$new" && mv "$new" "$program" && date +%s >"$program.used" || exit
now=$(date +%s)
for other in "${program%/*}"/varid-*; do
    case $other in "$program" | *.used) continue ;; esac
    used=$(cat "$other.used" 2>/dev/null)
    case $used in '' | *[!0-9]*) used=0 ;; esac
    age=$((now - used))
    [ $age -ge 600 ] || [ $age -le -600 ] || continue
    for process in /proc/[0-9]*/exe; do
        [ ! "$process" -ef "$other" ] || continue 2
    done
    rm -f "$other" "$other.used"
done
"$program" --version"#;
    format!("new={} program={}\n{SCRIPT}", quote(new), quote(program))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn files_that_another_terminal_is_pushing_are_not_removed() {
        for (name, expected) in [
            ("new-1000-7", false),
            ("new-401-7", false),
            ("new-1599-7", false),
            ("new-400-7", true),
            ("new-1600-7", true),
            ("new-x", true),
            ("new-", true),
            ("varid-1", false),
        ] {
            assert_eq!(is_left(name, 1000), expected, "{name}");
        }
    }

    #[test]
    fn a_program_that_another_terminal_uses_stays() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let path = |name| at(name).to_str().unwrap().to_owned();
        let now = Command::new("date").arg("+%s").output().unwrap().stdout;
        for name in ["varid-old", "varid-unmarked", "varid-used", "new-1"] {
            std::fs::write(at(name), "#!/bin/sh\necho varid 1\n").unwrap();
        }
        std::fs::write(at("varid-old.used"), "17\n").unwrap();
        std::fs::write(at("varid-used.used"), now).unwrap();
        // Written by another process: a process that is forked here meanwhile would keep the file open for writing and prevent its
        // execution.
        assert!(sh(&format!("cp /bin/sleep {}", path("varid-runs"))));
        let mut runs = Command::new(at("varid-runs")).arg("99").spawn().unwrap();
        let script = adopt(&path("new-1"), &path("varid-new"));
        let output = Command::new("sh").args(["-c", &script]).output();
        runs.kill().unwrap();
        runs.wait().unwrap();
        assert_eq!(output.unwrap().stdout, b"varid 1\n");
        let names = std::fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(
            names,
            [
                "varid-new",
                "varid-new.used",
                "varid-runs",
                "varid-used",
                "varid-used.used"
            ]
        );
        assert!(sh(&mark(&path("varid-new"))));
        assert!(!sh(&mark(&path("varid-gone"))));
    }

    fn sh(script: &str) -> bool {
        let status = Command::new("sh").args(["-c", script]).status();
        status.unwrap().success()
    }
}
