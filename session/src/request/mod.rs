//! The request for one recording: a single type that the command line makes, the control socket carries and the manifest stores.
//!
//! | part | where |
//! |---|---|
//! | the processes | `target` |
//! | settings that a configuration file can also contain | [`Settings`], in [`crate::config`] |
//! | how samples are taken | `sampling` |
//! | the session's folder, and what it holds | `output` |
//! | the configuration file, and the result of both | `configured` |

mod configured;
mod output;
mod sampling;
mod target;

pub use configured::{ConfigError, Configured, Stamp, read, read_by, read_for};
pub use output::{KeepSymbols, OutputRequest};
pub use sampling::{RING_PAGES, SamplingRequest, check_pages};
pub use target::{TargetRequest, TargetSpec, with_commas};

use crate::config::Settings;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The message for a session without a target.
pub const NO_TARGET: &str = "nothing to profile: give --app, --service, --pid or --all (or a --config file that names apps, services or all)";

/// The request for one recording, from the command line or from a client of the daemon. It takes precedence over the configuration
/// file.
///
/// Its JSON is part of the control protocol and of the manifest. A missing field has its default; an unknown one is an error.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecordingRequest {
    /// The processes.
    pub target: TargetRequest,
    /// Settings that the configuration file can also contain.
    pub settings: Settings,
    /// How samples are taken.
    pub sampling: SamplingRequest,
    /// The session's folder, and what it holds.
    pub output: OutputRequest,
    /// The configuration file.
    pub config: Option<PathBuf>,
}

impl RecordingRequest {
    /// Checks a request from the socket. Its values must be valid on the command line, its paths absolute, and its
    /// target not a command. Patterns were checked when they were parsed.
    ///
    /// # Errors
    ///
    /// A sentence about the first invalid value.
    pub fn check(&self) -> Result<(), String> {
        self.target.check()?;
        self.settings.check()?;
        self.sampling.check()?;
        for path in [&self.output.folder, &self.config].into_iter().flatten() {
            if !path.is_absolute() {
                return Err(format!("'{}' is not absolute", path.display()));
            }
        }
        Ok(())
    }

    /// Returns the request as a manifest stores it: without the paths of the session's folder and of the configuration file, which
    /// have no meaning on another machine.
    #[must_use]
    pub fn without_paths(&self) -> Self {
        let mut request = self.clone();
        request.output.folder = None;
        request.config = None;
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Limits, MethodFilter, MethodPattern, ProcessPattern};
    use serde_json::json;
    use std::time::Duration;
    use varid_model::{Pid, Rate, Stack};
    use varid_recording::Tactic;
    use varid_sampler::ShimKind;

    /// Returns a request in which no field has its default. New fields must be added here.
    fn full() -> RecordingRequest {
        RecordingRequest {
            target: TargetRequest::Named {
                apps: vec![ProcessPattern::new("org.a").unwrap()],
                services: vec!["video".to_owned()],
            },
            settings: Settings {
                methods: MethodFilter::new(vec![MethodPattern::new("!a.*").unwrap()]),
                events: vec!["cycles".to_owned()],
                rate: Some(Rate::Period(1000)),
                stack: Some(Stack::Full),
                tactic: Some(Tactic::MethodInvoke),
                limits: Limits {
                    duration: Some(Duration::from_secs(7)),
                    size: Some(2_000_000),
                    processes: Some(9),
                },
            },
            sampling: SamplingRequest {
                off_cpu: Some(1_000_000),
                shim: Some(ShimKind::Bpf),
                ring_pages: 64,
            },
            output: OutputRequest {
                folder: Some("/o".into()),
                compress: true,
                keep_raw: true,
                keep_symbols: KeepSymbols::OfAll,
                log_calls: true,
            },
            config: Some("/c".into()),
        }
    }

    /// Returns the JSON of [`full`]. Any change other than a new field needs a new version of the control protocol.
    fn full_json() -> serde_json::Value {
        json!({
            "target": {"named": {"apps": ["org.a"], "services": ["video"]}},
            "settings": {
                "methods": ["!a.*"],
                "events": ["cycles"],
                "rate": {"period": 1000},
                "stack": "full",
                "tactic": "method-invoke",
                "limits": {"duration": {"secs": 7, "nanos": 0}, "size": 2_000_000, "processes": 9},
            },
            "sampling": {"off_cpu": 1_000_000, "shim": "bpf", "ring_pages": 64},
            "output": {
                "folder": "/o",
                "compress": true,
                "keep_raw": true,
                "keep_symbols": "of-all",
                "log_calls": true,
            },
            "config": "/c",
        })
    }

