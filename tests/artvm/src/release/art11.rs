//! What does starting Android 11's ART take? Debian 12 installs it.

use super::{Build, Home, Release};

/// ART 11 as Debian 12 has it: it interprets with mterp.
pub const RELEASE: Release = Release {
    package: "android-libart 11.0.0+r48-5",
    builds: &[
        Build {
            architecture: "x86_64",
            build_id: "d3ba281c20e725780467fb41f50e669082ccac64",
        },
        Build {
            architecture: "aarch64",
            build_id: "2de21a0d4ca9b5446222c70a4e814a342758d2e2",
        },
        Build {
            architecture: "arm",
            build_id: "e383dc2a23c443c345f83ebd57c2274d8cdc6324",
        },
    ],
    home: Home::Installed,
    hint: "; install android-libart",
    undeclared: &[
        "liblz4.so.1",
        "libz.so.1",
        "libsigchain.so.0",
        "liblog.so.0",
        "libbase.so.0",
        "libnativebridge.so.0",
        "libnativeloader.so.0",
        "libziparchive.so.0",
        "libbacktrace.so.0",
        "libdexfile_support.so.0",
    ],
    default_interpreter: &["-Xint"],
    repair: |_| Ok(()),
};
