//! What can go wrong with a device?

use std::io;
use std::path::PathBuf;
use thiserror::Error;
use varid_symbolizer::program::NoAnswer;

/// Why something could not be done on a device.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// There is no adb, or it cannot be started.
    #[error(
        "cannot run adb: {0}; it comes with Android's platform-tools (Debian: apt install adb) and has to be on PATH"
    )]
    NoAdb(io::Error),
    /// adb was ended because its answer had no end.
    #[error("adb: {0}; it was ended ('adb reconnect' may help)")]
    NoAnswer(NoAnswer),
    /// No device is attached.
    #[error(
        "adb sees no device: attach one with USB debugging on, or give its address as --adb=HOST:PORT"
    )]
    NoDevice,
    /// The choice is the user's.
    #[error("adb sees several devices, choose one with --adb=SERIAL: {0}")]
    Several(String),
    /// Without root one app's user does all of it.
    #[error(
        "without root there one app is profiled at a time, by its own user: leave {another} out, or make root available ('adb root')"
    )]
    OneApp {
        /// One too many.
        another: String,
    },
    /// The device that was named is not there.
    #[error("adb sees no device {requested}{others}")]
    Unknown {
        /// The requested serial number.
        requested: String,
        /// What there is instead, as the end of a sentence.
        others: String,
    },
    /// It is there and cannot be used.
    #[error("{serial} is {state}: {remedy}")]
    NotReady {
        /// The device.
        serial: String,
        /// What adb says of it.
        state: String,
        /// What to do.
        remedy: &'static str,
    },
    /// adb itself failed.
    #[error("{serial}: adb {action}: {said}")]
    Adb {
        /// The device.
        serial: String,
        /// The command of adb.
        action: &'static str,
        /// What it said.
        said: String,
    },
    /// The connection ended before the command did.
    #[error(
        "{serial}: the connection was lost{said}; what was recorded is kept there: 'varid --adb status' and 'pull' find it"
    )]
    Lost {
        /// The device.
        serial: String,
        /// What adb said, as the end of a sentence.
        said: String,
    },
    /// A command failed on the device.
    #[error("{serial}: cannot {action} there: {said}")]
    There {
        /// The device.
        serial: String,
        /// What was tried, as a verb.
        action: String,
        /// What the device said.
        said: String,
    },
    /// There is no room for varid.
    #[error(
        "{serial}: {home} has no room for varid ({needed}): remove something, or name another folder there by VARID_DEVICE_HOME"
    )]
    Full {
        /// The device.
        serial: String,
        /// varid's folder there.
        home: String,
        /// Bytes, as people read them.
        needed: String,
    },
    /// The device's processor is none that varid is built for.
    #[error(
        "{serial}: it says its ABI is '{abi}'; varid runs on arm64-v8a, armeabi-v7a and x86_64"
    )]
    Abi {
        /// The device.
        serial: String,
        /// What it said.
        abi: String,
    },
    /// There is no program for the device.
    #[error(
        "no varid for {arch} at hand: it is none of {looked}; 'make cross ARCH={arch}' builds it, VARID_DEVICE_BINARIES names a folder with {arch}/varid"
    )]
    NoBinary {
        /// The folder's name for the ABI.
        arch: &'static str,
        /// Where it was looked for.
        looked: String,
    },
    /// The program is no program for the device.
    #[error("{path} is no varid for {arch}: {reason}")]
    WrongBinary {
        /// The file.
        path: PathBuf,
        /// The folder's name for the ABI.
        arch: &'static str,
        /// What it is instead.
        reason: String,
    },
    /// No folder of the device is safe to use.
    #[error(
        "{serial}: varid has no folder there that is its own and that no other user can replace, of {tried}{said}: name one by VARID_DEVICE_HOME, in a folder that is there"
    )]
    NoHome {
        /// The device.
        serial: String,
        /// The folders.
        tried: String,
        /// What the device said, as the end of a sentence.
        said: String,
    },
    /// The app belongs to somebody else.
    #[error(
        "{serial}: {package} cannot be profiled: adb's shell is not root ('adb root' on userdebug builds), su does not work, and {said}"
    )]
    NoAccess {
        /// The device.
        serial: String,
        /// The app.
        package: String,
        /// What run-as said.
        said: String,
    },
    /// Another user there records, whom later commands would not find.
    #[error(
        "{serial}: {whose} still has a session that records there, which no command would find once this one runs as another user: end it by 'varid --adb stop' first"
    )]
    Busy {
        /// The device.
        serial: String,
        /// An app, or adb's shell.
        whose: String,
    },
    /// The device has no such session.
    #[error("{serial}: there is no {which} there: 'varid --adb sessions' lists what there is")]
    NoSession {
        /// The device.
        serial: String,
        /// The requested one.
        which: String,
    },
    /// A file of the host.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was being done, as a verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl DeviceError {
    /// For `map_err`: a file of the host.
    pub fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

/// The result of what is done with a device.
pub type Result<T, E = DeviceError> = std::result::Result<T, E>;
