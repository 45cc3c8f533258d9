//! Records which settings of a device varid has changed, and which commands still need the changes.
//!
//! A file on the device contains the names of the changed settings and the claims of the commands that are about to record. Several commands
//! may run at once, so the file is updated by compare and exchange: a command reads it, and replaces it only if it is unchanged. A lock on
//! the device is held while the file is compared and written, and while the corresponding settings are changed.

use super::adb::Device;
use super::error::Result;
use super::place::Place;
use super::shell::{quote, unique};

/// The file in varid's folder. It has the name of a setting in each line, then the claims: the second of the device's clock in which each was
/// made, and the id of the command.
const FILE: &str = "changed";

/// Seconds after which a claim is void: by then the command has a session that records, or has failed.
const CLAIM_LIFETIME: u64 = 60;

/// Maximum number of attempts for an update, if other commands write the file at the same time.
const ATTEMPTS: u32 = 20;

/// The exit status of [`SCRIPT`] if the file is not the expected one.
const CHANGED: i32 = 75;

/// Replaces the file with `$new` and runs `work`, if `same` finds that the file is `$old`. The lock is a folder that contains the time at
/// which it was taken and the id of its holder. A lock that is 30 seconds old is broken: its holder has lost the connection to the device.
const SCRIPT: &str = r#"umask 077
file=$home/changed lock=$home/changed.lock began=$(date +%s) tries=0
until why=$(mkdir "$lock" 2>&1); do
    [ -d "$lock" ] || tries=$((tries + 1))
    [ $tries -lt 9 ] || { echo "$why" >&2; exit 1; }
    by=$(cat "$lock/by" 2>/dev/null)
    since=${by%% *}
    case $since in '' | *[!0-9]*) since=$began ;; esac
    age=$(($(date +%s) - since))
    if [ $age -ge 30 ] || [ $age -le -30 ]; then
        mv "$lock" "$lock.$id" && rm -rf "$lock.$id"
    else
        sleep 0.1 2>/dev/null || sleep 1
    fi
done
by="$(date +%s) $id"
echo "$by" >"$lock/by"
(
    same || exit 75
    if [ "$new" != "$old" ]; then
        rm -f "$file".varid-*
        if [ "$new" ]; then
            echo "$new" >"$file.$id" && sync && mv "$file.$id" "$file"
        else
            rm -f "$file"
        fi || exit 1
    fi
    work
    exit 0
)
status=$?
[ "$(cat "$lock/by" 2>/dev/null)" != "$by" ] || rm -rf "$lock"
exit $status"#;

/// The unique id of a command that is about to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim(String);

impl Claim {
    /// Makes a claim for this command.
    pub fn new() -> Self {
        Self(unique())
    }
}

/// The contents of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeRecord {
    /// The names of the changed settings.
    pub names: Vec<String>,
    /// Time and command of each claim. The time of a claim that has ended is 0.
    claims: Vec<(u64, String)>,
    /// The text of the file.
    text: String,
    /// The device's time when it was read, in seconds.
    now: u64,
}

impl ChangeRecord {
    /// Makes a record of these settings without claims.
    pub fn of(names: Vec<String>) -> Self {
        Self {
            names,
            ..Self::default()
        }
    }

    /// Reads the file in varid's folder on the device.
    pub fn read(device: &Device, home: &str) -> Result<Self> {
        let file = quote(&format!("{home}/{FILE}"));
        let answer = device.ask(&format!("date +%s; cat {file} 2>/dev/null"))?;
        let (now, text) = answer.out.split_once('\n').unwrap_or_default();
        Ok(Self::parse(text, now.trim().parse().unwrap_or(0)))
    }

    fn parse(text: &str, now: u64) -> Self {
        let text = text.trim_end_matches('\n');
        let mut record = Self {
            text: text.to_owned(),
            now,
            ..Self::default()
        };
        for line in text.lines() {
            let (first, command) = line.split_once(' ').unwrap_or((line, ""));
            match first.parse() {
                Ok(time) => record.claims.push((time, command.to_owned())),
                Err(_) => record.names.push(line.to_owned()),
            }
        }
        record
    }

    fn lines(&self) -> String {
        let claims = self
            .claims
            .iter()
            .map(|(time, command)| format!("{time} {command}"));
        let lines: Vec<_> = self.names.iter().cloned().chain(claims).collect();
        lines.join("\n")
    }

    /// Returns true if a command needs the settings for a session that it is about to start.
    pub fn is_claimed(&self) -> bool {
        let in_effect = |time: u64| self.now.abs_diff(time) < CLAIM_LIFETIME;
        self.claims.iter().any(|(time, _)| in_effect(*time))
    }

    /// Adds a claim, and removes void ones.
    pub fn claim(&mut self, claim: &Claim) {
        let now = self.now;
        self.claims
            .retain(|(time, _)| now.abs_diff(*time) < CLAIM_LIFETIME);
        self.claims.push((now, claim.0.clone()));
    }

    /// Adds the names of settings. Returns those that were not in the record.
    pub fn add(&mut self, names: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
        let new: Vec<_> = names
            .filter(|name| self.names.iter().all(|known| known != name))
            .collect();
        self.names.extend(new.iter().map(|name| (*name).to_owned()));
        new
    }

    /// Ends a claim. If settings are changed, the claim stays in the file with the time 0, so that the file differs from the one before the
    /// claim. So a command that had read the earlier file cannot replace this one.
    fn end_claim(&mut self, claim: &Claim) {
        if self.names.is_empty() {
            self.claims.retain(|(_, command)| *command != claim.0);
        }
        for (time, command) in &mut self.claims {
            if *command == claim.0 {
                *time = 0;
            }
        }
    }
}

