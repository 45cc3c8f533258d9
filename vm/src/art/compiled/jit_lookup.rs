//! Reads a method's code from the JIT's code cache, and checks whether it is unchanged.

use super::code_cache::{CacheMaps, CodeCache};
use super::jit_history::JitCounts;
use super::method::{CompiledMethod, InfoBytes, Owner};
use crate::art::code_format::CodeFormat;
use crate::art::code_info::{CodeInfo, CodeInfoError};
use crate::art::method_header::MethodHeader;
use std::collections::BTreeSet;
use std::rc::Rc;
use varid_model::Machine;
use varid_process::reader::{BatchMemory, MemoryRange, Piece, PieceBytes};
use varid_tunnel::TunnelError;

/// The largest code of a method, and the largest CodeInfo, that is read, in bytes.
const MAX_SIZE: u64 = 1 << 22;
/// Bytes that are read of each before the size is known.
const FIRST: u32 = 1 << 10;

/// One lookup of an address.
pub(super) struct Lookup<'a> {
    cache: &'a CodeCache,
    memory: &'a dyn BatchMemory,
    /// The cache's counters before the first read, and after the last. None: nothing was read, or it has no counters.
    counts: Option<(JitCounts, JitCounts)>,
}

/// Code in the cache whose first bytes have been read.
struct Start<'a> {
    address: u64,
    owner: Owner,
    /// The header and some of the code.
    bytes: &'a [u8],
}

impl<'a> Lookup<'a> {
    pub(super) fn new(cache: &'a CodeCache, memory: &'a dyn BatchMemory) -> Self {
        Self {
            cache,
            memory,
            counts: None,
        }
    }

    /// Returns the cache's counters after all reads, if it has counters.
    pub(super) fn counts(&self) -> Option<JitCounts> {
        self.counts.map(|(_, after)| after)
    }

    /// The same, if the cache did not change during the reads.
    pub(super) fn unchanged_counts(&self) -> Option<JitCounts> {
        let unchanged =
            |(before, after): &(JitCounts, JitCounts)| before == after && !after.is_collecting();
        self.counts.filter(unchanged).map(|(_, after)| after)
    }

    fn read(
        &mut self,
        pieces: impl Fn(CacheMaps) -> Vec<Piece>,
    ) -> Result<Vec<Option<PieceBytes>>, TunnelError> {
        let read = self.cache.read(self.memory, &[], pieces)?;
        self.counts = match (self.counts, read.counts) {
            (Some((first, _)), Some((_, last))) => Some((first, last)),
            (_, counts) => counts,
        };
        Ok(read.pieces.unwrap_or_default())
    }

    /// Returns the code that contains an address. `before`: the code there at the previous check. `stubs`: the starts of native methods'
    /// stubs; None: they are read.
    ///
    /// # Errors
    ///
    /// The process's memory cannot be read.
    pub(super) fn code_at(
        &mut self,
        address: u64,
        before: Option<&Rc<CompiledMethod>>,
        stubs: &mut Option<BTreeSet<u64>>,
    ) -> Result<Option<Rc<CompiledMethod>>, TunnelError> {
        let before = before.filter(|before| before.code.contains(&address));
        let knows_stubs = stubs.is_some();
        let mut read = self.read(|maps| {
            let mut pieces = vec![Piece::Floor {
                map: maps.methods,
                key: address,
                before: MethodHeader::SIZE,
                from: FIRST,
            }];
            if !knows_stubs {
                pieces.push(Piece::Entries { map: maps.stubs });
            }
            pieces.extend(before.iter().flat_map(|before| check(before, maps)));
            pieces
        })?;
        if !knows_stubs {
            let entries = (read.len() > 1).then(|| read.remove(1)).flatten();
            *stubs = entries.as_ref().map(starts_of_stubs);
        }
        let mut read = read.into_iter();
        let found = read.next().flatten();
        if let Some(before) = before
            && is_same(before, self.cache.format, read.as_slice(), stubs.as_ref())
        {
            return Ok(Some(before.clone()));
        }
        let entry = found.as_ref().and_then(PieceBytes::floor);
        let stub = stubs.iter().flat_map(|stubs| stubs.range(..=address));
        let stub = stub.copied().next_back();
        // Code does not overlap: the address can only be in the code that starts last.
        let entry = entry.filter(|(entry, _)| stub.is_none_or(|stub| stub < entry.key));
        if let Some((entry, bytes)) = entry {
            let start = Start {
                address: entry.key,
                owner: Owner::Pointer(entry.second),
                bytes,
            };
            let found = self.rest(&start, address, before)?;
            return self.confirmed(found, stubs.as_ref());
        }
        let Some(stub) = stub else {
            return Ok(None);
        };
        let bytes = self.start_of_stub(stub)?;
        let start = Start {
            address: stub,
            owner: Owner::Stub,
            bytes: bytes.as_ref().map_or(&[], PieceBytes::bytes),
        };
        let found = self.rest(&start, address, before)?;
        self.confirmed(found, stubs.as_ref())
    }

