//! Batches: pieces of a process's memory that are read in one request.
//!
//! A request needs a helper's turn on a processor, whatever it reads. So many small pieces, such as the nodes of a tree, are read in one
//! request, and the helper follows the tree.
//!
//! Memory changes while it is read. So a batch has *control* words, such as change counters, which are read before the pieces and again
//! after them. If both readings are equal, the pieces are consistent. If the first reading is one that the reader knows already, the pieces
//! need not be read at all.

use super::tree::{MAX_NODES, NODE, Nodes, TreeNode, all_nodes};
use varid_tunnel::{ByteMemory, Memory, MemoryPart, TunnelError};

/// The most pieces, and the most ranges of control words, in a batch.
pub const MAX_PIECES: usize = 1024;
/// The most bytes that are read for one batch. Pieces for which there is no room are not read.
const MAX_READ: usize = 1 << 24;
/// What is read around the key of a node ends at a page boundary if the next page is missing.
const PAGE: u64 = 4096;
/// The length that marks a piece that could not be read.
const UNREAD: u32 = u32::MAX;

/// A range of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryRange {
    /// The first address.
    pub address: u64,
    /// Size in bytes.
    pub len: u32,
}

/// A piece of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// All of these bytes.
    Bytes(MemoryRange),
    /// The same bytes, or only those up to the end of the first page if the next one is missing.
    Available(MemoryRange),
    /// In a map whose keys are addresses, the entry with the largest key that is at most `key`, and the memory around the address that is
    /// its key.
    Floor {
        /// Address of the map.
        map: u64,
        /// The key.
        key: u64,
        /// Bytes before the address.
        before: u32,
        /// Bytes from the address on, or fewer if the next page is missing.
        from: u32,
    },
    /// All entries of a map.
    Entries {
        /// Address of the map.
        map: u64,
    },
    /// Pointers, each of which leads to the memory that contains the next one. As many as can be read.
    Chain {
        /// The address that the first one is relative to.
        start: u64,
        /// The location of each pointer.
        links: [Link; LINKS],
    },
}

/// The number of pointers of a [`Piece::Chain`].
pub const LINKS: usize = 4;

/// The location of a pointer, relative to the address that another one contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Its offset from that address, in bytes.
    pub offset: u16,
    /// Its size in bytes: 4 or 8.
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

/// Reads pointers, each at its offset from the previous one's value.
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

/// Reads pieces that are ranges, as long as there is room.
fn read_ranges(memory: &dyn Memory, pieces: &[Piece], room: usize) -> Vec<Option<Vec<u8>>> {
    let mut room = room;
    let mut buffers: Vec<_> = pieces
        .iter()
        .map(|piece| {
            let range = piece.range()?;
            let len = range.len as usize;
            room = room.checked_sub(len)?;
            Some((range.address, vec![0; len]))
        })
        .collect();
    let parts = buffers.iter_mut().flatten();
    let mut parts: Vec<_> = parts
        .map(|(address, out)| MemoryPart {
            address: *address,
            out,
        })
        .collect();
    let mut outcomes = memory.read_each(&mut parts).into_iter();
    let read = pieces.iter().zip(buffers).map(|(piece, buffer)| {
        let (address, bytes) = buffer?;
        match (outcomes.next(), piece) {
            (Some(true), _) => Some(bytes),
            (_, Piece::Available(_)) => read_first_page(memory, address, bytes.len()),
            _ => None,
        }
    });
    read.collect()
}

impl Piece {
    /// Returns the range that it is. None if it has to be looked for.
    const fn range(self) -> Option<MemoryRange> {
        match self {
            Self::Bytes(range) | Self::Available(range) => Some(range),
            Self::Floor { .. } | Self::Entries { .. } | Self::Chain { .. } => None,
        }
    }

    /// Returns true if the answer may have this many bytes.
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

