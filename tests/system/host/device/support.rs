//! A simulated device: a folder of this machine, and an `adb` that runs its commands here.

use anyhow::{Context, Result, ensure};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use varid_tests::testbed;

/// Work for a shell, with words that a shell could misinterpret, and an exit status.
pub const WORK: [&str; 6] = [
    "sh",
    "-c",
    "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo \"$0|$1\"",
    "a  'b' \"c\"",
    "$HOME `id` \\ * ;",
    "ä",
];

/// A folder as a device, and another one as a host. Both are removed with this.
pub struct Device {
    folder: tempfile::TempDir,
}

impl Device {
    pub fn new() -> Result<Self> {
        let device = Self {
            folder: tempfile::Builder::new().prefix("dev").tempdir()?,
        };
        for folder in ["path", "bin", "tmp", "bins/x86_64", "host"] {
            std::fs::create_dir_all(device.at(folder))?;
        }
        let adb = Path::new(env!("CARGO_MANIFEST_DIR")).join("system/host/device/adb");
        std::os::unix::fs::symlink(adb, device.at("path/adb"))?;
        std::os::unix::fs::symlink(
            testbed()?.release.join("varid"),
            device.at("bins/x86_64/varid"),
        )?;
        device.list("S1\tdevice\n")?;
        Ok(device)
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Sets the output of `adb devices`.
    pub fn list(&self, devices: &str) -> Result<()> {
        Ok(std::fs::write(self.at("list"), devices)?)
    }

    /// Adds a program of this device, which others lack or have in another form.
    pub fn program(&self, name: &str, script: &str) -> Result<()> {
        let path = self.at("bin").join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n"))?;
        Ok(std::fs::set_permissions(
            path,
            PermissionsExt::from_mode(0o755),
        )?)
    }

    /// Returns varid on the host as a command. The device is the one that adb sees.
    pub fn varid(&self, words: &[&str]) -> Result<Command> {
        let mut varid = Command::new(testbed()?.release.join("varid"));
        let path = std::env::var("PATH").unwrap_or_default();
        varid
            .args(words)
            .env("PATH", format!("{}:{path}", self.at("path").display()))
            .env("FAKE_DEVICE", self.folder.path())
            .env("VARID_HOME", self.at("host"))
            .env("VARID_DEVICE_BINARIES", self.at("bins"))
            .env("VARID_DEVICE_HOME", self.at("tmp/varid"))
            .env_remove("ANDROID_SERIAL")
            .stdin(Stdio::null());
        Ok(varid)
    }

    pub fn run(&self, words: &[&str]) -> Result<Output> {
        Ok(self.varid(words)?.output()?)
    }

    /// Runs a command that must succeed, and returns its standard output.
    pub fn ok(&self, words: &[&str]) -> Result<String> {
        let output = self.run(words)?;
        ensure!(output.status.success(), "{words:?}: {output:?}");
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Runs a command that must fail, and returns its error message.
    pub fn fails(&self, words: &[&str]) -> Result<String> {
        let output = self.run(words)?;
        let said = String::from_utf8(output.stderr)?;
        // While a command is recorded, status 1 is the command's own.
        let code = if words.contains(&"--") { 125 } else { 1 };
        ensure!(output.status.code() == Some(code), "{words:?}: {said}");
        let mut reasons = said.lines().filter(|line| line.starts_with("varid: "));
        let reason = reasons.next().context("no reason was given")?;
        ensure!(reasons.next().is_none(), "more than one: {said}");
        Ok(reason.to_owned())
    }

    /// Returns the number of adb calls with a command of this kind.
    pub fn calls(&self, kind: &str) -> usize {
        let log = std::fs::read_to_string(self.at("log")).unwrap_or_default();
        let kind = format!("-s S1 {kind} ");
        log.lines().filter(|line| line.starts_with(&kind)).count()
    }

    /// Returns the sessions of the host.
    pub fn sessions(&self) -> Result<Vec<serde_json::Value>> {
        let said = self.ok(&["sessions", "--json"])?;
        let document: serde_json::Value = serde_json::from_str(&said)?;
        Ok(document["sessions"].as_array().context("no list")?.clone())
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // A remaining daemon is ended with its folder. An idle one would end by itself.
        if let Ok(said) = self.run(&["--adb", "status", "--json"])
            && let Ok(status) = serde_json::from_slice::<serde_json::Value>(&said.stdout)
            && let Some(pid) = status["daemon"]["pid"].as_i64()
            && let Ok(pid) = i32::try_from(pid)
        {
            let pid = nix::unistd::Pid::from_raw(pid);
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
        }
    }
}
