//! The settings of a session: those of its configuration file, overridden by the request's.

use super::{RecordingRequest, TargetSpec};
use crate::config::{Config, MAX_BYTES, MethodFilter, Problem, parse};
use std::fs::Metadata;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use thiserror::Error;
use varid_model::Rate;
use varid_recording::{Tactic, open_regular};
use varid_sampler::event::pmu::Pmu;
use varid_sampler::event::{resolve, syntax};
use varid_sampler::interrupts::DEFAULT_EVENT;

/// A session's configuration, and its sources.
#[derive(Debug, Clone)]
pub struct Configured {
    /// The file's settings, overridden by the request's.
    pub config: Config,
    /// The request, including the path of the file.
    pub request: RecordingRequest,
    /// The stamp of the file when it was read, if there is one.
    pub stamp: Option<Stamp>,
}

/// An error of the configuration.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file has invalid contents.
    #[error("{}", first(path, problems))]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The problems, at least one.
        problems: Vec<Problem>,
    },
    /// The command line has invalid arguments.
    #[error("{0}")]
    Usage(String),
}

fn first(path: &Path, problems: &[Problem]) -> String {
    let path = path.display();
    let first = problems.first().map(ToString::to_string);
    let first = first.unwrap_or_default();
    match problems.len() {
        0 | 1 => format!("{path}:{first}"),
        more => format!(
            "{path}:{first} (and {} more: 'varid config check {path}')",
            more.saturating_sub(1)
        ),
    }
}

/// Identifies a version of a file by device, inode, size and times. It changes with the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp([i128; 6]);

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        let nanoseconds = |seconds: i64, part: i64| {
            let whole = i128::from(seconds).saturating_mul(1_000_000_000);
            whole.saturating_add(i128::from(part))
        };
        Self([
            metadata.dev().into(),
            metadata.ino().into(),
            metadata.size().into(),
            nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
            metadata.mode().into(),
        ])
    }

    /// Returns the stamp of the file at a path.
    pub fn at(path: &Path) -> io::Result<Self> {
        std::fs::metadata(path).map(|metadata| Self::of(&metadata))
    }
}

impl Configured {
    /// Returns the target, or None if neither the command line nor the file names one.
    pub fn target(&self) -> Option<TargetSpec> {
        self.request.target.target(&self.config)
    }
}

impl RecordingRequest {
    /// Reads the file, if there is one, and applies the request to it.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is invalid, or the request contradicts itself or the file.
    pub fn read(&self) -> Result<Configured, ConfigError> {
        let (config, stamp) = match &self.config {
            Some(path) => {
                let (config, stamp) = read(path)?;
                (config, Some(stamp))
            }
            None => (Config::default(), None),
        };
        Ok(Configured {
            config: self.over(config)?,
            request: self.clone(),
            stamp,
        })
    }

    /// Returns a file's settings, overridden by the request's.
    fn over(&self, file: Config) -> Result<Config, ConfigError> {
        let mut config = self.target.over(file);
        let unknown = |name: &&String| config.processes_of(name).is_none();
        if let Some(name) = config.services.iter().find(unknown) {
            return Err(ConfigError::Usage(config.no_service(name)));
        }
        if !self.settings.methods.is_empty() {
            // The patterns of single apps and services also come from the file.
            config.app.clear();
            for service in config.service.values_mut() {
                service.methods = MethodFilter::default();
            }
        }
        let mut settings = self.settings.over(config.settings);
        if self.sampling.off_cpu.is_some() && settings.events.is_empty() {
            settings.events.push(DEFAULT_EVENT.to_owned());
        }
        settings.events.extend(self.sampling.off_cpu_events());
        if self.output.log_calls && settings.tactic != Some(Tactic::MethodInvoke) {
            let what = "--log-calls needs --mode count-calls: without it no call is told of";
            return Err(ConfigError::Usage(what.to_owned()));
        }
        config.settings = settings;
        Ok(config)
    }
}

/// Reads a configuration file. Only the syntax of its events is checked.
pub fn read(path: &Path) -> Result<(Config, Stamp), ConfigError> {
    read_by(path, |text| syntax::parse(text).map(drop))
}

/// Reads a configuration file and checks that a machine with these PMUs has its events.
pub fn read_for(path: &Path, pmus: &[Pmu]) -> Result<(Config, Stamp), ConfigError> {
    read_by(path, |text| match text {
        DEFAULT_EVENT => Ok(()),
        text => resolve([text], Rate::READ, pmus).map(drop),
    })
}

/// Reads a configuration file. `event` checks one of its events.
pub fn read_by<E: std::fmt::Display>(
    path: &Path,
    event: impl Fn(&str) -> Result<(), E>,
) -> Result<(Config, Stamp), ConfigError> {
    let failed = |source| ConfigError::Read {
        path: path.to_owned(),
        source,
    };
    let (text, stamp) = text_of(path).map_err(failed)?;
    match parse(&text, |text| event(text).map_err(|error| error.to_string())) {
        Ok(config) => Ok((config, stamp)),
        Err(problems) => Err(ConfigError::Wrong {
            path: path.to_owned(),
            problems,
        }),
    }
}

