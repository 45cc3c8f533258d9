//! Opens groups of events on a CPU, and measures how long each event was counted.

use super::SamplerError;
use super::event::{Event, Group, Rate};
use super::ioctl::identifier;
use super::open::{max_frequency, open};
use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, OwnedFd};
use varid_model::{Period, Tid, perf};

/// An open event.
#[derive(Debug)]
pub struct Counter {
    /// Its index among all events.
    pub event: usize,
    /// The thread that it counts, or None for all threads on its CPU.
    pub thread: Option<Tid>,
    /// The kernel's identifier of the event.
    pub id: u64,
    /// True if it has samples of its own.
    pub samples: bool,
    /// The period if it is fixed. Samples then have no period field.
    pub period: Option<Period>,
    /// True if its samples have the counts of its group.
    pub reads: bool,
    /// The number of events in the group that it leads, including itself. 0 for a member of a group.
    pub leads: usize,
    /// The event.
    pub fd: OwnedFd,
}

/// The events opened on a CPU.
#[derive(Debug, Default)]
pub struct Opened {
    /// The events, each leader before its group.
    pub counters: Vec<Counter>,
    /// The events that this CPU does not count. Their groups are not opened.
    pub absent: Vec<Absent>,
}

/// The index of an event that is not counted, and the reason.
pub type Absent = (usize, SamplerError);

/// The scope in which an opened event counts.
#[derive(Debug, Clone, Copy)]
pub struct Scope {
    /// The CPU.
    pub cpu: u32,
    /// The thread, or None for all threads on the CPU.
    pub thread: Option<Tid>,
}

/// An event of a group, with its index.
#[derive(Debug, Clone, Copy)]
pub struct IndexedEvent<'a> {
    /// Its index among the events of all groups. Samples and the recording identify the event by it.
    pub index: usize,
    /// The event.
    pub event: &'a Event,
    /// Its group.
    pub group: &'a Group,
    /// True for the first event of its group.
    pub is_leader: bool,
}

/// Iterates over the events of all groups with their indices.
pub fn indexed_events(groups: &[Group]) -> impl Iterator<Item = IndexedEvent<'_>> {
    let events = groups.iter().flat_map(|group| {
        let events = group.events.iter().enumerate();
        events.map(move |(member, event)| (group, event, member == 0))
    });
    events
        .enumerate()
        .map(|(index, (group, event, is_leader))| IndexedEvent {
            index,
            event,
            group,
            is_leader,
        })
}

/// Opens every group. `shape` adds to each event's attribute what its source needs.
pub fn open_groups(
    groups: &[Group],
    scope: Scope,
    mut shape: impl FnMut(&mut perf::EventAttr),
) -> Result<Opened, SamplerError> {
    let mut all = Opened::default();
    let mut first = 0usize;
    for group in groups {
        // The BPF shim samples the other events.
        if !group.events.iter().all(Event::is_opened) {
            first = first.saturating_add(group.events.len());
            continue;
        }
        match open_group(group, first, scope, &mut shape) {
            Ok(opened) => all.counters.extend(opened),
            Err((index, error)) if error.is_absence() => all.absent.push((index, error)),
            Err((_, error)) => return Err(error),
        }
        first = first.saturating_add(group.events.len());
    }
    Ok(all)
}

