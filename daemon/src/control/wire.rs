//! The request for a session in the protocol of the control socket.
//!
//! These types belong to the protocol: their fields and names change only together with [`super::protocol::VERSION`], independently of
//! the session's types. Both are converted to each other here, and a client's values are checked.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
use varid_model::{Pid, Stack};
use varid_recording::Tactic;
use varid_sampler::ShimKind;
use varid_session::request::{KeepSymbols, SamplingRequest, TargetRequest};

/// A [`TargetRequest`] on the socket.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireTarget {
    apps: Vec<String>,
    services: Vec<String>,
    pids: Vec<u32>,
    all: bool,
}

/// A [`SamplingRequest`] on the socket.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireSampling {
    events: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    off_cpu: Option<u64>,
    frequency: Option<u64>,
    count: Option<u64>,
    stack: Option<WireStack>,
    methods: Vec<String>,
    config: Option<PathBuf>,
    tactic: Option<WireTactic>,
    #[serde(default)]
    log_calls: bool,
    shim: Option<WireShim>,
    keep_raw: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    keep_symbols: bool,
    duration: Option<Duration>,
    output: Option<PathBuf>,
    ring_pages: usize,
}

/// A [`Stack`] on the socket.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WireStack {
    Vertical,
    Full,
    None,
}

/// A [`Tactic`] on the socket.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WireTactic {
    LoadFromDex,
    MethodInvoke,
}

/// A [`ShimKind`] on the socket.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WireShim {
    Bpf,
    Module,
    Perf,
}

/// Converts both ways between an enum and its form on the socket. The variants have the same names.
macro_rules! convert {
    ($wire:ident, $own:ident: $($variant:ident)+) => {
        impl From<$own> for $wire {
            fn from(own: $own) -> Self {
                match own { $($own::$variant => Self::$variant,)+ }
            }
        }

        impl From<$wire> for $own {
            fn from(wire: $wire) -> Self {
                match wire { $($wire::$variant => Self::$variant,)+ }
            }
        }
    };
}

convert!(WireStack, Stack: Vertical Full None);
convert!(WireTactic, Tactic: LoadFromDex MethodInvoke);
convert!(WireShim, ShimKind: Bpf Module Perf);

impl From<TargetRequest> for WireTarget {
    fn from(request: TargetRequest) -> Self {
        let TargetRequest {
            apps,
            services,
            pids,
            all,
        } = request;
        Self {
            apps,
            services,
            pids: pids.into_iter().map(Pid::get).collect(),
            all,
        }
    }
}

impl From<WireTarget> for TargetRequest {
    fn from(wire: WireTarget) -> Self {
        let WireTarget {
            apps,
            services,
            pids,
            all,
        } = wire;
        Self {
            apps,
            services,
            pids: pids.into_iter().map(Pid::new).collect(),
            all,
        }
    }
}

impl From<SamplingRequest> for WireSampling {
    fn from(request: SamplingRequest) -> Self {
        Self {
            events: request.events,
            off_cpu: request.off_cpu,
            frequency: request.frequency,
            count: request.count,
            stack: request.stack.map(WireStack::from),
            methods: request.methods,
            config: request.config,
            tactic: request.tactic.map(WireTactic::from),
            log_calls: request.log_calls,
            shim: request.shim.map(WireShim::from),
            keep_raw: request.keep_raw,
            keep_symbols: request.keep_symbols == KeepSymbols::OfAll,
            duration: request.duration,
            output: request.output,
            ring_pages: request.ring_pages,
        }
    }
}

impl TryFrom<WireSampling> for SamplingRequest {
    type Error = String;

    /// Returns the request if its values are valid on the command line and its paths are absolute.
    fn try_from(wire: WireSampling) -> Result<Self, String> {
        let request = Self {
            events: wire.events,
            off_cpu: wire.off_cpu,
            frequency: wire.frequency,
            count: wire.count,
            stack: wire.stack.map(Stack::from),
            methods: wire.methods,
            config: wire.config,
            tactic: wire.tactic.map(Tactic::from),
            log_calls: wire.log_calls,
            shim: wire.shim.map(ShimKind::from),
            keep_raw: wire.keep_raw,
            keep_symbols: KeepSymbols::of_all_if(wire.keep_symbols),
            duration: wire.duration,
            output: wire.output,
            ring_pages: wire.ring_pages,
        };
        request.check()?;
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::protocol::{Envelope, Request, VERSION, parse};

    /// A request of version 4 on the socket. A daemon of this version reads it, whichever varid wrote it.
    const START: &str = concat!(
        r#"{"version":4,"request":"start","#,
        r#""target":{"apps":["org.a"],"services":["video"],"pids":[7],"all":false},"#,
        r#""sampling":{"events":["cycles"],"off_cpu":1000000,"frequency":null,"count":1000,"stack":"full","methods":["a.*"],"#,
        r#""config":"/c","tactic":"method-invoke","log_calls":true,"shim":"bpf","keep_raw":true,"keep_symbols":true,"#,
        r#""duration":{"secs":7,"nanos":0},"output":"/o","ring_pages":2048}}"#,
    );

    fn sampling() -> SamplingRequest {
        SamplingRequest {
            events: vec!["cycles".to_owned()],
            off_cpu: Some(1_000_000),
            frequency: None,
            count: Some(1000),
            stack: Some(Stack::Full),
            methods: vec!["a.*".to_owned()],
            config: Some(PathBuf::from("/c")),
            tactic: Some(Tactic::MethodInvoke),
            log_calls: true,
            shim: Some(ShimKind::Bpf),
            keep_raw: true,
            keep_symbols: KeepSymbols::OfAll,
            duration: Some(Duration::from_secs(7)),
            output: Some(PathBuf::from("/o")),
            ring_pages: 2048,
        }
    }

    fn target() -> TargetRequest {
        TargetRequest {
            apps: vec!["org.a".to_owned()],
            services: vec!["video".to_owned()],
            pids: vec![Pid::new(7)],
            all: false,
        }
    }

    #[test]
    fn a_start_request_is_written_as_version_4_has_it() {
        let body = Request::Start {
            target: target().into(),
            sampling: Box::new(sampling().into()),
        };
        let line = serde_json::to_string(&Envelope {
            version: VERSION,
            body,
        });
        assert_eq!(line.unwrap(), START);
    }

    #[test]
    fn a_start_request_of_version_4_is_read() {
        let Ok(Request::Start {
            target: wire_target,
            sampling: wire,
        }) = parse(START.as_bytes())
        else {
            panic!("not a start request");
        };
        assert_eq!(TargetRequest::from(wire_target), target());
        assert_eq!(SamplingRequest::try_from(*wire), Ok(sampling()));
    }

    #[test]
    fn a_request_that_the_command_line_would_refuse_is_refused() {
        let refuse = |change: fn(&mut SamplingRequest)| {
            let mut request = sampling();
            change(&mut request);
            SamplingRequest::try_from(WireSampling::from(request)).unwrap_err()
        };
        assert!(refuse(|request| request.frequency = Some(99)).contains("not both"));
        assert!(refuse(|request| request.count = Some(0)).contains("period 0"));
        assert!(refuse(|request| request.ring_pages = 3).contains("power of two"));
        assert!(refuse(|request| request.output = Some("o".into())).contains("not absolute"));
    }

    #[test]
    fn an_unknown_field_of_a_request_is_refused() {
        for known in [r#""all":false"#, r#""keep_raw":true"#] {
            let line = START.replace(known, &format!(r#"{known},"later":1"#));
            assert!(parse::<Request>(line.as_bytes()).is_err(), "{line}");
        }
    }
}
