//! What is noted on the device of what was changed there, and who needs that?
//!
//! A note is replaced as a whole, by whoever has read it as it is: a lock is held there while it
//! is compared and written, and while something is set that depends on it.

use super::adb::Device;
use super::error::Result;
use super::place::Place;
use super::shell::{quote, unique};

/// The note in varid's folder: the name of a setting in each line; then the claims, each as when
/// it was made, by the device's clock, and by whom.
const NOTE: &str = "changed";

/// Seconds in which whoever claims a note has a session that records, or none.
const FRESH: u64 = 60;

/// How often another may write first.
const ATTEMPTS: u32 = 20;

/// The exit status of a [`SCRIPT`] that has found another note.
const ANOTHER: i32 = 75;

/// Does WORK if the note is OLD, which is NEW then. The lock is a folder, which says since when
/// and by whom it is held; nobody holds it so many seconds whose cable was not pulled.
const SCRIPT: &str = r#"umask 077
note=$home/changed lock=$home/changed.lock began=$(date +%s) tries=0
until why=$(mkdir "$lock" 2>&1); do
    [ -d "$lock" ] || tries=$((tries + 1))
    [ $tries -lt 9 ] || { echo "$why" >&2; exit 1; }
    by=$(cat "$lock/by" 2>/dev/null)
    since=${by%% *}
    case $since in '' | *[!0-9]*) since=$began ;; esac
    age=$(($(date +%s) - since))
    if [ $age -ge 30 ] || [ $age -le -30 ]; then
        mv "$lock" "$lock.$who" && rm -rf "$lock.$who"
    else
        sleep 0.1 2>/dev/null || sleep 1
    fi
done
by="$(date +%s) $who"
echo "$by" >"$lock/by"
(
    same || exit 75
    if [ "$new" != "$old" ]; then
        rm -f "$note".varid-*
        if [ "$new" ]; then
            echo "$new" >"$note.$who" && sync && mv "$note.$who" "$note"
        else
            rm -f "$note"
        fi || exit 1
    fi
    work
    exit 0
)
status=$?
[ "$(cat "$lock/by" 2>/dev/null)" != "$by" ] || rm -rf "$lock"
exit $status"#;

/// Who is about to record: a word that no other command says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim(String);

impl Claim {
    /// This command's.
    pub fn new() -> Self {
        Self(unique())
    }
}

/// What a note says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Note {
    /// Of settings: their values were those that are changed, no others ever are.
    pub names: Vec<String>,
    /// When, and by whom; one that is settled: never.
    claims: Vec<(u64, String)>,
    /// As it is there.
    text: String,
    /// The device's time when it was read.
    now: u64,
}

impl Note {
    /// One without claims.
    pub fn of(names: Vec<String>) -> Self {
        Self {
            names,
            ..Self::default()
        }
    }

    /// The note in varid's folder there.
    pub fn read(device: &Device, home: &str) -> Result<Self> {
        let note = quote(&format!("{home}/{NOTE}"));
        let answer = device.ask(&format!("date +%s; cat {note} 2>/dev/null"))?;
        let (now, text) = answer.out.split_once('\n').unwrap_or_default();
        Ok(Self::parse(text, now.trim().parse().unwrap_or(0)))
    }

    fn parse(text: &str, now: u64) -> Self {
        let text = text.trim_end_matches('\n');
        let mut note = Self {
            text: text.to_owned(),
            now,
            ..Self::default()
        };
        for line in text.lines() {
            let (first, who) = line.split_once(' ').unwrap_or((line, ""));
            match first.parse() {
                Ok(time) => note.claims.push((time, who.to_owned())),
                Err(_) => note.names.push(line.to_owned()),
            }
        }
        note
    }

    fn lines(&self) -> String {
        let claims = self
            .claims
            .iter()
            .map(|(time, who)| format!("{time} {who}"));
        let lines: Vec<_> = self.names.iter().cloned().chain(claims).collect();
        lines.join("\n")
    }

    fn is_fresh(&self, time: u64) -> bool {
        self.now.abs_diff(time) < FRESH
    }

    /// Whether somebody may have changed something just now, for a session that is to start.
    pub fn is_claimed(&self) -> bool {
        self.claims.iter().any(|(time, _)| self.is_fresh(*time))
    }

    /// Adds a claim; those go that are too old to count.
    pub fn claim(&mut self, claim: &Claim) {
        let now = self.now;
        self.claims.retain(|(time, _)| now.abs_diff(*time) < FRESH);
        self.claims.push((now, claim.0.clone()));
    }

    /// Adds names; those that were not there.
    pub fn add(&mut self, names: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
        let new: Vec<_> = names
            .filter(|name| self.names.iter().all(|noted| noted != name))
            .collect();
        self.names.extend(new.iter().map(|name| (*name).to_owned()));
        new
    }

    /// Ends a claim: what is recorded now keeps what was changed. Where something was, the claim
    /// stays as one that never counts: so the note is another one than before it.
    fn settle(&mut self, claim: &Claim) {
        if self.names.is_empty() {
            self.claims.retain(|(_, who)| *who != claim.0);
        }
        for (time, who) in &mut self.claims {
            if *who == claim.0 {
                *time = 0;
            }
        }
    }
}

