//! Which releases of ART can be started, and what is particular to each? A file per release says it.

mod art11;
mod art14;

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::error::Error;
use crate::libart::{Libart, Source};

/// The releases, by Android's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Version {
    /// Android 11's, of Debian 12.
    #[value(name = "11")]
    Android11,
    /// Android 14's, of Debian 13.
    #[value(name = "14")]
    Android14,
}

/// What starting a release takes.
#[derive(Debug)]
pub struct Release {
    /// Debian's package and its version.
    pub package: &'static str,
    /// The builds that its boot class path was measured on.
    pub builds: &'static [Build],
    /// Where its libraries are.
    pub home: Home,
    /// How its libraries come there.
    pub hint: &'static str,
    /// What libart uses and does not declare, each after what it needs itself. They must be in the global scope
    /// before it. libdexfile_external is missing on purpose: it needs libart, which does not need it.
    pub undeclared: &'static [&'static str],
    /// The VM's options for its default interpreter.
    pub default_interpreter: &'static [&'static str],
    /// Mends in memory what the package's build has wrong, before the VM is created.
    pub repair: fn(&Libart) -> Result<(), Error>,
}

/// A build of libart.
#[derive(Debug)]
pub struct Build {
    /// The architecture, by Rust's name.
    pub architecture: &'static str,
    /// The build-id in hexadecimal.
    pub build_id: &'static str,
}

/// Where a release's libraries are.
#[derive(Debug)]
pub enum Home {
    /// Installed by its package, for this machine's own C library.
    Installed,
    /// In this folder beside artvm, with its boot class path and with a C library and a dynamic linker of its own.
    Beside(&'static str),
}

impl Version {
    /// What starting it takes.
    pub fn release(self) -> &'static Release {
        match self {
            Version::Android11 => &art11::RELEASE,
            Version::Android14 => &art14::RELEASE,
        }
    }
}

impl Release {
    /// The release's libart, for an artvm in the folder `beside`.
    pub fn libart(&self, beside: &Path) -> Source {
        let folder = match self.home {
            Home::Installed => match std::env::consts::ARCH {
                "arm" => "/usr/lib/arm-linux-gnueabihf/android".into(),
                architecture => format!("/usr/lib/{architecture}-linux-gnu/android").into(),
            },
            Home::Beside(folder) => beside.join(folder),
        };
        let known = self
            .builds
            .iter()
            .find(|build| build.architecture == std::env::consts::ARCH);
        Source {
            folder,
            undeclared: self.undeclared,
            build_id: known.map_or("none for this architecture", |build| build.build_id),
            package: self.package,
            hint: self.hint,
        }
    }

    /// The boot class path, for an artvm in the folder `beside`.
    pub fn boot_class_path(&self, beside: &Path) -> PathBuf {
        match self.home {
            Home::Installed => beside.join("boot.dex"),
            Home::Beside(folder) => beside.join(folder).join("boot.dex"),
        }
    }
}