    #[test]
    fn every_field_is_in_the_json_and_is_read_back() {
        assert_eq!(serde_json::to_value(full()).unwrap(), full_json());
        let read: RecordingRequest = serde_json::from_value(full_json()).unwrap();
        assert_eq!(read, full());
        assert_eq!(read.check(), Ok(()));
        let (full, default) = (full_json(), json!(RecordingRequest::default()));
        for (group, fields) in full.as_object().unwrap() {
            for (field, value) in fields.as_object().into_iter().flatten() {
                assert_ne!(*value, default[group][field], "{group}.{field}");
            }
        }
    }

    #[test]
    fn a_target_of_each_kind_is_read_back() {
        for (target, expected) in [
            (TargetRequest::Configured, json!("configured")),
            (TargetRequest::All, json!("all")),
            (TargetRequest::Command, json!("command")),
            (TargetRequest::Pids(vec![Pid::new(7)]), json!({"pids": [7]})),
        ] {
            assert_eq!(json!(target), expected);
            let read = serde_json::from_value::<TargetRequest>(expected);
            assert_eq!(read.unwrap(), target);
        }
    }

    #[test]
    fn a_missing_field_has_its_default_and_an_unknown_one_is_refused() {
        let read: RecordingRequest = serde_json::from_value(json!({})).unwrap();
        assert_eq!(read, RecordingRequest::default());
        assert_eq!(read.sampling.ring_pages, RING_PAGES);
        for group in [
            "",
            "/target/named",
            "/settings",
            "/settings/limits",
            "/sampling",
            "/output",
        ] {
            let mut json = full_json();
            json.pointer_mut(group).unwrap()["later"] = 1.into();
            let refused = serde_json::from_value::<RecordingRequest>(json);
            assert!(
                refused.unwrap_err().to_string().contains("later"),
                "{group}"
            );
        }
    }

    #[test]
    fn a_pattern_that_the_command_line_refuses_is_not_read() {
        for (at, bad, reason) in [
            ("/target/named/apps/0", "", "an empty name"),
            ("/settings/methods/0", "a.B.c(int)", "has parameters"),
        ] {
            let mut json = full_json();
            *json.pointer_mut(at).unwrap() = bad.into();
            let refused = serde_json::from_value::<RecordingRequest>(json);
            assert!(refused.unwrap_err().to_string().contains(reason), "{at}");
        }
    }

    #[test]
    fn what_the_command_line_does_not_allow_is_refused() {
        type Change = fn(&mut RecordingRequest);
        let cases: [(Change, &str); 14] = [
            (
                |r| r.settings.rate = Some(Rate::Frequency(0)),
                "frequency 0",
            ),
            (
                |r| r.settings.rate = Some(Rate::Frequency(1_000_001)),
                "frequency 1000001",
            ),
            (|r| r.settings.rate = Some(Rate::Period(0)), "period 0"),
            (
                |r| r.settings.limits.duration = Some(Duration::ZERO),
                "from 1ms",
            ),
            (
                |r| r.settings.limits.duration = Some(Duration::MAX),
                "30 days",
            ),
            (|r| r.settings.limits.size = Some(1), "from 1 MB"),
            (|r| r.settings.limits.processes = Some(0), "processes 0"),
            (|r| r.sampling.off_cpu = Some(u64::MAX), "off-CPU period"),
            (|r| r.sampling.ring_pages = 3, "power of two"),
            (|r| r.sampling.ring_pages = 1 << 20, "power of two"),
            (
                |r| r.output.folder = Some("o".into()),
                "'o' is not absolute",
            ),
            (|r| r.config = Some("c".into()), "'c' is not absolute"),
            (
                |r| r.target = TargetRequest::Pids(Vec::new()),
                "names no process",
            ),
            (|r| r.target = TargetRequest::Command, "no command"),
        ];
        for (change, reason) in cases {
            let mut request = full();
            change(&mut request);
            let refused = request.check().unwrap_err();
            assert!(refused.contains(reason), "{refused}: {reason}");
        }
    }

    #[test]
    fn a_manifest_has_no_paths_of_a_request() {
        let stored = full().without_paths();
        assert_eq!((&stored.output.folder, &stored.config), (&None, &None));
        let mut rest = full();
        (rest.output.folder, rest.config) = (None, None);
        assert_eq!(stored, rest);
    }
}
