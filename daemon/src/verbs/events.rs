//! `varid events`: the events that this machine counts and samples, found by tests.

use crate::cli::FormatArgs;
use crate::output::{self, Align};
use anyhow::anyhow;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;
use varid_sampler::event::pmu::Pmu;
use varid_sampler::event::{Event, Rate, all_names, resolve};
use varid_sampler::interrupts::{Interrupt, default_event, describe_skid, probe_cpu};
use varid_sampler::online_cpus;
use varid_sampler::open::open;

#[derive(Serialize)]
struct Document {
    events: Vec<Tried>,
    pmus: Vec<FoundPmu>,
    default: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// A PMU of the CPUs.
#[derive(Debug, Serialize)]
pub struct FoundPmu {
    /// The kernel's name for it.
    pub name: String,
    /// The CPUs that it counts on, if the kernel defines them.
    pub cpus: Option<Vec<u32>>,
    /// Number of events in its own table.
    pub events: usize,
    /// True if its overflow interrupt arrives. None if that is unknown.
    pub interrupts: Option<bool>,
    /// The precision of a sample's address.
    pub skid: String,
}

/// The test result of an event.
#[derive(Debug, Serialize)]
pub struct Tried {
    /// Its name in `-e`.
    pub event: String,
    /// The count for a test program, or None if it cannot be opened.
    pub count: Option<u64>,
    /// True if it can be opened for sampling. Whether the interrupt arrives depends on its PMU.
    pub samples: bool,
    /// True if kernel code may be counted, too.
    pub kernel: bool,
    /// The reason why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Lists every known event.
pub fn run(format: FormatArgs) -> anyhow::Result<ExitCode> {
    let pmus = Pmu::all(Path::new("/"));
    let events = all_names(&pmus)
        .iter()
        .map(|name| try_event(name, &pmus))
        .collect::<Result<Vec<_>, _>>()?;
    let (default, note) = default_event(Rate::Frequency(1), &pmus);
    let document = Document {
        events,
        pmus: find_pmus(&pmus),
        default: default.name,
        note,
    };
    if format.json {
        output::json(&document)?;
    } else {
        output::text(&shown(&document))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the PMUs of the CPUs, each tested.
pub fn find_pmus(pmus: &[Pmu]) -> Vec<FoundPmu> {
    let online = online_cpus().unwrap_or_default();
    let found = pmus.iter().filter(|pmu| pmu.core).map(|pmu| {
        let first = online.iter().copied().find(|cpu| pmu.serves(*cpu));
        FoundPmu {
            name: pmu.name.clone(),
            cpus: pmu.cpus.clone(),
            events: pmu.events.len(),
            interrupts: match first.map(probe_cpu) {
                Some(Interrupt::Arrives) => Some(true),
                Some(Interrupt::Missing) => Some(false),
                Some(Interrupt::Unknown) | None => None,
            },
            skid: describe_skid(pmu),
        }
    });
    found.collect()
}

impl FoundPmu {
    /// Describes it in one line.
    pub fn summary(&self) -> String {
        let cpus = self.cpus.as_ref().map_or_else(String::new, |cpus| {
            let cpus: Vec<_> = cpus.iter().map(u32::to_string).collect();
            format!(" on CPUs {}", cpus.join(","))
        });
        let interrupts = match self.interrupts {
            Some(true) => "its overflow interrupt arrives",
            Some(false) => {
                "it counts, but its overflow interrupt DOES NOT ARRIVE: its events are read with the samples of cpu-clock"
            }
            None => "whether its overflow interrupt arrives could not be tried",
        };
        let (name, events, skid) = (&self.name, self.events, &self.skid);
        format!("{name}{cpus}: {events} events of its own; {interrupts}; {skid}")
    }
}

fn shown(document: &Document) -> String {
    let rows: Vec<_> = document
        .events
        .iter()
        .map(|tried| {
            let count = tried.count.map(|count| count.to_string());
            [
                tried.event.clone(),
                tried.state(),
                count.unwrap_or_else(|| "-".to_owned()),
                tried.error.clone().unwrap_or_default(),
            ]
        })
        .collect();
    let head = [
        ("EVENT", Align::Left),
        ("HERE", Align::Left),
        ("COUNTED", Align::Right),
        ("", Align::Left),
    ];
    let mut text = output::table(head, &rows);
    text.push('\n');
    if document.pmus.is_empty() {
        text.push_str("No PMU of the CPUs is known to the kernel.\n");
    }
    for pmu in &document.pmus {
        text.push_str(&format!("PMU {}.\n", pmu.summary()));
    }
    text.push_str(&format!("Sampled by default: {}", document.default));
    if let Some(note) = &document.note {
        text.push_str(&format!(" ({note})"));
    }
    text.push_str(
        ".\nBy the BPF shim: off-cpu, runnable (time that threads are blocked, or wait for a CPU), wall (all their time), in nanoseconds;\n\
         alloc (bytes), lock, park: what Java programs allocate, and where their threads wait for locks;\n\
         tracepoints (sched:sched_switch), places in code (uprobe:/lib/libc.so.6:malloc, kprobe:vfs_read) and those of 'perf probe' (probe_libc:malloc).\n\
         Also: raw codes (r11), PMU/TERM=VALUE,.../, groups '{A,B}' (each samples) and '{A,B}:S' (B is read at A's samples).\n\
         Modifiers: u user, k kernel, h hypervisor, I not idle, G guests, H host, p precise, D pinned, e exclusive.\n",
    );
    text
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

/// Opens the event for counting and for sampling in this thread, with kernel code if that is permitted.
pub fn try_event(name: &str, pmus: &[Pmu]) -> anyhow::Result<Tried> {
    let mut tried = Tried {
        event: name.to_owned(),
        count: None,
        samples: false,
        kernel: true,
        error: None,
    };
    let resolved = resolve([name], Rate::READ, pmus)?;
    let mut events = resolved.groups.into_iter().flat_map(|group| group.events);
    let Some(with_kernel) = events.next() else {
        return Ok(tried);
    };
    let mut user_only = with_kernel.clone();
    user_only.modifiers.exclude_kernel = true;
    let (counted, event) = match count(&with_kernel) {
        Err(error) if is_refusal(&error) => {
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
            // A long period, because only opening it is tested.
            let sampling = open_here(&Event {
                rate: Rate::Period(1 << 30),
                ..event
            });
            tried.samples = sampling.is_ok();
            tried.error = sampling.err().map(|error| explained(&error));
        }
    }
    Ok(tried)
}

/// Opens the events of `-e` as a session would, in this thread. Returns the reason if that is not possible.
pub fn try_to_sample(text: &str, pmus: &[Pmu]) -> anyhow::Result<()> {
    // A long period, because only opening them is tested.
    let resolved = resolve([text], Rate::Period(1 << 30), pmus)?;
    for group in &resolved.groups {
        // The other members of such a group are read with the leader's samples.
        let sampled = if group.reads { 1 } else { group.events.len() };
        for event in group.events.iter().take(sampled) {
            if !event.is_opened() {
                continue; // sampled by the BPF shim
            }
            let opened = match open_here(event) {
                Err(error) if is_refusal(&error) && !event.modifiers.exclude_user => {
                    let mut user_only = event.clone();
                    user_only.modifiers.exclude_kernel = true;
                    open_here(&user_only)
                }
                opened => opened,
            };
            opened.map_err(|error| {
                anyhow!(
                    "'{}' cannot be sampled here: {}",
                    event.name,
                    explained(&error)
                )
            })?;
        }
    }
    Ok(())
}

/// Returns true if the error may be avoided by more privileges.
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

fn explained(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT) => "no PMU here has it".to_owned(),
        Some(libc::EOPNOTSUPP) => "the PMU does not interrupt for it".to_owned(),
        Some(libc::EACCES | libc::EPERM) => "no permission: see 'varid doctor'".to_owned(),
        Some(libc::ENOSYS) => "this kernel has no perf events".to_owned(),
        Some(libc::EINVAL) => "the PMU does not have it".to_owned(),
        Some(libc::EBUSY) => "its counter is taken".to_owned(),
        _ => error.to_string(),
    }
}

/// Opens the event for this thread, with the first of its encodings that can be opened.
fn open_here(event: &Event) -> io::Result<File> {
    let mut refused = io::Error::from_raw_os_error(libc::ENOENT);
    for encoding in &event.encodings {
        let mut attr = event.attr(encoding);
        // It counts from the start.
        attr.set_disabled(false);
        match open(&mut attr, 0, -1, None) {
            Ok(fd) => return Ok(File::from(fd)),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// Returns the count of the event for a short mixed workload.
fn count(event: &Event) -> io::Result<u64> {
    let mut file = open_here(event)?;
    let mut memory = vec![0u8; 1 << 20];
    let mut sum = 0u64;
    for (index, byte) in memory.iter_mut().enumerate() {
        *byte = (index & 0xff) as u8;
        sum = sum.wrapping_add(u64::from(std::hint::black_box(*byte)));
    }
    std::hint::black_box(sum);
    std::thread::sleep(std::time::Duration::from_millis(1));
    let mut value = [0; 24]; // followed by the times
    file.read_exact(&mut value)?;
    let [a, b, c, d, e, f, g, h, ..] = value;
    Ok(u64::from_ne_bytes([a, b, c, d, e, f, g, h]))
}
