//! The protocol between client and daemon: a request and a reply per connection, each a line of JSON.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use varid_model::Rate;
use varid_session::request::RecordingRequest;

/// The version of the protocol. It changes with every change that an older program would misinterpret.
pub const VERSION: u32 = 5;
/// Maximum size of a request in bytes.
pub const MAX_REQUEST: usize = 64 << 10;
/// Maximum size of a reply in bytes.
pub const MAX_REPLY: usize = 1 << 20;

/// A message with its version.
#[derive(Debug, Serialize, Deserialize)]
pub struct Envelope<T> {
    /// [`VERSION`].
    pub version: u32,
    /// The request or reply.
    #[serde(flatten)]
    pub body: T,
}

/// The requests of a client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case")]
pub enum Request {
    /// Start a session.
    Start {
        /// What the session records.
        recording: Box<RecordingRequest>,
    },
    /// End sessions and wait until they are complete.
    Stop {
        /// Name, folder or target of a session; None for all.
        session: Option<String>,
    },
    /// Get the status of the daemon and its sessions.
    Status,
}

/// The replies of the daemon.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case")]
pub enum Reply {
    /// The session is sampling.
    Started(SessionStatus),
    /// The sessions have ended.
    Stopped {
        /// In the order in which they were started.
        sessions: Vec<Ended>,
    },
    /// The daemon and its sessions.
    Status(DaemonStatus),
    /// The daemon is ending and starts no session. The client starts another daemon.
    Ending,
    /// The request was not carried out.
    Refused {
        /// The reason, in one line.
        reason: String,
    },
}

/// The daemon and its sessions.
#[derive(Debug, Serialize, Deserialize)]
pub struct DaemonStatus {
    /// Its process.
    pub pid: u32,
    /// Its version of varid.
    pub varid: String,
    /// In the order in which they were started.
    pub sessions: Vec<SessionStatus>,
    /// Sessions that have failed since it started, the latest last.
    pub failed: Vec<Ended>,
}

/// A running session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SessionStatus {
    /// The last part of its folder.
    pub session: String,
    /// The profiled processes: a package, `pid 17` or `all`.
    pub target: String,
    /// Its present activity.
    pub state: Activity,
    /// What it samples.
    #[serde(flatten)]
    pub sampling: StatusSampling,
    /// What it has recorded.
    #[serde(flatten)]
    pub counts: StatusCounts,
    /// Its folder.
    pub folder: PathBuf,
    /// Differences from the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The result of the last reload of the configuration file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
    /// The `varid record` that records it, or None if the daemon does. Its counts are those of its manifest's last save.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorder: Option<u32>,
}

/// What a session samples.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct StatusSampling {
    /// The events, separated by commas.
    pub event: String,
    /// Samples per second of the first event, or None if a period was requested.
    pub frequency: Option<u64>,
    /// The period, if one was requested.
    pub period: Option<u64>,
    /// The source of samples: `bpf` or `perf`.
    pub source: String,
}

impl StatusSampling {
    /// Returns the sampling of events, the first of them at this rate.
    pub fn new(event: String, rate: Rate, source: &str) -> Self {
        let (frequency, period) = match rate {
            Rate::Frequency(hz) => (Some(hz), None),
            Rate::Period(period) => (None, Some(period)),
        };
        Self {
            event,
            frequency,
            period,
            source: source.to_owned(),
        }
    }
}

/// What a session has recorded.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StatusCounts {
    /// Number of samples recorded.
    pub samples: u64,
    /// Number of records lost.
    pub lost: u64,
    /// Number of processes profiled now. Unknown for a session of a `varid record`.
    pub processes: Option<u64>,
    /// Seconds since its start.
    pub seconds: f64,
    /// Size of perf.data in bytes.
    pub bytes: u64,
}

/// The present activity of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activity {
    /// Its events are being opened.
    Starting,
    /// No process of its target is running.
    Waiting,
    /// It samples.
    Recording,
    /// It was asked to end.
    Stopping,
}

impl Activity {
    /// The name as shown.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Waiting => "waiting",
            Self::Recording => "recording",
            Self::Stopping => "stopping",
        }
    }
}

/// A session that has ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ended {
    /// The last part of its folder.
    pub session: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Number of samples recorded.
    pub samples: u64,
    /// Number of records lost.
    pub lost: u64,
    /// The error, if it failed. What was recorded before is kept.
    pub error: Option<String>,
}

/// Writes a message as a line.
pub fn send<T: Serialize>(stream: &mut UnixStream, body: T) -> io::Result<()> {
    let mut line = serde_json::to_vec(&Envelope {
        version: VERSION,
        body,
    })?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Reads a line of at most `limit` bytes, until `deadline` whatever the other side does. Returns None if the other side closed the
/// connection without a message.
pub fn receive(
    stream: &mut UnixStream,
    limit: usize,
    deadline: Option<Instant>,
) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(deadline) = deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        }
        let read = match stream.read(&mut buffer) {
            Ok(0) if line.is_empty() => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => buffer.get(..read).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        };
        let end = read.iter().position(|byte| *byte == b'\n');
        line.extend_from_slice(read.get(..end.unwrap_or(read.len())).unwrap_or_default());
        if line.len() > limit {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a line of more than {limit} bytes"),
            ));
        }
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}

