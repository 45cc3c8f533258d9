//! Parses samples of any event.
//!
//! The fields have the order of linux/perf_event.h (`PERF_RECORD_SAMPLE`). `varid_model::perf::SampleFields` parses those of the events
//! that varid opens. This parser accepts all fields that any recorder requests.

use varid_model::Address;
use varid_model::perf::{
    CallchainEntries, Fields, Malformed, PERF_FORMAT_GROUP, PERF_FORMAT_ID, PERF_FORMAT_LOST,
    PERF_FORMAT_TOTAL_TIME_ENABLED, PERF_FORMAT_TOTAL_TIME_RUNNING, PERF_SAMPLE_ADDR,
    PERF_SAMPLE_BRANCH_STACK, PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_CPU, PERF_SAMPLE_ID,
    PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP, PERF_SAMPLE_PERIOD, PERF_SAMPLE_RAW, PERF_SAMPLE_READ,
    PERF_SAMPLE_REGS_USER, PERF_SAMPLE_STACK_USER, PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_TID,
    PERF_SAMPLE_TIME,
};

use super::layout::RecordLayout;
use super::record::SourceTask;

/// A sample's fields. None if the event does not have the field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SourceSample<'a> {
    /// The instruction.
    pub ip: Option<u64>,
    /// The process and the thread.
    pub task: Option<SourceTask>,
    /// The time.
    pub time: Option<u64>,
    /// The CPU.
    pub cpu: Option<u32>,
    /// The weight.
    pub period: Option<u64>,
    /// The counts that it reads.
    pub counts: Option<Counts<'a>>,
    /// The tracepoint's fields.
    pub raw: Option<&'a [u8]>,
    /// The callchain.
    pub callchain: Option<CallchainEntries<'a>>,
    /// The ABI of the user's registers, and the registers by the bits of the event's mask.
    pub registers: Option<(u64, &'a [[u8; 8]])>,
    /// The copy of the user's stack, as much of it as could be copied.
    pub stack: Option<&'a [u8]>,
    /// The calls that have not returned, innermost first, if the processor recorded them.
    pub calls: Option<Calls<'a>>,
}

/// Calls of a branch stack: source, target and flags of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calls<'a>(&'a [[u8; 8]]);

impl<'a> Calls<'a> {
    /// Makes the calls from a branch stack's entries.
    #[must_use]
    pub const fn new(entries: &'a [[u8; 8]]) -> Self {
        Self(entries)
    }

    /// Returns true if there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The addresses of the call instructions.
    pub fn addresses(&self) -> impl Iterator<Item = Address> {
        let (entries, _) = self.0.as_chunks();
        let from = entries
            .iter()
            .map(|[from, _, _]| Address::new(u64::from_le_bytes(*from)));
        from.filter(|address| *address != Address::default())
    }
}

impl<'a> SourceSample<'a> {
    /// Parses a sample's body.
    ///
    /// # Errors
    ///
    /// The sample is shorter than its fields.
    pub fn parse(layout: RecordLayout, body: &'a [u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(body);
        let mut sample = Self::default();
        if layout.has(PERF_SAMPLE_IDENTIFIER) {
            fields.u64()?;
        }
        if layout.has(PERF_SAMPLE_IP) {
            sample.ip = Some(fields.u64()?);
        }
        if layout.has(PERF_SAMPLE_TID) {
            sample.task = Some(SourceTask::parse(&mut fields)?);
        }
        if layout.has(PERF_SAMPLE_TIME) {
            sample.time = Some(fields.u64()?);
        }
        for field in [PERF_SAMPLE_ADDR, PERF_SAMPLE_ID, PERF_SAMPLE_STREAM_ID] {
            if layout.has(field) {
                fields.u64()?;
            }
        }
        if layout.has(PERF_SAMPLE_CPU) {
            let (cpu, _) = fields.pair()?;
            sample.cpu = Some(cpu);
        }
        if layout.has(PERF_SAMPLE_PERIOD) {
            sample.period = Some(fields.u64()?);
        }
        if layout.has(PERF_SAMPLE_READ) {
            sample.counts = Some(Counts::parse(layout, &mut fields)?);
        }
        if layout.has(PERF_SAMPLE_CALLCHAIN) {
            let count = fields.u64()?;
            sample.callchain = Some(CallchainEntries::new(fields.words(count)?));
        }
        if layout.has(PERF_SAMPLE_RAW) {
            sample.raw = Some(raw(&mut fields)?);
        }
        if layout.has(PERF_SAMPLE_BRANCH_STACK) {
            sample.calls = calls(layout, &mut fields)?;
        }
        if layout.has(PERF_SAMPLE_REGS_USER) {
            let abi = fields.u64()?;
            let count = match abi {
                0 => 0,
                _ => layout.registers.count_ones(),
            };
            sample.registers = Some((abi, fields.words(count.into())?));
        }
        if layout.has(PERF_SAMPLE_STACK_USER) {
            sample.stack = Some(user_stack(&mut fields)?);
        }
        Ok(sample)
    }
}

/// Parses the raw data of a sample.
#[inline]
fn raw<'a>(fields: &mut Fields<'a>) -> Result<&'a [u8], Malformed> {
    let len = fields.u32()?;
    let short = fields.malformed("the record ends too early");
    fields.bytes(usize::try_from(len).map_err(|_| short)?)
}

/// Parses the branch stack. None if it is not one of calls.
#[inline]
fn calls<'a>(
    layout: RecordLayout,
    fields: &mut Fields<'a>,
) -> Result<Option<Calls<'a>>, Malformed> {
    let count = fields.u64()?;
    if layout.has_branch_index() {
        fields.u64()?;
    }
    let entries = fields.words(count.saturating_mul(3))?;
    if layout.has_branch_counters() {
        fields.words(count)?;
    }
    Ok(layout.has_call_stack().then_some(Calls::new(entries)))
}

