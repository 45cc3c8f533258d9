//! Which code blob is at an address, and what is its code for?

use super::compiled::header_members;
use super::error::{MethodError, Result};
use super::ids::{CodeKey, CompileId};
use super::structure::{Part, Structure};
use crate::hotspot::code_heaps::CodeHeap;
use crate::hotspot::jvm::Jvm;
use crate::hotspot::layout::BlobCode;
use crate::hotspot::member::Member;
use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::rc::Rc;
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
/// The most bytes of a header.
const MAX_HEADER: u64 = 1 << 12;
/// The most names that are kept. The VM has two.
const MAX_LITERALS: usize = 8;
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
    /// The number of the compilation, if the blob is an `nmethod`.
    pub compile_id: Option<CompileId>,
    /// Where its name is.
    name_address: Address,
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

    /// Returns true if the blob is an `nmethod`. Its name is a literal in the VM's library.
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
    /// Returns the key of the compiled method that the blob is. None if it is other code.
    pub fn key(&self) -> Option<CodeKey> {
        Some(CodeKey {
            blob: self.memory.start,
            compile_id: self.compile_id?,
        })
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
}

/// Reads blobs.
#[derive(Debug)]
pub(super) struct BlobReader {
    jvm: Rc<Jvm>,
    /// The most bytes of a block's and a blob's header.
    header: u64,
    /// The least.
    least_header: u64,
    names: LiteralNames,
}

impl BlobReader {
    pub(super) fn new(jvm: Rc<Jvm>) -> Self {
        let layout = &jvm.layout.code_blob;
        let (begin, end) = match layout.code {
            BlobCode::Pointers { begin, end } | BlobCode::Offsets { begin, end } => (begin, end),
        };
        let frame = [layout.frame_size, layout.frame_complete];
        let members = [&[layout.name, layout.size, begin, end], &frame[..]].concat();
        let end = |members: &[Member]| {
            let ends = members.iter().copied().map(end_of);
            let block = u64::from(jvm.layout.code_heap.block_header);
            block.saturating_add(ends.max().unwrap_or(0))
        };
        let (header, least_header) = (end(&header_members(&jvm)), end(&members));
        Self {
            header,
            least_header,
            jvm,
            names: LiteralNames::default(),
        }
    }

    /// Finds the blob that has an address: through the segment map of its code heap, as the VM does (`CodeHeap::find_start`).
    pub(super) fn find(&self, address: Address, memory: &dyn Memory) -> Result<CodeBlob> {
        let heap = self.jvm.code_heap_at(address);
        let heap = heap.ok_or(MethodError::NoCode(address))?;
        let block = block_at(heap, address, memory)?;
        let header = self.header(block, memory)?;
        let header = header.ok_or(MethodError::NoCode(address))?;
        if !header.memory.contains(&address) {
            return Err(MethodError::NoCode(address));
        }
        let name = self.names.at(header.name, memory)?;
        header.blob(name)
    }

    /// Returns true if a blob is still where it was found, and the same one.
    pub(super) fn is_current(&self, blob: &CodeBlob, memory: &dyn Memory) -> Result<bool> {
        let start = blob.memory.start;
        let Some(heap) = self.jvm.code_heap_at(start) else {
            return Ok(false);
        };
        let block_header = u64::from(self.jvm.layout.code_heap.block_header);
        let block = Address::new(start.get().wrapping_sub(block_header));
        // Both are attempted before an error ends it.
        let header = self.header(block, memory);
        let is_start = is_start_of_block(heap, block, memory)?;
        Ok(is_start && header?.is_some_and(|header| header.is_of(blob)))
    }

