//! Which pieces of a process's memory are read in one request, and what is the answer?
//!
//! A request takes a helper's turn on a processor, whatever it reads. So a reader of many small pieces, such as the nodes of a tree, puts
//! them into one request, and has the helper follow the tree.
//!
//! Memory changes while it is read. A batch has *control* words, such as counters of changes, that are read before the pieces and
//! again after them: pieces between two equal readings belong together. Where the first reading is as the reader knows it already, the
//! pieces need not be read at all.

use super::tree::{NODE, Nodes, TreeNode, all_nodes};
use varid_tunnel::{Memory, TunnelError};

/// Nodes of a whole tree that are read.
pub(super) const MAX_NODES: usize = 1024;
/// Pieces and ranges of control words in a batch.
pub const MAX_PIECES: usize = 1024;
/// Bytes that are read for one batch: pieces for which there is no room are left unread.
const MAX_READ: usize = 1 << 24;
/// What is read at the key of a node ends where memory of another page is not there.
const PAGE: u64 = 4096;
/// The length that says that a piece could not be read.
const UNREAD: u32 = u32::MAX;

/// Bytes of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryRange {
    /// The first address.
    pub address: u64,
    /// Bytes.
    pub len: u32,
}

/// Something that is read in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// All of these bytes.
    Bytes(MemoryRange),
    /// The same, or those up to the end of the first page where the next one is not there.
    Available(MemoryRange),
    /// Of a map whose keys are addresses, the entry with the largest key that is at most `key`, and the memory around the address that it
    /// is of.
    Floor {
        /// Address of the map.
        map: u64,
        /// The key.
        key: u64,
        /// Bytes before the address.
        before: u32,
        /// Bytes from the address on, or fewer where the next page is not there.
        from: u32,
    },
    /// All entries of a map.
    Entries {
        /// Address of the map.
        map: u64,
    },
}

impl Piece {
    /// Whether an answer to it may have so many bytes.
    fn may_have(self, len: usize) -> bool {
        match self {
            Self::Bytes(range) => len == range.len as usize,
            Self::Available(range) => len <= range.len as usize,
            Self::Floor { before, from, .. } => {
                let most = NODE.saturating_add(before as usize);
                len == 0 || (NODE..=most.saturating_add(from as usize)).contains(&len)
            }
            Self::Entries { .. } => {
                len.is_multiple_of(NODE) && len <= MAX_NODES.saturating_mul(NODE)
            }
        }
    }

    /// Its bytes. None: they cannot be read, or there are more than `room`.
    fn read(self, memory: &dyn Memory, nodes: &mut Nodes, room: usize) -> Option<Vec<u8>> {
        let found = match self {
            Self::Bytes(range) => {
                let len = (range.len as usize <= room).then_some(range.len as usize)?;
                let mut bytes = vec![0; len];
                memory.read(range.address, &mut bytes).ok()?;
                bytes
            }
            Self::Available(range) => {
                let len = (range.len as usize <= room).then_some(range.len as usize)?;
                read_some(memory, range.address, len)?
            }
            Self::Floor {
                map,
                key,
                before,
                from,
            } => {
                let Some(node) = nodes.floor(memory, map, key).ok()? else {
                    return Some(Vec::new());
                };
                let address = TreeNode::parse(&node).key;
                let start = address.wrapping_sub(before.into());
                let most = (before as usize).saturating_add(from as usize);
                let around = (most <= room).then(|| read_some(memory, start, most));
                let around = around.flatten().unwrap_or_default();
                [&node[..], &around].concat()
            }
            Self::Entries { map } => all_nodes(memory, map).ok()?,
        };
        (found.len() <= room).then_some(found)
    }
}

/// The bytes from an address on: so many, or those up to the end of its page.
fn read_some(memory: &dyn Memory, start: u64, most: usize) -> Option<Vec<u8>> {
    let of_page = PAGE.saturating_sub(start & PAGE.saturating_sub(1)) as usize;
    for len in [most, of_page.min(most)] {
        let mut bytes = vec![0; len];
        if memory.read(start, &mut bytes).is_ok() {
            return Some(bytes);
        }
    }
    None
}

/// Pieces of memory that are read in one request, in their order, between two readings of control words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// Where the control words are.
    pub control: Vec<MemoryRange>,
    /// The pieces are not read if the control words have this value. Empty: they are read in any case.
    pub unless: Vec<u8>,
    /// The pieces, at most [`MAX_PIECES`].
    pub pieces: Vec<Piece>,
}

/// The answer to a [`Batch`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchAnswer {
    /// The control words before the pieces were read.
    pub before: Vec<u8>,
    /// None: the control words have the value with which the pieces are not read.
    pub read: Option<BatchRead>,
}

