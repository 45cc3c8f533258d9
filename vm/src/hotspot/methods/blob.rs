//! Which code blob is at an address, and what is its code for?

use super::error::{MethodError, Result};
use super::structure::{Part, Structure};
use crate::hotspot::code_heaps::CodeHeap;
use crate::hotspot::jvm::Jvm;
use crate::hotspot::layout::BlobCode;
use crate::hotspot::member::Member;
use std::fmt;
use std::ops::Range;
use varid_model::Address;
use varid_symbolizer::java::printable;
use varid_tunnel::Memory;

/// Bytes of a segment map that are read at once.
const WINDOW: u64 = 1 << 10;
/// The most such reads: a blob of 128 MB has 2^20 segments.
const MAX_WINDOWS: u32 = 1 << 10;
/// In a segment map: the segment is free.
const FREE: u8 = 0xff;
/// The longest name of a blob in bytes. Names are read in pieces of this size.
const MAX_NAME: usize = 128;
/// Memory is readable or not by pages.
const PAGE: u64 = 1 << 12;
/// Names of methods' blobs, `nmethod::nmethod`.
const COMPILED: &str = "nmethod";
const NATIVE_WRAPPER: &str = "native nmethod";

/// A code blob, `CodeBlob`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeBlob {
    /// Its header, data and code.
    pub memory: Range<Address>,
    /// Its instructions.
    pub code: Range<Address>,
    /// Its name in the VM: `nmethod`, `I2C/C2I adapters`, `_new_array_Java`.
    pub name: String,
    /// What its code is for.
    pub kind: BlobKind,
    /// The size of its frames in words. None if they have no fixed size.
    pub frame_words: Option<u32>,
    /// Bytes of code until a frame is made.
    pub frame_complete: u32,
}

/// What the code of a blob is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlobKind {
    /// The interpreter.
    Interpreter,
    /// A compiled method.
    Compiled,
    /// The call of a native method, generated for it.
    NativeWrapper,
    /// Calls from interpreted to compiled methods or the other way round.
    Adapter,
    /// Virtual and interface calls.
    VtableStub,
    /// Calls of method handles.
    MethodHandle,
    /// Routines in assembly, such as array copies and encryption.
    StubRoutines,
    /// Other code of the VM: allocation, exceptions, deoptimisation, safepoints.
    Runtime,
}

impl BlobKind {
    /// Returns the kind of the blob with this name.
    pub fn of(name: &str) -> Self {
        match name {
            COMPILED => Self::Compiled,
            NATIVE_WRAPPER => Self::NativeWrapper,
            "Interpreter" => Self::Interpreter,
            "vtable chunks" => Self::VtableStub,
            _ if name.starts_with("I2C/C2I adapters") => Self::Adapter,
            _ if name.starts_with("MethodHandles adapters") => Self::MethodHandle,
            _ if name.starts_with("StubRoutines") => Self::StubRoutines,
            _ => Self::Runtime,
        }
    }

    /// Returns true if the blob is an `nmethod`.
    pub const fn has_method(self) -> bool {
        matches!(self, Self::Compiled | Self::NativeWrapper)
    }
}

impl fmt::Display for BlobKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interpreter => "interpreter",
            Self::Compiled => "compiled method",
            Self::NativeWrapper => "native method wrapper",
            Self::Adapter => "adapter",
            Self::VtableStub => "vtable stub",
            Self::MethodHandle => "method handle adapter",
            Self::StubRoutines => "stub routines",
            Self::Runtime => "runtime stub",
        })
    }
}

impl CodeBlob {
    /// Finds the blob that has an address: through the segment map of its code heap, as the VM does (`CodeHeap::find_start`).
    ///
    /// # Errors
    ///
    /// No blob has the address, or the memory cannot be read or contradicts itself.
    pub fn find(jvm: &Jvm, address: Address, memory: &dyn Memory) -> Result<Self, MethodError> {
        let heap = jvm.code_heap_at(address);
        let heap = heap.ok_or(MethodError::NoCode(address))?;
        let block = block_at(heap, address, memory)?;
        let blob = Self::in_block(jvm, block, memory)?;
        let blob = blob.ok_or(MethodError::NoCode(address))?;
        match blob.memory.contains(&address) {
            true => Ok(blob),
            false => Err(MethodError::NoCode(address)),
        }
    }

    /// The name of its code for a profile. `address`: one in it.
    pub fn display_name(&self, address: Address, jvm: &Jvm) -> String {
        match self.kind {
            BlobKind::Interpreter => match jvm.interpreter.codelet_at(address) {
                Some(part) => format!("{} [{}]", self.name, printable(&part.description)),
                None => self.name.clone(),
            },
            BlobKind::VtableStub => self.kind.to_string(),
            _ => self.name.clone(),
        }
    }