    /// Reads the header of the blob in a block. None if the block is free.
    fn header(&self, block: Address, memory: &dyn Memory) -> Result<Option<BlobHeader>> {
        const BLOCK: &str = "a code blob";
        let (heap, layout) = (&self.jvm.layout.code_heap, &self.jvm.layout.code_blob);
        let read = |size| Structure::read(BLOCK, block, size, MAX_HEADER, memory);
        // Most blobs are compiled methods. The memory may end behind a smaller one.
        let copy = read(self.header).or_else(|_| read(self.least_header))?;
        if copy.number(heap.block_used)? == 0 {
            return Ok(None);
        }
        let header = u64::from(heap.block_header);
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
        let frame_words = u32::try_from(blob.signed(layout.frame_size)?).ok();
        let frame_complete = u32::try_from(blob.signed(layout.frame_complete)?).ok();
        let compile_id = blob.number(self.jvm.layout.nmethod.compile_id);
        Ok(Some(BlobHeader {
            memory: extent,
            code,
            name: Address::new(blob.number(layout.name)?),
            frame_words: frame_words.filter(|words| *words > 0),
            frame_complete: frame_complete.unwrap_or(0),
            compile_id: compile_id.map(|id| CompileId(id as u32)),
        }))
    }
}

/// The header of a blob.
struct BlobHeader {
    memory: Range<Address>,
    code: Range<Address>,
    /// Where its name is.
    name: Address,
    frame_words: Option<u32>,
    frame_complete: u32,
    /// What is its compilation if it is an `nmethod`.
    compile_id: Result<CompileId>,
}

impl BlobHeader {
    /// Returns true if it is the header of a blob that was read before.
    fn is_of(&self, blob: &CodeBlob) -> bool {
        let is_compilation = |id: CompileId| self.compile_id.as_ref() == Ok(&id);
        self.memory == blob.memory
            && self.code == blob.code
            && self.name == blob.name_address
            && blob.compile_id.is_none_or(is_compilation)
    }

    fn blob(self, name: String) -> Result<CodeBlob> {
        let kind = BlobKind::of(&name);
        let compile_id = kind.has_method().then_some(self.compile_id);
        Ok(CodeBlob {
            memory: self.memory,
            code: self.code,
            kind,
            frame_words: self.frame_words,
            frame_complete: self.frame_complete,
            compile_id: compile_id.transpose()?,
            name_address: self.name,
            name,
        })
    }
}

/// The names of blobs of compiled methods. They are literals of the VM's library, so other names never have their addresses.
#[derive(Debug, Default)]
struct LiteralNames(RefCell<Vec<(Address, String)>>);

impl LiteralNames {
    /// Returns the name at an address.
    fn at(&self, address: Address, memory: &dyn Memory) -> Result<String> {
        let mut known = self.0.borrow_mut();
        if let Some((_, name)) = known.iter().find(|(at, _)| *at == address) {
            return Ok(name.clone());
        }
        let name = name_at(address, memory)?;
        if BlobKind::of(&name).has_method() && known.len() < MAX_LITERALS {
            known.push((address, name.clone()));
        }
        Ok(name)
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

const MAP: &str = "CodeHeap::_segmap";

/// Returns true if a block starts at an address.
fn is_start_of_block(heap: &CodeHeap, address: Address, memory: &dyn Memory) -> Result<bool> {
    let log2 = u32::from(heap.log2_segment_size);
    let offset = address.offset_from(heap.reserved.start);
    let segment = offset.and_then(|offset| offset.checked_shr(log2));
    let place = heap.segment_map.wrapping_add(segment.unwrap_or(0));
    let hop = Structure::read(MAP, place, 1, 1, memory)?;
    Ok(hop.bytes == [0])
}

/// Returns the start of the block that has an address.
fn block_at(heap: &CodeHeap, address: Address, memory: &dyn Memory) -> Result<Address> {
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
    let Some(bytes) = end.and_then(|end| copy.bytes.get(..end)) else {
        let why = "it does not end";
        return Err(MethodError::implausible(NAME, address.get(), why));
    };
    Ok(printable(&String::from_utf8_lossy(bytes)))
}
