//! The arguments of `varid annotate`.

use super::selection::{MeasureArgs, NameArgs, SampleArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `varid annotate`.
#[derive(Debug, Args)]
pub struct AnnotateArgs {
    /// The method or function: its name, a part of it, or a regular expression; or its address in its file, 0x… [default: the one with most samples].
    #[arg(value_name = "METHOD")]
    pub method: Option<String>,
    #[command(flatten)]
    pub session: SessionArgs,
    /// Sources are in this folder, or in this archive (jar, zip, apk). May be repeated.
    #[arg(long, value_name = "DIR|JAR|APK", visible_alias = "source")]
    pub source_path: Vec<PathBuf>,
    /// Java's class files are in these folders and archives, written as for java [default: the recorded class path].
    #[arg(long, value_name = "PATH")]
    pub class_path: Vec<String>,
    /// Only methods of images whose name has this in it.
    #[arg(long, value_name = "NAME", alias = "dso")]
    pub image: Option<String>,
    #[command(flatten)]
    pub lines: LineArgs,
    /// Samples of this event of the session, with or without its modifiers [default: the first].
    #[arg(short, long, value_name = "EVENT")]
    pub event: Option<String>,
    #[command(flatten)]
    pub measures: MeasureArgs,
    #[command(flatten)]
    pub output: AnnotateOutputArgs,
    #[command(flatten)]
    pub samples: SampleArgs,
    #[command(flatten)]
    pub names: NameArgs,
}

/// Which session.
#[derive(Debug, Args)]
pub struct SessionArgs {
    /// The session, by folder or by name [default: the last one].
    #[arg(value_name = "SESSION")]
    pub session: Option<PathBuf>,
    /// The same, without naming a method.
    #[arg(short, long, value_name = "SESSION", conflicts_with = "session")]
    pub input: Option<PathBuf>,
}

/// Which lines.
#[derive(Debug, Args)]
pub struct LineArgs {
    /// Only so many lines, the hottest, and those around them [default: the whole method].
    #[arg(short = 'n', long, value_name = "LINES")]
    pub limit: Option<usize>,
    /// Lines before and behind each that is shown.
    #[arg(short = 'C', long, value_name = "LINES", default_value_t = 2)]
    pub context: usize,
}

/// How the result looks.
#[derive(Debug, Args)]
pub struct AnnotateOutputArgs {
    /// On a terminal: whole lines, however wide they get, one below the other.
    #[arg(long)]
    pub wide: bool,
    /// For people or for programs.
    #[arg(long, value_enum, default_value_t = AnnotateFormatArg::Text)]
    pub format: AnnotateFormatArg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AnnotateFormatArg {
    Text,
    Json,
}
