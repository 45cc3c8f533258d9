//! How do the records of all rings become one stream: samples paired with the kernel's own of
//! the same overflow, with what the members of their group counted, in order of time?

use super::decode::{Origin, RingEvent, Sampled, Stamped, Values};
use super::groups::Readings;
use std::collections::VecDeque;
use varid_model::ById;

/// The records that were drained and are not handed over yet.
#[derive(Debug, Default)]
pub struct Stream {
    /// The kernel's own samples are handed over, too.
    keep_raw: bool,
    /// They come at all: each behind the shim's record of its overflow.
    pairs: bool,
    /// An earlier record may still come.
    pub pending: Vec<Stamped>,
    /// By ring: the shim's last records, whose other halves may still come.
    halves: ById<u32, VecDeque<Half>>,
    /// Counts how often all rings were drained.
    round: u64,
    /// No record from before this time is in a ring any more.
    barrier: u64,
    readings: Readings,
}

/// A record of the shim's that waits for the kernel's sample.
#[derive(Debug)]
struct Half {
    round: u64,
    time: u64,
    sampled: Box<Sampled>,
}

impl Half {
    fn alone(self) -> Stamped {
        Stamped {
            time: self.time,
            event: RingEvent::Sample(self.sampled),
        }
    }
}

/// Records of a ring that wait at a time: of events that interrupt each other's handlers.
const HALVES: usize = 4;
/// How long, besides the time between two drains, a record may be on its way into a ring and hold
/// up those behind it there. Its writer waits for nobody and is not preempted: only where interrupts,
/// or a hypervisor, take its CPU for longer than both, do these come behind what happened after them.
const ON_ITS_WAY_NS: u64 = 10_000_000;
/// What the kernel calls a thread that it has forgotten already: one on its way out.
const FORGOTTEN: u32 = u32::MAX;

impl Stream {
    /// `pairs`: the kernel's sample follows the shim's record of each overflow; `keep_raw`: it is
    /// handed over like the record.
    pub fn new(pairs: bool, keep_raw: bool) -> Self {
        Self {
            keep_raw,
            pairs,
            ..Self::default()
        }
    }

    /// Takes the next record of a ring and the values of the group that came with it.
    pub fn push(
        &mut self,
        ring: u32,
        stamped: Stamped,
        values: &Values,
        origin: impl Fn(u64) -> Option<Origin>,
    ) {
        let Stamped { time, event } = stamped;
        let readings = &mut self.readings;
        let mut read = |thread, but: usize| -> Vec<(usize, u64)> {
            let counted = readings.since_last(thread, values).into_iter();
            let members = counted.filter_map(|(id, count)| Some((origin(id)?.event, count)));
            members.filter(|(event, _)| *event != but).collect()
        };
        match event {
            RingEvent::Sample(mut sampled) => {
                if !values.is_empty() {
                    sampled.read = read(sampled.record.tid, sampled.event);
                }
                let half = Half {
                    round: self.round,
                    time,
                    sampled,
                };
                if !self.pairs {
                    return self.pending.push(half.alone());
                }
                let halves = self.halves.entry(ring).or_default();
                halves.push_back(half);
                if halves.len() > HALVES {
                    let oldest = halves.pop_front();
                    self.pending.extend(oldest.map(Half::alone));
                }
            }
            RingEvent::Raw {
                tid,
                ip,
                event: place,
                ..
            } => {
                // The event counts whatever runs on its CPU.
                let read = read(0, place);
                self.complete(ring, time, (place, tid, ip), read);
                if self.keep_raw {
                    self.pending.push(Stamped { time, event });
                }
            }
            event => self.pending.push(Stamped { time, event }),
        }
    }

