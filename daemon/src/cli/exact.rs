//! The arguments of `varid exact`.

use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use varid_instrument::Intrinsics;

/// `varid exact`.
#[derive(Debug, Args)]
pub struct ExactArgs {
    /// The command and its arguments: a Java program, a script that starts some, or artvm with dex files. Each VM counts, from its main method on.
    #[arg(trailing_var_arg = true, required_unless_present = "pid")]
    pub command: Vec<OsString>,
    /// The session's folder [default: a new one among the sessions].
    #[arg(short, long, value_name = "SESSION")]
    pub output: Option<PathBuf>,
    /// Count also how often each bytecode ran, and the calls of native methods whose call sites name them.
    #[arg(long)]
    pub bytecodes: bool,
    /// Record also the order of calls in each thread, and of blocks with bytecodes that small processors execute by a subroutine. --bytecodes is
    /// implied.
    #[arg(long)]
    pub call_order: bool,
    /// Count only within calls of this method, on each thread: org.example.App.run, with its parameters behind it if it is overloaded. A part of the
    /// name behind a dot suffices [default: all calls from main on].
    #[arg(long, value_name = "METHOD", value_parser = parse_method)]
    pub within: Option<String>,
    /// Count only the methods of these classes: org.example.App, or org.example.* for all whose names begin so, several behind commas. What others call
    /// hangs below the call of them [default: all classes].
    #[arg(long, value_name = "CLASSES", value_delimiter = ',', value_parser = parse_name)]
    pub include: Vec<String>,
    /// Count or do not count when the program starts. SIGUSR2 to varid, the program itself, and --pid switch it later [default: all is counted, and
    /// nothing can be switched].
    #[arg(long, value_enum, conflicts_with = "call_order")]
    pub switch: Option<SwitchArg>,
    /// Switch the VMs of a command that was started with --switch, by the process of one of them. It starts nothing.
    #[arg(long, value_name = "PID", requires = "switch", conflicts_with_all = ["command", "output"])]
    pub pid: Option<u32>,
    /// What is counted of methods of the JDK that HotSpot's compilers replace by machine code, such as Math.max and Arrays.copyOf.
    #[arg(long, value_enum, default_value_t = IntrinsicsArg::Leaf)]
    pub intrinsics: IntrinsicsArg,
    /// Write the class files of all VMs into this folder, which must be empty, as they were loaded. Classes with the same name that several loaders
    /// have defined are in its folders 2, 3 and so on.
    #[arg(long, value_name = "DIR")]
    pub dump_classes: Option<PathBuf>,
    /// Room on the disk for the calling contexts of each VM, some 100 bytes for each, or less if the disk is full: with K, M or G for powers of 1024. Calls of
    /// further contexts are counted as such only [default: 1G, or half of what is free].
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub nodes: Option<u64>,
}

/// What is counted of intrinsics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum IntrinsicsArg {
    /// Nothing: neither their calls nor what they call.
    Leaf,
    /// The same as of other methods: the compilers compile their bytecode, so that programs run slower.
    Expand,
}

/// Whether calls are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SwitchArg {
    /// They are.
    On,
    /// They are not. Contexts are followed all the same, so that they are whole later.
    Off,
}

impl From<IntrinsicsArg> for Intrinsics {
    fn from(intrinsics: IntrinsicsArg) -> Self {
        match intrinsics {
            IntrinsicsArg::Leaf => Self::Leaves,
            IntrinsicsArg::Expand => Self::Expanded,
        }
    }
}

/// Checks the name of a method. Behind it, the types of its parameters may stand.
fn parse_method(text: &str) -> Result<String, String> {
    let text = text.replace(' ', "");
    match text.split_once('(') {
        Some((_, types)) if !types.ends_with(')') => Err(format!(
            "'{text}' does not end with the types of parameters, such as (int,byte[])"
        )),
        _ => parse_name(&text),
    }
}

/// Checks the name of a method or of classes, which becomes a part of the options of a VM.
fn parse_name(text: &str) -> Result<String, String> {
    let is_foreign = |letter: char| letter.is_whitespace() || "\"\'|:;/".contains(letter);
    match text.is_empty() || text.contains(is_foreign) {
        true => Err(format!("'{text}' is not a name such as org.example.App")),
        false => Ok(text.to_owned()),
    }
}

pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a number of bytes such as 512M");
    let (number, shift) = match text.strip_suffix(['K', 'M', 'G']) {
        None => (text, 0),
        Some(number) => match text.as_bytes().last() {
            Some(b'K') => (number, 10),
            Some(b'M') => (number, 20),
            _ => (number, 30),
        },
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let bytes = number.checked_mul(1 << shift).ok_or_else(wrong)?;
    match bytes >= LEAST {
        true => Ok(bytes),
        false => Err(format!(
            "'{text}' is no room for calling contexts: 64K at least"
        )),
    }
}

/// The smallest room for calling contexts in bytes.
const LEAST: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_neither_blanks_nor_slashes() {
        for name in ["App.run(int,byte[])", "org.example.*", "A$B.<init>"] {
            assert_eq!(parse_name(name).as_deref(), Ok(name));
        }
        for wrong in ["", "a b", "org/example/App", "a\"", "(I)V;"] {
            assert!(parse_name(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_method_may_have_types_of_parameters_but_no_descriptor() {
        let types = parse_method("App.run(int, byte[])");
        assert_eq!(types.as_deref(), Ok("App.run(int,byte[])"));
        for wrong in ["App.run([I)V", "App.run(", "App.run(int"] {
            assert!(parse_method(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bytes_have_a_suffix_or_none() {
        let parsed = |text| parse_bytes(text).ok();
        assert_eq!(parsed("65536"), Some(65536));
        assert_eq!(parsed("64K"), Some(65536));
        assert_eq!(parsed("2G"), Some(2 << 30));
        for wrong in ["", "K", "1", "1T", "-1G", "99999999999G"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}
