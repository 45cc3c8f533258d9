//! Judges sessions on the board by oracles, which use the board's perf and the samples that the kernel recorded in
//! addition.

use super::Board;
use crate::app::App;
use crate::oracle::judge_in;
use anyhow::{Result, ensure};
use serde_json::Value;
use std::path::Path;

impl Board {
    /// The copy on the board of /proc/PID/maps of the last app of [`Board::record_there`].
    pub const MAPS: &str = "/data/local/tmp/maps";

    /// Records an app until it ends, including the kernel's samples, while its mappings are read from outside. The
    /// session stays on the board. The app's result must be correct.
    pub fn record_there(&self, app: &App, options: &str) -> Result<()> {
        self.record_by(&recorder(options), app)
    }

    /// Like [`record_there`](Self::record_there), with a command of the board's shell that precedes the app's command
    /// line.
    pub fn record_by(&self, recorder: &str, app: &App) -> Result<()> {
        let programs = Path::new(Self::PROGRAMS);
        let command = app.arguments_in(programs, programs).join(" ");
        // The last mapping is the library, if the app has one, otherwise the dex file.
        let last = match app.library() {
            Some(_) => format!("/lib{}.so", app.name),
            None => format!("/{}.dex", app.name),
        };
        let printed = self.recorded(&format!("{recorder} {command}"), "artvm", &last)?;
        ensure!(printed == app.expected()?, "the app printed {printed:?}");
        Ok(())
    }

    /// Returns the output of a recorder. The app is identified by its program, or the dynamic linker that runs it, and
    /// by the file that it maps last.
    pub(super) fn recorded(&self, command: &str, program: &str, last: &str) -> Result<String> {
        let (session, maps) = (Self::SESSION, Self::MAPS);
        self.check(&format!(
            "rm -rf {session} {maps}
            {command} &
            while kill -0 $! && ! [ -s {maps} ]; do
                for of_app in $(grep -l {last} /proc/[0-9]*/maps); do
                    case $(readlink ${{of_app%maps}}exe) in
                    */{program} | */ld-linux-*) cat $of_app > {maps} ;;
                    esac
                done
            done 2> /dev/null
            wait $! && ls {session}/perf.data >&2",
        ))
    }

    /// Returns the manifest of a session, which must be lossless.
    pub fn manifest(&self, session: &str) -> Result<Value> {
        let manifest = self.check(&format!("cat {session}/session.json"))?;
        let manifest: Value = serde_json::from_str(&manifest)?;
        ensure!(manifest["counts"]["lost"] == 0, "{manifest}");
        Ok(manifest)
    }

    /// Judges a session of an app by the registers that the kernel recorded. It must be lossless, and nearly all
    /// samples must be judged.
    pub fn judge_art(&self, session: &str, app: &App) -> Result<Value> {
        self.manifest(session)?;
        let files = [app.traced()?, app.dex(), app.boot_dex()];
        let [trace, dex, boot] = files.map(|file| file.display().to_string());
        let counts = self.judge("per_sample.py", [session, Self::MAPS, &trace, &dex, &boot])?;
        let of = |what: &str| counts[what].as_u64().unwrap_or(0);
        ensure!(of("samples") > 500 && of("wrong") == 0, "{counts}");
        ensure!(
            is_at_most(of("unresolved"), of("samples"), 0.005),
            "{counts}"
        );
        // varid found the VM early enough.
        ensure!(of("vm not ready") * 4 < of("samples"), "{counts}");
        nearly_all_judged(&counts)?;
        Ok(counts)
    }

    /// Records the shadow interpreter of a folder below [`Self::PROGRAMS`], and judges its session. Every method is a
    /// native function, whose symbol is the ground truth. The session must be lossless, and nearly all samples must be
    /// judged.
    pub fn judge_shadow(&self, folder: &str, options: &str) -> Result<Value> {
        let folder = format!("{}/{folder}", Self::PROGRAMS);
        let counts = self.judge_natives(
            "shadow.py",
            &format!("{folder}/shadowvm"),
            &format!(
                "--dex {folder}/shadow.dex --name org.example.shadow --rounds 1 --threads 1 --quiet"
            ),
            options,
        )?;
        let of = |what: &str| counts[what].as_u64().unwrap_or(0);
        // One in a hundred samples is in the few instructions in which shadow stack and native stack differ.
        ensure!(of("unresolved") * 50 < of("samples"), "{counts}");
        // The shadow interpreter starts immediately and runs for two seconds. On a busy machine varid finds it late.
        ensure!(of("vm not ready") * 10 < of("samples"), "{counts}");
        ensure!(
            of("callers known") * 10 > of("samples") * 9,
            "too few samples have a known truth: {counts}"
        );
        Ok(counts)
    }

    /// Like [`judge_shadow`](Self::judge_shadow), for the VM with Dalvik's frames.
    pub fn judge_areas(&self, options: &str) -> Result<Value> {
        let programs = Self::PROGRAMS;
        let counts = self.judge_natives(
            "areas.py",
            &format!("{programs}/areavm/areavm"),
            &format!("{programs}/shadowvm/shadow.dex 1"),
            options,
        )?;
        let of = |what: &str| counts[what].as_u64().unwrap_or(0);
        ensure!(of("unresolved") * 50 < of("samples"), "{counts}");
        ensure!(of("callers known") * 2 > of("samples"), "{counts}");
        Ok(counts)
    }

    /// Records a VM whose methods are native functions, and judges its session by an oracle.
    fn judge_natives(
        &self,
        oracle: &str,
        program: &str,
        arguments: &str,
        options: &str,
    ) -> Result<Value> {
        let name = program.rsplit('/').next().unwrap_or(program);
        let command = format!("{} {program} {arguments}", recorder(options));
        self.recorded(&command, name, "varid-tunnel")?;
        self.manifest(Self::SESSION)?;
        let counts = self.judge(oracle, [Self::SESSION, Self::MAPS, program])?;
        let of = |what: &str| counts[what].as_u64().unwrap_or(0);
        ensure!(of("samples") > 500 && of("wrong") == 0, "{counts}");
        ensure!(of("not paired") == 0, "{counts}");
        nearly_all_judged(&counts)?;
        Ok(counts)
    }

    /// Runs an oracle that must report no error. It reads the recording on the board.
    pub fn judge<const N: usize>(&self, name: &str, arguments: [&str; N]) -> Result<Value> {
        let (server, socket) = self.environment();
        let adb = format!("adb -s {}", self.serial());
        judge_in([(server, socket.to_owned()), ("ADB", adb)], name, arguments)
    }
}

/// Returns the command that records by varid on the board.
pub(super) fn recorder(options: &str) -> String {
    let (programs, session) = (Board::PROGRAMS, Board::SESSION);
    format!("{programs}/varid record {options} --keep-raw -o {session} --")
}

/// Allows one unjudged sample for each of two phases of a millisecond: the last instructions of the program that became
/// the app, and the end of its memory.
fn nearly_all_judged(counts: &Value) -> Result<()> {
    let of = |what: &str| counts[what].as_u64().unwrap_or(0);
    let unjudged = of("before the start") + of("after the end");
    ensure!(unjudged * 100 < of("samples"), "{counts}");
    Ok(())
}

/// Returns whether a count of samples is compatible with a share of at most `limit`. A board's recording is short:
/// three standard deviations of the count are allowed on top.
#[allow(clippy::cast_precision_loss)]
fn is_at_most(count: u64, samples: u64, limit: f64) -> bool {
    let expected = samples as f64 * limit;
    count as f64 <= expected + 3.0 * expected.sqrt()
}
