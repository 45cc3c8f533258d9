//! The arguments of `varid help`, `varid completions` and `varid man-pages`.

use clap::{Args, ValueEnum};

/// `varid help`.
#[derive(Debug, Args)]
pub struct HelpArgs {
    /// A verb, such as report or 'config check', or a guide [default: the list of both].
    #[arg(value_name = "TOPIC")]
    pub topic: Vec<String>,
}

/// Shells that are told how to complete varid's command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ShellArg {
    Bash,
    Zsh,
    Fish,
}

impl From<ShellArg> for clap_complete::Shell {
    fn from(shell: ShellArg) -> Self {
        match shell {
            ShellArg::Bash => Self::Bash,
            ShellArg::Zsh => Self::Zsh,
            ShellArg::Fish => Self::Fish,
        }
    }
}
