//! Selects the events and rates of a session, within what the machine and the kernel support.

use std::path::Path;
use varid_model::Rate;
use varid_sampler::SamplerError;
use varid_sampler::event::pmu::Pmu;
use varid_sampler::event::{Event, Group, Resolved, resolve};
use varid_sampler::interrupts::{
    DEFAULT_EVENT, cpus_without_interrupt, default_event, led_by_timer,
};

/// Resolves the events of a request, or the default ones, on this machine.
pub fn resolve_events(events: &[String], rate: Rate) -> Result<Resolved, SamplerError> {
    let pmus = Pmu::all(Path::new("/"));
    if events.is_empty() {
        let (event, note) = default_event(rate, &pmus);
        return Ok(Resolved {
            groups: vec![event.into()],
            notes: note.into_iter().collect(),
        });
    }
    let default = events.iter().any(|text| text == DEFAULT_EVENT);
    let (default, note) = default.then(|| default_event(rate, &pmus)).unzip();
    let events = events.iter().map(|text| match &default {
        Some(event) if text == DEFAULT_EVENT => event.name.as_str(),
        _ => text,
    });
    let Resolved { groups, mut notes } = resolve(events, rate, &pmus)?;
    notes.extend(note.flatten());
    let hardware = groups
        .iter()
        .flat_map(|group| &group.events)
        .any(Event::is_hardware);
    let dead = if hardware {
        cpus_without_interrupt(&pmus)
    } else {
        Vec::new()
    };
    let (groups, silent) = led_by_timer(groups, &dead);
    notes.extend(silent);
    Ok(Resolved { groups, notes })
}

/// Lowers rates to the kernel's maximum. Returns a note if that was necessary.
pub fn limit_rates(groups: &mut [Group], most: Option<u64>) -> Option<String> {
    let most = most?;
    let mut requested = 0;
    for event in groups.iter_mut().flat_map(|group| &mut group.events) {
        if let Rate::Frequency(hz) = &mut event.rate {
            requested = requested.max(*hz);
            *hz = most.min(*hz);
        }
    }
    (requested > most).then(|| limited_rate_note(requested, most))
}

/// The note for a rate above the kernel's maximum.
pub fn limited_rate_note(requested: u64, most: u64) -> String {
    format!(
        "the kernel allows {most} samples a second and CPU, not {requested}: {most} are taken. It lowers its limit when sampling takes too much time; raise /proc/sys/kernel/perf_event_max_sample_rate, and set perf_cpu_time_max_percent beside it to 0 to keep it"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frequency_beyond_the_kernels_limit_is_lowered_with_a_note() {
        let rates = [
            Rate::Frequency(10_000),
            Rate::Frequency(99),
            Rate::Period(10_000),
        ];
        let mut groups = rates.map(|rate| Group::from(Event::cycles(rate)));
        assert_eq!(limit_rates(&mut groups, None), None);
        assert_eq!(limit_rates(&mut groups, Some(10_000)), None);
        let note = limit_rates(&mut groups, Some(4_000)).unwrap();
        assert!(note.contains("/proc/sys/kernel/perf_event_max_sample_rate"));
        let limited: Vec<_> = groups.iter().map(|group| group.events[0].rate).collect();
        let expected = [
            Rate::Frequency(4_000),
            Rate::Frequency(99),
            Rate::Period(10_000),
        ];
        assert_eq!(limited, expected);
    }
}
