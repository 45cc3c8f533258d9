//! The words of a sample's record.

use varid_model::perf::Header;

use crate::format::{RECORD_HEADER_SIZE, kind};

/// A sample's record as numbers. Records that differ from this layout are not samples here.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct SampleWords {
    pub misc: u64,
    /// The id of the event.
    pub id: u64,
    pub ip: u64,
    /// The process and the thread.
    pub task: u64,
    pub time: u64,
    pub addr: u64,
    pub cpu: u64,
    pub period: u64,
    /// The callchain with its contexts, outermost caller first.
    pub chain: Vec<u64>,
    pub raw: Raw,
}

/// What follows the callchain: nothing, or the raw data with their size, of which all samples have one length, and some another.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Raw {
    pub words: [u64; Raw::MOST],
    pub len: u64,
}

impl Raw {
    /// The most words.
    pub const MOST: usize = 3;
}

/// The words before the callchain, the header and the length of the chain included.
const FIXED: usize = 9;
/// Stands behind the last word of a callchain. No callchain of a recording has it.
pub const END: u64 = u64::MAX;
/// The most words of a callchain: those that fit into a record.
pub const MAX_CHAIN: usize = (u16::MAX as usize / 8)
    .saturating_sub(FIXED)
    .saturating_sub(Raw::MOST);

impl SampleWords {
    /// Reads a whole record. Returns false if it is not a sample of this layout, or has a word that stands for the end of a callchain.
    pub fn read(&mut self, record: &[u8]) -> bool {
        let (words, rest) = record.as_chunks();
        if !rest.is_empty() {
            return false;
        }
        let Some((head, words)) = words.split_first_chunk() else {
            return false;
        };
        let [header, id, ip, task, time, addr, cpu, period, count] = head.map(u64::from_le_bytes);
        let header = Header::from_bytes(header.to_le_bytes());
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let Some((chain, raw)) = words.split_at_checked(count) else {
            return false;
        };
        if header.kind != kind::SAMPLE || raw.len() > Raw::MOST || count > MAX_CHAIN {
            return false;
        }
        self.misc = u64::from(header.misc);
        self.id = id;
        self.ip = ip;
        self.task = task;
        self.time = time;
        self.addr = addr;
        self.cpu = cpu;
        self.period = period;
        self.chain.clear();
        let chain = chain.iter().rev().map(|word| u64::from_le_bytes(*word));
        self.chain.extend(chain);
        self.raw = Raw::default();
        self.raw.len = raw.len() as u64;
        for (to, word) in self.raw.words.iter_mut().zip(raw) {
            *to = u64::from_le_bytes(*word);
        }
        !self.chain.contains(&END)
    }

    /// Appends the record.
    pub fn write(&self, out: &mut Vec<u8>) {
        let raw = usize::try_from(self.raw.len).unwrap_or(Raw::MOST);
        let raw = self.raw.words.get(..raw).unwrap_or(&self.raw.words);
        let words = FIXED
            .saturating_add(self.chain.len())
            .saturating_add(raw.len());
        // At most 65,535 bytes, because a chain has at most MAX_CHAIN words.
        let size = words.saturating_mul(RECORD_HEADER_SIZE) as u64;
        let header = u64::from(kind::SAMPLE) | (self.misc & 0xffff) << 32 | size << 48;
        let fixed = [
            header,
            self.id,
            self.ip,
            self.task,
            self.time,
            self.addr,
            self.cpu,
            self.period,
            self.chain.len() as u64,
        ];
        let words = fixed.into_iter().chain(self.chain.iter().rev().copied());
        let words = words.chain(raw.iter().copied());
        out.extend(words.flat_map(u64::to_le_bytes));
    }
}
