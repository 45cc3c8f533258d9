//! What does starting Android 14's ART take? Debian 13 has it, with two defects that are mended in memory.

#[cfg(not(target_arch = "arm"))]
mod repair;

use super::{Build, Home, Release};

/// ART 14 as Debian 13 has it: it interprets with nterp.
pub const RELEASE: Release = Release {
    package: "android-libart 14.0.0+r15-4+b1",
    builds: &[
        Build {
            architecture: "x86_64",
            build_id: "61497c95b23887e92d3e2e8206345c91fb28d21d",
        },
        Build {
            architecture: "aarch64",
            build_id: "152e5eef3e17820cab5bf418ffbb7742e0023bcf",
        },
    ],
    home: Home::Beside("art14"),
    hint: "; tests/art14/build.sh FOLDER fetches ART 14 to FOLDER/art14, which belongs beside artvm",
    undeclared: &[
        "liblz4.so.1",
        "libz.so.1",
        "libtinyxml2.so.11",
        "7z.so",
        "libcpu_features.so.0",
        "libsigchain.so.0",
        "liblog.so.0",
        "libbase.so.0",
        "libnativebridge.so",
        "libnativeloader.so.0",
        "libziparchive.so.0",
        "libbacktrace.so.0",
        "libdexfile_support.so.0",
    ],
    // Else it asks for the compiler's library, which the package does not have.
    default_interpreter: &["-Xusejit:false"],
    #[cfg(not(target_arch = "arm"))]
    repair: repair::repair,
    // No build for ARMv7 is known.
    #[cfg(target_arch = "arm")]
    repair: |_| Ok(()),
};
