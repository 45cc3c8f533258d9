//! One example of each verb, at the end of its help.

/// `varid start`.
pub const START: &str = "\
Example:
  varid start --app org.example.app --duration 30";

/// `varid stop`.
pub const STOP: &str = "\
Example:
  varid stop";

/// `varid status`.
pub const STATUS: &str = "\
Example:
  varid status";

/// `varid sessions`.
pub const SESSIONS: &str = "\
Example:
  varid sessions";

/// `varid record`.
pub const RECORD: &str = "\
Example:
  varid record -F 997 -- ./server --port 8080";

/// `varid exact`.
#[cfg(feature = "host")]
pub const EXACT: &str = "\
Example:
  varid exact --bytecodes -- java -jar app.jar";

/// `varid calibrate`.
#[cfg(feature = "host")]
pub const CALIBRATE: &str = "\
Example:
  varid calibrate --vm hotspot -o here.toml";

/// `varid pull`.
#[cfg(feature = "host")]
pub const PULL: &str = "\
Example:
  varid --adb pull";

/// `varid top`.
#[cfg(feature = "host")]
pub const TOP: &str = "\
Example:
  varid top --pid 1234";

/// `varid report`.
#[cfg(feature = "host")]
pub const REPORT: &str = "\
Example:
  varid report --by line --symbol parse";

/// `varid annotate`.
#[cfg(feature = "host")]
pub const ANNOTATE: &str = "\
Example:
  varid annotate parse --source-path ./src";

/// `varid estimate`.
#[cfg(feature = "host")]
pub const ESTIMATE: &str = "\
Example:
  varid estimate --target jop-2011 --within org.example.App.step --sweep method_cache.size=1K,2K,4K";

/// `varid metrics`.
#[cfg(feature = "host")]
pub const METRICS: &str = "\
Example:
  varid metrics --section opcodes --section sites";

/// `varid diff`, with its exit codes.
#[cfg(feature = "host")]
pub const DIFF: &str = "\
Example:
  varid diff before after --fail-if-slower 5

Exit codes:
  0, 1 for a failure with a one-line reason, 2 for bad usage, 3 if --fail-if-slower says so.";

/// `varid export`.
#[cfg(feature = "host")]
pub const EXPORT: &str = "\
Example:
  varid export -o flames.svg";

/// `varid import`.
#[cfg(feature = "host")]
pub const IMPORT: &str = "\
Example:
  varid import perf.data -o session";

/// `varid compress`.
#[cfg(feature = "host")]
pub const COMPRESS: &str = "\
Example:
  varid compress -i session";

/// `varid pack`.
#[cfg(feature = "host")]
pub const PACK: &str = "\
Example:
  varid pack session -o session.tar.gz
  varid report session.tar.gz";

/// `varid symbols`.
#[cfg(feature = "host")]
pub const SYMBOLS: &str = "\
Example:
  varid symbols app.apk";

/// `varid events`.
pub const EVENTS: &str = "\
Example:
  varid events";

/// `varid config`.
pub const CONFIG: &str = "\
Example:
  varid config check varid.toml";

/// `varid doctor`.
pub const DOCTOR: &str = "\
Example:
  varid doctor";

/// `varid daemon`.
pub const DAEMON: &str = "\
Example:
  varid daemon";

/// `varid completions`.
#[cfg(feature = "host")]
pub const COMPLETIONS: &str = "\
Example:
  varid completions bash";

/// `varid help`.
#[cfg(feature = "host")]
pub const HELP: &str = "\
Example:
  varid help record";
