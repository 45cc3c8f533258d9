//! Finds PMUs whose overflow interrupt does not arrive, and replaces their events.
//!
//! On some boards the PMU counts, but its interrupt is not connected or the device tree names another one: events open and count, but no
//! sample is ever taken. The only way to detect this is to sample a loop.

use super::event::pmu::Pmu;
use super::event::{Event, Group, Rate};
use super::online_cpus;
use super::open::open;
use super::ring::Ring;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use varid_model::perf;

/// Cycles from one overflow to the next.
const PERIOD: u64 = 100_000;
/// The number of overflows that must be counted without a sample before the interrupt is considered missing.
const OVERFLOWS: u64 = 20;
/// The number of loop iterations after which a counter is considered not to count, if neither a sample nor enough overflows were seen.
const TURNS: u32 = 2_000;
/// The rate of the timer that replaces an event with a fixed period.
const TIMER: Rate = Rate::Frequency(997);

/// The state of a CPU's PMU overflow interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// A sample was taken.
    Arrives,
    /// Twenty periods were counted, and no sample was taken.
    Missing,
    /// The cycles event does not open here or for this user, or does not count.
    Unknown,
}

/// Samples the cycles of a loop on a CPU to see whether the interrupt of its PMU arrives.
pub fn probe_cpu(cpu: u32) -> Interrupt {
    // Another thread sets the affinity: the caller's must not change.
    let probed = std::thread::Builder::new()
        .name("varid-pmu".to_owned())
        .spawn(move || {
            let mut only = nix::sched::CpuSet::new();
            only.set(cpu as usize)?;
            nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &only)?;
            probe_here(cpu)
        });
    let probed = probed.map(std::thread::JoinHandle::join);
    match probed {
        Ok(Ok(Ok(interrupt))) => interrupt,
        other => {
            tracing::debug!(cpu, ?other, "the PMU's interrupt was not tried");
            Interrupt::Unknown
        }
    }
}

fn probe_here(cpu: u32) -> io::Result<Interrupt> {
    let cycles = Event::cycles(Rate::Period(PERIOD));
    let Some(mut attr) = cycles.attr_on(cpu) else {
        return Ok(Interrupt::Unknown);
    };
    attr.set_exclude_kernel(true);
    attr.set_disabled(false);
    let event = open(&mut attr, 0, cpu as i32, None)?;
    let mut ring = Ring::map(event.as_fd(), 1)?;
    let mut counter = File::from(event);
    let mut samples = 0u32;
    for _ in 0..TURNS {
        spin();
        let drained = ring.drain(|record| {
            let is_sample = record.starts_with(&perf::PERF_RECORD_SAMPLE.to_ne_bytes());
            samples = samples.saturating_add(u32::from(is_sample));
        });
        if drained.is_err() {
            return Ok(Interrupt::Unknown);
        }
        if samples > 0 {
            return Ok(Interrupt::Arrives);
        }
        if count(&mut counter)? >= PERIOD.saturating_mul(OVERFLOWS) {
            return Ok(Interrupt::Missing);
        }
    }
    Ok(Interrupt::Unknown)
}

/// Runs for about ten thousand cycles.
fn spin() {
    let mut sum = 0u64;
    for turn in 0..10_000u64 {
        sum = std::hint::black_box(sum.wrapping_add(turn));
    }
    std::hint::black_box(sum);
}

fn count(counter: &mut File) -> io::Result<u64> {
    let mut words = [0; 24];
    counter.read_exact(&mut words)?;
    let [a, b, c, d, e, f, g, h, ..] = words;
    Ok(u64::from_ne_bytes([a, b, c, d, e, f, g, h]))
}

/// Returns the CPUs whose PMU counts but whose interrupt does not arrive. One CPU of each PMU is probed.
pub fn cpus_without_interrupt(pmus: &[Pmu]) -> Vec<u32> {
    let online = online_cpus().unwrap_or_default();
    let core: Vec<_> = pmus.iter().filter(|pmu| pmu.core).collect();
    without_interrupt_among(&online, &core, probe_cpu)
}

fn without_interrupt_among(
    online: &[u32],
    core: &[&Pmu],
    probe: impl Fn(u32) -> Interrupt,
) -> Vec<u32> {
    let mut missing = Vec::new();
    for pmu in core {
        let mut its = online.iter().copied().filter(|cpu| pmu.serves(*cpu));
        if its
            .next()
            .is_some_and(|first| probe(first) == Interrupt::Missing)
        {
            missing.extend(online.iter().copied().filter(|cpu| pmu.serves(*cpu)));
        }
    }
    missing
}

/// The name in `-e` of the event that is sampled by default.
pub const DEFAULT_EVENT: &str = "default";

/// Returns the event that is sampled without `-e`: `cycles`, or `cpu-clock` with a sentence for the user if no PMU counts cycles or its
/// interrupt does not arrive.
pub fn default_event(rate: Rate, pmus: &[Pmu]) -> (Event, Option<String>) {
    let cycles = Event::cycles(rate);
    let why = if !cycles.opens() {
        "no PMU counts cycles here"
    } else if !cpus_without_interrupt(pmus).is_empty() {
        "the PMU counts cycles, but its overflow interrupt does not arrive"
    } else {
        return (cycles, None);
    };
    let note = format!("{why}: sampling cpu-clock");
    (Event::cpu_clock(rate), Some(note))
}

