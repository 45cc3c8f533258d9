//! Which settings of the device are changed while varid samples there, and when are they restored?
//!
//! What was changed is noted on the device before it is changed, with a claim of everybody who is
//! about to record. Nobody restores it while another's claim is new: so several terminals may
//! record at once. When nothing is recorded there any more the first command restores it that
//! finds no new claim; after a cable was pulled, too.

use super::adb::Device;
use super::error::Result;
use super::note::{self, Claim, Note};
use super::place::Place;

/// Something that can be read, written and noted.
struct Setting {
    name: &'static str,
    read: &'static str,
    /// The value is written behind it.
    write: &'static str,
    after: &'static str,
    /// From which value to which.
    change: (&'static str, &'static str),
    applies_to: AppliesTo,
    why: &'static str,
}

/// For which users a setting is changed.
#[derive(PartialEq, Eq)]
enum AppliesTo {
    /// All but root.
    OtherThanRoot,
    /// Root.
    Root,
    /// Root, with --permissive.
    RootPermissive,
}

const SETTINGS: [Setting; 3] = [
    // Android 7 and later set kernel.perf_event_paranoid by it.
    Setting {
        name: "security.perf_harden",
        read: "getprop security.perf_harden",
        write: "setprop security.perf_harden ",
        after: "",
        change: ("1", "0"),
        applies_to: AppliesTo::OtherThanRoot,
        why: "without it only root may sample",
    },
    // Root sees the kernel's functions by name with 1, nobody does with Android's 2.
    Setting {
        name: "kernel.kptr_restrict",
        read: "cat /proc/sys/kernel/kptr_restrict",
        write: "echo ",
        after: " > /proc/sys/kernel/kptr_restrict",
        change: ("2", "1"),
        applies_to: AppliesTo::Root,
        why: "with 2 the kernel's functions have no names",
    },
    Setting {
        name: "selinux.enforce",
        read: "cat /sys/fs/selinux/enforce",
        write: "setenforce ",
        after: "",
        change: ("1", "0"),
        applies_to: AppliesTo::RootPermissive,
        why: "as --permissive asks",
    },
];

impl Setting {
    /// A script that sets it `to`, if it is `from`, and says what came of that: a line with `set`,
    /// `same` or `failed` and the name; why it failed follows.
    fn script(&self, from: &str, to: &str) -> String {
        let Self {
            name,
            read,
            write,
            after,
            ..
        } = self;
        format!(
            r#"
if [ "$({read})" = {from} ]; then
    if why=$( ({write}{to}{after}) 2>&1 ); then
        echo "set {name}"
    else
        [ "$({read})" = {from} ] && echo "same {name}" || echo "set {name}"
        echo "failed {name} $why"
    fi
fi"#
        )
    }
}

/// What [`Setting::script`] printed of a setting behind a keyword.
fn printed<'a>(out: &'a str, keyword: &str, name: &str) -> Option<&'a str> {
    out.lines().find_map(|line| {
        let rest = line.strip_prefix(keyword)?.strip_prefix(' ')?;
        let rest = rest.strip_prefix(name)?;
        (rest.is_empty() || rest.starts_with(' ')).then(|| rest.trim())
    })
}

/// Changes the settings that prevent sampling, and says so. `permissive`: SELinux, too. It is claimed
/// until it is restored or settled.
pub fn change(place: &Place, claim: &Claim, root: bool, permissive: bool) -> Result<()> {
    let device = &place.device;
    let applies = |setting: &&Setting| match setting.applies_to {
        AppliesTo::OtherThanRoot => !root,
        AppliesTo::Root => root,
        AppliesTo::RootPermissive => root && permissive,
    };
    let mut changing = Vec::new();
    let mut new = Vec::new();
    let (_, out) = note::update(place, |note| {
        let values = values(device)?;
        note.claim(claim);
        changing = SETTINGS
            .iter()
            .filter(applies)
            .filter(|setting| values.contains(&(setting.name, setting.change.0.to_owned())))
            .collect();
        new = note.add(changing.iter().map(|setting| setting.name));
        let script = |setting: &&Setting| setting.script(setting.change.0, setting.change.1);
        Ok(changing.iter().map(script).collect())
    })?;
    for setting in &changing {
        let (name, (from, to)) = (setting.name, setting.change);
        if printed(&out, "set", name).is_some() {
            tracing::info!(
                "{}: {name} {from} -> {to} while something is recorded there: {}",
                device.serial,
                setting.why
            );
        }
        if let Some(why) = printed(&out, "failed", name) {
            let error = device.failed(&format!("set {name} to {to}"), why);
            tracing::warn!("{error}; {}", setting.why);
        }
    }
    // What is as it was needs no note, unless another has changed it since.
    new.retain(|name| printed(&out, "set", name).is_none());
    if !new.is_empty() {
        note::update(place, |note| {
            let values = values(device)?;
            let unchanged = |setting: &&Setting| {
                new.contains(&setting.name)
                    && values.contains(&(setting.name, setting.change.0.to_owned()))
            };
            let unchanged: Vec<_> = SETTINGS.iter().filter(unchanged).collect();
            note.names
                .retain(|name| unchanged.iter().all(|setting| setting.name != name));
            Ok(String::new())
        })?;
    }
    Ok(())
}

/// The settings' values, by their names.
fn values(device: &Device) -> Result<Vec<(&'static str, String)>> {
    let line = |setting: &Setting| format!("echo {} \"$({})\"\n", setting.name, setting.read);
    let answer = device.ask(&SETTINGS.iter().map(line).collect::<String>())?;
    let value = |setting: &Setting| {
        let mut lines = answer.out.lines();
        let value = lines.find_map(|line| line.strip_prefix(setting.name)?.strip_prefix(' '));
        (setting.name, value.unwrap_or_default().trim().to_owned())
    };
    Ok(SETTINGS.iter().map(value).collect())
}

/// Restores what the note says, if that is still all it says; nothing must be recorded there any
/// more. What cannot be restored stays noted.
pub fn restore(place: &Place, note: &Note) -> Result<()> {
    let Some(out) = note::replace(place, note, note, &restoring(note))? else {
        // Who has written since restores it, or needs it.
        return Ok(());
    };
    let left = Note::of(tell(&place.device, note, &out));
    note::replace(place, note, &left, "").map(drop)
}

/// Sets back what is still as it was changed to, whoever keeps the note.
pub fn set_back(device: &Device, note: &Note) -> Result<()> {
    let answer = device.ask(&restoring(note))?;
    tell(device, note, &answer.out);
    Ok(())
}

/// A script that sets back what is still as it was changed to.
fn restoring(note: &Note) -> String {
    let is_noted = |setting: &&Setting| note.names.iter().any(|name| name == setting.name);
    let script = |setting: &Setting| setting.script(setting.change.1, setting.change.0);
    SETTINGS.iter().filter(is_noted).map(script).collect()
}

/// Says what was set back; the names of what could not be.
fn tell(device: &Device, note: &Note, out: &str) -> Vec<String> {
    let mut left = Vec::new();
    for setting in &SETTINGS {
        let (name, from) = (setting.name, setting.change.0);
        if let Some(why) = printed(out, "failed", name) {
            let error = device.failed(&format!("set {name} to {from}"), why);
            tracing::warn!("{error}; the next command tries again");
        }
        if printed(out, "same", name).is_some() {
            left.push(name.to_owned());
        } else if printed(out, "set", name).is_some() {
            tracing::info!("{}: {name} is {from} again", device.serial);
        }
    }
    left.retain(|name| note.names.contains(name));
    left
}
