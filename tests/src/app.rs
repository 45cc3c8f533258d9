//! Which app runs? A workload in artvm.

use crate::code::Code;
use crate::release::Release;
use crate::testbed::{Testbed, testbed};
use anyhow::{Result, anyhow};
use std::iter;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Results of the models for the runs of tests, lines of PACKAGE METHOD N RESULT, written by `expected.py golden`, which
/// `expected.py verify` computes again.
const GOLDEN: &str = include_str!("../workloads/golden.txt");

/// A run of a workload's method.
#[derive(Debug, Clone)]
pub struct App {
    testbed: &'static Testbed,
    /// The workload: its package is org.example.NAME.
    pub name: &'static str,
    method: String,
    rounds: u32,
    release: Release,
    options: Vec<String>,
    /// What its environment has beside what the test's has.
    variables: Vec<String>,
    /// The options for the dex file, and the file that is mapped for it, where it is not only interpreted.
    code: Option<(Vec<String>, PathBuf)>,
}

impl App {
    /// `org.example.NAME.Main.METHOD(rounds)`.
    pub fn new(name: &'static str, method: &str, rounds: u32) -> Result<Self> {
        Ok(Self {
            testbed: testbed()?,
            name,
            method: method.to_owned(),
            rounds,
            release: Release::Art11,
            options: Vec::new(),
            variables: Vec::new(),
            code: None,
        })
    }

    /// With a further option of artvm.
    #[must_use]
    pub fn option(mut self, option: impl Into<String>) -> Self {
        self.options.push(option.into());
        self
    }

    /// With further options of artvm.
    #[must_use]
    pub fn options(self, options: &[&str]) -> Self {
        options.iter().fold(self, |app, option| app.option(*option))
    }

    /// With a variable in its environment.
    #[must_use]
    pub(crate) fn variable(mut self, name: &str, value: &Path) -> Self {
        self.variables.push(format!("{name}={}", value.display()));
        self
    }

    /// With the test's environment.
    #[must_use]
    pub(crate) fn without_variables(mut self) -> Self {
        self.variables.clear();
        self
    }

    /// The same method, run for so many rounds.
    #[must_use]
    pub(crate) fn of_rounds(mut self, rounds: u32) -> Self {
        self.rounds = rounds;
        self
    }

    /// Executed so in its release; what that needs is brought up to date.
    pub fn executed_by(self, code: Code) -> Result<Self> {
        self.compiled(code, &[])
    }

    /// The same, where the code that is written ahead of time is written with these options of the compiler.
    pub fn compiled(mut self, code: Code, compiler: &[&str]) -> Result<Self> {
        self.code = Some(code.options(self.release, self.testbed, &self.dex(), compiler)?);
        Ok(self)
    }

    /// With these options for the dex file: its code is elsewhere than on this machine, where `mapped` is
    /// mapped last.
    #[must_use]
    pub(crate) fn with_code_options(mut self, options: Vec<String>, mapped: PathBuf) -> Self {
        self.code = Some((options, mapped));
        self
    }

    /// What the app maps last.
    pub fn mapped_files(&self) -> Vec<String> {
        let code = self.code.as_ref().map(|(_, mapped)| mapped.clone());
        let code = code.unwrap_or_else(|| self.dex());
        // Compiled code and its dex file are mapped one after the other.
        let dex = code.with_extension("vdex");
        let dex = Some(dex).filter(|dex| dex.exists());
        let files = iter::once(code).chain(dex).chain(self.library());
        files.map(|path| path.display().to_string()).collect()
    }

    /// The oat files that the app maps when it is executed so, as the compiler writes them with symbols and unwind information.
    pub fn oat_files_with_symbols(&self, code: Code) -> Result<Vec<PathBuf>> {
        code.with_symbols(self.release, self.testbed, &self.dex())
    }

    /// In another release of ART.
    #[must_use]
    pub fn in_release(mut self, release: Release) -> Self {
        self.release = release;
        self
    }

    /// The boot class path that it runs on.
    pub fn boot_dex(&self) -> PathBuf {
        match self.release {
            Release::Art11 => self.testbed.boot_dex(),
            Release::Art14 => self.testbed.release.join("art14/boot.dex"),
        }
    }

    /// The dex file.
    pub fn dex(&self) -> PathBuf {
        self.testbed.workloads.join(self.dex_name())
    }

    /// The JNI library, if the workload has one.
    pub fn library(&self) -> Option<PathBuf> {
        Some(self.testbed.workloads.join(self.library_name())).filter(|path| path.exists())
    }

    /// artvm's command line.
    pub fn arguments(&self) -> Vec<String> {
        self.arguments_in(&self.testbed.release, &self.testbed.workloads)
    }

    /// artvm's command line where artvm and the workloads are in other folders.
    pub fn arguments_in(&self, release: &Path, workloads: &Path) -> Vec<String> {
        let path = |path: PathBuf| path.display().to_string();
        let package = format!("org.example.{}", self.name);
        let mut all = Vec::new();
        if !self.variables.is_empty() {
            all.push("env".to_owned());
            all.extend(self.variables.iter().cloned());
        }
        all.extend([path(release.join("artvm")), "--no-dim".into()]);
        if self.release == Release::Art14 {
            all.extend(["--art", "14"].map(String::from));
        }
        all.extend(self.options.iter().cloned());
        let code = self.code.as_ref().map(|(options, _)| options.clone());
        all.extend(code.unwrap_or_else(|| {
            let dex = path(workloads.join(self.dex_name()));
            vec!["--dex".into(), dex]
        }));
        all.extend(["--name".into(), package.clone()]);
        if self.library().is_some() {
            all.extend(["--lib".into(), path(workloads.join(self.library_name()))]);
        }
        all.extend([
            format!("{package}.Main"),
            self.method.clone(),
            self.rounds.to_string(),
        ]);
        all
    }

    fn dex_name(&self) -> String {
        format!("{}.dex", self.name)
    }

    fn library_name(&self) -> String {
        format!("lib{}.so", self.name)
    }

    /// The app as a command, without varid.
    pub fn command(&self) -> Command {
        let arguments = self.arguments();
        let mut command = Command::new(&arguments[0]);
        command.args(&arguments[1..]).stdin(Stdio::null());
        command
    }

    /// What the app prints when nobody looks: a golden result, or the model's.
    pub fn expected(&self) -> Result<String> {
        let run = format!("{} {} {} ", self.name, self.method, self.rounds);
        let mut golden = GOLDEN.lines().filter_map(|line| line.strip_prefix(&run));
        match golden.next() {
            Some(result) => Ok(format!("{result}\n")),
            None => self.computed(),
        }
    }

    /// The same from a model of the workload in Python, which takes up to ten seconds.
    fn computed(&self) -> Result<String> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/workloads/expected.py");
        let output = Command::new(script)
            .args([self.name, &self.method, &self.rounds.to_string()])
            .output()?;
        output
            .status
            .success()
            .then_some(())
            .ok_or_else(|| anyhow!("{script}: {}", String::from_utf8_lossy(&output.stderr)))?;
        Ok(String::from_utf8(output.stdout)?)
    }
}
