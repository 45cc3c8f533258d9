//! `varid --adb`: runs a verb on a device, and fetches the results.
//!
//! - [`adb`]: a device, through the `adb` program; [`shell`]: commands for its shell;
//! - [`access`], [`privilege`]: the user; [`place`]: the folder; [`abi`]: the program;
//! - [`settings`]: the settings that are changed on it; [`change_record`]: the commands that need the changes; [`remote`]: varid on
//!   the device;
//! - [`transfer`]: fetches a session; [`symbols`]: fetches the libraries that it names.
//!
//! [`arguments`] makes the command line for the device.

mod abi;
mod access;
mod adb;
mod change_record;
mod error;
mod place;
mod privilege;
mod remote;
mod settings;
mod shell;
mod symbols;
mod transfer;

use crate::cli::{self, Cli, RecordArgs, TargetArgs, Verb, arguments};
use crate::sessions;
use adb::Device;
use anyhow::Context;
use change_record::{ChangeRecord, Claim};
use clap::{ArgMatches, CommandFactory};
use error::{DeviceError, Result};
use place::Place;
use remote::{Interrupts, Remote, RemoteSession};
use shell::quote;
use std::path::PathBuf;
use std::process::ExitCode;
use varid_model::Pid;
use varid_session::config::Config;
use varid_session::request::TargetSpec;

/// The file in varid's folder with the name of the app as whose user varid recorded last.
const APP: &str = "app";

/// Runs a verb on the device that `--adb` names. `matches`: the command line as given.
pub fn run(cli: &Cli, matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    refuse_the_hosts(&cli.verb);
    let interrupts = Interrupts::watch().context("cannot watch for signals")?;
    let (device, root) = privilege::find(Device::choose(cli.adb.as_deref())?)?;
    // The record and the app's name are files of a user that does not depend on the command.
    let own_place = Place::find(device)?;
    let runner = runner(&cli.verb, &own_place, root, &interrupts)?;
    let remote = Remote::install(runner, interrupts.clone())?;
    let claim = Claim::new();
    let changed = match cli.verb {
        Verb::Start(_) | Verb::Record(_) => {
            settings::change(&own_place, &claim, root, cli.permissive)
        }
        _ => Ok(()),
    };
    let done = match changed {
        Err(error) => Err(error.into()),
        Ok(()) if interrupts.taken() => Err(anyhow::anyhow!("interrupted")),
        Ok(()) => carry_out(cli, matches, &remote),
    };
    // Settings are also restored after errors, when nothing is being recorded on the device.
    let restored = restore(&own_place, &remote, &claim);
    if root {
        restore_those_of_the_shell(&own_place)?;
    }
    let code = done?;
    restored?;
    Ok(code)
}

/// Refuses verbs that run on the host, wherever the session was recorded.
fn refuse_the_hosts(verb: &Verb) {
    match verb {
        Verb::Start(args) if args.output.folder.is_some() => cli::bad_usage(
            "start",
            "--output names a folder of the host, which 'varid --adb start' does not write: 'stop' puts the session among the host's, 'pull -o' anywhere",
        ),
        Verb::Config(_) => cli::bad_usage(
            "config",
            "this runs on the host: check a configuration here, 'adb push' it, and name it to --config by its path there",
        ),
        Verb::Top(_) => cli::bad_usage(
            "top",
            "this runs in a terminal there: 'adb push' the varid of that processor's archive and run 'adb shell -t DIR/varid top'",
        ),
        Verb::Start(_) | Verb::Record(_) | Verb::Stop { .. } | Verb::Status(_) => {}
        Verb::Sessions(_) | Verb::Events(_) | Verb::Doctor(_) | Verb::Pull { .. } => {}
        _ => cli::bad_usage(
            cli::PROGRAM,
            "this runs on the host, on what was pulled from a device, too: leave --adb out",
        ),
    }
}

