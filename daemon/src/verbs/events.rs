//! `varid events`: what this machine counts and samples, by trying.

use super::out::{self, Align};
use crate::cli::FormatArgs;
use crate::sampler::event::{Event, Rate, open};
use serde::Serialize;
use std::fs::File;
use std::io::{self, Read};
use std::process::ExitCode;

#[derive(Serialize)]
struct Document {
    events: Vec<Tried>,
    default: String,
}

/// What became of an event.
#[derive(Debug, Serialize)]
pub struct Tried {
    /// As `-e` takes it.
    pub event: String,
    /// What it counted while this program did a little of everything; none: it cannot be opened.
    pub count: Option<u64>,
    /// It interrupts: it can be sampled.
    pub samples: bool,
    /// The kernel's part may be counted, too.
    pub kernel: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Lists every event that is known.
pub fn run(format: FormatArgs) -> anyhow::Result<ExitCode> {
    let events = Event::names()
        .map(try_event)
        .collect::<Result<Vec<_>, _>>()?;
    let default = Event::default_of_this_machine().name;
    if format.json {
        out::json(&Document { events, default })?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<_> = events
        .into_iter()
        .map(|tried| {
            let state = tried.state();
            [
                tried.event,
                state,
                tried
                    .count
                    .map_or_else(|| "-".to_owned(), |count| count.to_string()),
                tried.error.unwrap_or_default(),
            ]
        })
        .collect();
    let head = [
        ("EVENT", Align::Left),
        ("HERE", Align::Left),
        ("COUNTED", Align::Right),
        ("", Align::Left),
    ];
    out::text(&out::table(head, &rows))?;
    out::text(&format!(
        "\nSampled by default: {default}. Modifiers: ':u' for user code only, ':k' for the kernel only.\n"
    ))?;
    Ok(ExitCode::SUCCESS)
}

impl Tried {
    fn state(&self) -> String {
        match (self.count, self.samples, self.kernel) {
            (None, ..) => "no",
            (_, false, _) => "counts only",
            (_, true, true) => "yes",
            (_, true, false) => "user code only",
        }
        .to_owned()
    }
}

/// Opens the event for counting and for sampling in this thread, with the kernel's part if
/// that is allowed.
pub fn try_event(name: &str) -> anyhow::Result<Tried> {
    let mut tried = Tried {
        event: name.to_owned(),
        count: None,
        samples: false,
        kernel: true,
        error: None,
    };
    let with_kernel = Event::parse(name)?;
    let user_only = Event {
        exclude_kernel: true,
        ..with_kernel.clone()
    };
    let (counted, event) = match count(&with_kernel) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM)) => {
            tried.kernel = false;
            (count(&user_only), user_only)
        }
        counted => (counted, with_kernel),
    };
    match counted {
        Err(error) => {
            tried.kernel = false;
            tried.error = Some(explained(&error));
        }
        Ok(counted) => {
            tried.count = Some(counted);
            // A long period: opening it is the question, not what it would deliver.
            let sampling = open(&mut event.attr(Rate::Period(1 << 30)), 0, -1);
            tried.samples = sampling.is_ok();
            tried.error = sampling.err().map(|error| explained(&error));
        }
    }
    Ok(tried)
}

fn explained(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT) => "no PMU here has it".to_owned(),
        Some(libc::EOPNOTSUPP) => "the PMU does not interrupt for it".to_owned(),
        Some(libc::EACCES | libc::EPERM) => "no permission: see 'varid doctor'".to_owned(),
        Some(libc::ENOSYS) => "this kernel has no perf events".to_owned(),
        _ => error.to_string(),
    }
}

/// What the event counts while a little of everything happens.
fn count(event: &Event) -> io::Result<u64> {
    let mut attr = event.attr(Rate::Period(0));
    // It counts from the moment it is open.
    attr.set_disabled(false);
    let mut file = File::from(open(&mut attr, 0, -1)?);
    let mut memory = vec![0u8; 1 << 20];
    let mut sum = 0u64;
    for (index, byte) in memory.iter_mut().enumerate() {
        *byte = (index & 0xff) as u8;
        sum = sum.wrapping_add(u64::from(std::hint::black_box(*byte)));
    }
    std::hint::black_box(sum);
    std::thread::sleep(std::time::Duration::from_millis(1));
    let mut value = [0; 8];
    file.read_exact(&mut value)?;
    Ok(u64::from_ne_bytes(value))
}
