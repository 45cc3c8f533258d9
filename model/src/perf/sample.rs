//! Parses samples.
//!
//! The fields have the order of linux/perf_event.h (`PERF_RECORD_SAMPLE`). The event's `sample_type` determines which fields are present.

use super::abi::{
    PERF_CONTEXT_MAX, PERF_SAMPLE_ADDR, PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_IP, PERF_SAMPLE_PERIOD,
    PERF_SAMPLE_RAW, PERF_SAMPLE_READ, PERF_SAMPLE_REGS_USER, PERF_SAMPLE_STACK_USER,
};
use super::fields::{Fields, Malformed};
use crate::{Address, MonotonicNs, Period, Pid, Tid};

/// The fields of an event's samples besides IDENTIFIER, TID, TIME and CPU, which all samples have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleLayout {
    /// `perf_event_attr.sample_type`, or only its lower bits if the fields after these are not needed.
    pub sample_type: u32,
    /// Number of registers in REGS_USER.
    pub registers: u32,
}

/// A sample's fields. Those that are not in the layout are empty or zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampleFields<'a> {
    /// The sampled instruction.
    pub ip: Address,
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// The time.
    pub time: MonotonicNs,
    /// The address that the event is about (`PERF_SAMPLE_ADDR`).
    pub addr: u64,
    /// The CPU.
    pub cpu: u32,
    /// The weight.
    pub period: Period,
    /// The counts of the events in its group.
    pub values: GroupValues<'a>,
    /// The callchain, including context entries.
    pub callchain: CallchainEntries<'a>,
    /// Raw data from a BPF program or the writer of perf.data.
    pub raw: &'a [u8],
    /// `PERF_SAMPLE_REGS_ABI_*`.
    pub registers_abi: u64,
    /// The user's registers by their bits, eight bytes each. Empty if the ABI is 0.
    pub registers: &'a [[u8; 8]],
    /// The part of the user's stack that could be read, from the stack pointer on.
    pub stack: &'a [u8],
}

impl<'a> SampleFields<'a> {
    /// Parses a sample's fields after the identifier, which determines the layout.
    ///
    /// # Errors
    ///
    /// The sample is shorter than its fields.
    #[inline]
    pub fn parse(layout: SampleLayout, fields: &mut Fields<'a>) -> Result<Self, Malformed> {
        let has = |field: u32| layout.sample_type & field != 0;
        let mut sample = Self::default();
        if has(PERF_SAMPLE_IP) {
            sample.ip = Address::new(fields.u64()?);
        }
        sample.pid = Pid::new(fields.u32()?);
        sample.tid = Tid::new(fields.u32()?);
        sample.time = MonotonicNs::new(fields.u64()?);
        if has(PERF_SAMPLE_ADDR) {
            sample.addr = fields.u64()?;
        }
        (sample.cpu, _) = fields.pair()?;
        if has(PERF_SAMPLE_PERIOD) {
            sample.period = Period::new(fields.u64()?);
        }
        if has(PERF_SAMPLE_READ) {
            sample.values = GroupValues::parse(fields)?;
        }
        if has(PERF_SAMPLE_CALLCHAIN) {
            let count = fields.u64()?;
            sample.callchain = CallchainEntries(fields.words(count)?);
        }
        if has(PERF_SAMPLE_RAW) {
            let len = fields.u32()?;
            let short = fields.malformed("the record ends too early");
            sample.raw = fields.bytes(usize::try_from(len).map_err(|_| short)?)?;
        }
        if has(PERF_SAMPLE_REGS_USER) {
            sample.registers_abi = fields.u64()?;
            let count = match sample.registers_abi {
                0 => 0,
                _ => layout.registers,
            };
            sample.registers = fields.words(u64::from(count))?;
        }
        if has(PERF_SAMPLE_STACK_USER) {
            sample.stack = stack(fields)?;
        }
        Ok(sample)
    }
}

/// Returns the part of a stack copy that the kernel could read.
fn stack<'a>(fields: &mut Fields<'a>) -> Result<&'a [u8], Malformed> {
    let size = fields.u64()?;
    if size == 0 {
        return Ok(&[]);
    }
    let short = fields.malformed("a copy of the stack that is longer than its record");
    let copy = fields.bytes(usize::try_from(size).map_err(|_| short)?)?;
    let used = fields.u64()?;
    let used = usize::try_from(used).ok().and_then(|used| copy.get(..used));
    used.ok_or(short)
}

/// The addresses of a callchain, leaf first. A context entry precedes each run of addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallchainEntries<'a>(&'a [[u8; 8]]);

impl<'a> CallchainEntries<'a> {
    /// Makes the entries of a callchain, in the order of the record.
    #[must_use]
    pub const fn new(entries: &'a [[u8; 8]]) -> Self {
        Self(entries)
    }