    /// Reads the header, and the first bytes, of the stub at an address.
    fn start_of_stub(&mut self, stub: u64) -> Result<Option<PieceBytes>, TunnelError> {
        let range = MemoryRange {
            address: stub.wrapping_sub(MethodHeader::SIZE.into()),
            len: MethodHeader::SIZE.saturating_add(FIRST),
        };
        let read = self.read(|_| vec![Piece::Available(range)])?;
        Ok(read.into_iter().next().flatten())
    }

    /// Returns what several requests have read, unless it may be of two pieces of code: if code was collected meanwhile, other code may
    /// have taken its place between the requests. Then one request for all of it decides.
    fn confirmed(
        &mut self,
        found: Option<Rc<CompiledMethod>>,
        stubs: Option<&BTreeSet<u64>>,
    ) -> Result<Option<Rc<CompiledMethod>>, TunnelError> {
        let may_be_replaced = self.counts.is_some_and(|(before, after)| {
            after.is_collecting() || !before.no_code_replaced_until(&after)
        });
        let Some(code) = found.as_ref().filter(|_| may_be_replaced) else {
            return Ok(found);
        };
        let read = self.read(|maps| check(code, maps).to_vec())?;
        let is_whole = is_same(code, self.cache.format, &read, stubs);
        Ok(found.filter(|_| is_whole))
    }

    /// Reads the rest of the code with this start, and its CodeInfo. None if the code does not reach as far as `inside`. `before`: as in
    /// [`Self::code_at`].
    fn rest(
        &mut self,
        start: &Start<'_>,
        inside: u64,
        before: Option<&Rc<CompiledMethod>>,
    ) -> Result<Option<Rc<CompiledMethod>>, TunnelError> {
        let format = self.cache.format;
        let Some((header, first)) = start.bytes.split_first_chunk() else {
            return Ok(None);
        };
        let Ok(header) = MethodHeader::parse(format, *header) else {
            return Ok(None);
        };
        let Some(inside) = inside.checked_sub(start.address) else {
            return Ok(None);
        };
        let Some(whole) = self.whole(start.address, &header, first, inside)? else {
            return Ok(None);
        };
        let WholeCode { code, info } = whole;
        let info = InfoBytes::Own {
            format,
            bytes: info,
            distance: header.code_info_distance,
        };
        let (address, owner) = (start.address, start.owner.clone());
        if let Some(before) = before.filter(|before| before.is(address, &code, &owner, &info)) {
            return Ok(Some(before.clone()));
        }
        let code = CompiledMethod::new(address, &code, owner, info);
        let code = code.inspect_err(|error| tracing::debug!(%error, "compiled code"));
        Ok(code.ok().map(Rc::new))
    }

    /// Reads the CodeInfo of the code at an address, and what is missing of the code, which begins with `first`. None if the code does not
    /// reach as far as offset `inside`, or its CodeInfo is not valid.
    fn whole(
        &mut self,
        address: u64,
        header: &MethodHeader,
        first: &[u8],
        inside: u64,
    ) -> Result<Option<WholeCode>, TunnelError> {
        let range = |address, len| MemoryRange { address, len };
        let info_address = address.wrapping_sub(header.code_info_distance.into());
        let (mut code, mut size, mut info) = (first.to_vec(), header.code_size, None);
        let mut wanted = FIRST;
        loop {
            // If the header has the size, the CodeInfo of code that ends before `inside` is not needed.
            if size.is_some_and(|size| inside >= size.into() || u64::from(size) > MAX_SIZE) {
                return Ok(None);
            }
            let there = u32::try_from(code.len()).unwrap_or(u32::MAX);
            let missing = size.map_or(0, |size| size.saturating_sub(there));
            if let Some(info) = info.take_if(|_| missing == 0) {
                code.truncate(size.unwrap_or_default() as usize);
                return Ok(Some(WholeCode { code, info }));
            }
            let info_range = range(info_address, wanted);
            let code_range = range(address.wrapping_add(there.into()), missing);
            let needs_info = info.is_none();
            let read = self.read(|_| {
                let info = needs_info.then_some(Piece::Available(info_range));
                let code = (missing > 0).then_some(Piece::Bytes(code_range));
                info.into_iter().chain(code).collect()
            })?;
            let mut read = read.into_iter();
            if needs_info {
                let Some(bytes) = read.next().flatten() else {
                    return Ok(None);
                };
                match whole_info(self.cache.format, bytes.bytes(), wanted) {
                    Some(Noted::Whole { bytes, code_size }) => {
                        size = size.or(code_size);
                        info = Some(bytes);
                    }
                    Some(Noted::Cut { needed }) => wanted = needed,
                    None => return Ok(None),
                }
                if info.is_some() && size.is_none() {
                    return Ok(None);
                }
            }
            if missing > 0 {
                let Some(bytes) = read.next().flatten() else {
                    return Ok(None);
                };
                code.extend_from_slice(bytes.bytes());
            }
        }
    }
}

