//! Patterns that select processes, and services.

use super::methods::matches;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Services of Android: sets of processes with a common purpose, by the processes' names.
pub const BUILT_IN: &[(&str, &[&str])] = &[
    ("system_server", &["system_server"]),
    (
        "surfaceflinger",
        &["surfaceflinger", "*.hardware.graphics.*", "bootanimation"],
    ),
    (
        "media",
        &[
            "mediaserver",
            "mediaserver64",
            "mediaextractor",
            "mediaswcodec",
            "mediametrics",
            "mediadrmserver",
            "drmserver",
            "media.*",
            "*.hardware.media.*",
            "*.hardware.drm*",
            "android.process.media",
            "com.android.providers.media*",
        ],
    ),
    ("audio", &["audioserver", "*.hardware.audio*"]),
    ("camera", &["cameraserver", "*.hardware.camera*"]),
    (
        "network",
        &["netd", "com.android.networkstack*", "*.hardware.wifi*"],
    ),
    (
        "telephony",
        &["com.android.phone", "rild", "*.hardware.radio*"],
    ),
    (
        "bluetooth",
        &["com.android.bluetooth*", "*.hardware.bluetooth*"],
    ),
    (
        "storage",
        &["vold", "installd", "sdcard", "android.process.acore"],
    ),
    ("systemui", &["com.android.systemui"]),
    (
        "binder",
        &["servicemanager", "hwservicemanager", "vndservicemanager"],
    ),
];

/// Returns the processes of a built-in service.
pub fn built_in(name: &str) -> Option<Vec<ProcessPattern>> {
    let (_, processes) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
    let pattern = |text: &&str| ProcessPattern {
        text: (*text).to_owned(),
    };
    Some(processes.iter().map(pattern).collect())
}

/// A pattern for the names of processes: an app's package, or a program's path or file name. `*` stands for any text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProcessPattern {
    text: String,
}

impl ProcessPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    ///
    /// No process can have such a name.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("an empty name means no process".to_owned());
        }
        if let Some(strange) = text.chars().find(|c| c.is_control()) {
            return Err(format!("{strange:?} is in no process's name"));
        }
        Ok(Self {
            text: text.to_owned(),
        })
    }

    /// The pattern as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns true if it matches a process, by the first word of its command line. `org.example` matches the app's main process
    /// and its named processes, such as `org.example:remote`. A program is also matched by its file name.
    pub fn matches(&self, name: &str) -> bool {
        let package = name.split_once(':').map_or(name, |(package, _)| package);
        let file = name.rsplit('/').next().unwrap_or(name);
        [name, package, file]
            .iter()
            .any(|name| matches(&self.text, name))
    }
}

impl TryFrom<String> for ProcessPattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::new(&text)
    }
}

impl From<ProcessPattern> for String {
    fn from(pattern: ProcessPattern) -> Self {
        pattern.text
    }
}

impl fmt::Display for ProcessPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn means(pattern: &str, name: &str) -> bool {
        ProcessPattern::new(pattern).unwrap().matches(name)
    }

    #[test]
    fn a_package_names_its_processes_and_no_others() {
        for name in ["org.example", "org.example:remote", "/usr/bin/org.example"] {
            assert!(means("org.example", name), "{name}");
        }
        for name in ["org.example2", "org.example.math", "org", ":remote"] {
            assert!(!means("org.example", name), "{name}");
        }
        assert!(means("org.example:remote", "org.example:remote"));
        assert!(!means("org.example:remote", "org.example"));
        assert!(means("org.example.*", "org.example.math:remote"));
        assert!(means("/system/bin/netd", "/system/bin/netd"));
        assert!(!means("/system/bin/netd", "/vendor/bin/netd"));
    }

    #[test]
    fn services_of_android_have_their_processes() {
        for (service, name) in [
            ("system_server", "system_server"),
            ("media", "/system/bin/mediaserver"),
            ("media", "media.codec"),
            (
                "surfaceflinger",
                "/vendor/bin/hw/android.hardware.graphics.composer@2.4-service",
            ),
        ] {
            let processes = built_in(service).unwrap();
            assert!(
                processes.iter().any(|p| p.matches(name)),
                "{service} {name}"
            );
        }
        assert_eq!(built_in("no such"), None);
    }

    /// A process that belongs to two services would be recorded for only one of them.
    #[test]
    fn no_process_is_in_two_services_that_are_built_in() {
        for (at, (one, processes)) in BUILT_IN.iter().enumerate() {
            for (other, others) in &BUILT_IN[at + 1..] {
                let shared = processes.iter().find(|process| others.contains(process));
                assert_eq!(shared, None, "{one} and {other}");
            }
        }
    }
}