fn text_of(path: &Path) -> io::Result<(String, Stamp)> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what);
    let file = open_regular(path)?;
    let metadata = file.metadata()?;
    let mut bytes = Vec::new();
    let most = MAX_BYTES.saturating_add(1);
    file.take(most).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(invalid("it is longer than 1 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        invalid(&format!("byte {at} is not UTF-8"))
    })?;
    Ok((text, Stamp::of(&metadata)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MethodPattern;
    use crate::request::TargetRequest;
    use std::io::Write;
    use std::time::Duration;
    use varid_model::{Pid, Stack};

    fn of_file(path: impl Into<PathBuf>) -> RecordingRequest {
        RecordingRequest {
            config: Some(path.into()),
            ..RecordingRequest::default()
        }
    }

    const FILE: &str = "apps = [\"org.a\"]\nservices = [\"video\"]\nmethods = [\"a.*\"]\nperiod = 1000\nstack = \"full\"\nevents = [\"cycles\"]\n[limits]\nduration = \"5m\"\nsize = \"2 MB\"\n[app.\"org.a\"]\nmethods = [\"!a.X.*\"]\n[service.video]\nprocesses = [\"v\"]\nmethods = [\"v.*\"]\n";

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    fn with_file(change: impl Fn(&mut RecordingRequest)) -> Result<Config, ConfigError> {
        let file = file(FILE);
        let mut request = of_file(file.path());
        change(&mut request);
        Ok(request.read()?.config)
    }

    fn service(name: &str) -> impl Fn(&mut RecordingRequest) {
        move |request| {
            request.target = TargetRequest::Named {
                apps: Vec::new(),
                services: vec![name.to_owned()],
            }
        }
    }

    #[test]
    fn what_the_command_line_does_not_say_is_the_files() {
        let config = with_file(|_| {}).unwrap();
        assert_eq!(config.apps[0].text(), "org.a");
        assert_eq!(config.settings.rate, Some(Rate::Period(1000)));
        assert_eq!(config.app.len() + config.service.len(), 2);
    }

    #[test]
    fn what_the_command_line_says_is_over_the_files() {
        let config = with_file(|request| {
            service("media")(request);
            let settings = &mut request.settings;
            settings.rate = Some(Rate::Frequency(99));
            settings.methods = MethodFilter::new(vec![MethodPattern::new("b.*").unwrap()]);
            settings.stack = Some(Stack::None);
            settings.events = vec!["instructions".to_owned()];
            settings.limits.duration = Some(Duration::from_secs(7));
        })
        .unwrap();
        assert!(config.apps.is_empty());
        assert_eq!(config.services, ["media"]);
        let settings = &config.settings;
        assert_eq!(settings.rate, Some(Rate::Frequency(99)));
        assert_eq!(settings.methods.patterns().len(), 1);
        assert!(config.app.is_empty());
        assert!(config.service.values().all(|one| one.methods.is_empty()));
        assert_eq!(settings.events, ["instructions"]);
        assert_eq!(settings.stack, Some(Stack::None));
        assert_eq!(settings.limits.duration, Some(Duration::from_secs(7)));
        assert_eq!(settings.limits.size, Some(2_000_000));
        // The service is still known: samples of its processes are assigned to it.
        assert_eq!(config.processes_of("video").unwrap()[0].text(), "v");
    }

    #[test]
    fn a_target_of_the_command_line_takes_the_place_of_the_files() {
        let target = |target: TargetRequest| {
            with_file(|request| request.target.clone_from(&target)).unwrap()
        };
        assert!(target(TargetRequest::All).all);
        for other in [
            TargetRequest::All,
            TargetRequest::Pids(vec![Pid::new(7)]),
            TargetRequest::Command,
        ] {
            let config = target(other);
            assert!(config.apps.is_empty() && config.services.is_empty());
        }
    }

    #[test]
    fn the_time_off_cpu_is_sampled_beside_other_events() {
        let events = |request: RecordingRequest| request.read().unwrap().config.settings.events;
        let mut alone = RecordingRequest::default();
        alone.sampling.off_cpu = Some(0);
        assert_eq!(events(alone), ["default", "off-cpu", "runnable"]);
        let file = file(FILE);
        let mut beside = of_file(file.path());
        beside.sampling.off_cpu = Some(5);
        let expected = ["cycles", "off-cpu/period=5/", "runnable/period=5/"];
        assert_eq!(events(beside), expected);
    }

    #[test]
    fn a_service_that_is_not_known_is_named_with_those_that_are() {
        let error = with_file(service("vidio")).unwrap_err().to_string();
        assert!(
            error.starts_with("no service is called 'vidio': video, system_server, "),
            "{error}"
        );
        assert!(with_file(service("video")).is_ok());
    }

    #[test]
    fn an_unreadable_configuration_is_reported_with_its_path() {
        let wrong = file("apps = 3\nx = 1\n");
        let error = of_file(wrong.path()).read().unwrap_err().to_string();
        let expected = format!("{}:1:8: a list", wrong.path().display());
        assert!(error.starts_with(&expected), "{error}");
        assert!(
            error.contains("(and 1 more: 'varid config check "),
            "{error}"
        );
        for path in ["/no/such/file", "/", "/dev/null"] {
            let error = of_file(path).read().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("cannot read the configuration {path}: ")),
                "{error}"
            );
        }
        let mut long = file("");
        long.write_all(&vec![b'\n'; (MAX_BYTES + 1) as usize])
            .unwrap();
        assert!(
            read(long.path())
                .unwrap_err()
                .to_string()
                .contains("longer")
        );
        let mut strange = file("# ");
        strange.write_all(b"\xff").unwrap();
        assert!(
            read(strange.path())
                .unwrap_err()
                .to_string()
                .contains("byte 2 is not UTF-8")
        );
    }

    #[test]
    fn a_stamp_changes_with_the_file() {
        let file = file("a");
        let before = Stamp::at(file.path()).unwrap();
        assert_eq!(Stamp::at(file.path()).unwrap(), before);
        std::fs::write(file.path(), "ab").unwrap();
        assert_ne!(Stamp::at(file.path()).unwrap(), before);
    }
}