/// All bytes of a method's code, and of its CodeInfo.
struct WholeCode {
    code: Vec<u8>,
    info: Vec<u8>,
}

/// The CodeInfo that was read.
enum Noted {
    /// All of it, with the size of the code, if the CodeInfo has that.
    Whole {
        bytes: Vec<u8>,
        code_size: Option<u32>,
    },
    /// This many bytes must be read.
    Cut { needed: u32 },
}

/// Parses a CodeInfo of which the first `wanted` bytes, or fewer if there are no more, have been read. None if it is not valid.
fn whole_info(format: CodeFormat, bytes: &[u8], wanted: u32) -> Option<Noted> {
    match CodeInfo::parse(format, Machine::NATIVE, bytes) {
        Ok(info) => {
            let all = bytes.get(..usize::try_from(info.size).ok()?)?;
            Some(Noted::Whole {
                bytes: all.to_vec(),
                code_size: info.code_size,
            })
        }
        Err(CodeInfoError::CutShort { needed })
            if needed > wanted.into() && needed <= MAX_SIZE && bytes.len() == wanted as usize =>
        {
            // It may change between reads, so each read is much larger.
            let needed = u32::try_from(needed).ok()?;
            let needed = needed.max(wanted.saturating_mul(2));
            Some(Noted::Cut { needed })
        }
        Err(error) => {
            tracing::debug!(%error, "compiled code");
            None
        }
    }
}

/// Returns the starts of native methods' stubs, from the entries of their map.
pub(super) fn starts_of_stubs(entries: &PieceBytes) -> BTreeSet<u64> {
    // The key has two words; the second one is flags. 0: a stub that is not compiled yet.
    let starts = entries.entries().map(|entry| entry.third);
    starts.filter(|start| *start != 0).collect()
}

/// The pieces that are read to check whether code is unchanged.
pub(super) const PIECES_OF_CHECK: usize = 3;

/// Returns what to read to check whether code is unchanged: the last code in its range, the code with its header, and its CodeInfo.
pub(super) fn check(code: &CompiledMethod, maps: CacheMaps) -> [Piece; PIECES_OF_CHECK] {
    let (start, end) = (code.code.start, code.code.end);
    let len = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    let header = u64::from(MethodHeader::SIZE);
    let (distance, info_size) = code.own_info();
    [
        Piece::Floor {
            map: maps.methods,
            key: end.saturating_sub(1),
            before: 0,
            from: 0,
        },
        Piece::Bytes(MemoryRange {
            address: start.wrapping_sub(header),
            len: len(end.saturating_sub(start).saturating_add(header)),
        }),
        Piece::Bytes(MemoryRange {
            address: start.wrapping_sub(distance.into()),
            len: len(info_size as u64),
        }),
    ]
}

/// Returns true if the pieces of a [`check`] show unchanged code: the map leads to it, and every byte is the same.
pub(super) fn is_same(
    code: &CompiledMethod,
    format: CodeFormat,
    pieces: &[Option<PieceBytes>],
    stubs: Option<&BTreeSet<u64>>,
) -> bool {
    let [Some(floor), Some(bytes), Some(info)] = pieces else {
        return false;
    };
    let start = code.code.start;
    let floor = floor.floor().map(|(entry, _)| entry);
    let owner = match floor.filter(|entry| entry.key >= start) {
        Some(entry) if entry.key == start => Owner::Pointer(entry.second),
        // Other code starts inside it.
        Some(_) => return false,
        None => {
            let inside = stubs.map(|stubs| stubs.range(code.code.clone()));
            let is_stub = inside.is_some_and(|stubs| stubs.eq(&[start]));
            if !is_stub {
                return false;
            }
            Owner::Stub
        }
    };
    let Some((header, bytes)) = bytes.bytes().split_first_chunk() else {
        return false;
    };
    let size = bytes.len() as u64;
    let header = MethodHeader::parse(format, *header);
    let is_whole = header.is_ok_and(|header| {
        header.code_info_distance == code.own_info().0
            && header
                .code_size
                .is_none_or(|noted| u64::from(noted) == size)
    });
    is_whole && code.has(bytes, &owner, info.bytes())
}