/// Ends this command's claim. Returns the new record.
pub fn end_claim(place: &Place, claim: &Claim) -> Result<ChangeRecord> {
    let (record, _) = update(place, |record| {
        record.end_claim(claim);
        Ok(String::new())
    })?;
    Ok(record)
}

/// Updates the record. `edit` changes it and returns a script, which runs under the lock after the file is written. `edit` is called again if
/// another command has written the file meanwhile. Returns the new record and the output of the script.
pub fn update(
    place: &Place,
    mut edit: impl FnMut(&mut ChangeRecord) -> Result<String>,
) -> Result<(ChangeRecord, String)> {
    for _ in 0..ATTEMPTS {
        let old = ChangeRecord::read(&place.device, &place.home)?;
        let mut new = old.clone();
        let script = edit(&mut new)?;
        if script.is_empty() && new == old {
            return Ok((old, String::new()));
        }
        if let Some(out) = replace(place, &old, &new, &script)? {
            let text = new.lines();
            return Ok((ChangeRecord { text, ..new }, out));
        }
    }
    Err(place
        .device
        .failed(RECORDING, "other commands write it all the time: try again"))
}

const RECORDING: &str = "note what is changed";

/// Replaces the file and runs a script under the lock. Returns the output of the script, or None if the file is not `old` and nothing was
/// done.
pub fn replace(
    place: &Place,
    old: &ChangeRecord,
    new: &ChangeRecord,
    script: &str,
) -> Result<Option<String>> {
    let script = replace_script(&place.home, old, new, script);
    let answer = place.device.ask(&script)?;
    match answer.status {
        0 => Ok(Some(answer.out)),
        CHANGED => Ok(None),
        _ => Err(place.device.failed(RECORDING, &answer.said)),
    }
}

fn replace_script(home: &str, old: &ChangeRecord, new: &ChangeRecord, script: &str) -> String {
    let plain = |char: char| char == '\n' || char == ' ' || char.is_ascii_graphic();
    // A file that was damaged by a power loss is replaced without a comparison.
    let same = if old.text.chars().all(plain) {
        r#"[ "$(cat "$file" 2>/dev/null)" = "$old" ]"#
    } else {
        "true"
    };
    let text = if new == old {
        old.text.clone()
    } else {
        new.lines()
    };
    let clean = |text: &str| quote(&text.replace(|char| !plain(char), ""));
    format!(
        "home={} id={} old={} new={}\nsame() {{ {same}; }}\nwork() {{ :{script}\n}}\n{SCRIPT}",
        quote(home),
        unique(),
        clean(&old.text),
        clean(&text),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::{Command, Output};

    fn run(home: &Path, old: &ChangeRecord, new: &ChangeRecord, script: &str) -> Output {
        let script = replace_script(home.to_str().unwrap(), old, new, script);
        Command::new("sh").args(["-c", &script]).output().unwrap()
    }

    fn files_in(home: &Path) -> Vec<String> {
        let names = std::fs::read_dir(home).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        names
            .map(|entry| name(entry).into_string().unwrap())
            .collect()
    }

    #[test]
    fn two_claims_end_independently() {
        let (first, second) = (Claim(String::from("a")), Claim(String::from("b")));
        let mut record = ChangeRecord::parse("x\n900 old\n", 1000);
        assert!(!record.is_claimed());
        record.claim(&first);
        record.claim(&second);
        assert_eq!(record.lines(), "x\n1000 a\n1000 b");
        record.end_claim(&first);
        assert!(record.is_claimed());
        record.end_claim(&Claim(String::from("c")));
        assert_eq!(record.lines(), "x\n0 a\n1000 b");
        record.end_claim(&second);
        assert!(!record.is_claimed());
        record.names.clear();
        record.end_claim(&first);
        record.end_claim(&second);
        assert_eq!(record.lines(), "");
    }

    #[test]
    fn a_record_that_another_command_has_changed_is_not_replaced() {
        let folder = tempfile::Builder::new().prefix("a 'NEW").tempdir().unwrap();
        let home = folder.path();
        let (none, one) = (ChangeRecord::default(), ChangeRecord::parse("x y\n7 a", 0));
        let output = run(home, &none, &one, "\necho worked");
        assert_eq!(output.stdout, b"worked\n", "{output:?}");
        assert_eq!(std::fs::read(home.join(FILE)).unwrap(), b"x y\n7 a\n");
        let output = run(home, &none, &one, "\necho worked");
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(CHANGED), 0)
        );
        assert!(run(home, &one, &none, "").status.success());
        assert_eq!(files_in(home), Vec::<String>::new());
    }

    #[test]
    fn an_old_lock_is_broken_and_a_damaged_record_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        std::fs::create_dir(home.join("changed.lock")).unwrap();
        std::fs::write(home.join("changed.lock/by"), "17 gone\n").unwrap();
        std::fs::write(home.join(FILE), b"\0\xff\n").unwrap();
        let damaged = ChangeRecord::parse("\0\u{fffd}\n", 0);
        let output = run(home, &damaged, &ChangeRecord::parse("x", 0), "");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(files_in(home), [FILE]);
        assert_eq!(std::fs::read(home.join(FILE)).unwrap(), b"x\n");
    }

    #[test]
    fn a_setting_whose_record_cannot_be_written_is_not_changed() {
        let output = run(
            Path::new("/dev/null"),
            &ChangeRecord::default(),
            &ChangeRecord::parse("x", 0),
            "\necho no",
        );
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
        assert!(!output.stderr.is_empty());
    }
}
