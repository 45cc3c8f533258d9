//! Compiled code of ART 11 on the 64-bit board. ART's compiler writes it on this machine for the board's paths.

use super::{Board, Processor};
use crate::app::App;
use crate::code::DexFormat;
use crate::testbed::{run, testbed};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The location of the code that executes an app on the board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoardCode {
    /// A boot image. The app is a part of the boot class path.
    Image,
    /// An .odex beside the dex file. The boot class path has an image.
    Odex(DexFormat),
}

/// An app with its code on the board.
#[derive(Debug)]
pub struct CompiledApp {
    app: App,
    code: BoardCode,
    /// The folder on the board with the boot class path, the app's dex file and their code.
    there: PathBuf,
    /// The oat files with symbols and unwind information. Their code is the same.
    symbols: Vec<PathBuf>,
}

impl BoardCode {
    /// All locations.
    pub const ALL: [Self; 3] = [
        Self::Image,
        Self::Odex(DexFormat::Compact),
        Self::Odex(DexFormat::Plain),
    ];

    fn folder(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Odex(format) => format.folder(),
        }
    }

    /// Compiles an app into a folder, for another folder on the board.
    fn write(self, folder: &Path, there: &Path, app: &App, options: &[&str]) -> Result<()> {
        let dex = app.dex();
        match self {
            Self::Image => compile(there, "image", &[folder, &dex], options),
            Self::Odex(format) => {
                compile(there, "image", &[folder], options)?;
                let options = [&[format.level()], options].concat();
                compile(there, "app", &[folder, folder, &dex], &options)
            }
        }
    }

    /// Returns the oat files below a folder.
    fn oat_files(self, folder: &Path, name: &str) -> Vec<PathBuf> {
        let app = match self {
            Self::Image => format!("arm64/boot-{name}.oat"),
            Self::Odex(_) => format!("oat/arm64/{name}.odex"),
        };
        vec![folder.join("arm64/boot.oat"), folder.join(app)]
    }
}

impl CompiledApp {
    /// Returns artvm's command line on the board.
    fn command(&self) -> String {
        let programs = Path::new(Board::PROGRAMS);
        let there = self.there.display();
        let dex = match self.code {
            BoardCode::Image => "--dex",
            BoardCode::Odex(_) => "--app-dex",
        };
        let code = format!(
            "--boot {there}/boot.dex --image {there} {dex} {there}/{}.dex",
            self.app.name
        );
        let code = code.split(' ').map(str::to_owned).collect();
        let app = self.app.clone().with_code_options(code, self.there.clone());
        app.arguments_in(programs, programs).join(" ")
    }

    /// Returns a part of the path that the app maps last.
    fn last(&self) -> String {
        let name = self.app.name;
        match (self.app.library(), self.code) {
            (Some(_), _) => format!("/lib{name}.so"),
            (None, BoardCode::Odex(_)) => format!("/{name}.odex"),
            // The image is mapped before the libraries of the boot class path.
            (None, BoardCode::Image) => "/libopenjdk.so".to_owned(),
        }
    }
}

impl Board {
    /// Compiles an app, and pushes it to the board if necessary.
    pub fn compiled(&self, app: App, code: BoardCode) -> Result<CompiledApp> {
        ensure!(
            self.processor == Processor::Arm64,
            "compiled code is only for the 64-bit board"
        );
        let name = format!("{}-{}", code.folder(), app.name);
        let there = Path::new("/data/local/tmp/art11").join(&name);
        let art11 = testbed()?.art11.join("arm64");
        let (folder, symbols) = (art11.join(&name), art11.join("symbols").join(&name));
        build_compiler()?;
        code.write(&folder, &there, &app, &[])?;
        code.write(&symbols, &there, &app, &["--generate-debug-info"])?;
        let shown = there.display();
        self.check(&format!("mkdir -p {shown}"))?;
        if self.check(&format!("ls {shown}"))?.is_empty() {
            self.push(
                [&folder.join("."), &app.boot_dex(), &app.dex()],
                &shown.to_string(),
            )?;
        }
        let symbols = code.oat_files(&symbols, app.name);
        Ok(CompiledApp {
            app,
            code,
            there,
            symbols,
        })
    }

    /// Returns the output of an app with compiled code, without varid.
    pub fn run_compiled(&self, app: &CompiledApp) -> Result<String> {
        self.check(&app.command())
    }

    /// Records an app with compiled code until it ends, and judges the session by the compiler's information about its
    /// code. The session must be lossless, and the app's result correct.
    pub fn judge_compiled(&self, app: &CompiledApp, options: &str) -> Result<Value> {
        let command = format!("{} {}", super::judged::recorder(options), app.command());
        let printed = self.recorded(&command, "artvm", &app.last())?;
        ensure!(
            printed == app.app.expected()?,
            "the app printed {printed:?}"
        );
        self.manifest(Self::SESSION)?;
        let symbols = app.symbols.iter().map(|path| path.display().to_string());
        let symbols: Vec<_> = symbols.collect();
        let [boot, code] = &symbols[..] else {
            unreachable!("two oat files");
        };
        let trace = app.app.traced()?.display().to_string();
        let arguments = [Self::SESSION, Self::MAPS, &trace, boot, code];
        self.judge("compiled.py", arguments)
            .with_context(|| format!("{} in {:?}", app.app.name, app.code))
    }
}

/// Returns a script of the folder that builds ART's compiler.
fn script(name: &str) -> Command {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("art11")
        .join(name);
    Command::new(path)
}

/// Brings ART's compiler up to date.
fn build_compiler() -> Result<()> {
    let release = &testbed()?.release;
    let target = release.parent().context("no target folder")?;
    let mut build = script("build.sh");
    run(build.arg(release).env("CARGO_TARGET_DIR", target))
}

/// Runs ART's compiler for files in a folder on the board.
fn compile(there: &Path, kind: &str, arguments: &[&Path], options: &[&str]) -> Result<()> {
    let mut compile = script("compile.sh");
    compile.arg(&testbed()?.release).arg(kind).args(arguments);
    if !options.is_empty() {
        compile.arg("--").args(options);
    }
    run(compile.env("BOARD", there))
}