    /// Each address with its context, `PERF_CONTEXT_*`. The context is `None` if no entry precedes the address.
    pub fn addresses(self) -> impl Iterator<Item = (Option<u64>, Address)> + use<'a> {
        self.runs()
            .flat_map(|(context, run)| run.map(move |address| (context, address)))
    }

    /// The addresses that follow each other in the same context, with that context. No run is empty.
    pub fn runs(
        self,
    ) -> impl Iterator<
        Item = (
            Option<u64>,
            impl ExactSizeIterator<Item = Address> + use<'a>,
        ),
    > + use<'a> {
        let mut rest = self.0;
        let mut context = None;
        let entry = |word: &[u8; 8]| u64::from_le_bytes(*word);
        let is_context = move |word: &[u8; 8]| entry(word) >= PERF_CONTEXT_MAX;
        std::iter::from_fn(move || {
            while let [first, after @ ..] = rest
                && is_context(first)
            {
                context = Some(entry(first));
                rest = after;
            }
            let len = rest.iter().position(is_context).unwrap_or(rest.len());
            let (run, after) = rest.split_at(len);
            rest = after;
            let addresses = run.iter().map(move |word| Address::new(entry(word)));
            (len > 0).then_some((context, addresses))
        })
    }
}

/// The counts of the events in a group: `PERF_SAMPLE_READ` with `PERF_FORMAT_GROUP`, `ID` and both times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupValues<'a>(&'a [[u8; 8]]);

impl<'a> GroupValues<'a> {
    fn parse(fields: &mut Fields<'a>) -> Result<Self, Malformed> {
        let count = fields.u64()?;
        fields.u64()?; // time enabled
        fields.u64()?; // time running
        Ok(Self(fields.words(count.saturating_mul(2))?))
    }

    /// The identifier and the count of each event.
    pub fn iter(self) -> impl ExactSizeIterator<Item = (u64, u64)> + use<'a> {
        let (pairs, _) = self.0.as_chunks();
        pairs.iter().map(|[value, id]| {
            let [value, id] = [value, id].map(|word| u64::from_le_bytes(*word));
            (id, value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::{PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER};

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn fields_come_in_the_order_of_the_kernel_s_header() {
        let everything = PERF_SAMPLE_IP
            | PERF_SAMPLE_ADDR
            | PERF_SAMPLE_PERIOD
            | PERF_SAMPLE_READ
            | PERF_SAMPLE_CALLCHAIN
            | PERF_SAMPLE_REGS_USER
            | PERF_SAMPLE_STACK_USER;
        let layout = SampleLayout {
            sample_type: everything,
            registers: 2,
        };
        let common = [0x401000, 11 << 32 | 10, 99, 0x77, 3, 1_000];
        let read = [2, 50, 40, 7, 21, 9, 22];
        let chain = [4, PERF_CONTEXT_KERNEL, 1, PERF_CONTEXT_USER, 2];
        let user = [2, 100, 101, 16, 8, 9, 8];
        let body = words(&[&common[..], &read, &chain, &user].concat());
        let sample = SampleFields::parse(layout, &mut Fields::new(&body)).unwrap();
        assert_eq!((sample.ip, sample.addr), (Address::new(0x401000), 0x77));
        assert_eq!(
            (sample.pid.get(), sample.tid.get(), sample.cpu),
            (10, 11, 3)
        );
        assert_eq!((sample.time.get(), sample.period.get()), (99, 1_000));
        let values: Vec<_> = sample.values.iter().collect();
        assert_eq!(values, [(21, 7), (22, 9)]);
        let chain: Vec<_> = sample.callchain.addresses().collect();
        assert_eq!(
            chain,
            [
                (Some(PERF_CONTEXT_KERNEL), Address::new(1)),
                (Some(PERF_CONTEXT_USER), Address::new(2))
            ]
        );
        assert_eq!((sample.registers_abi, sample.registers.len()), (2, 2));
        assert_eq!(sample.stack, 8u64.to_le_bytes());
        for len in 0..body.len() {
            let cut = SampleFields::parse(layout, &mut Fields::new(&body[..len])).unwrap_err();
            assert!(cut.at <= len, "{cut}");
        }
    }

    #[test]
    fn counts_that_lie_are_refused() {
        for (field, count) in [
            (PERF_SAMPLE_CALLCHAIN, u64::MAX),
            (PERF_SAMPLE_READ, u64::MAX),
            (PERF_SAMPLE_RAW, u64::from(u32::MAX)),
            (PERF_SAMPLE_STACK_USER, u64::MAX),
        ] {
            let layout = SampleLayout {
                sample_type: field,
                registers: 0,
            };
            let body = words(&[1, 2, 3, count, 0, 0]);
            assert!(SampleFields::parse(layout, &mut Fields::new(&body)).is_err());
        }
    }
}
