//! What has to be changed on the device while varid samples there, and who changes it back?
//!
//! What was changed is noted on the device before it is changed. Whoever finds the note when
//! nothing is recorded there any more restores it: this command at its end, or the next one
//! after a cable was pulled.

use super::error::Result;
use super::place::Place;
use super::shell::quote;

/// The note in varid's folder: the name of a setting in each line.
const NOTE: &str = "changed";

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
    fn set(&self, place: &Place, value: &str) -> Result<()> {
        let script = format!("{}{value}{}", self.write, self.after);
        let action = format!("set {} to {value}", self.name);
        place.device.shell(&action, &script).map(drop)
    }
}

/// Changes what keeps varid from sampling, and says so. `permissive`: SELinux, too.
pub fn change(place: &Place, root: bool, permissive: bool) -> Result<()> {
    let mut note = read(place)?;
    for setting in &SETTINGS {
        let meant = match setting.who {
            Who::User => !root,
            Who::Root => root,
            Who::Asked => root && permissive,
        };
        let (from, to) = setting.change;
        if !meant || place.device.ask(setting.read)?.out.trim() != from {
            continue;
        }
        // Whatever another command has noted was there before.
        if !note.contains(&setting.name) {
            note.push(setting.name);
            write(place, &note)?;
        }
        match setting.set(place, to) {
            Ok(()) => tracing::info!(
                "{}: {} {from} -> {to} while something is recorded there: {}",
                place.device.serial,
                setting.name,
                setting.why
            ),
            Err(error) => tracing::warn!("{error}; {}", setting.why),
        }
    }
    Ok(())
}

/// Whether something has been changed and not restored.
pub fn is_changed(place: &Place) -> Result<bool> {
    Ok(!read(place)?.is_empty())
}

/// Restores what the note says; nothing must be recorded there any more.
pub fn restore(place: &Place) -> Result<()> {
    for name in read(place)? {
        let known = SETTINGS.iter().find(|setting| setting.name == name);
        if let Some(setting) = known {
            let (value, _) = setting.change;
            setting.set(place, value)?;
            tracing::info!("{}: {name} is {value} again", place.device.serial);
        }
    }
    let note = quote(&place.path(NOTE));
    place
        .device
        .shell("remove a note", &format!("rm -f {note}"))
        .map(drop)
}

/// The names that are noted: their values were those that are changed, no others ever are.
fn read(place: &Place) -> Result<Vec<&'static str>> {
    let note = quote(&place.path(NOTE));
    let answer = place.device.ask(&format!("cat {note} 2>/dev/null"))?;
    let noted = |setting: &&Setting| answer.out.lines().any(|line| line == setting.name);
    Ok(SETTINGS
        .iter()
        .filter(noted)
        .map(|setting| setting.name)
        .collect())
}

fn write(place: &Place, names: &[&str]) -> Result<()> {
    let note = place.path(NOTE);
    let (new, note) = (quote(&format!("{note}.new")), quote(&note));
    let lines = quote(&names.join("\n"));
    let script = format!("umask 077; echo {lines} > {new} && sync && mv {new} {note}");
    place
        .device
        .shell("note what is changed", &script)
        .map(drop)
}