/// Selects the user that runs varid: root if possible, else the user of the app that is profiled or was profiled last, else adb's
/// own.
fn runner(verb: &Verb, own_place: &Place, root: bool, interrupts: &Interrupts) -> Result<Place> {
    if root {
        return Ok(own_place.clone());
    }
    let device = &own_place.device;
    let note = quote(&own_place.path(APP));
    let noted = device.ask(&format!("cat {note} 2>/dev/null"))?;
    let noted = Some(noted.out.trim().to_owned()).filter(|app| !app.is_empty());
    let app = match verb {
        Verb::Start(args) => app_of(&args.target, device)?,
        Verb::Record(args) => app_of(&args.session.target, device)?,
        _ => return as_user_of(noted.as_deref(), own_place),
    };
    let place = as_user_of(app.as_deref(), own_place)?;
    // An app that can no longer be accessed records nothing.
    if let Ok(last) = as_user_of(noted.as_deref(), own_place)
        && last.device.access != place.device.access
        && last.has_varid()
        && Remote::install(last, interrupts.clone())?.is_recording()?
    {
        return Err(DeviceError::Busy {
            serial: device.serial.clone(),
            whose: noted.unwrap_or_else(|| "adb's shell".to_owned()),
        });
    }
    let script = match app {
        Some(app) => format!("echo {} > {note}", quote(&app)),
        None => format!("rm -f {note}"),
    };
    device.shell("note the app", &script)?;
    Ok(place)
}

/// varid's folder on the device for the app's user, which is reported, or for adb's user.
fn as_user_of(app: Option<&str>, own_place: &Place) -> Result<Place> {
    let Some(app) = app else {
        return Ok(own_place.clone());
    };
    let place = Place::find(privilege::as_app(&own_place.device, app)?)?;
    tracing::info!(
        "{}: no root there: as the user of {app}, which is debuggable",
        own_place.device.serial
    );
    Ok(place)
}

/// Returns the app as whose user varid has to run.
fn app_of(target: &TargetArgs, device: &Device) -> Result<Option<String>> {
    match (target.apps.as_slice(), target.pids.first()) {
        ([app], _) => Ok(Some(app.text().to_owned())),
        ([_, another, ..], _) => Err(DeviceError::OneApp {
            another: another.text().to_owned(),
        }),
        ([], Some(pid)) => {
            let line = device.shell("find the process", &format!("cat /proc/{pid}/cmdline"))?;
            let name = line.split('\0').next().unwrap_or_default();
            // Other processes than apps belong to the shell, or cannot be sampled.
            Ok(Some(name.to_owned()).filter(|name| name.contains('.') && !name.contains('/')))
        }
        ([], None) => Ok(None),
    }
}

fn carry_out(cli: &Cli, matches: &ArgMatches, remote: &Remote) -> anyhow::Result<ExitCode> {
    let mut line = vec!["-v".to_owned(); usize::from(cli.verbose)];
    line.extend(cli.quiet.then(|| "-q".to_owned()));
    let verb_at = line.len();
    line.extend(arguments::of(&Cli::command(), matches));
    match &cli.verb {
        Verb::Pull { session, output } => {
            let session = choose(remote, session.as_deref())?;
            bring(remote, &session, output.clone())?;
            Ok(ExitCode::SUCCESS)
        }
        Verb::Record(args) => {
            let folder = new_folder(remote, args)?;
            line.insert(verb_at.saturating_add(1), format!("--output={folder}"));
            // Without a recording it is empty, and is removed even if the connection has ended before.
            let after = format!("rmdir {} 2>/dev/null", quote(&folder));
            let status = remote.run(&line, &after)?;
            let ended = ended(remote)?;
            if let Some(session) = ended.iter().find(|session| session.folder == folder) {
                bring(remote, session, args.session.output.folder.clone())?;
            }
            Ok(code(status))
        }
        Verb::Stop { .. } => {
            let before = remote.sessions()?;
            let status = remote.run(&line, ":")?;
            let ran = |session: &RemoteSession| {
                before
                    .iter()
                    .any(|old| old.session == session.session && old.is_recording())
            };
            let stopped: Vec<_> = ended(remote)?.into_iter().filter(ran).collect();
            for session in &stopped {
                bring(remote, session, None)?;
            }
            if let (true, Some(last)) = (stopped.is_empty(), before.last()) {
                tracing::info!(
                    "the last session there is {}, {}: 'varid --adb pull' copies it",
                    last.session,
                    last.state
                );
            }
            Ok(code(status))
        }
        _ => Ok(code(remote.run(&line, ":")?)),
    }
}