fn open_group(
    group: &Group,
    first: usize,
    scope: Scope,
    shape: &mut impl FnMut(&mut perf::EventAttr),
) -> Result<Vec<Counter>, Absent> {
    let mut opened: Vec<Counter> = Vec::new();
    for (index, event) in (first..).zip(&group.events) {
        let failed = |source, member| {
            let error = SamplerError::Open {
                event: event.name.clone(),
                cpu: scope.cpu,
                thread: scope.thread,
                member,
                source,
            };
            (index, error)
        };
        let not_here = || SamplerError::NotOnCpu {
            event: event.name.clone(),
            cpu: scope.cpu,
        };
        let mut attr = event
            .attr_on(scope.cpu)
            .ok_or_else(|| (index, not_here()))?;
        let samples = attr.sample_period != 0; // or the frequency, which is a union with it
        let reads = group.reads && opened.is_empty();
        if reads {
            attr.sample_type |= u64::from(perf::PERF_SAMPLE_READ);
            attr.read_format |= u64::from(perf::PERF_FORMAT_GROUP | perf::PERF_FORMAT_ID);
        }
        shape(&mut attr);
        let period = fixed_period(event.rate, &mut attr);
        if period.is_none() {
            limit_frequency(&mut attr);
        }
        if !opened.is_empty() {
            follow_leader(&mut attr);
        }
        let leader = opened.first().map(|leader| leader.fd.as_fd());
        let thread = scope.thread.map_or(-1, |tid| tid.get() as i32);
        let fd = open(&mut attr, thread, scope.cpu as i32, leader)
            .map_err(|source| failed(source, leader.is_some() || group.reads))?;
        opened.push(Counter {
            event: index,
            thread: scope.thread,
            id: identifier(scope.cpu, &fd).map_err(|error| (index, error))?,
            samples,
            period,
            reads,
            leads: match leader {
                None => group.events.len(),
                Some(_) => 0,
            },
            fd,
        });
    }
    Ok(opened)
}

/// Lowers the frequency to the kernel's limit, which it may have lowered since the session was requested.
fn limit_frequency(attr: &mut perf::EventAttr) {
    if let Some(most) = max_frequency() {
        attr.sample_period = attr.sample_period.min(most);
    }
}

/// Sets what is different for the members of a group. A member counts while its leader does. The other attributes, too, are set for the
/// leader only and hold for its group.
fn follow_leader(attr: &mut perf::EventAttr) {
    attr.set_disabled(false);
    attr.set_pinned(false);
    attr.set_exclusive(false);
}

/// Returns the event's period if it is fixed, and removes the period field from its samples. With that field, the kernel would make
/// one sample for each event that it counts in software, such as a page fault, to report the period (perf_swevent_event in
/// kernel/events/core.c).
pub fn fixed_period(rate: Rate, attr: &mut perf::EventAttr) -> Option<Period> {
    let Rate::Period(period) = rate else {
        return None;
    };
    attr.sample_type &= !u64::from(perf::PERF_SAMPLE_PERIOD);
    Some(Period::new(period))
}

/// Returns an error for an event that no CPU counts, and logs one that only some CPUs count.
pub fn check_presence(opened: &[usize], absent: Vec<Absent>) -> Result<(), SamplerError> {
    let mut logged = Vec::new();
    for (index, error) in absent {
        if !opened.contains(&index) {
            return Err(error);
        }
        if !logged.contains(&index) {
            tracing::warn!("not all CPUs count it: {error}");
            logged.push(index);
        }
    }
    Ok(())
}

/// The time that an event was counted, summed over CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// Nanoseconds that it was enabled.
    pub enabled_ns: u64,
    /// Nanoseconds that the PMU counted it.
    pub running_ns: u64,
}

impl Times {
    /// Adds the times of another counter of the event.
    pub fn add(&mut self, other: Self) {
        self.enabled_ns = self.enabled_ns.saturating_add(other.enabled_ns);
        self.running_ns = self.running_ns.saturating_add(other.running_ns);
    }
}

/// Returns the times of every event, by its index. A member has the times of its leader, with which it is scheduled.
pub fn times<'a>(counters: impl Iterator<Item = (u32, &'a Counter)>) -> BTreeMap<usize, Times> {
    let leaders = counters.filter(|(_, counter)| counter.leads > 0);
    let read = leaders.filter_map(|(cpu, counter)| {
        let times = read_times(&counter.fd, counter.leads)?;
        let led = counter.event..counter.event.saturating_add(counter.leads);
        Some(led.map(move |event| (event, counter.thread, cpu, times)))
    });
    sum_times(read.flatten())
}

