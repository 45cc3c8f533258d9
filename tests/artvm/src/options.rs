//! What may be asked of artvm? Its command line.

use std::path::PathBuf;

use clap::Parser;

use crate::execution::CodeOptions;
use crate::release::Version;

/// Runs dex code in Debian's ART (android-libart), without Android.
///
/// Starts the VM on a boot class path of its own, calls `static long METHOD(int N)` of CLASS and prints the result.
/// An exception that nobody catches is printed, and the exit code is 1.
#[derive(Debug, Parser)]
#[command(
    version,
    override_usage = "artvm --dex FILE... --name PACKAGE [OPTIONS] CLASS METHOD [N]\n       artvm --app-dex FILE --name PACKAGE [OPTIONS] CLASS METHOD [N]\n       artvm --dex FILE... --zygote [OPTIONS]"
)]
pub struct Options {
    /// Dex files (or archives of them) with the program; the list ends at the next option, or at `--`
    #[arg(long, value_name = "FILE", num_args = 1.., required_unless_present = "app_dex")]
    pub dex: Vec<PathBuf>,
    #[command(flatten)]
    pub code: CodeOptions,
    /// The process's command line and comm: the app's package, as Zygote sets it
    #[arg(long, value_name = "PACKAGE", required_unless_present = "zygote")]
    pub name: Option<String>,
    /// The release of ART
    #[arg(long, value_enum, value_name = "RELEASE", default_value = "11")]
    pub art: Version,
    /// Interpret with the interpreter of -Xint: ART 14 by its switch interpreter instead of by nterp; ART 11 does so anyway
    #[arg(long, conflicts_with_all = ["jit", "image", "app_dex"])]
    pub int: bool,
    /// Do not load varid's agent into the VM
    #[arg(long)]
    pub no_dim: bool,
    /// A JNI library: its JNI_OnLoad is called, its Java_... functions are the program's natives
    #[arg(long = "lib", value_name = "FILE.so")]
    pub libs: Vec<PathBuf>,
    /// An option for the VM, such as -Xmethod-trace; after artvm's own, so that it wins
    #[arg(long = "vm-option", value_name = "OPTION", allow_hyphen_values = true)]
    pub vm_options: Vec<String>,
    /// The boot class path [default: the release's, beside artvm]
    #[arg(long, value_name = "FILE")]
    pub boot: Option<PathBuf>,
    /// The runtime [default: the release's libart.so.0]
    #[arg(long, value_name = "FILE")]
    pub libart: Option<PathBuf>,
    /// Start the runtime whatever its build-id says: it must be Debian's all the same
    #[arg(long, requires = "libart")]
    pub any_build: bool,
    /// Boot once, then fork a child for each line `PACKAGE CLASS METHOD [N]` of standard input; `PACKAGE PID RESULT` is printed as each ends
    #[arg(long, conflicts_with_all = ["class", "method", "n"])]
    pub zygote: bool,
    /// Call the method so often, and write to standard error how many nanoseconds each call took (CLOCK_MONOTONIC)
    #[arg(long, value_name = "TIMES", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "zygote")]
    pub timed: Option<u32>,
    /// The class, with dots
    #[arg(required_unless_present = "zygote")]
    pub class: Option<String>,
    /// The method: `static long METHOD(int)`
    #[arg(required_unless_present = "zygote")]
    pub method: Option<String>,
    /// Its argument
    #[arg(default_value_t = 1, allow_negative_numbers = true)]
    pub n: i32,
}
