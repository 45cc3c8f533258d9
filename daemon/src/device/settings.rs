//! What has to be changed on the device while varid samples there, and who changes it back?
//!
//! What was changed is noted on the device before it is changed. Whoever ends a recording, and
//! finds the note when nothing is recorded there any more, restores it; after a cable was pulled
//! any command does that finds an old note.

use super::adb::Device;
use super::error::Result;
use super::place::Place;
use super::shell::quote;

/// The note in varid's folder: the name of a setting in each line, and when they were noted.
const NOTE: &str = "changed";

/// Seconds in which whoever wrote a note has a session that records, or none.
const FRESH: u64 = 60;

/// Something that can be read, written and noted.
struct Setting {
    name: &'static str,
    read: &'static str,
    /// The value is written behind it.
    write: &'static str,
    after: &'static str,
    /// From which value to which.
    change: (&'static str, &'static str),
    who: Who,
    why: &'static str,
}

/// For whom something is changed.
#[derive(PartialEq, Eq)]
enum Who {
    /// Who is not root.
    User,
    /// Root.
    Root,
    /// Root, who asked for it.
    Asked,
}

const SETTINGS: [Setting; 3] = [
    // Android 7 and later set kernel.perf_event_paranoid by it.
    Setting {
        name: "security.perf_harden",
        read: "getprop security.perf_harden",
        write: "setprop security.perf_harden ",
        after: "",
        change: ("1", "0"),
        who: Who::User,
        why: "without it only root may sample",
    },
    // Root sees the kernel's functions by name with 1, nobody does with Android's 2.
    Setting {
        name: "kernel.kptr_restrict",
        read: "cat /proc/sys/kernel/kptr_restrict",
        write: "echo ",
        after: " > /proc/sys/kernel/kptr_restrict",
        change: ("2", "1"),
        who: Who::Root,
        why: "with 2 the kernel's functions have no names",
    },
    Setting {
        name: "selinux.enforce",
        read: "cat /sys/fs/selinux/enforce",
        write: "setenforce ",
        after: "",
        change: ("1", "0"),
        who: Who::Asked,
        why: "as --permissive asks",
    },
];

impl Setting {
    fn set(&self, device: &Device, value: &str) -> Result<()> {
        let script = format!("{}{value}{}", self.write, self.after);
        let action = format!("set {} to {value}", self.name);
        device.shell(&action, &script).map(drop)
    }

    fn is(&self, device: &Device, value: &str) -> Result<bool> {
        Ok(device.ask(self.read)?.out.trim() == value)
    }
}

/// What a note says.
#[derive(Debug, Default)]
pub struct Note {
    /// Known names only: their values were those that are changed, no others ever are.
    names: Vec<&'static str>,
    /// Whether whoever wrote it may be about to record.
    fresh: bool,
}

impl Note {
    /// The note in varid's folder there.
    pub fn read(device: &Device, home: &str) -> Result<Self> {
        let note = quote(&format!("{home}/{NOTE}"));
        let answer = device.ask(&format!("cat {note} 2>/dev/null; date +%s"))?;
        let mut times = answer
            .out
            .lines()
            .filter_map(|line| line.parse::<u64>().ok());
        let (noted, now) = (times.next(), times.next());
        let age = noted.zip(now).map(|(noted, now)| now.abs_diff(noted));
        let is_noted = |setting: &&Setting| answer.out.lines().any(|line| line == setting.name);
        Ok(Self {
            names: SETTINGS
                .iter()
                .filter(is_noted)
                .map(|setting| setting.name)
                .collect(),
            fresh: age.is_some_and(|age| age < FRESH),
        })
    }

    /// Whether there is nothing to restore.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether a command may have changed something just now, for a session that is to start.
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Writes it anew, with the time there.
    fn write(&self, place: &Place) -> Result<()> {
        let note = place.path(NOTE);
        let (new, note) = (quote(&format!("{note}.new")), quote(&note));
        let script = if self.is_empty() {
            format!("rm -f {note}")
        } else {
            let lines = quote(&self.names.join("\n"));
            format!("umask 077; (echo {lines}; date +%s) > {new} && sync && mv {new} {note}")
        };
        place
            .device
            .shell("note what is changed", &script)
            .map(drop)
    }
}

/// Changes what keeps varid from sampling, and says so. `permissive`: SELinux, too.
pub fn change(place: &Place, root: bool, permissive: bool) -> Result<()> {
    let device = &place.device;
    let mut note = Note::read(device, &place.home)?;
    if !note.is_empty() {
        // What another command has changed is needed on.
        note.write(place)?;
    }
    for setting in &SETTINGS {
        let meant = match setting.who {
            Who::User => !root,
            Who::Root => root,
            Who::Asked => root && permissive,
        };
        let (from, to) = setting.change;
        if !meant || !setting.is(device, from)? {
            continue;
        }
        if !note.names.contains(&setting.name) {
            note.names.push(setting.name);
            note.write(place)?;
        }
        match setting.set(device, to) {
            Ok(()) => tracing::info!(
                "{}: {} {from} -> {to} while something is recorded there: {}",
                device.serial,
                setting.name,
                setting.why
            ),
            Err(error) => {
                tracing::warn!("{error}; {}", setting.why);
                if setting.is(device, from)? {
                    note.names.retain(|name| *name != setting.name);
                    note.write(place)?;
                }
            }
        }
    }
    Ok(())
}

/// Restores what the note says; nothing must be recorded there any more. What cannot be restored
/// stays noted.
pub fn restore(place: &Place, mut note: Note) -> Result<()> {
    note.names = set_back(&place.device, &note)?;
    note.write(place)
}

/// Sets back what is still as it was changed to; the names of what could not be.
pub fn set_back(device: &Device, note: &Note) -> Result<Vec<&'static str>> {
    let mut left = Vec::new();
    let is_noted = |setting: &&Setting| note.names.contains(&setting.name);
    for setting in SETTINGS.iter().filter(is_noted) {
        let (from, to) = setting.change;
        if !setting.is(device, to)? {
            continue;
        }
        match setting.set(device, from) {
            Ok(()) => tracing::info!("{}: {} is {from} again", device.serial, setting.name),
            Err(error) => {
                tracing::warn!("{error}; the next command tries again");
                left.push(setting.name);
            }
        }
    }
    Ok(left)
}