/// What was read in a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchRead {
    /// The pieces in their order; None: one could not be read.
    pub pieces: Vec<Option<PieceBytes>>,
    /// The control words after that.
    pub after: Vec<u8>,
}

/// The bytes of a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PieceBytes(Vec<u8>);

impl PieceBytes {
    /// Those of [`Piece::Bytes`] and [`Piece::Available`].
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The entry that [`Piece::Floor`] has found, and the bytes around the address; there may be fewer of them than were asked for.
    pub fn floor(&self) -> Option<(TreeNode, &[u8])> {
        let (node, around) = self.0.split_first_chunk()?;
        Some((TreeNode::parse(node), around))
    }

    /// Those of [`Piece::Entries`].
    pub fn entries(&self) -> impl Iterator<Item = TreeNode> {
        self.0.as_chunks().0.iter().map(TreeNode::parse)
    }
}

/// Memory of which several pieces are read at once.
pub trait BatchMemory: Memory {
    /// Reads the pieces of a batch.
    ///
    /// # Errors
    ///
    /// The control words cannot be read.
    fn read_batch(&self, batch: &Batch) -> Result<BatchAnswer, TunnelError>;
}

impl Batch {
    /// Reads the pieces one by one.
    ///
    /// # Errors
    ///
    /// The control words cannot be read.
    pub fn carry_out(&self, memory: &dyn Memory) -> Result<BatchAnswer, TunnelError> {
        let before = self.read_control(memory)?;
        if !self.unless.is_empty() && before == self.unless {
            return Ok(BatchAnswer { before, read: None });
        }
        let (mut nodes, mut room) = (Nodes::default(), MAX_READ);
        let pieces = self.pieces.iter().map(|piece| {
            let bytes = piece.read(memory, &mut nodes, room)?;
            room = room.saturating_sub(bytes.len());
            Some(PieceBytes(bytes))
        });
        let pieces = pieces.collect();
        let after = self.read_control(memory)?;
        let read = Some(BatchRead { pieces, after });
        Ok(BatchAnswer { before, read })
    }

    fn read_control(&self, memory: &dyn Memory) -> Result<Vec<u8>, TunnelError> {
        let mut all = Vec::new();
        for range in &self.control {
            let len = (range.len as usize).min(MAX_READ.saturating_sub(all.len()));
            let start = all.len();
            all.resize(start.saturating_add(len), 0);
            memory.read(range.address, all.get_mut(start..).unwrap_or_default())?;
        }
        Ok(all)
    }

    /// Bytes of its control words.
    fn control_len(&self) -> usize {
        let lengths = self.control.iter().map(|range| range.len as usize);
        lengths.fold(0, usize::saturating_add)
    }

    // The format on the socket: numbers of 64 bits in this machine's byte order, then the bytes of `unless`.

    pub(super) fn encode(&self, numbers: &mut Vec<u64>) {
        numbers.push(self.control.len() as u64);
        let ranges = self.control.iter();
        numbers.extend(ranges.flat_map(|range| [range.address, range.len.into()]));
        numbers.push(self.pieces.len() as u64);
        for piece in &self.pieces {
            match *piece {
                Piece::Bytes(range) => numbers.extend([0, range.address, range.len.into()]),
                Piece::Floor {
                    map,
                    key,
                    before,
                    from,
                } => numbers.extend([1, map, key, before.into(), from.into()]),
                Piece::Entries { map } => numbers.extend([2, map]),
                Piece::Available(range) => numbers.extend([3, range.address, range.len.into()]),
            }
        }
    }

    /// `number`: takes the next one. None: these numbers are no batch.
    pub(super) fn decode(mut number: impl FnMut() -> Option<u64>) -> Option<Self> {
        let narrow = |number: u64| u32::try_from(number).ok();
        let count = |number: u64| usize::try_from(number).ok().filter(|n| *n <= MAX_PIECES);
        let mut batch = Self::default();
        for _ in 0..count(number()?)? {
            batch.control.push(MemoryRange {
                address: number()?,
                len: narrow(number()?)?,
            });
        }
        for _ in 0..count(number()?)? {
            batch.pieces.push(match number()? {
                0 => Piece::Bytes(MemoryRange {
                    address: number()?,
                    len: narrow(number()?)?,
                }),
                1 => Piece::Floor {
                    map: number()?,
                    key: number()?,
                    before: narrow(number()?)?,
                    from: narrow(number()?)?,
                },
                2 => Piece::Entries { map: number()? },
                3 => Piece::Available(MemoryRange {
                    address: number()?,
                    len: narrow(number()?)?,
                }),
                _ => return None,
            });
        }
        Some(batch)
    }
}

