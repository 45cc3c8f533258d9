//! Which pieces of a process's memory are read in one request, and what is the answer?
//!
//! A request takes a helper's turn on a processor, whatever it reads. So a reader of many small pieces, such as the nodes of a tree, puts
//! them into one request, and has the helper follow the tree.
//!
//! Memory changes while it is read. A batch has *control* words, such as counters of changes, that are read before the pieces and
//! again after them: pieces between two equal readings belong together. Where the first reading is as the reader knows it already, the
//! pieces need not be read at all.

use super::tree::{MAX_NODES, NODE, Nodes, TreeNode, all_nodes};
use varid_tunnel::{Memory, TunnelError};

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
    /// Pointers, each of which leads to the memory that the next one is in; as many as can be read.
    Chain {
        /// Address that the first one is behind.
        start: u64,
        /// Where each of them is.
        links: [Link; LINKS],
    },
}

/// Pointers of a [`Piece::Chain`].
pub const LINKS: usize = 4;

/// A pointer in the memory that another one leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// How many bytes behind the address.
    pub offset: u16,
    /// Bytes of it: 4 or 8.
    pub size: u8,
}

impl Link {
    fn encode(self) -> u64 {
        u64::from(self.offset) << 8 | u64::from(self.size)
    }

    fn decode(number: u64) -> Option<Self> {
        let size = (number & 0xff) as u8;
        let offset = u16::try_from(number >> 8).ok()?;
        matches!(size, 4 | 8).then_some(Self { offset, size })
    }
}

/// Reads pointers, each at its place behind what the one before leads to.
fn read_chain(memory: &dyn Memory, start: u64, links: [Link; LINKS]) -> Vec<u8> {
    let (mut at, mut found) = (start, Vec::new());
    for link in links {
        let address = at.wrapping_add(link.offset.into());
        let Some(next) = memory.read_word(address, link.size).ok() else {
            break;
        };
        found.extend_from_slice(&next.to_le_bytes());
        if next == 0 {
            break;
        }
        at = next;
    }
    found
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
            Self::Chain { links, .. } => len.is_multiple_of(8) && len / 8 <= links.len(),
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
            Self::Chain { start, links } => read_chain(memory, start, links),
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

    /// The pointers of [`Piece::Chain`]; there may be fewer of them than links.
    pub fn pointers(&self) -> impl Iterator<Item = u64> {
        let pointers = self.0.as_chunks().0.iter();
        pointers.map(|pointer| u64::from_le_bytes(*pointer))
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
                Piece::Chain { start, links } => {
                    numbers.extend([4, start]);
                    numbers.extend(links.map(Link::encode));
                }
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
                4 => {
                    let start = number()?;
                    let mut link = || Link::decode(number()?);
                    let links = [link()?, link()?, link()?, link()?];
                    Piece::Chain { start, links }
                }
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
mod tests;