    /// Reads its bytes. None if they cannot be read, or there are more than `room`.
    fn read(self, memory: &dyn Memory, nodes: &mut Nodes, room: usize) -> Option<Vec<u8>> {
        let found = match self {
            Self::Bytes(_) | Self::Available(_) => read_ranges(memory, &[self], room).pop()??,
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

/// Reads `most` bytes from an address on, or those up to the end of the page.
fn read_some(memory: &dyn Memory, start: u64, most: usize) -> Option<Vec<u8>> {
    read_all(memory, start, most).or_else(|| read_first_page(memory, start, most))
}

/// Reads the bytes up to the end of the page, of `most` bytes that cannot all be read.
fn read_first_page(memory: &dyn Memory, start: u64, most: usize) -> Option<Vec<u8>> {
    let of_page = PAGE.saturating_sub(start & PAGE.saturating_sub(1)) as usize;
    let is_part = of_page < most;
    is_part.then(|| read_all(memory, start, of_page)).flatten()
}

fn read_all(memory: &dyn Memory, start: u64, len: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; len];
    memory.read(start, &mut bytes).is_ok().then_some(bytes)
}

/// Pieces of memory that are read in one request, in this order, between two readings of control words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The locations of the control words.
    pub control: Vec<MemoryRange>,
    /// The pieces are not read if the control words have this value. Empty: they are always read.
    pub unless: Vec<u8>,
    /// The pieces, at most [`MAX_PIECES`].
    pub pieces: Vec<Piece>,
}

/// The answer to a [`Batch`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchAnswer {
    /// The control words before the pieces were read.
    pub before: Vec<u8>,
    /// None: the control words have the value for which the pieces are not read.
    pub read: Option<BatchRead>,
}

/// The pieces that were read for a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchRead {
    /// The pieces in order. None: a piece could not be read.
    pub pieces: Vec<Option<PieceBytes>>,
    /// The control words after that.
    pub after: Vec<u8>,
}

/// The bytes of a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PieceBytes(Vec<u8>);

impl PieceBytes {
    /// Returns the bytes of [`Piece::Bytes`] and [`Piece::Available`].
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the entry that [`Piece::Floor`] found, and the bytes around the address. There may be fewer bytes than requested.
    pub fn floor(&self) -> Option<(TreeNode, &[u8])> {
        let (node, around) = self.0.split_first_chunk()?;
        Some((TreeNode::parse(node), around))
    }

    /// Returns the pointers of [`Piece::Chain`]. There may be fewer pointers than links.
    pub fn pointers(&self) -> impl Iterator<Item = u64> {
        let pointers = self.0.as_chunks().0.iter();
        pointers.map(|pointer| u64::from_le_bytes(*pointer))
    }

    /// Returns the entries of [`Piece::Entries`].
    pub fn entries(&self) -> impl Iterator<Item = TreeNode> {
        self.0.as_chunks().0.iter().map(TreeNode::parse)
    }
}

/// Memory of which several pieces can be read at once.
pub trait BatchMemory: Memory {
    /// Reads the pieces of a batch.
    ///
    /// # Errors
    ///
    /// The control words cannot be read.
    fn read_batch(&self, batch: &Batch) -> Result<BatchAnswer, TunnelError>;
}

impl BatchMemory for ByteMemory<'_> {
    fn read_batch(&self, batch: &Batch) -> Result<BatchAnswer, TunnelError> {
        batch.carry_out(self)
    }
}

impl Batch {
    /// Reads the pieces in order. Ranges that follow each other are read at once.
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
        let mut pieces = Vec::with_capacity(self.pieces.len());
        let are_ranges =
            |one: &Piece, next: &Piece| one.range().is_some() && next.range().is_some();
        for run in self.pieces.chunk_by(are_ranges) {
            let read = match run {
                [piece] if piece.range().is_none() => vec![piece.read(memory, &mut nodes, room)],
                _ => read_ranges(memory, run, room),
            };
            let sizes = read.iter().flatten().map(Vec::len);
            room = room.saturating_sub(sizes.sum());
            pieces.extend(read.into_iter().map(|bytes| bytes.map(PieceBytes)));
        }
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

    /// Returns the size of its control words in bytes.
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

    /// Decodes a batch. `number` returns the next number. None if the numbers are not a batch.
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
    /// Encodes the answer for the socket: the control words, then each piece after its length, then the control words again.
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

    /// Decodes the answer to a batch. None if the bytes are not an answer to it.
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