/// Makes a new folder on the device, so that the recorded session is distinguishable from one that another terminal may be starting.
fn new_folder(remote: &Remote, args: &RecordArgs) -> Result<String> {
    const SCRIPT: &str = r#"umask 077
mkdir -p "$sessions" && cd "$sessions" || exit
new=$name number=0
while ! mkdir "$new" 2>/dev/null; do
    [ -e "$new" ] || exec mkdir "$new"
    number=$((number + 1))
    new=$name.$number
done
echo "$new""#;
    let command = || args.command.first().cloned().unwrap_or_default();
    // The contents of a configuration on the device are not known here.
    let request = args.session.request().target;
    let named = request.over(Config::default());
    let target = request.target(&named).unwrap_or_else(|| {
        TargetSpec::Command(Pid::default(), command().to_string_lossy().into_owned())
    });
    let script = format!(
        "sessions={} name={}\n{SCRIPT}",
        quote(&remote.place.path("sessions")),
        quote(&sessions::name_for(&target))
    );
    let place = &remote.place;
    let name = place.device.shell("make the session's folder", &script)?;
    Ok(place.path(&format!("sessions/{}", name.trim_end())))
}

/// Returns the sessions that have ended, newest last.
fn ended(remote: &Remote) -> Result<Vec<RemoteSession>> {
    let mut sessions = remote.sessions()?;
    sessions.retain(|session| !session.is_recording());
    Ok(sessions)
}

/// Returns the session with that name, or the last one.
fn choose(remote: &Remote, name: Option<&str>) -> Result<RemoteSession> {
    let sessions = ended(remote)?;
    let is_it = |session: &&RemoteSession| match name {
        Some(name) => session.session == name || session.folder == name,
        None => true,
    };
    let found = sessions.iter().rfind(is_it).cloned();
    found.ok_or_else(|| DeviceError::NoSession {
        serial: remote.place.device.serial.clone(),
        which: name.map_or_else(
            || "session that has ended".to_owned(),
            |name| format!("session '{name}' that has ended"),
        ),
    })
}

/// Pulls a session and the files that it names. It becomes the host's last session.
fn bring(remote: &Remote, session: &RemoteSession, output: Option<PathBuf>) -> anyhow::Result<()> {
    let folder = transfer::pull(&remote.place, &session.folder, output.as_deref())?;
    sessions::set_last(&folder).context("cannot note the last session")?;
    crate::output::message(&format!("varid: pulled into {}", folder.display()));
    symbols::pull(&remote.place.device, &folder)?;
    Ok(())
}

/// Ends the claim, and restores the settings unless a session or another command needs them. In that case a later command restores
/// them.
fn restore(own_place: &Place, remote: &Remote, claim: &Claim) -> Result<()> {
    let record = change_record::end_claim(own_place, claim)?;
    if record.names.is_empty() || record.is_claimed() || remote.is_recording()? {
        return Ok(());
    }
    settings::restore(own_place, &record)
}

/// Restores settings that varid changed on this device before its shell was root. Their record is another user's file and stays,
/// because root does not write where another user could place a link. The stale record does no harm.
fn restore_those_of_the_shell(own_place: &Place) -> Result<()> {
    if let Some(home) = own_place.shells() {
        let record = ChangeRecord::read(&own_place.device, home)?;
        if !record.names.is_empty() && !record.is_claimed() {
            settings::restore_without_record(&own_place.device, &record)?;
        }
    }
    Ok(())
}

fn code(status: i32) -> ExitCode {
    u8::try_from(status).map_or(ExitCode::FAILURE, ExitCode::from)
}
