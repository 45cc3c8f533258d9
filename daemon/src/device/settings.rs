//! Changes settings of the device while varid samples there, and restores them.
//!
//! A setting is added to the `ChangeRecord` on the device before it is changed, with a claim of the command that is about to record. A
//! command restores the settings when nothing is being recorded on the device and no other command has a claim. So commands in several
//! terminals may record at once, and after a lost connection the next command restores the settings.

use super::adb::Device;
use super::change_record::{self, ChangeRecord, Claim};
use super::error::Result;
use super::place::Place;

/// A setting that prevents sampling or symbolization.
struct Setting {
    name: &'static str,
    /// A shell command that prints its value.
    read: &'static str,
    /// A shell command that sets it, up to the value.
    write: &'static str,
    /// The rest of that command, after the value.
    after: &'static str,
    /// The value that is a problem, and the value that replaces it.
    change: (&'static str, &'static str),
    applies_to: AppliesTo,
    /// The reason for the change, for messages.
    why: &'static str,
}

/// The users for which a setting is changed.
#[derive(PartialEq, Eq)]
enum AppliesTo {
    /// All except root.
    OtherThanRoot,
    /// Root.
    Root,
    /// Root, with --permissive.
    RootPermissive,
}

const SETTINGS: [Setting; 3] = [
    // Android 7 and later set kernel.perf_event_paranoid according to it.
    Setting {
        name: "security.perf_harden",
        read: "getprop security.perf_harden",
        write: "setprop security.perf_harden ",
        after: "",
        change: ("1", "0"),
        applies_to: AppliesTo::OtherThanRoot,
        why: "without it only root may sample",
    },
    // With 1, root can read the addresses in /proc/kallsyms. With 2, Android's value, nobody can.
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
    /// Returns a script that changes its value from `from` to `to`. It prints `set NAME` if the value has changed, `same NAME` if not, and
    /// `failed NAME REASON` if the command failed.
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

/// Returns the rest of the line that [`Setting::script`] printed for a keyword and a setting.
fn outcome<'a>(out: &'a str, keyword: &str, name: &str) -> Option<&'a str> {
    out.lines().find_map(|line| {
        let rest = line.strip_prefix(keyword)?.strip_prefix(' ')?;
        let rest = rest.strip_prefix(name)?;
        (rest.is_empty() || rest.starts_with(' ')).then(|| rest.trim())
    })
}

/// Changes the settings that prevent sampling, and logs each; with `permissive` also SELinux. The claim is valid until [`end_claim`].
///
/// [`end_claim`]: change_record::end_claim
pub fn change(place: &Place, claim: &Claim, root: bool, permissive: bool) -> Result<()> {
    let device = &place.device;
    let applies = |setting: &&Setting| match setting.applies_to {
        AppliesTo::OtherThanRoot => !root,
        AppliesTo::Root => root,
        AppliesTo::RootPermissive => root && permissive,
    };
    let mut changing = Vec::new();
    let mut new = Vec::new();
    let (_, out) = change_record::update(place, |record| {
        let values = values(device)?;
        record.claim(claim);
        changing = SETTINGS
            .iter()
            .filter(applies)
            .filter(|setting| values.contains(&(setting.name, setting.change.0.to_owned())))
            .collect();
        new = record.add(changing.iter().map(|setting| setting.name));
        let script = |setting: &&Setting| setting.script(setting.change.0, setting.change.1);
        Ok(changing.iter().map(script).collect())
    })?;
    for setting in &changing {
        let (name, (from, to)) = (setting.name, setting.change);
        if outcome(&out, "set", name).is_some() {
            tracing::info!(
                "{}: {name} {from} -> {to} while something is recorded there: {}",
                device.serial,
                setting.why
            );
        }
        if let Some(why) = outcome(&out, "failed", name) {
            let error = device.failed(&format!("set {name} to {to}"), why);
            tracing::warn!("{error}; {}", setting.why);
        }
    }
    // A setting that could not be changed is removed from the record, unless another command has changed it meanwhile.
    new.retain(|name| outcome(&out, "set", name).is_none());
    if !new.is_empty() {
        change_record::update(place, |record| {
            let values = values(device)?;
            let unchanged = |setting: &&Setting| {
                new.contains(&setting.name)
                    && values.contains(&(setting.name, setting.change.0.to_owned()))
            };
            let unchanged: Vec<_> = SETTINGS.iter().filter(unchanged).collect();
            record
                .names
                .retain(|name| unchanged.iter().all(|setting| setting.name != name));
            Ok(String::new())
        })?;
    }
    Ok(())
}

/// Reads the name and value of each setting.
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

/// Restores the settings of a record, if it is still the one on the device. Nothing may be recording there. Settings that cannot be
/// restored stay in the record.
pub fn restore(place: &Place, record: &ChangeRecord) -> Result<()> {
    let script = restore_script(record);
    let Some(out) = change_record::replace(place, record, record, &script)? else {
        // The command that has changed the record restores the settings, or needs them.
        return Ok(());
    };
    let left = ChangeRecord::of(report_restored(&place.device, record, &out));
    change_record::replace(place, record, &left, "").map(drop)
}

/// Restores the settings of a record that this user must not replace.
pub fn restore_without_record(device: &Device, record: &ChangeRecord) -> Result<()> {
    let answer = device.ask(&restore_script(record))?;
    report_restored(device, record, &answer.out);
    Ok(())
}

/// Returns a script that restores the settings of a record that still have varid's value.
fn restore_script(record: &ChangeRecord) -> String {
    let is_recorded = |setting: &&Setting| record.names.iter().any(|name| name == setting.name);
    let script = |setting: &Setting| setting.script(setting.change.1, setting.change.0);
    SETTINGS.iter().filter(is_recorded).map(script).collect()
}

/// Logs the restored settings. Returns the names of those that could not be restored.
fn report_restored(device: &Device, record: &ChangeRecord, out: &str) -> Vec<String> {
    let mut left = Vec::new();
    for setting in &SETTINGS {
        let (name, from) = (setting.name, setting.change.0);
        if let Some(why) = outcome(out, "failed", name) {
            let error = device.failed(&format!("set {name} to {from}"), why);
            tracing::warn!("{error}; the next command tries again");
        }
        if outcome(out, "same", name).is_some() {
            left.push(name.to_owned());
        } else if outcome(out, "set", name).is_some() {
            tracing::info!("{}: {name} is {from} again", device.serial);
        }
    }
    left.retain(|name| record.names.contains(name));
    left
}
