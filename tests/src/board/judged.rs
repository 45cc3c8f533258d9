//! What of a session on the board does an oracle say? The board's perf reads it, and what the kernel recorded beside it.

use super::Board;
use crate::app::App;
use crate::oracle::judge_in;
use anyhow::{Result, ensure};
use serde_json::Value;
use std::path::Path;

impl Board {
    /// A copy of the /proc/PID/maps of the last app of [`Board::record_there`], on the board.
    pub const MAPS: &str = "/data/local/tmp/maps";

    /// Records an app to its end, the kernel's samples too, while its mappings are read as any other process could. The session
    /// stays on the board; the app's result must be the right one.
    pub fn record_there(&self, app: &App, options: &str) -> Result<()> {
        let (programs, session, maps) = (Path::new(Self::PROGRAMS), Self::SESSION, Self::MAPS);
        let arguments = app.arguments_in(programs, programs).join(" ");
        // Loaded last: the library, where the app has one, else the dex file.
        let last = match app.library() {
            Some(_) => format!("lib{}.so", app.name),
            None => format!("{}.dex", app.name),
        };
        let output = self.check(&format!(
            "rm -rf {session} {maps}
            {varid}/varid record {options} --keep-raw -o {session} -- {arguments} &
            while kill -0 $! && ! [ -s {maps} ]; do
                for app in $(cat /proc/$!/task/$!/children); do
                    grep -q /{last} /proc/$app/maps && cat /proc/$app/maps > {maps}
                done
            done 2> /dev/null
            wait $! && ls {session}/perf.data >&2",
            varid = Self::PROGRAMS,
        ))?;
        ensure!(output == app.expected()?, "the app printed {output:?}");
        Ok(())
    }

    /// Runs an oracle that must have nothing to complain of; what is recorded, it reads on the board.
    pub fn judge<const N: usize>(&self, name: &str, arguments: [&str; N]) -> Result<Value> {
        let (server, socket) = self.environment();
        let adb = format!("adb -s {}", self.serial());
        judge_in([(server, socket.to_owned()), ("ADB", adb)], name, arguments)
    }
}