/// Replaces the leader of each group that contains a hardware event whose interrupt does not arrive on one of these CPUs by `cpu-clock`. The
/// group's events are counted and read with the samples of the timer. Returns a sentence for the user for each such group.
pub fn led_by_timer(groups: Vec<Group>, without_interrupt: &[u32]) -> (Vec<Group>, Vec<String>) {
    let mut notes = Vec::new();
    if without_interrupt.is_empty() {
        return (groups, notes);
    }
    let groups = groups.into_iter().map(|group| {
        let never_interrupts = |event: &&Event| {
            let mut cpus = without_interrupt.iter();
            let here = cpus.any(|cpu| event.attr_on(*cpu).is_some());
            event.rate != Rate::READ && event.is_hardware() && here
        };
        let Some(silent) = group.events.iter().find(never_interrupts) else {
            return group;
        };
        let rate = match silent.rate {
            Rate::Frequency(hz) => Rate::Frequency(hz),
            Rate::Period(_) => TIMER,
        };
        let mut timer = Event::cpu_clock(rate);
        timer.modifiers.exclude_user = silent.modifiers.exclude_user;
        timer.modifiers.exclude_kernel = silent.modifiers.exclude_kernel;
        // The leader's attribute defines how a group is scheduled.
        let leader = group.events.first().unwrap_or(silent);
        timer.modifiers.pinned = leader.modifiers.pinned;
        timer.modifiers.exclusive = leader.modifiers.exclusive;
        match (silent.modifiers.exclude_kernel, silent.modifiers.exclude_user) {
            (true, false) => timer.name.push_str(":u"),
            (false, true) => timer.name.push_str(":k"),
            _ => {}
        }
        notes.push(format!(
            "the PMU counts '{}', but its overflow interrupt does not arrive: cpu-clock is sampled instead, and the event is read with each of its samples",
            silent.name
        ));
        let counted = group.events.into_iter().map(|event| Event {
            rate: Rate::READ,
            ..event
        });
        Group {
            events: std::iter::once(timer).chain(counted).collect(),
            reads: true,
        }
    });
    (groups.collect(), notes)
}

/// A sentence for `varid doctor` about how far the sampled address may be from the instruction that caused the overflow.
pub fn describe_skid(pmu: &Pmu) -> String {
    match (pmu.max_precise, std::env::consts::ARCH) {
        (0, "aarch64" | "arm") => {
            "no precise sampling (':p'): the address is where the interrupt was taken, some instructions behind the overflow, and behind the end of a stretch with interrupts off".to_owned()
        }
        (0, _) => {
            "no precise sampling (':p'): the address is where the interrupt was taken, some instructions behind the overflow".to_owned()
        }
        (most, _) => format!("precise sampling up to ':{}' if asked for; else some instructions of skid", "p".repeat(usize::from(most.min(3)))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::pmu::testing::big_little;
    use super::super::event::resolve;
    use super::*;

    fn groups(text: &str, rate: Rate) -> Vec<Group> {
        let board = big_little();
        resolve([text], rate, board.pmus()).unwrap().groups
    }

    #[test]
    fn one_cpu_of_each_pmu_is_probed() {
        let board = big_little();
        let core: Vec<_> = board.pmus().iter().filter(|pmu| pmu.core).collect();
        let big_is_missing = |cpu| match cpu {
            0 => Interrupt::Arrives,
            4 => Interrupt::Missing,
            cpu => panic!("CPU {cpu} was probed"),
        };
        assert_eq!(
            without_interrupt_among(&[0, 1, 2, 3, 4, 5], &core, big_is_missing),
            [4, 5]
        );
        let unknown = |_| Interrupt::Unknown;
        assert_eq!(without_interrupt_among(&[0, 4], &core, unknown), [0u32; 0]);
    }

    #[test]
    fn an_event_without_interrupt_is_read_with_the_timers_samples() {
        let (led, notes) = led_by_timer(groups("cycles:u", Rate::Period(50_000)), &[0]);
        let [
            Group {
                events,
                reads: true,
            },
        ] = &led[..]
        else {
            panic!("a group that is read")
        };
        let shown: Vec<_> = events.iter().map(|e| (e.name.as_str(), e.rate)).collect();
        assert_eq!(shown, [("cpu-clock:u", TIMER), ("cycles:u", Rate::READ)]);
        assert!(events[0].modifiers.exclude_kernel);
        assert!(notes[0].contains("'cycles:u'") && notes[0].contains("does not arrive"));
    }

    #[test]
    fn a_group_led_by_the_timer_has_its_members_and_its_rate() {
        let (led, _) = led_by_timer(
            groups("{cycles,instructions,page-faults}:S", Rate::Frequency(99)),
            &[0],
        );
        let names: Vec<_> = led[0].events.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(
            names,
            ["cpu-clock", "cycles", "instructions", "page-faults"]
        );
        assert_eq!(led[0].events[0].rate, Rate::Frequency(99));
    }

    #[test]
    fn software_events_and_other_cpus_events_stay_as_they_are() {
        for text in [
            "cpu-clock,page-faults",
            "armv8_cortex_a53/l2d_cache/",
            "{cpu-clock,cycles}:S",
        ] {
            let groups = groups(text, Rate::Period(7));
            let (led, notes) = led_by_timer(groups.clone(), &[4, 5]);
            assert_eq!((led, notes.len()), (groups, 0), "{text}");
        }
    }

    #[test]
    fn cpu_clock_is_the_default_event_where_no_pmu_counts() {
        let rate = Rate::Frequency(997);
        let (event, note) = default_event(rate, &[]);
        if Event::cycles(rate).opens() {
            assert_eq!((event.name.as_str(), note), ("cycles", None));
        } else {
            assert_eq!(event.name, "cpu-clock");
            assert!(note.unwrap().contains("cpu-clock"));
        }
    }
}
