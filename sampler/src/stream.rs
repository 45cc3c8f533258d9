//! Merges the records of all rings into one stream in order of time. Pairs each sample with the kernel's own of the same overflow, and
//! adds the counts of group members.

use super::decode::{Origin, RingEvent, Sampled, Stamped, Values};
use super::groups::Readings;
use std::collections::VecDeque;
use varid_model::{Address, ById, MonotonicNs, Tid};

/// Records that were drained and not yet handed over.
#[derive(Debug, Default)]
pub struct Stream {
    /// True if the kernel's own samples are handed over, too.
    keep_raw: bool,
    /// True if the kernel's own sample of each overflow follows the shim's record of it.
    pairs: bool,
    /// Records before which another one may still arrive.
    pub pending: Vec<Stamped>,
    /// By ring: the shim's last records. The kernel's samples that belong to them may still arrive.
    unpaired: ById<u32, VecDeque<Unpaired>>,
    /// The number of times that all rings were drained.
    round: u64,
    /// The rings no longer contain records before this time.
    barrier: MonotonicNs,
    readings: Readings,
}

/// A record of the shim that waits for the kernel's sample of the same overflow.
#[derive(Debug)]
struct Unpaired {
    round: u64,
    time: MonotonicNs,
    sampled: Box<Sampled>,
}

impl Unpaired {
    /// Returns the record in the form that is handed over.
    fn into_stamped(self) -> Stamped {
        Stamped {
            time: self.time,
            event: RingEvent::Sample(self.sampled),
        }
    }
}

/// The kernel's own sample of an overflow.
#[derive(Debug, Clone, Copy)]
struct Overflow {
    ring: u32,
    time: MonotonicNs,
    /// The event's index.
    event: usize,
    tid: Tid,
    ip: Address,
}

/// The maximum number of records that wait in a ring at once. They are of events that interrupt each other's handlers.
const MAX_UNPAIRED: usize = 4;
/// How long, besides the time between two drains, a record may be incomplete in its ring and hold up the records after it. The writer
/// does not wait and is not preempted. Records are handed over after later ones only if interrupts or a hypervisor take its CPU for
/// longer than both times together.
const MAX_WRITE_NS: u64 = 10_000_000;
/// The kernel's id for a thread that is exiting and has already released its ids.
const RELEASED: Tid = Tid::new(u32::MAX);

impl Stream {
    /// `pairs`: the kernel's sample of each overflow follows the shim's record of it. `keep_raw`: it is handed over, too.
    pub fn new(pairs: bool, keep_raw: bool) -> Self {
        Self {
            keep_raw,
            pairs,
            ..Self::default()
        }
    }

