//! Codes the records of perf.data, in their order.

use super::numbers::{Numbers, tree};
use super::range_coder::{Coder, Decoder, Encoder, Probability};
use super::sample::SampleWords;
use super::samples::Samples;
use crate::format::RECORD_HEADER_SIZE;

/// What is known of the records so far. An encoder and a decoder that have the same records have the same.
#[derive(Debug)]
pub struct RecordModel {
    samples: Samples,
    sample: SampleWords,
    is_sample: [Probability; 2],
    was_sample: bool,
    others: Others,
}

impl RecordModel {
    pub fn new() -> Self {
        Self {
            samples: Samples::new(),
            sample: SampleWords::default(),
            is_sample: [Probability::default(); 2],
            was_sample: false,
            others: Others::new(),
        }
    }

    /// Codes whole records, and returns the bytes.
    ///
    /// # Errors
    ///
    /// A record is broken.
    pub fn encode<'r>(
        &mut self,
        records: impl Iterator<Item = &'r [u8]>,
    ) -> Result<Vec<u8>, &'static str> {
        let mut encoder = Encoder::new();
        for record in records {
            self.code(&mut encoder, record)?;
        }
        Ok(encoder.finish())
    }

    /// Decodes so many records and appends them. Their size may exceed `most` by one record.
    ///
    /// # Errors
    ///
    /// The bytes are not those of such records.
    pub fn decode(
        &mut self,
        bytes: &[u8],
        records: u64,
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), &'static str> {
        let mut decoder = Decoder::new(bytes);
        for _ in 0..records {
            if out.len() >= most {
                return Err("more compact records in a chunk than varid writes into one");
            }
            match self.code(&mut decoder, &[])? {
                Coded::Sample => self.sample.write(out),
                Coded::Other => out.extend_from_slice(&self.others.last),
            }
        }
        Ok(())
    }

    /// Codes a record. With a decoder, it is where [`Coded`] says.
    fn code(&mut self, coder: &mut impl Coder, record: &[u8]) -> Result<Coded, &'static str> {
        let is_sample = self.sample.read(record);
        let [after_other, after_sample] = &mut self.is_sample;
        let probability = match self.was_sample {
            true => after_sample,
            false => after_other,
        };
        self.was_sample = coder.bit(probability, is_sample);
        match self.was_sample {
            true => {
                self.samples.code(coder, &mut self.sample)?;
                Ok(Coded::Sample)
            }
            false => {
                self.others.code(coder, record)?;
                Ok(Coded::Other)
            }
        }
    }
}

/// Where a record is that was coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coded {
    Sample,
    Other,
}

/// What is known of the records that are not samples: they are coded byte by byte.
#[derive(Debug)]
struct Others {
    /// The last one.
    last: Vec<u8>,
    sizes: Numbers,
    /// Whether a byte is that of the last record in the same place, after one that was or was not.
    same: [Probability; 2],
    /// By the byte before: a binary tree over the bits of a byte.
    bytes: Vec<[Probability; 256]>,
}

impl Others {
    fn new() -> Self {
        Self {
            last: Vec::new(),
            sizes: Numbers::new(1),
            same: [Probability::default(); 2],
            bytes: vec![[Probability::default(); 256]; 256],
        }
    }

    fn code(&mut self, coder: &mut impl Coder, record: &[u8]) -> Result<(), &'static str> {
        let size = self
            .sizes
            .code_from(coder, 0, self.last.len() as u64, record.len() as u64);
        let size = u16::try_from(size).ok().map(usize::from);
        let size = size.filter(|size| *size >= RECORD_HEADER_SIZE);
        let size = size.ok_or("a compact record of an impossible size")?;
        let last = std::mem::take(&mut self.last);
        let (mut was_same, mut before) = (true, 0u8);
        for at in 0..size {
            let byte = record.get(at).copied().unwrap_or(0);
            let expected = last.get(at).copied().unwrap_or(0);
            let [after_other, after_same] = &mut self.same;
            let probability = match was_same {
                true => after_same,
                false => after_other,
            };
            was_same = coder.bit(probability, byte == expected);
            let byte = match was_same {
                true => expected,
                false => {
                    let nodes = self.bytes.get_mut(usize::from(before));
                    let nodes = nodes.map_or(&mut [][..], <[_; 256]>::as_mut_slice);
                    tree(coder, nodes, 8, u64::from(byte)) as u8
                }
            };
            before = byte;
            self.last.push(byte);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::kind;
    use proptest::{collection::vec, prelude::*};

    fn back(records: &[Vec<u8>]) -> Vec<u8> {
        let (mut writer, mut reader, mut out) =
            (RecordModel::new(), RecordModel::new(), Vec::new());
        // The model lives longer than a chunk.
        for chunk in records.chunks(7) {
            let bytes = writer.encode(chunk.iter().map(Vec::as_slice)).unwrap();
            let mut decoded = Vec::new();
            reader
                .decode(&bytes, chunk.len() as u64, usize::MAX, &mut decoded)
                .unwrap();
            out.extend(decoded);
        }
        out
    }

    fn record(kind: u32, misc: u16, words: &[u64]) -> Vec<u8> {
        let size = 8 + 8 * words.len() as u64;
        let header = u64::from(kind) | u64::from(misc) << 32 | size << 48;
        [header]
            .iter()
            .chain(words)
            .flat_map(|word| word.to_le_bytes())
            .collect()
    }

    /// Records of few values, as a recording's are, some of them of impossible lengths.
    fn any_record() -> impl Strategy<Value = Vec<u8>> {
        let word = prop_oneof![
            0..4u64,
            any::<u64>(),
            Just(u64::MAX),
            Just(crate::format::CONTEXT_USER)
        ];
        let kind = prop_oneof![4 => Just(kind::SAMPLE), 1 => 0..90u32];
        (kind, 0..3u16, vec(word, 0..30), 0..20u64).prop_map(|(kind, misc, mut words, chain)| {
            if let Some(count) = words.get_mut(7) {
                *count = chain;
            }
            record(kind, misc, &words)
        })
    }

    proptest! {
        // A model is large, and made anew for each case.
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn records_come_back(records in vec(any_record(), 0..60)) {
            prop_assert_eq!(back(&records), records.concat());
        }

        #[test]
        fn any_bytes_are_records_or_an_error(bytes in vec(any::<u8>(), 0..400), records in 0..400u64) {
            let mut out = Vec::new();
            let _ = RecordModel::new().decode(&bytes, records, 1 << 16, &mut out);
            prop_assert!(out.len() < 2 << 16);
        }
    }
}