/// Parses the copy of the user's stack.
#[inline]
fn user_stack<'a>(fields: &mut Fields<'a>) -> Result<&'a [u8], Malformed> {
    let size = fields.u64()?;
    let long = fields.malformed("a copy of the stack that is longer than its record");
    let size = usize::try_from(size).map_err(|_| long)?;
    let copy = fields.bytes(size)?;
    let used = match size {
        0 => 0,
        _ => fields.u64()?,
    };
    let used = usize::try_from(used).ok().and_then(|used| copy.get(..used));
    used.ok_or(long)
}

/// The count of an event so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// The id of the event. None for the sample's own event.
    pub id: Option<u64>,
    /// The count since the event was opened.
    pub value: u64,
}

/// The counts that a sample reads: `struct read_format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts<'a> {
    /// The count of the sample's own event, if it reads no group.
    one: Option<Count>,
    /// For each event of a group its count and, if present, its id, then possibly more words.
    group: &'a [[u8; 8]],
    /// Number of words for each event of a group.
    each: usize,
    has_id: bool,
}

impl<'a> Counts<'a> {
    fn parse(layout: RecordLayout, fields: &mut Fields<'a>) -> Result<Self, Malformed> {
        let has = |value| u64::from(layout.reads(value));
        let times =
            has(PERF_FORMAT_TOTAL_TIME_ENABLED).saturating_add(has(PERF_FORMAT_TOTAL_TIME_RUNNING));
        let has_id = layout.reads(PERF_FORMAT_ID);
        let each = 1u64
            .saturating_add(u64::from(has_id))
            .saturating_add(has(PERF_FORMAT_LOST));
        let (mut one, mut group) = (None, &[][..]);
        if layout.reads(PERF_FORMAT_GROUP) {
            let events = fields.u64()?;
            fields.words(times)?;
            group = fields.words(events.saturating_mul(each))?;
        } else {
            let value = fields.u64()?;
            fields.words(times)?;
            let id = has_id.then(|| fields.u64()).transpose()?;
            fields.words(has(PERF_FORMAT_LOST))?;
            one = Some(Count { id, value });
        }
        Ok(Self {
            one,
            group,
            each: usize::try_from(each).unwrap_or(1),
            has_id,
        })
    }

    /// Returns the counts of all events.
    pub fn iter(self) -> impl Iterator<Item = Count> + use<'a> {
        let group = self.group.chunks_exact(self.each).filter_map(move |words| {
            let word = |place: usize| words.get(place).map(|word| u64::from_le_bytes(*word));
            let id = word(1).filter(|_| self.has_id);
            word(0).map(|value| Count { id, value })
        });
        self.one.into_iter().chain(group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_model::perf::PERF_CONTEXT_USER;

    #[test]
    fn all_fields_that_a_recorder_may_ask_for_are_passed_over() {
        let layout = RecordLayout {
            // All bits up to STACK_USER, and IDENTIFIER.
            sample_type: ((1 << 14) - 1) | (1 << 16),
            read_format: u64::from(
                PERF_FORMAT_GROUP
                    | PERF_FORMAT_ID
                    | PERF_FORMAT_LOST
                    | PERF_FORMAT_TOTAL_TIME_ENABLED,
            ),
            registers: 0b1011,
            // CALL_STACK, HW_INDEX and COUNTERS.
            branches: 1 << 11 | 1 << 17 | 1 << 19,
            has_id: true,
        };
        let words = [
            [77, 0x1000, 6 << 32 | 5, 99, 1, 77, 2, 3, 500].as_slice(),
            // Two events and one time.
            &[2, 8, 10, 11, 12, 20, 21, 22],
            &[2, PERF_CONTEXT_USER, 0x1000],
            // Four bytes of raw data.
            &[0xabcd << 32 | 4],
            // Two branches, with an index before and counters after them.
            &[2, 9, 0x2000, 2, 3, 0, 5, 6, 30, 31],
            &[2, 100, 101, 103],
            &[16, 1, 2, 8],
        ]
        .concat();
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let sample = SourceSample::parse(layout, &body).unwrap();
        assert_eq!(sample.ip, Some(0x1000));
        assert_eq!(sample.task, Some(SourceTask::new(5, 6)));
        assert_eq!((sample.time, sample.cpu), (Some(99), Some(3)));
        assert_eq!(sample.period, Some(500));
        assert_eq!(sample.callchain.unwrap().addresses().count(), 1);
        let (abi, registers) = sample.registers.unwrap();
        assert_eq!((abi, registers.len()), (2, 3));
        assert_eq!(sample.stack.unwrap(), 1u64.to_le_bytes());
        let counts: Vec<_> = sample.counts.unwrap().iter().collect();
        let count = |value, id| Count {
            id: Some(id),
            value,
        };
        assert_eq!(counts, [count(10, 11), count(20, 21)]);
        assert_eq!(sample.raw.unwrap(), 0xabcdu32.to_le_bytes());
        let calls: Vec<_> = sample.calls.unwrap().addresses().collect();
        assert_eq!(calls, [Address::new(0x2000)]);
        assert_eq!(layout.sample_key(&body), Ok((Some(77), Some(99))));
        for len in 0..body.len() {
            let cut = SourceSample::parse(layout, &body[..len]).unwrap_err();
            assert!(cut.at <= len, "{cut}");
        }
    }
}
