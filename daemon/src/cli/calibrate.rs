//! The arguments of `varid calibrate`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use varid_calibrate::{ArtInterpreter, Clock, Error, VmCommand};
use varid_session::config::units;

/// `varid calibrate`.
#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// The VM: hotspot is 'java -Xint' of JAVA_HOME or the path; art11, art14 and art14-switch are ART's interpreters in artvm; or a command such as 'java -Xint -cp {classpath} {class}'.
    #[arg(long, value_name = "VM", value_parser = parse_vm)]
    pub vm: VmArg,
    /// The clock to measure by: counter is the processor's time stamp counter, by JNI; millis takes loops that are long enough for it.
    #[arg(long, value_enum, default_value_t = ClockArg::Nano)]
    pub clock: ClockArg,
    /// How long it may take, in all.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::duration)]
    pub time: Duration,
    /// How many VMs to start, one after the other: costs differ among them.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=100))]
    pub launches: Option<u8>,
    /// Measure only these instructions, such as iadd,invokestatic or add-int,invoke-static, and those that their measurement needs.
    #[arg(long, value_name = "OPCODES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// The table to write, a target of estimates.
    #[arg(short, long, value_name = "TABLE.toml")]
    pub output: PathBuf,
}

/// A VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VmArg {
    /// The interpreter of HotSpot.
    Hotspot,
    /// An interpreter of ART.
    Art(ArtInterpreter),
    /// A command.
    Command(VmCommand),
}

fn parse_vm(text: &str) -> Result<VmArg, Error> {
    match text {
        "hotspot" => Ok(VmArg::Hotspot),
        "art11" => Ok(VmArg::Art(ArtInterpreter::Art11)),
        "art14" => Ok(VmArg::Art(ArtInterpreter::Art14)),
        "art14-switch" => Ok(VmArg::Art(ArtInterpreter::Art14Switch)),
        command => VmCommand::parse(command).map(VmArg::Command),
    }
}

/// A clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClockArg {
    /// System.nanoTime.
    Nano,
    /// System.currentTimeMillis.
    Millis,
    /// The processor's time stamp counter.
    Counter,
}

impl From<ClockArg> for Clock {
    fn from(clock: ClockArg) -> Self {
        match clock {
            ClockArg::Nano => Self::Nano,
            ClockArg::Millis => Self::Millis,
            ClockArg::Counter => Self::Counter,
        }
    }
}