/// The events of a thread are enabled on all CPUs while the thread runs on one of them.
fn sum_times(
    read: impl Iterator<Item = (usize, Option<Tid>, u32, Times)>,
) -> BTreeMap<usize, Times> {
    let mut by_scope: HashMap<(usize, Option<Tid>, u32), Times> = HashMap::new();
    for (event, thread, cpu, times) in read {
        let cpu = if thread.is_some() { 0 } else { cpu };
        let scope = by_scope.entry((event, thread, cpu)).or_default();
        scope.enabled_ns = scope.enabled_ns.max(times.enabled_ns);
        scope.running_ns = scope.running_ns.saturating_add(times.running_ns);
    }
    let mut sums: BTreeMap<usize, Times> = BTreeMap::new();
    for ((event, ..), times) in by_scope {
        sums.entry(event).or_default().add(times);
    }
    sums
}

/// Reads the times of an event. The layout is: the value, or the number of values in a group; the times; then the value and id of
/// each event of the group (perf_event_open(2), PERF_FORMAT_GROUP).
fn read_times(fd: &OwnedFd, events: usize) -> Option<Times> {
    let mut bytes = vec![0; events.saturating_mul(16).saturating_add(24)];
    let size = nix::unistd::read(fd, &mut bytes).ok()?;
    let bytes = bytes.get(..size)?;
    let mut words = bytes.chunks_exact(8).skip(1);
    let mut word = || words.next()?.try_into().ok().map(u64::from_ne_bytes);
    Some(Times {
        enabled_ns: word()?,
        running_ns: word()?,
    })
}

/// Computes the counts of group members from one sample of their leader to the next.
#[derive(Debug, Default)]
pub struct Readings {
    /// The last value, by the member's id and the thread that it counts.
    last: HashMap<(u64, Tid), u64>,
}

impl Readings {
    /// Returns the counts since the last call, by id.
    pub fn since_last(&mut self, thread: Tid, values: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let since = values.iter().map(|(id, value)| {
            let last = self.last.insert((*id, thread), *value).unwrap_or(0);
            // A new thread with a reused id counts from zero.
            (*id, value.checked_sub(last).unwrap_or(*value))
        });
        since.collect()
    }

    /// Removes the counts of a thread that has ended.
    pub fn forget(&mut self, thread: Tid) {
        if !self.last.is_empty() {
            self.last.retain(|(_, of), _| *of != thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(enabled_ns: u64, running_ns: u64) -> Times {
        Times {
            enabled_ns,
            running_ns,
        }
    }

    #[test]
    fn times_of_cpus_add_up_those_of_a_thread_do_not() {
        let per_cpu = [(0, None, 0, times(10, 10)), (0, None, 1, times(10, 5))];
        assert_eq!(sum_times(per_cpu.into_iter())[&0], times(20, 15));
        let per_thread = [
            (0, Some(Tid::new(7)), 0, times(10, 4)),
            (0, Some(Tid::new(7)), 1, times(10, 6)),
            (0, Some(Tid::new(8)), 0, times(3, 0)),
            (0, Some(Tid::new(8)), 1, times(3, 3)),
        ];
        assert_eq!(sum_times(per_thread.into_iter())[&0], times(13, 13));
    }

    #[test]
    fn a_reading_is_what_came_since_the_last_one_of_the_same_thread() {
        let mut readings = Readings::default();
        assert_eq!(
            readings.since_last(Tid::new(1), &[(5, 100), (6, 7)]),
            [(5, 100), (6, 7)]
        );
        assert_eq!(readings.since_last(Tid::new(2), &[(5, 30)]), [(5, 30)]);
        assert_eq!(
            readings.since_last(Tid::new(1), &[(5, 150), (6, 7)]),
            [(5, 50), (6, 0)]
        );
        readings.forget(Tid::new(2));
        assert_eq!(readings.since_last(Tid::new(2), &[(5, 40)]), [(5, 40)]);
        assert_eq!(readings.since_last(Tid::new(1), &[(5, 20)]), [(5, 20)]);
    }
}