impl BatchAnswer {
    /// As it goes over the socket: the control words, then each piece after its length, then the control words.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.before.clone();
        if let Some(read) = &self.read {
            for piece in &read.pieces {
                let piece = piece.as_ref().map(PieceBytes::bytes);
                let len = piece.map_or(UNREAD, |piece| piece.len() as u32);
                bytes.extend_from_slice(&len.to_ne_bytes());
                bytes.extend_from_slice(piece.unwrap_or_default());
            }
            bytes.extend_from_slice(&read.after);
        }
        bytes
    }

    /// None: these bytes are no answer to this batch.
    pub(super) fn decode(batch: &Batch, bytes: &[u8]) -> Option<Self> {
        let (before, mut rest) = bytes.split_at_checked(batch.control_len())?;
        let before = before.to_vec();
        if rest.is_empty() && !batch.unless.is_empty() && before == batch.unless {
            return Some(Self { before, read: None });
        }
        let mut pieces = Vec::with_capacity(batch.pieces.len());
        for piece in &batch.pieces {
            let (len, behind) = rest.split_first_chunk()?;
            let len = u32::from_ne_bytes(*len);
            if len == UNREAD {
                rest = behind;
                pieces.push(None);
                continue;
            }
            let len = usize::try_from(len).ok()?;
            let (here, behind) = behind.split_at_checked(len)?;
            if !piece.may_have(len) {
                return None;
            }
            rest = behind;
            pieces.push(Some(PieceBytes(here.to_vec())));
        }
        let after = (rest.len() == before.len()).then(|| rest.to_vec())?;
        let read = Some(BatchRead { pieces, after });
        Some(Self { before, read })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Words;
    use super::*;
    use proptest::prelude::*;

    const MAP: u64 = 0x300;

    fn bytes(address: u64, len: u32) -> Piece {
        Piece::Bytes(MemoryRange { address, len })
    }

    fn floor(key: u64) -> Piece {
        Piece::Floor {
            map: MAP,
            key,
            before: 8,
            from: 16,
        }
    }

    fn control() -> Vec<MemoryRange> {
        [0x100, 0x108]
            .map(|address| MemoryRange { address, len: 8 })
            .to_vec()
    }

    /// Control words 1 and 2; a map from 0x5010 to 7; five words at 0x5000.
    fn memory() -> Words {
        let mut words = Words::of(&[(0x100, 1), (0x108, 2), (MAP + 16, 0x1000)]);
        words.write(0x1000, &[0, 0, 0, 0, 0x5010, 7, 0]);
        words.write(0x5000, &[10, 11, 12, 13, 14]);
        words
    }

    fn batch(pieces: &[Piece]) -> Batch {
        Batch {
            control: control(),
            unless: Vec::new(),
            pieces: pieces.to_vec(),
        }
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The answer, after it has been on the socket.
    fn answer(batch: &Batch, memory: &Words) -> BatchAnswer {
        let answer = batch.carry_out(memory).unwrap();
        let received = BatchAnswer::decode(batch, &answer.encode());
        assert_eq!(received.as_ref(), Some(&answer));
        answer
    }

    #[test]
    fn pieces_are_read_in_one_request_and_what_is_not_there_alone_is_missing() {
        let pieces = [
            bytes(0x5008, 16),
            bytes(0x9000, 8),
            floor(0x5020),
            floor(0x500f),
            Piece::Entries { map: MAP },
        ];
        let read = answer(&batch(&pieces), &memory()).read.unwrap();
        let [some, none, found, before_all, entries] = &read.pieces[..] else {
            panic!("{read:?}")
        };
        assert_eq!(some.as_ref().unwrap().bytes(), words(&[11, 12]));
        assert_eq!(*none, None);
        let (node, around) = found.as_ref().unwrap().floor().unwrap();
        assert_eq!((node.key, node.second), (0x5010, 7));
        assert_eq!(around, words(&[11, 12, 13]));
        assert_eq!(before_all.as_ref().unwrap().floor(), None);
        let entries: Vec<_> = entries.as_ref().unwrap().entries().collect();
        assert_eq!(entries, [node]);
        assert_eq!(read.after, words(&[1, 2]));
    }

    #[test]
    fn what_begins_on_the_last_page_that_is_mapped_has_the_bytes_of_that_page() {
        let mut memory = memory();
        memory.write(0x1000, &[0, 0, 0, 0, 0x5ff8, 7, 0]);
        memory.write(0x5ff0, &[20, 21]);
        let (address, len) = (0x5ff0, 24);
        let available = |address| Piece::Available(MemoryRange { address, len });
        let pieces = [floor(0x6000), available(address), available(0x9000)];
        let read = answer(&batch(&pieces), &memory).read.unwrap();
        let [found, some, none] = &read.pieces[..] else {
            panic!("{read:?}")
        };
        let found = found.as_ref().unwrap().floor();
        assert_eq!(found.unwrap().1, words(&[20, 21]));
        assert_eq!(some.as_ref().unwrap().bytes(), words(&[20, 21]));
        assert_eq!(*none, None);
    }

    #[test]
    fn nothing_is_read_while_the_control_words_stay() {
        let memory = memory();
        let mut batch = batch(&[bytes(0x5000, 8), floor(0x5020)]);
        batch.unless = words(&[1, 2]);
        let unchanged = answer(&batch, &memory);
        assert_eq!((unchanged.read, memory.reads()), (None, 2));
        batch.unless = words(&[1, 3]);
        assert!(answer(&batch, &memory).read.is_some());
    }

    #[test]
    fn without_control_words_there_is_no_answer() {
        let mut batch = batch(&[bytes(0x5000, 8)]);
        batch.control.push(MemoryRange {
            address: 0x9000,
            len: 8,
        });
        assert!(batch.carry_out(&memory()).is_err());
    }

    #[test]
    fn a_process_cannot_make_the_answer_large() {
        let mut memory = memory();
        memory.write(0x1000, &[0, 0, 0x1000, 0x1000, 0x5010, 7, 0]);
        let huge = vec![bytes(0x5000, u32::MAX); 4];
        let pieces = [&huge[..], &[Piece::Entries { map: MAP }]].concat();
        let read = answer(&batch(&pieces), &memory).read.unwrap();
        assert_eq!(read.pieces[..4], [None, None, None, None]);
        assert_eq!(read.pieces[4].as_ref().unwrap().entries().count(), 1);
    }

    #[test]
    fn an_answer_that_is_short_or_too_long_is_none() {
        let mut batch = batch(&[bytes(0x5000, 8), floor(0x5020)]);
        let whole = batch.carry_out(&memory()).unwrap().encode();
        for len in 0..whole.len() {
            assert_eq!(BatchAnswer::decode(&batch, &whole[..len]), None, "{len}");
        }
        let longer = [&whole[..], &[0]].concat();
        assert_eq!(BatchAnswer::decode(&batch, &longer), None);
        // Nothing but the control words means that they have not changed.
        let control = words(&[1, 2]);
        assert_eq!(BatchAnswer::decode(&batch, &control), None);
        batch.unless = words(&[9, 9]);
        assert_eq!(BatchAnswer::decode(&batch, &control), None);
    }

    #[test]
    fn a_piece_of_another_length_than_it_can_have_is_no_answer() {
        let batch = batch(&[bytes(0x5000, 8)]);
        let mut whole = batch.carry_out(&memory()).unwrap().encode();
        whole[16] = 4;
        whole.drain(20..24);
        assert_eq!(BatchAnswer::decode(&batch, &whole), None);
    }

    fn pieces() -> impl Strategy<Value = Vec<Piece>> {
        let piece = (
            0..4u8,
            any::<u64>(),
            any::<u64>(),
            any::<u32>(),
            any::<u32>(),
        );
        let piece = piece.prop_map(|(kind, map, key, before, from)| match kind {
            0 => bytes(map, before),
            1 => Piece::Floor {
                map,
                key,
                before,
                from,
            },
            2 => Piece::Entries { map },
            _ => Piece::Available(MemoryRange {
                address: map,
                len: before,
            }),
        });
        prop::collection::vec(piece, 0..8)
    }

    proptest! {
        #[test]
        fn a_batch_is_on_the_socket_what_it_is_here(pieces in pieces()) {
            let batch = batch(&pieces);
            let mut numbers = Vec::new();
            batch.encode(&mut numbers);
            let mut rest = numbers.iter();
            prop_assert_eq!(Batch::decode(|| rest.next().copied()), Some(batch));
            for len in 0..numbers.len() {
                let mut rest = numbers[..len].iter();
                prop_assert_eq!(Batch::decode(|| rest.next().copied()), None);
            }
        }

        #[test]
        fn no_answer_is_trusted(answer in prop::collection::vec(any::<u8>(), 0..120)) {
            let batch = batch(&[bytes(0x5000, 8), floor(0x5020), Piece::Entries { map: MAP }]);
            if let Some(answer) = BatchAnswer::decode(&batch, &answer) {
                prop_assert_eq!(answer.read.unwrap().pieces.len(), 3);
            }
        }
    }
}
