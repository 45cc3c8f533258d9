//! Prefetches memory that is probably needed.

use super::batch::{Batch, BatchMemory, LINKS, Link, MemoryRange, Piece, PieceBytes};
use varid_tunnel::{Memory, TunnelError};

/// Memory of which a part has been read in one request. The rest is read when it is needed.
pub struct Prefetched<'a> {
    memory: &'a dyn BatchMemory,
    /// The known memory, by address.
    known: Vec<(u64, Vec<u8>)>,
}

impl<'a> Prefetched<'a> {
    /// Reads the fields of an object, and the chain of pointers that begins with one of them.
    pub fn object(memory: &'a dyn BatchMemory, object: MemoryRange, links: [Link; LINKS]) -> Self {
        let start = object.address;
        let batch = Batch {
            pieces: vec![Piece::Available(object), Piece::Chain { start, links }],
            ..Batch::default()
        };
        let answer = memory.read_batch(&batch).ok();
        let pieces = answer.and_then(|answer| answer.read);
        let mut pieces = pieces
            .map(|read| read.pieces)
            .unwrap_or_default()
            .into_iter();
        let mut known = Vec::new();
        if let Some(fields) = pieces.next().flatten() {
            known.push((start, fields.bytes().to_vec()));
        }
        let chain = pieces.next().flatten();
        let mut at = start;
        for (link, pointer) in links
            .iter()
            .zip(chain.iter().flat_map(PieceBytes::pointers))
        {
            let bytes = pointer.to_le_bytes();
            let bytes = bytes.get(..link.size.into()).unwrap_or_default();
            known.push((at.wrapping_add(link.offset.into()), bytes.to_vec()));
            at = pointer;
        }
        Self { memory, known }
    }
}

impl Memory for Prefetched<'_> {
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), TunnelError> {
        let here = |(start, bytes): &(u64, Vec<u8>)| {
            let from = usize::try_from(address.checked_sub(*start)?).ok()?;
            let known = bytes.get(from..)?.get(..out.len())?;
            Some(known.to_vec())
        };
        match self.known.iter().find_map(here) {
            Some(known) => {
                out.copy_from_slice(&known);
                Ok(())
            }
            None => self.memory.read(address, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Words;
    use super::*;

    fn links() -> [Link; LINKS] {
        let link = |offset, size| Link { offset, size };
        [link(0, 4), link(8, 4), link(16, 8), link(0, 8)]
    }

    #[test]
    fn what_is_expected_takes_one_request_and_the_rest_one_each() {
        let mut memory = Words::of(&[(0x2008, 0x3000), (0x3010, 0x4000), (0x4000, 7)]);
        memory.write(0x1000, &[0x5_0000_2000, 11, 12]);
        let object = MemoryRange {
            address: 0x1000,
            len: 16,
        };
        let prefetched = Prefetched::object(&memory, object, links());
        let requests = memory.requests();
        assert_eq!(requests, 1);
        let word = |address, size| prefetched.read_word(address, size).unwrap();
        assert_eq!(
            [word(0x1000, 4), word(0x1004, 4), word(0x1008, 8)],
            [0x2000, 5, 11]
        );
        assert_eq!(
            [word(0x2008, 4), word(0x3010, 8), word(0x4000, 8)],
            [0x3000, 0x4000, 7]
        );
        assert_eq!(memory.requests(), requests);
        assert_eq!(word(0x1010, 8), 12);
        assert_eq!(memory.requests(), requests + 1);
        assert!(prefetched.read_word(0x9000, 8).is_err());
    }

    #[test]
    fn an_object_that_is_not_there_is_an_error_when_it_is_read() {
        let memory = Words::of(&[]);
        let object = MemoryRange {
            address: 0x1000,
            len: 16,
        };
        let prefetched = Prefetched::object(&memory, object, links());
        assert!(prefetched.read_word(0x1000, 4).is_err());
    }
}
