//! An app: a workload that artvm runs.

use crate::code::Code;
use crate::release::Release;
use crate::testbed::{Testbed, testbed};
use anyhow::{Result, anyhow};
use std::iter;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The models' results for the runs of the tests: lines of PACKAGE METHOD N RESULT, written by `expected.py golden`.
/// `expected.py verify` computes them again.
const GOLDEN: &str = include_str!("../workloads/golden.txt");

/// A run of a workload's method.
#[derive(Debug, Clone)]
pub struct App {
    testbed: &'static Testbed,
    /// The name of the workload. Its package is org.example.NAME.
    pub name: &'static str,
    method: String,
    rounds: u32,
    release: Release,
    options: Vec<String>,
    /// Environment variables that are added to the test's.
    variables: Vec<String>,
    /// The options for the dex file, and the file that is mapped for it. None if the app is only interpreted.
    code: Option<(Vec<String>, PathBuf)>,
}

impl App {
    /// Makes a run of `org.example.NAME.Main.METHOD(rounds)`.
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

    /// Adds an option of artvm.
    #[must_use]
    pub fn option(mut self, option: impl Into<String>) -> Self {
        self.options.push(option.into());
        self
    }

    /// Adds options of artvm.
    #[must_use]
    pub fn options(self, options: &[&str]) -> Self {
        options.iter().fold(self, |app, option| app.option(*option))
    }

    /// Adds an environment variable.
    #[must_use]
    pub(crate) fn variable(mut self, name: &str, value: &Path) -> Self {
        self.variables.push(format!("{name}={}", value.display()));
        self
    }

    /// Adds the test's environment variables.
    #[must_use]
    pub(crate) fn without_variables(mut self) -> Self {
        self.variables.clear();
        self
    }

    /// Returns the same method with this number of rounds.
    #[must_use]
    pub(crate) fn of_rounds(mut self, rounds: u32) -> Self {
        self.rounds = rounds;
        self
    }

    /// Executes the app by `code` in its release. The necessary files are brought up to date.
    pub fn executed_by(self, code: Code) -> Result<Self> {
        self.compiled(code, &[])
    }

    /// Like [`executed_by`](Self::executed_by), with these options for the ahead-of-time compiler.
    pub fn compiled(mut self, code: Code, compiler: &[&str]) -> Result<Self> {
        self.code = Some(code.options(self.release, self.testbed, &self.dex(), compiler)?);
        Ok(self)
    }

    /// Uses these options for the dex file. The code is not on this machine, and `mapped` is mapped last.
    #[must_use]
    pub(crate) fn with_code_options(mut self, options: Vec<String>, mapped: PathBuf) -> Self {
        self.code = Some((options, mapped));
        self
    }

    /// Returns the files that the app maps last.
    pub fn mapped_files(&self) -> Vec<String> {
        let code = self.code.as_ref().map(|(_, mapped)| mapped.clone());
        let code = code.unwrap_or_else(|| self.dex());
        // Compiled code and its dex file are mapped one after the other.
        let dex = code.with_extension("vdex");
        let dex = Some(dex).filter(|dex| dex.exists());
        let files = iter::once(code).chain(dex).chain(self.library());
        files.map(|path| path.display().to_string()).collect()
    }

    /// Returns the oat files that the app maps when `code` executes it. They have symbols and unwind information.
    pub fn oat_files_with_symbols(&self, code: Code) -> Result<Vec<PathBuf>> {
        code.with_symbols(self.release, self.testbed, &self.dex())
    }

    /// Selects another release of ART.
    #[must_use]
    pub fn in_release(mut self, release: Release) -> Self {
        self.release = release;
        self
    }

    /// Returns the boot class path of the app.
    pub fn boot_dex(&self) -> PathBuf {
        match self.release {
            Release::Art11 => self.testbed.boot_dex(),
            Release::Art14 => self.testbed.release.join("art14/boot.dex"),
        }
    }

    /// Returns the dex file.
    pub fn dex(&self) -> PathBuf {
        self.testbed.workloads.join(self.dex_name())
    }

    /// Returns the JNI library, if the workload has one.
    pub fn library(&self) -> Option<PathBuf> {
        Some(self.testbed.workloads.join(self.library_name())).filter(|path| path.exists())
    }

    /// Returns artvm's command line.
    pub fn arguments(&self) -> Vec<String> {
        self.arguments_in(&self.testbed.release, &self.testbed.workloads)
    }

    /// Returns artvm's command line for other folders of artvm and of the workloads.
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

    /// Returns the app as a command, without varid.
    pub fn command(&self) -> Command {
        let arguments = self.arguments();
        let mut command = Command::new(&arguments[0]);
        command.args(&arguments[1..]).stdin(Stdio::null());
        command
    }

    /// Returns the output of the app without a profiler, as a golden result or from the model.
    pub fn expected(&self) -> Result<String> {
        let run = format!("{} {} {} ", self.name, self.method, self.rounds);
        let mut golden = GOLDEN.lines().filter_map(|line| line.strip_prefix(&run));
        match golden.next() {
            Some(result) => Ok(format!("{result}\n")),
            None => self.computed(),
        }
    }

    /// Computes the output by the workload's model in Python, which takes up to ten seconds.
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
