//! The fields of an event's records, and their order.

use varid_model::perf::{
    Fields, Malformed, PERF_FORMAT_LOST, PERF_SAMPLE_ADDR, PERF_SAMPLE_BRANCH_CALL_STACK,
    PERF_SAMPLE_BRANCH_HW_INDEX, PERF_SAMPLE_CPU, PERF_SAMPLE_ID, PERF_SAMPLE_IDENTIFIER,
    PERF_SAMPLE_IP, PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
};

/// `PERF_SAMPLE_BRANCH_COUNTERS`, which is missing in older kernel headers.
const BRANCH_COUNTERS: u32 = 1 << 19;

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
    /// Records other than samples end with the fields of `sample_id_all`.
    pub has_id: bool,
}

/// The task and the time at the end of a record other than a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RecordId {
    pub(super) time: Option<u64>,
}

impl RecordLayout {
    /// Makes the layout of an event with these attributes.
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

    /// Returns true if samples have a field: `PERF_SAMPLE_*`.
    #[must_use]
    pub const fn has(self, field: u32) -> bool {
        self.sample_type & field as u64 != 0
    }

    /// Returns true if the counts that a sample reads have a value: `PERF_FORMAT_*`.
    pub(super) const fn reads(self, value: u32) -> bool {
        self.read_format & value as u64 != 0
    }

    const fn has_of_branches(self, field: u32) -> bool {
        self.branches & field as u64 != 0
    }

    /// Returns true if branch stacks have the calls that have not returned.
    pub(super) const fn has_call_stack(self) -> bool {
        self.has_of_branches(PERF_SAMPLE_BRANCH_CALL_STACK)
    }

    /// Returns true if branch stacks start with an index.
    pub(super) const fn has_branch_index(self) -> bool {
        self.has_of_branches(PERF_SAMPLE_BRANCH_HW_INDEX)
    }

    /// Returns true if a branch stack is followed by a word of counters for each branch.
    pub(super) const fn has_branch_counters(self) -> bool {
        self.has_of_branches(BRANCH_COUNTERS)
    }

    /// Returns true if the recorder reads how many samples of each event were lost.
    pub(super) const fn reads_lost(self) -> bool {
        self.reads(PERF_FORMAT_LOST)
    }

    /// Reads a sample's identifier or id, and its time.
    pub(crate) fn sample_key(self, body: &[u8]) -> Result<(Option<u64>, Option<u64>), Malformed> {
        let mut fields = Fields::new(body);
        let mut id = None;
        if self.has(PERF_SAMPLE_IDENTIFIER) {
            id = Some(fields.u64()?);
        }
        for field in [PERF_SAMPLE_IP, PERF_SAMPLE_TID] {
            if self.has(field) {
                fields.u64()?;
            }
        }
        let time = match self.has(PERF_SAMPLE_TIME) {
            true => Some(fields.u64()?),
            false => None,
        };
        if self.has(PERF_SAMPLE_ADDR) {
            fields.u64()?;
        }
        if self.has(PERF_SAMPLE_ID) {
            let own = fields.u64()?;
            id = id.or(Some(own));
        }
        Ok((id, time))
    }

    /// Splits a record other than a sample into its own fields and those of `sample_id_all`.
    pub(super) fn split(self, body: &[u8]) -> Result<(Fields<'_>, RecordId), Malformed> {
        let all = Fields::new(body);
        if !self.has_id {
            return Ok((all, RecordId::default()));
        }
        let fields = [
            PERF_SAMPLE_TID,
            PERF_SAMPLE_TIME,
            PERF_SAMPLE_ID,
            PERF_SAMPLE_STREAM_ID,
            PERF_SAMPLE_CPU,
            PERF_SAMPLE_IDENTIFIER,
        ];
        let count = fields.iter().filter(|field| self.has(**field)).count();
        let (own, mut id) = all.split_end(count.saturating_mul(8))?;
        if self.has(PERF_SAMPLE_TID) {
            id.u64()?;
        }
        let time = match self.has(PERF_SAMPLE_TIME) {
            true => Some(id.u64()?),
            false => None,
        };
        Ok((own, RecordId { time }))
    }
}