/// Parses a message. Returns an error if it is malformed or has another version.
pub fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    #[derive(Deserialize)]
    struct OnlyVersion {
        version: u32,
    }
    let OnlyVersion { version } =
        serde_json::from_slice(line).map_err(|error| format!("not a message of varid: {error}"))?;
    if version != VERSION {
        return Err(format!(
            "it speaks version {version} of the control protocol, this varid version {VERSION}: end the daemon and start it again"
        ));
    }
    serde_json::from_slice::<Envelope<T>>(line)
        .map(|envelope| envelope.body)
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_session::request::TargetRequest;

    fn received(bytes: &[u8], limit: usize) -> io::Result<Option<Vec<u8>>> {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(bytes).unwrap();
        drop(theirs);
        receive(&mut ours, limit, None)
    }

    #[test]
    fn a_line_ends_at_its_newline_and_is_bounded() {
        assert_eq!(received(b"{}\nrest", 10).unwrap().unwrap(), b"{}");
        assert_eq!(received(b"", 10).unwrap(), None);
        assert_eq!(
            received(b"half", 10).unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
        assert_eq!(
            received(&[b'x'; 100], 10).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }

    #[test]
    fn a_client_that_sends_nothing_is_given_up_at_the_deadline() {
        let (mut ours, _theirs) = UnixStream::pair().unwrap();
        assert_eq!(
            receive(&mut ours, 10, Some(Instant::now()))
                .unwrap_err()
                .kind(),
            io::ErrorKind::TimedOut
        );
    }

    /// Returns the line for a body, as it is sent over the socket.
    fn line(body: &str) -> String {
        format!("{{\"version\":{VERSION},{body}}}")
    }

    #[test]
    fn requests_are_read_as_they_were_written_and_malformed_ones_refused() {
        let stop = serde_json::to_vec(&Envelope {
            version: VERSION,
            body: Request::Stop {
                session: Some("a".into()),
            },
        });
        assert!(
            matches!(parse::<Request>(&stop.unwrap()), Ok(Request::Stop { session: Some(name) }) if name == "a")
        );
        let status = line("\"request\":\"status\"");
        assert!(matches!(parse(status.as_bytes()), Ok(Request::Status)));
        for bad in [
            "[]",
            "{\"version\":-1}",
            &line("\"other\":1"),
            &line("\"request\":\"no\""),
            &line("\"request\":\"start\""),
            &line("\"request\":\"start\",\"recording\":{\"later\":1}"),
            &line("\"request\":\"start\",\"recording\":{\"config\":null,\"config\":null}"),
        ] {
            assert!(parse::<Request>(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(parse::<Request>(b"\xff\x00").is_err());
        assert!(
            parse::<Request>(&[b'['; 60_000]).is_err(),
            "deep nesting is refused, not recursed into"
        );
    }

    /// Only tests the line. The contents of a request are tested where the type is defined.
    #[test]
    fn a_start_request_is_the_recording_request_and_what_it_does_not_say_is_the_default() {
        let start = line(
            "\"request\":\"start\",\"recording\":{\"target\":\"all\",\"output\":{\"compress\":true}}",
        );
        let Ok(Request::Start { recording }) = parse(start.as_bytes()) else {
            panic!("{start}");
        };
        let mut expected = RecordingRequest {
            target: TargetRequest::All,
            ..RecordingRequest::default()
        };
        expected.output.compress = true;
        assert_eq!(*recording, expected);
        let written = serde_json::to_string(&Envelope {
            version: VERSION,
            body: Request::Start { recording },
        });
        let Ok(Request::Start { recording }) = parse(written.unwrap().as_bytes()) else {
            panic!("it is read as it was written");
        };
        assert_eq!(*recording, expected);
    }

    #[test]
    fn a_program_of_another_version_is_refused_with_both_versions() {
        // As version 4 of the protocol wrote it.
        let start = concat!(
            r#"{"version":4,"request":"start","#,
            r#""target":{"apps":["org.a"],"services":[],"pids":[],"all":false},"#,
            r#""sampling":{"events":[],"frequency":null,"count":null,"stack":null,"methods":[],"config":null,"#,
            r#""tactic":null,"log_calls":false,"shim":null,"keep_raw":false,"duration":null,"output":null,"ring_pages":2048}}"#,
        );
        for (line, version) in [
            (start, "version 4"),
            (r#"{"version":4,"request":"status"}"#, "version 4"),
            (r#"{"version":6,"request":"status"}"#, "version 6"),
        ] {
            let refused = parse::<Request>(line.as_bytes()).unwrap_err();
            assert!(refused.contains(version), "{refused}");
            assert!(refused.contains("this varid version 5"), "{refused}");
        }
    }
}