    /// Takes the next record of a ring and the counts of the group in it.
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
                let record = Unpaired {
                    round: self.round,
                    time,
                    sampled,
                };
                if !self.pairs {
                    return self.pending.push(record.into_stamped());
                }
                let unpaired = self.unpaired.entry(ring).or_default();
                unpaired.push_back(record);
                if unpaired.len() > MAX_UNPAIRED {
                    let oldest = unpaired.pop_front();
                    self.pending.extend(oldest.map(Unpaired::into_stamped));
                }
            }
            RingEvent::Raw {
                tid,
                ip,
                event: index,
                ..
            } => {
                // The event counts all threads on its CPU.
                let read = read(Tid::new(0), index);
                let overflow = Overflow {
                    ring,
                    time,
                    event: index,
                    tid,
                    ip,
                };
                self.complete(overflow, read);
                if self.keep_raw {
                    self.pending.push(Stamped { time, event });
                }
            }
            event => self.pending.push(Stamped { time, event }),
        }
    }

    /// Completes the shim's record by the kernel's sample of the same overflow, which follows in the same ring, possibly at the next
    /// drain. Both get the kernel's time, so that other programs can pair them. The record gets the counts of its group.
    fn complete(&mut self, overflow: Overflow, read: Vec<(usize, u64)>) {
        let Overflow { time, tid, .. } = overflow;
        // The record is missing if the process is not sampled, or if the ring had space for the kernel's sample but not for the larger
        // record.
        let is_of_overflow = |unpaired: &Unpaired| {
            let record = &unpaired.sampled.record;
            let same_thread = record.tid == tid || tid == RELEASED;
            unpaired.sampled.event == overflow.event && same_thread && record.ip == overflow.ip
        };
        let unpaired = self.unpaired.entry(overflow.ring).or_default();
        let found = unpaired.iter().rposition(is_of_overflow);
        if let Some(mut record) = found.and_then(|at| unpaired.remove(at)) {
            record.time = time;
            record.sampled.record.time = time;
            record.sampled.read = read;
            self.pending.push(record.into_stamped());
        }
    }

    /// Hands over, in order of time, the records before which no other record can still arrive. All rings have been drained since
    /// `started`. `last`: no more records follow, so all are handed over.
    pub fn hand_over(&mut self, started: MonotonicNs, last: bool, mut each: impl FnMut(Stamped)) {
        let barrier = if last { MonotonicNs::MAX } else { self.barrier };
        // A record waits for one more drain, and until the records of its time are handed over.
        for unpaired in self.unpaired.values_mut() {
            let waits = |unpaired: &Unpaired| {
                !last && (unpaired.round == self.round || unpaired.time >= barrier)
            };
            let over = unpaired.iter().position(waits).unwrap_or(unpaired.len());
            self.pending
                .extend(unpaired.drain(..over).map(Unpaired::into_stamped));
        }
        self.round = self.round.saturating_add(1);
        if !self.pending.is_sorted_by_key(|stamped| stamped.time) {
            self.pending.sort_by_key(|stamped| stamped.time);
        }
        self.barrier = MonotonicNs::new(started.get().saturating_sub(MAX_WRITE_NS));
        let ready = self
            .pending
            .partition_point(|stamped| stamped.time < barrier);
        for stamped in self.pending.drain(..ready) {
            // Before this, samples of the thread from other CPUs may still be in the rings.
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
    use varid_model::{Period, Pid, Regs};
    use varid_shim::CapturedSample;

    const TID: Tid = Tid::new(7);
    const PID: Pid = Pid::new(7);
    /// Index of the member, whose id is 11. The leader has index 0 and id 10.
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
        let record = CapturedSample {
            time: MonotonicNs::new(time),
            pid: PID,
            tid: TID,
            cpu: 0,
            flags: 0,
            period: Period::new(1),
            ip: Address::new(ip),
            regs: Regs::default(),
            frames: Default::default(),
            kernel: Vec::new(),
            stack_addr: Address::default(),
            stack: Vec::new(),
            holes: Default::default(),
            interrupted: Default::default(),
            beyond: Default::default(),
            code: Default::default(),
            allocated: None,
        };
        Stamped {
            time: MonotonicNs::new(time),
            event: RingEvent::Sample(Box::new(Sampled {
                event: 0,
                record,
                read: Vec::new(),
            })),
        }
    }

    fn raw(time: u64, ip: u64) -> Stamped {
        Stamped {
            time: MonotonicNs::new(time),
            event: RingEvent::Raw {
                tid: TID,
                ip: Address::new(ip),
                event: 0,
                bytes: Vec::new(),
            },
        }
    }

    fn exit(time: u64) -> Stamped {
        Stamped {
            time: MonotonicNs::new(time),
            event: RingEvent::Exit {
                pid: PID,
                ppid: Pid::new(1),
                tid: TID,
                ptid: Tid::new(1),
            },
        }
    }

    /// Returns the times and the read counts of the samples that are handed over.
    fn samples(stream: &mut Stream, started: u64, last: bool) -> Vec<(u64, Vec<(usize, u64)>)> {
        let mut samples = Vec::new();
        stream.hand_over(MonotonicNs::new(started), last, |stamped| {
            if let RingEvent::Sample(sampled) = stamped.event {
                assert_eq!(stamped.time, sampled.record.time);
                samples.push((stamped.time.get(), sampled.read));
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
    fn counts_of_an_ended_thread_are_not_repeated_on_another_cpu() {
        const MS: u64 = MAX_WRITE_NS;
        let mut stream = Stream::new(false, false);
        let value = |value| vec![(10, 1), (11, value)];
        stream.push(1, sample(10 * MS, 1), &value(1_000), origin);
        let mut all = samples(&mut stream, 20 * MS, false);
        // The thread's exit is drained before its samples on another CPU, even one round before.
        stream.push(0, exit(32 * MS), &Values::new(), origin);
        stream.push(1, sample(30 * MS, 2), &value(1_100), origin);
        all.extend(samples(&mut stream, 35 * MS, false));
        stream.push(1, sample(31 * MS, 2), &value(1_150), origin);
        all.extend(samples(&mut stream, 50 * MS, false));
        all.extend(samples(&mut stream, 60 * MS, false));
        assert_eq!(read(&all), [1_000, 100, 50]);
        // Another thread with the same id counts from zero.
        stream.push(1, sample(70 * MS, 1), &value(2_000), origin);
        assert_eq!(read(&samples(&mut stream, 80 * MS, true)), [2_000]);
    }

    #[test]
    fn a_record_is_paired_with_a_sample_of_the_next_drain() {
        let mut stream = Stream::new(true, false);
        stream.push(0, sample(100, 5), &Values::new(), origin);
        assert_eq!(samples(&mut stream, 101, false), []);
        stream.push(0, raw(102, 5), &vec![(10, 1), (11, 40)], origin);
        let found = samples(&mut stream, 110, true);
        assert_eq!(found, [(102, vec![(MEMBER, 40)])]);
    }

    #[test]
    fn a_paired_record_is_not_paired_again() {
        let mut stream = Stream::new(true, false);
        let value = |value| vec![(10, 1), (11, value)];
        stream.push(0, sample(100, 5), &Values::new(), origin);
        stream.push(0, raw(101, 5), &value(40), origin);
        // The shim had no space for the record of this overflow, nor for one in another ring.
        stream.push(0, raw(201, 5), &value(70), origin);
        stream.push(1, raw(202, 5), &Values::new(), origin);
        let found = samples(&mut stream, 300, true);
        assert_eq!(found, [(101, vec![(MEMBER, 40)])]);
    }

    #[test]
    fn records_that_become_visible_late_are_in_order_of_time() {
        let mut stream = Stream::new(false, false);
        let begun = 5 * MAX_WRITE_NS;
        // Two consecutive drains find no sample of this time, but later ones in other rings.
        stream.push(0, exit(begun + 2), &Values::new(), origin);
        for drain in [begun + 10, begun + MAX_WRITE_NS] {
            stream.hand_over(MonotonicNs::new(drain), false, |_| {
                panic!("an earlier one may come")
            });
        }
        stream.push(1, sample(begun + 1, 5), &Values::new(), origin);
        let mut times = Vec::new();
        for drain in [begun + 2 * MAX_WRITE_NS, begun + 3 * MAX_WRITE_NS] {
            stream.hand_over(MonotonicNs::new(drain), false, |stamped| {
                times.push(stamped.time.get())
            });
        }
        assert_eq!(times, [begun + 1, begun + 2]);
    }

    #[test]
    fn no_record_waits_for_ever_for_its_sample() {
        let mut stream = Stream::new(true, true);
        for ip in 0..6 {
            stream.push(0, sample(100 + ip, ip), &Values::new(), origin);
        }
        assert_eq!(stream.pending.len(), 2, "the rest waits");
        let mut raws = 0;
        stream.push(0, raw(110, 5), &Values::new(), origin);
        stream.hand_over(MonotonicNs::new(120), false, |_| panic!("too early"));
        let mut times = Vec::new();
        stream.hand_over(MonotonicNs::new(50_000_000), false, |_| {
            panic!("an earlier one may come")
        });
        stream.hand_over(
            MonotonicNs::new(100_000_000),
            false,
            |stamped| match stamped.event {
                RingEvent::Raw { .. } => raws += 1,
                _ => times.push(stamped.time.get()),
            },
        );
        assert_eq!((times, raws), (vec![100, 101, 102, 103, 104, 110], 1));
    }
}
