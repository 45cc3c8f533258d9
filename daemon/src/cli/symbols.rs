//! The arguments of `varid symbols`.

use clap::Args;
use std::path::PathBuf;

/// `varid symbols`.
#[derive(Debug, Args)]
pub struct SymbolsArgs {
    /// Dex files, APKs and other archives and containers of them, ELF files. app.apk!classes2.dex and app.apk!lib/x86_64/libapp.so are in an archive.
    #[arg(required_unless_present = "mapping", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Say what is at these addresses, in hexadecimal: offsets in the dex file, or an ELF file's own. -: read them from standard input.
    #[arg(long, value_name = "ADDRESS", num_args = 1.., conflicts_with_all = ["elf", "sym"])]
    pub at: Vec<String>,
    /// Write an ELF file that tells perf, gdb and addr2line the methods and lines of a dex file; of several: a folder of them. -: standard output.
    #[arg(long, value_name = "OUT")]
    pub elf: Option<PathBuf>,
    /// Write the table of a dex file's methods as text, one a line; of several: a folder of them. -: standard output.
    #[arg(long, value_name = "OUT")]
    pub sym: Option<PathBuf>,
    /// Debug information of ELF files is somewhere below DIR, found by build-id; beside where the system keeps it. May be repeated.
    #[arg(long, value_name = "DIR")]
    pub symbols: Vec<PathBuf>,
    /// Give the names of the source to what R8 or ProGuard renamed: its mapping.txt. FILE may then be a stack trace, too, or - for standard input, which is read without FILE; --at without FILE takes frames: a.b.c:7.
    #[arg(long, value_name = "MAPPING", conflicts_with_all = ["elf", "sym"])]
    pub mapping: Option<PathBuf>,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}
