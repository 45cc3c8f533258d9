//! What has to be changed on the device while varid samples there, and who changes it back?
//!
//! What was changed is noted on the device before it is changed, with a claim of whoever is about
//! to record. Nobody else restores it while the claim is new: so several terminals may record at
//! once. When nothing is recorded there any more the first command restores it that finds no new
//! claim of another's; after a cable was pulled, too.

use super::adb::Device;
use super::error::Result;
use super::place::Place;
use super::shell::{quote, unique};

/// The note in varid's folder: the name of a setting in each line; then when it was claimed, and
/// by whom.
const NOTE: &str = "changed";

/// Seconds in which whoever claims a note has a session that records, or none.
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

/// Who is about to record: a word that no other command says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim(String);

/// What a note says.
#[derive(Debug, Default)]
pub struct Note {
    /// Known names only: their values were those that are changed, no others ever are.
    names: Vec<&'static str>,
    /// Who may be about to record.
    claim: Option<Claim>,
}

impl Note {
    /// The note in varid's folder there.
    pub fn read(device: &Device, home: &str) -> Result<Self> {
        let note = quote(&format!("{home}/{NOTE}"));
        let answer = device.ask(&format!("cat {note} 2>/dev/null; date +%s"))?;
        let mut times = answer.out.lines().filter_map(time);
        let claim = match (times.next(), times.next()) {
            (Some((claimed, who)), Some((now, _))) if now.abs_diff(claimed) < FRESH => {
                Some(Claim(who.to_owned()))
            }
            _ => None,
        };
        let is_noted = |setting: &&Setting| answer.out.lines().any(|line| line == setting.name);
        Ok(Self {
            names: SETTINGS
                .iter()
                .filter(is_noted)
                .map(|setting| setting.name)
                .collect(),
            claim,
        })
    }

    /// Whether there is nothing to restore.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether a command other than `own` may have changed something just now, for a session that
    /// is to start.
    pub fn is_anothers(&self, own: Option<&Claim>) -> bool {
        self.claim.as_ref().is_some_and(|claim| Some(claim) != own)
    }

    /// Takes a claim off: what is recorded now keeps what was changed.
    pub fn settle(&mut self, place: &Place) -> Result<()> {
        match self.claim.take() {
            Some(_) => self.write(place),
            None => Ok(()),
        }
    }

    /// Writes it anew, a claim with the time there.
    fn write(&self, place: &Place) -> Result<()> {
        let note = place.path(NOTE);
        let (new, note) = (quote(&format!("{note}.new")), quote(&note));
        let script = if self.is_empty() {
            format!("rm -f {note}")
        } else {
            let lines = quote(&self.names.join("\n"));
            let claim = match &self.claim {
                Some(Claim(who)) => format!("; echo $(date +%s) {}", quote(who)),
                None => String::new(),
            };
            format!("umask 077; (echo {lines}{claim}) > {new} && sync && mv {new} {note}")
        };
        place
            .device
            .shell("note what is changed", &script)
            .map(drop)
    }
}

/// A line that begins with a time: that, and who is named behind it.
fn time(line: &str) -> Option<(u64, &str)> {
    let (time, who) = line.split_once(' ').unwrap_or((line, ""));
    Some((time.parse().ok()?, who))
}

/// Changes what keeps varid from sampling, and says so. `permissive`: SELinux, too. It is claimed
/// until it is restored or settled.
pub fn change(place: &Place, root: bool, permissive: bool) -> Result<Claim> {
    let device = &place.device;
    let mut note = Note::read(device, &place.home)?;
    let claim = Claim(unique());
    note.claim = Some(claim.clone());
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
    Ok(claim)
}

/// Restores what the note says; nothing must be recorded there any more. What cannot be restored
/// stays noted.
pub fn restore(place: &Place, note: &Note) -> Result<()> {
    let left = Note {
        names: set_back(&place.device, note)?,
        claim: None,
    };
    left.write(place)
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
