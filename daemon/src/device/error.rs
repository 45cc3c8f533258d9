//! Errors of devices.

use std::io;
use std::path::PathBuf;
use thiserror::Error;
use varid_symbolizer::program::NoAnswer;

/// An error of an action on a device.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// There is no adb, or it cannot be started.
    #[error(
        "cannot run adb: {0}; it comes with Android's platform-tools (Debian: apt install adb) and has to be on PATH"
    )]
    NoAdb(io::Error),
    /// adb was ended because its answer was too long or took too long.
    #[error("adb: {0}; it was ended ('adb reconnect' may help)")]
    NoAnswer(NoAnswer),
    /// No device is attached.
    #[error(
        "adb sees no device: attach one with USB debugging on, or give its address as --adb=HOST:PORT"
    )]
    NoDevice,
    /// There are several devices, and the user must choose one.
    #[error("adb sees several devices, choose one with --adb=SERIAL: {0}")]
    Several(String),
    /// Without root, all commands run as one app's user.
    #[error(
        "without root there one app is profiled at a time, by its own user: leave {another} out, or make root available ('adb root')"
    )]
    OneApp {
        /// The second app.
        another: String,
    },
    /// The requested device is not attached.
    #[error("adb sees no device {requested}{others}")]
    Unknown {
        /// The requested serial number.
        requested: String,
        /// The attached devices, as the end of a sentence.
        others: String,
    },
    /// The device is attached but cannot be used.
    #[error("{serial} is {state}: {remedy}")]
    NotReady {
        /// The device.
        serial: String,
        /// Its state according to adb.
        state: String,
        /// What would fix it.
        remedy: &'static str,
    },
    /// adb failed.
    #[error("{serial}: adb {action}: {said}")]
    Adb {
        /// The device.
        serial: String,
        /// The command of adb.
        action: &'static str,
        /// Its message.
        said: String,
    },
    /// The connection ended before the command did.
    #[error(
        "{serial}: the connection was lost{said}; what was recorded is kept there: 'varid --adb status' and 'pull' find it"
    )]
    Lost {
        /// The device.
        serial: String,
        /// adb's message, as the end of a sentence.
        said: String,
    },
    /// A command failed on the device.
    #[error("{serial}: cannot {action} there: {said}")]
    There {
        /// The device.
        serial: String,
        /// The action, as a verb.
        action: String,
        /// The device's message.
        said: String,
    },
    /// The device has no space for varid.
    #[error(
        "{serial}: {home} has no room for varid ({needed}): remove something, or name another folder there by VARID_DEVICE_HOME"
    )]
    Full {
        /// The device.
        serial: String,
        /// varid's folder there.
        home: String,
        /// The required size, in readable form.
        needed: String,
    },
    /// varid is not built for the device's processor.
    #[error(
        "{serial}: it says its ABI is '{abi}'; varid runs on arm64-v8a, armeabi-v7a and x86_64"
    )]
    Abi {
        /// The device.
        serial: String,
        /// The device's answer.
        abi: String,
    },
    /// There is no program for the device on the host.
    #[error(
        "no varid for {arch} at hand: it is none of {looked}; 'make cross ARCH={arch}' builds it, VARID_DEVICE_BINARIES names a folder with {arch}/varid"
    )]
    NoBinary {
        /// The folder's name for the ABI.
        arch: &'static str,
        /// The searched places.
        looked: String,
    },
    /// The file is not a program for the device.
    #[error("{path} is no varid for {arch}: {reason}")]
    WrongBinary {
        /// The file.
        path: PathBuf,
        /// The folder's name for the ABI.
        arch: &'static str,
        /// The reason.
        reason: String,
    },
    /// No folder of the device is safe to use.
    #[error(
        "{serial}: varid has no folder there that is its own and that no other user can replace, of {tried}{said}: name one by VARID_DEVICE_HOME, in a folder that is there"
    )]
    NoHome {
        /// The device.
        serial: String,
        /// The tried folders.
        tried: String,
        /// The device's message, as the end of a sentence.
        said: String,
    },
    /// The app is not debuggable, and there is no root.
    #[error(
        "{serial}: {package} cannot be profiled: adb's shell is not root ('adb root' on userdebug builds), su does not work, and {said}"
    )]
    NoAccess {
        /// The device.
        serial: String,
        /// The app.
        package: String,
        /// run-as's message.
        said: String,
    },
    /// Another user of the device has a running session, which later commands would not find.
    #[error(
        "{serial}: {whose} still has a session that records there, which no command would find once this one runs as another user: end it by 'varid --adb stop' first"
    )]
    Busy {
        /// The device.
        serial: String,
        /// The app, or adb's shell.
        whose: String,
    },
    /// The device has no such session.
    #[error("{serial}: there is no {which} there: 'varid --adb sessions' lists what there is")]
    NoSession {
        /// The device.
        serial: String,
        /// The requested session.
        which: String,
    },
    /// A file of the host cannot be used.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The action, as a verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl DeviceError {
    /// For `map_err`: an error of a file of the host.
    pub fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

/// The result of an action on a device.
pub type Result<T, E = DeviceError> = std::result::Result<T, E>;
