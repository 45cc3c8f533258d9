//! Which fields do the records of an event have, and in which order?

use varid_model::perf::{Fields, Malformed};

pub(super) const SAMPLE_IP: u64 = 1 << 0;
pub(super) const SAMPLE_TID: u64 = 1 << 1;
pub(super) const SAMPLE_TIME: u64 = 1 << 2;
pub(super) const SAMPLE_ADDR: u64 = 1 << 3;
pub(super) const SAMPLE_READ: u64 = 1 << 4;
pub(super) const SAMPLE_CALLCHAIN: u64 = 1 << 5;
pub(super) const SAMPLE_ID: u64 = 1 << 6;
pub(super) const SAMPLE_CPU: u64 = 1 << 7;
pub(super) const SAMPLE_PERIOD: u64 = 1 << 8;
pub(super) const SAMPLE_STREAM_ID: u64 = 1 << 9;
pub(super) const SAMPLE_RAW: u64 = 1 << 10;
pub(super) const SAMPLE_BRANCH_STACK: u64 = 1 << 11;
pub(super) const SAMPLE_REGS_USER: u64 = 1 << 12;
pub(super) const SAMPLE_STACK_USER: u64 = 1 << 13;
pub(super) const SAMPLE_IDENTIFIER: u64 = 1 << 16;

pub(super) const FORMAT_ENABLED: u64 = 1 << 0;
pub(super) const FORMAT_RUNNING: u64 = 1 << 1;
pub(super) const FORMAT_ID: u64 = 1 << 2;
pub(super) const FORMAT_GROUP: u64 = 1 << 3;
pub(super) const FORMAT_LOST: u64 = 1 << 4;

/// `PERF_SAMPLE_BRANCH_CALL_STACK`.
const BRANCH_CALL_STACK: u64 = 1 << 11;
/// `PERF_SAMPLE_BRANCH_HW_INDEX`.
const BRANCH_HW_INDEX: u64 = 1 << 17;
/// `PERF_SAMPLE_BRANCH_COUNTERS`.
const BRANCH_COUNTERS: u64 = 1 << 19;

/// The fields of an event's records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordLayout {
    /// `perf_event_attr.sample_type`.
    pub sample_type: u64,
    /// `perf_event_attr.read_format`.
    pub read_format: u64,
    /// `perf_event_attr.sample_regs_user`.
    pub registers: u64,
    /// `perf_event_attr.branch_sample_type`.
    pub branches: u64,
    /// Records that are no samples end with the fields of `sample_id_all`.
    pub has_id: bool,
}

/// Who and when, at the end of a record that is no sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RecordId {
    pub(super) time: Option<u64>,
}

impl RecordLayout {
    /// The layout of an event with these attributes.
    pub(super) const fn new(
        sample_type: u64,
        read_format: u64,
        registers: u64,
        branches: u64,
        has_id: bool,
    ) -> Self {
        Self {
            sample_type,
            read_format,
            registers,
            branches,
            has_id,
        }
    }

    pub(super) const fn has(self, field: u64) -> bool {
        self.sample_type & field != 0
    }

    /// Whether branch stacks hold the calls that have not returned.
    pub(super) const fn has_call_stack(self) -> bool {
        self.branches & BRANCH_CALL_STACK != 0
    }

    /// Whether branch stacks start with an index.
    pub(super) const fn has_branch_index(self) -> bool {
        self.branches & BRANCH_HW_INDEX != 0
    }

    /// Whether each branch has a word of counters behind them all.
    pub(super) const fn has_branch_counters(self) -> bool {
        self.branches & BRANCH_COUNTERS != 0
    }

    /// Whether the recorder reads how much of each event was lost.
    pub(super) const fn reads_lost(self) -> bool {
        self.read_format & FORMAT_LOST != 0
    }

    /// A sample's identifier or id, and its time.
    pub(crate) fn sample_key(self, body: &[u8]) -> Result<(Option<u64>, Option<u64>), Malformed> {
        let mut fields = Fields::new(body);
        let mut id = None;
        if self.has(SAMPLE_IDENTIFIER) {
            id = Some(fields.u64()?);
        }
        for field in [SAMPLE_IP, SAMPLE_TID] {
            if self.has(field) {
                fields.u64()?;
            }
        }
        let time = match self.has(SAMPLE_TIME) {
            true => Some(fields.u64()?),
            false => None,
        };
        if self.has(SAMPLE_ADDR) {
            fields.u64()?;
        }
        if self.has(SAMPLE_ID) {
            let own = fields.u64()?;
            id = id.or(Some(own));
        }
        Ok((id, time))
    }

    /// Splits a record that is no sample into its own fields and what `sample_id_all` has appended.
    pub(super) fn split(self, body: &[u8]) -> Result<(Fields<'_>, RecordId), Malformed> {
        let all = Fields::new(body);
        if !self.has_id {
            return Ok((all, RecordId::default()));
        }
        let fields = [
            SAMPLE_TID,
            SAMPLE_TIME,
            SAMPLE_ID,
            SAMPLE_STREAM_ID,
            SAMPLE_CPU,
            SAMPLE_IDENTIFIER,
        ];
        let count = fields.iter().filter(|field| self.has(**field)).count();
        let (own, mut id) = all.split_end(count.saturating_mul(8))?;
        if self.has(SAMPLE_TID) {
            id.u64()?;
        }
        let time = match self.has(SAMPLE_TIME) {
            true => Some(id.u64()?),
            false => None,
        };
        Ok((own, RecordId { time }))
    }
}