    /// The kernel's sample of an overflow follows the shim's record of it in the same ring, maybe
    /// only when that is drained again: both get the kernel's time, by which another program can
    /// pair them, and the record what was read.
    fn complete(
        &mut self,
        ring: u32,
        time: u64,
        (event, tid, ip): (usize, u32, u64),
        read: Vec<(usize, u64)>,
    ) {
        // The shim has none of a stranger's overflow, and may have found no room where the
        // kernel's smaller sample did.
        let is_other_half = |half: &Half| {
            let record = &half.sampled.record;
            let same_thread = record.tid == tid || tid == FORGOTTEN;
            half.sampled.event == event && same_thread && record.ip == ip
        };
        let halves = self.halves.entry(ring).or_default();
        let found = halves.iter().rposition(is_other_half);
        if let Some(mut half) = found.and_then(|at| halves.remove(at)) {
            half.time = time;
            half.sampled.record.time = time;
            half.sampled.read = read;
            self.pending.push(half.alone());
        }
    }

    /// All rings were drained, which began at a time: hands over, in order of time, what no
    /// earlier record can precede any more. `last`: nothing more will come.
    pub fn hand_over(&mut self, started: u64, last: bool, mut each: impl FnMut(Stamped)) {
        let barrier = if last { u64::MAX } else { self.barrier };
        // Halves wait for one more round, and until what happened with them is handed over.
        for halves in self.halves.values_mut() {
            let waits = |half: &Half| !last && (half.round == self.round || half.time >= barrier);
            let over = halves.iter().position(waits).unwrap_or(halves.len());
            self.pending.extend(halves.drain(..over).map(Half::alone));
        }
        self.round = self.round.saturating_add(1);
        if !self.pending.is_sorted_by_key(|stamped| stamped.time) {
            self.pending.sort_by_key(|stamped| stamped.time);
        }
        self.barrier = started.saturating_sub(ON_ITS_WAY_NS);
        let ready = self
            .pending
            .partition_point(|stamped| stamped.time < barrier);
        for stamped in self.pending.drain(..ready) {
            // Only now all that it did on other CPUs is out of their rings.
            if let RingEvent::Exit { tid, .. } = stamped.event {
                self.readings.forget(tid);
            }
            each(stamped);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode::SampleKind;
    use super::*;
    use varid_model::Regs;
    use varid_shim::Record;

    const TID: u32 = 7;
    /// Of the member, whose id is 11; the leader's are 0 and 10.
    const MEMBER: usize = 1;

    fn origin(id: u64) -> Option<Origin> {
        let event = id.checked_sub(10)? as usize;
        Some(Origin {
            event,
            kind: SampleKind::Raw,
            period: None,
            reads: event == 0,
        })
    }

    fn sample(time: u64, ip: u64) -> Stamped {
        let record = Record {
            time,
            pid: TID,
            tid: TID,
            cpu: 0,
            flags: 0,
            period: 1,
            ip,
            regs: Regs::default(),
            frames: Vec::new(),
            packed: Vec::new(),
            kernel: Vec::new(),
            stack_addr: 0,
            stack: Vec::new(),
        };
        Stamped {
            time,
            event: RingEvent::Sample(Box::new(Sampled {
                event: 0,
                record,
                read: Vec::new(),
            })),
        }
    }

    fn raw(time: u64, ip: u64) -> Stamped {
        Stamped {
            time,
            event: RingEvent::Raw {
                tid: TID,
                ip,
                event: 0,
                bytes: Vec::new(),
            },
        }
    }

    fn exit(time: u64) -> Stamped {
        Stamped {
            time,
            event: RingEvent::Exit {
                pid: TID,
                ppid: 1,
                tid: TID,
                ptid: 1,
            },
        }
    }

    /// Time and what was read, of the samples that are handed over.
    fn samples(stream: &mut Stream, started: u64, last: bool) -> Vec<(u64, Vec<(usize, u64)>)> {
        let mut samples = Vec::new();
        stream.hand_over(started, last, |stamped| {
            if let RingEvent::Sample(sampled) = stamped.event {
                assert_eq!(stamped.time, sampled.record.time);
                samples.push((stamped.time, sampled.read));
            }
        });
        samples
    }

    fn read(samples: &[(u64, Vec<(usize, u64)>)]) -> Vec<u64> {
        let all = samples.iter().flat_map(|(_, read)| read);
        all.map(|(event, count)| {
            assert_eq!(*event, MEMBER);
            *count
        })
        .collect()
    }

    #[test]
    fn a_thread_that_ended_on_one_cpu_is_not_counted_again_on_another() {
        const MS: u64 = ON_ITS_WAY_NS;
        let mut stream = Stream::new(false, false);
        let value = |value| vec![(10, 1), (11, value)];
        stream.push(1, sample(10 * MS, 1), &value(1_000), origin);
        let mut all = samples(&mut stream, 20 * MS, false);
        // Its end is drained before what it did on another CPU, even a round before.
        stream.push(0, exit(32 * MS), &Values::new(), origin);
        stream.push(1, sample(30 * MS, 2), &value(1_100), origin);
        all.extend(samples(&mut stream, 35 * MS, false));
        stream.push(1, sample(31 * MS, 2), &value(1_150), origin);
        all.extend(samples(&mut stream, 50 * MS, false));
        all.extend(samples(&mut stream, 60 * MS, false));
        assert_eq!(read(&all), [1_000, 100, 50]);
        // Another thread of its number starts from nothing.
        stream.push(1, sample(70 * MS, 1), &value(2_000), origin);
        assert_eq!(read(&samples(&mut stream, 80 * MS, true)), [2_000]);
    }

    #[test]
    fn halves_of_a_sample_that_are_drained_one_after_the_other_find_each_other() {
        let mut stream = Stream::new(true, false);
        stream.push(0, sample(100, 5), &Values::new(), origin);
        assert_eq!(samples(&mut stream, 101, false), []);
        stream.push(0, raw(102, 5), &vec![(10, 1), (11, 40)], origin);
        let found = samples(&mut stream, 110, true);
        assert_eq!(found, [(102, vec![(MEMBER, 40)])]);
    }

    #[test]
    fn a_sample_that_is_whole_is_not_taken_for_the_next_ones_half() {
        let mut stream = Stream::new(true, false);
        let value = |value| vec![(10, 1), (11, value)];
        stream.push(0, sample(100, 5), &Values::new(), origin);
        stream.push(0, raw(101, 5), &value(40), origin);
        // The shim found no room for this one's record, nor for one in another ring.
        stream.push(0, raw(201, 5), &value(70), origin);
        stream.push(1, raw(202, 5), &Values::new(), origin);
        let found = samples(&mut stream, 300, true);
        assert_eq!(found, [(101, vec![(MEMBER, 40)])]);
    }

    #[test]
    fn what_was_held_up_on_its_way_into_a_ring_is_still_in_order() {
        let mut stream = Stream::new(false, false);
        let begun = 5 * ON_ITS_WAY_NS;
        // Two drains in a row find no sample of this time, but what is younger elsewhere.
        stream.push(0, exit(begun + 2), &Values::new(), origin);
        for drain in [begun + 10, begun + ON_ITS_WAY_NS] {
            stream.hand_over(drain, false, |_| panic!("an earlier one may come"));
        }
        stream.push(1, sample(begun + 1, 5), &Values::new(), origin);
        let mut times = Vec::new();
        for drain in [begun + 2 * ON_ITS_WAY_NS, begun + 3 * ON_ITS_WAY_NS] {
            stream.hand_over(drain, false, |stamped| times.push(stamped.time));
        }
        assert_eq!(times, [begun + 1, begun + 2]);
    }

    #[test]
    fn nothing_waits_for_ever_for_its_other_half() {
        let mut stream = Stream::new(true, true);
        for ip in 0..6 {
            stream.push(0, sample(100 + ip, ip), &Values::new(), origin);
        }
        assert_eq!(stream.pending.len(), 2, "the rest waits");
        let mut raws = 0;
        stream.push(0, raw(110, 5), &Values::new(), origin);
        stream.hand_over(120, false, |_| panic!("too early"));
        let mut times = Vec::new();
        stream.hand_over(50_000_000, false, |_| panic!("an earlier one may come"));
        stream.hand_over(100_000_000, false, |stamped| match stamped.event {
            RingEvent::Raw { .. } => raws += 1,
            _ => times.push(stamped.time),
        });
        assert_eq!((times, raws), (vec![100, 101, 102, 103, 104, 110], 1));
    }
}