    /// Reads the blob in a block. None if the block is free.
    fn in_block(jvm: &Jvm, block: Address, memory: &dyn Memory) -> Result<Option<Self>> {
        const BLOCK: &str = "a code blob";
        let (heap, layout) = (&jvm.layout.code_heap, &jvm.layout.code_blob);
        let (begin, end) = match layout.code {
            BlobCode::Pointers { begin, end } | BlobCode::Offsets { begin, end } => (begin, end),
        };
        let frame = [layout.frame_size, layout.frame_complete];
        let members = [&[layout.name, layout.size, begin, end], &frame[..]].concat();
        let blob_size = members.iter().copied().map(end_of).max().unwrap_or(0);
        let header = u64::from(heap.block_header);
        let size = header.saturating_add(blob_size);
        let copy = Structure::read(BLOCK, block, size, 1 << 12, memory)?;
        if copy.number(heap.block_used)? == 0 {
            return Ok(None);
        }
        let address = block.wrapping_add(header);
        let bytes = copy.bytes.get(header as usize..).unwrap_or_default();
        let blob = copy.part(bytes);
        let size = blob.number(layout.size)?;
        let extent = address..address.wrapping_add(size);
        let code = code_of(&layout.code, blob, address)?;
        let is_inside = |at: Address| address <= at && at <= extent.end;
        if !is_inside(code.start) || !is_inside(code.end) || code.start > code.end {
            let why = "its code is outside of it";
            return Err(MethodError::implausible(BLOCK, code.start.get(), why));
        }
        let name = name_at(Address::new(blob.number(layout.name)?), memory)?;
        let frame_words = u32::try_from(blob.signed(layout.frame_size)?).ok();
        let frame_complete = u32::try_from(blob.signed(layout.frame_complete)?).ok();
        Ok(Some(Self {
            frame_words: frame_words.filter(|words| *words > 0),
            frame_complete: frame_complete.unwrap_or(0),
            memory: extent,
            code,
            kind: BlobKind::of(&name),
            name,
        }))
    }
}

fn code_of(layout: &BlobCode, blob: Part<'_>, address: Address) -> Result<Range<Address>> {
    Ok(match *layout {
        BlobCode::Pointers { begin, end } => {
            Address::new(blob.number(begin)?)..Address::new(blob.number(end)?)
        }
        BlobCode::Offsets { begin, end } => {
            address.wrapping_add(blob.number(begin)?)..address.wrapping_add(blob.number(end)?)
        }
    })
}

fn end_of(member: Member) -> u64 {
    u64::from(member.offset.bytes()).saturating_add(member.width.bytes().into())
}

/// Returns the start of the block that has an address.
fn block_at(heap: &CodeHeap, address: Address, memory: &dyn Memory) -> Result<Address> {
    const MAP: &str = "CodeHeap::_segmap";
    let none = MethodError::NoCode(address);
    let log2 = u32::from(heap.log2_segment_size);
    let offset = address.offset_from(heap.reserved.start).unwrap_or(0);
    let mut segment = offset.checked_shr(log2).unwrap_or(0);
    for _ in 0..MAX_WINDOWS {
        let first = segment.saturating_sub(WINDOW.wrapping_sub(1));
        let size = segment.wrapping_sub(first).saturating_add(1);
        let start = heap.segment_map.wrapping_add(first);
        let window = Structure::read(MAP, start, size, WINDOW, memory)?;
        loop {
            let place = segment.checked_sub(first);
            let place = place.and_then(|place| usize::try_from(place).ok());
            match place.and_then(|place| window.bytes.get(place)) {
                // It is in front of the window.
                None => break,
                Some(0) => {
                    let bytes = segment.checked_shl(log2).unwrap_or(0);
                    return Ok(heap.reserved.start.wrapping_add(bytes));
                }
                Some(&FREE) => return Err(none),
                Some(hop) => segment = segment.checked_sub(u64::from(*hop)).ok_or(none.clone())?,
            }
        }
    }
    let why = "it does not lead to the start of a block";
    Err(MethodError::implausible(MAP, segment, why))
}

/// Reads the name of a blob, a string of C. It may be at the end of what can be read.
fn name_at(address: Address, memory: &dyn Memory) -> Result<String> {
    const NAME: &str = "the name of a code blob";
    if address.get() == 0 {
        return Ok(String::new());
    }
    let most = MAX_NAME as u64;
    let read = |size| Structure::read(NAME, address, size, most, memory);
    let until_page = PAGE.wrapping_sub(address.get() % PAGE);
    let copy = read(most).or_else(|_| read(until_page.min(most)))?;
    let end = copy.bytes.iter().position(|byte| *byte == 0);
    let Some(bytes) = copy.bytes.get(..end.unwrap_or(usize::MAX)) else {
        let why = "it does not end";
        return Err(MethodError::implausible(NAME, address.get(), why));
    };
    Ok(printable(&String::from_utf8_lossy(bytes)))
}