/// Ends this command's claim; the note as it is then.
pub fn settle(place: &Place, claim: &Claim) -> Result<Note> {
    let (note, _) = update(place, |note| {
        note.settle(claim);
        Ok(String::new())
    })?;
    Ok(note)
}

/// Changes the note. `edit` may be called anew, where another writes first; it returns a script
/// that runs with the new note, while nobody else writes. The note, and what the script printed.
pub fn update(
    place: &Place,
    mut edit: impl FnMut(&mut Note) -> Result<String>,
) -> Result<(Note, String)> {
    for _ in 0..ATTEMPTS {
        let old = Note::read(&place.device, &place.home)?;
        let mut new = old.clone();
        let script = edit(&mut new)?;
        if script.is_empty() && new == old {
            return Ok((old, String::new()));
        }
        if let Some(out) = replace(place, &old, &new, &script)? {
            let text = new.lines();
            return Ok((Note { text, ..new }, out));
        }
    }
    Err(place
        .device
        .failed(NOTING, "other commands write it all the time: try again"))
}

const NOTING: &str = "note what is changed";

/// Replaces a note as it was read, and runs a script; what that printed. None: it is another one.
pub fn replace(place: &Place, old: &Note, new: &Note, script: &str) -> Result<Option<String>> {
    let script = replacing(&place.home, old, new, script);
    let answer = place.device.ask(&script)?;
    match answer.status {
        0 => Ok(Some(answer.out)),
        ANOTHER => Ok(None),
        _ => Err(place.device.failed(NOTING, &answer.said)),
    }
}

fn replacing(home: &str, old: &Note, new: &Note, script: &str) -> String {
    let plain = |char: char| char == '\n' || char == ' ' || char.is_ascii_graphic();
    // What a loss of power has spoilt is replaced, whatever it is.
    let same = if old.text.chars().all(plain) {
        r#"[ "$(cat "$note" 2>/dev/null)" = "$old" ]"#
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
        "home={} who={} old={} new={}\nsame() {{ {same}; }}\nwork() {{ :{script}\n}}\n{SCRIPT}",
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

    fn run(home: &Path, old: &Note, new: &Note, script: &str) -> Output {
        let script = replacing(home.to_str().unwrap(), old, new, script);
        Command::new("sh").args(["-c", &script]).output().unwrap()
    }

    fn there(home: &Path) -> Vec<String> {
        let names = std::fs::read_dir(home).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        names
            .map(|entry| name(entry).into_string().unwrap())
            .collect()
    }

    #[test]
    fn two_claims_live_and_end_apart() {
        let (first, second) = (Claim(String::from("a")), Claim(String::from("b")));
        let mut note = Note::parse("x\n900 old\n", 1000);
        assert!(!note.is_claimed());
        note.claim(&first);
        note.claim(&second);
        assert_eq!(note.lines(), "x\n1000 a\n1000 b");
        note.settle(&first);
        assert!(note.is_claimed());
        note.settle(&Claim(String::from("c")));
        assert_eq!(note.lines(), "x\n0 a\n1000 b");
        note.settle(&second);
        assert!(!note.is_claimed());
        note.names.clear();
        note.settle(&first);
        note.settle(&second);
        assert_eq!(note.lines(), "");
    }

    #[test]
    fn a_note_is_replaced_only_as_it_was_read() {
        let folder = tempfile::Builder::new().prefix("a 'NEW").tempdir().unwrap();
        let home = folder.path();
        let (none, one) = (Note::default(), Note::parse("x y\n7 a", 0));
        let output = run(home, &none, &one, "\necho worked");
        assert_eq!(output.stdout, b"worked\n", "{output:?}");
        assert_eq!(std::fs::read(home.join(NOTE)).unwrap(), b"x y\n7 a\n");
        let output = run(home, &none, &one, "\necho worked");
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(ANOTHER), 0)
        );
        assert!(run(home, &one, &none, "").status.success());
        assert_eq!(there(home), Vec::<String>::new());
    }

    #[test]
    fn a_lock_whose_holder_has_gone_is_broken_and_a_spoilt_note_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        std::fs::create_dir(home.join("changed.lock")).unwrap();
        std::fs::write(home.join("changed.lock/by"), "17 gone\n").unwrap();
        std::fs::write(home.join(NOTE), b"\0\xff\n").unwrap();
        let spoilt = Note::parse("\0\u{fffd}\n", 0);
        let output = run(home, &spoilt, &Note::parse("x", 0), "");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(there(home), [NOTE]);
        assert_eq!(std::fs::read(home.join(NOTE)).unwrap(), b"x\n");
    }

    #[test]
    fn what_cannot_be_noted_is_not_done() {
        let output = run(
            Path::new("/dev/null"),
            &Note::default(),
            &Note::parse("x", 0),
            "\necho no",
        );
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
        assert!(!output.stderr.is_empty());
    }
}
