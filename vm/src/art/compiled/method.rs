//! What is known of one method's compiled code?

use super::frame_rows::FrameRows;
use super::oat_dex_files::OatDexFiles;
use crate::art::code_format::CodeFormat;
use crate::art::code_info::{CodeInfo, CodeInfoError, InlinedDexFile, InlinedMethod};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use varid_model::{Address, CodeUnits, FrameAddress, Machine};
use varid_process::{AddressSpace, CodeImage};
use varid_unwind::CodeRule;

/// Which method the code is of.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Owner {
    /// The one that the VM's pointer stands for: it was compiled in the process.
    Pointer(u64),
    /// Methods of dex files: equal code of an oat file is there once.
    Dex(Vec<DexMethod>),
    /// Native methods of the same parameters: a frame of the JIT's stub tells which.
    Stub,
}

/// A method of a dex file that an oat file has code of.
#[derive(Debug, Clone)]
pub(super) struct DexMethod {
    /// The dex file.
    pub(super) image: Rc<CodeImage>,
    /// Index of the method in it.
    pub(super) index: u32,
}

impl PartialEq for DexMethod {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.image, &other.image) && self.index == other.index
    }
}

/// The bytes of a CodeInfo.
#[derive(Debug, PartialEq)]
pub(super) enum InfoBytes {
    /// Its own, in a format.
    Own {
        format: CodeFormat,
        bytes: Vec<u8>,
        /// How many bytes before the code it starts.
        distance: u32,
    },
    /// In a format, at an offset in an oat file, where others have bytes in common with it.
    Oat {
        format: CodeFormat,
        bytes: Rc<[u8]>,
        offset: u32,
        /// What the methods are from that it names.
        dex_files: Rc<OatDexFiles>,
    },
}

/// A method's compiled code.
#[derive(Debug)]
pub(super) struct CompiledMethod {
    /// Its instructions, unless an oat file has them.
    bytes: Vec<u8>,
    /// Addresses of its instructions.
    pub(super) code: Range<u64>,
    /// Which method it is of.
    pub(super) owner: Owner,
    rows: FrameRows,
    info: InfoBytes,
    /// What has been read of `info`, by the distance of the return address.
    calls: RefCell<BTreeMap<u32, Option<Rc<Call>>>>,
    /// The same of instructions that make no call: leaves are in few.
    near: RefCell<BTreeMap<u32, Option<CodeUnits>>>,
}

/// Places in the code that are kept; real methods have some hundred.
const MAX_PLACES: usize = 4096;

/// Keeps what is found of a place in some code.
fn keep<T>(places: &RefCell<BTreeMap<u32, T>>, offset: u32, found: T) {
    let mut places = places.borrow_mut();
    if places.len() >= MAX_PLACES {
        places.clear();
    }
    places.insert(offset, found);
}

/// What a call in compiled code is in bytecode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    /// The instruction of the method whose code it is; None: of no instruction.
    pub(super) dex_pc: Option<CodeUnits>,
    /// The methods that are inlined there, from the outermost to the innermost.
    pub(super) inlined: Vec<InlinedMethod>,
}

impl InfoBytes {
    fn parse(&self) -> Result<CodeInfo<'_>, CodeInfoError> {
        match self {
            Self::Own { format, bytes, .. } => CodeInfo::parse(*format, Machine::NATIVE, bytes),
            Self::Oat {
                format,
                bytes,
                offset,
                ..
            } => CodeInfo::parse_at(*format, Machine::NATIVE, bytes, *offset),
        }
    }
}

impl CompiledMethod {
    /// Whether it is this code of this method.
    pub(super) fn is(&self, start: u64, code: &[u8], owner: &Owner, info: &InfoBytes) -> bool {
        self.code.start == start && self.bytes == code && self.owner == *owner && self.info == *info
    }

    /// Whether these are its bytes, its method, and the bytes that the compiler noted down.
    pub(super) fn has(&self, code: &[u8], owner: &Owner, info: &[u8]) -> bool {
        let is_info =
            matches!(&self.info, InfoBytes::Own { bytes, .. } if bytes.as_slice() == info);
        is_info && self.bytes == code && self.owner == *owner
    }

    /// How many bytes before the code what the compiler noted down of it starts, and how many these are, if they are its own.
    pub(super) fn own_info(&self) -> (u32, usize) {
        match &self.info {
            InfoBytes::Own {
                bytes, distance, ..
            } => (*distance, bytes.len()),
            InfoBytes::Oat { .. } => (0, 0),
        }
    }

    /// Code that starts at an address, and what the compiler noted down of it.
    ///
    /// # Errors
    ///
    /// That cannot be read.
    pub(super) fn new(
        start: u64,
        code: &[u8],
        owner: Owner,
        info: InfoBytes,
    ) -> Result<Self, CodeInfoError> {
        let frame_size = info.parse()?.frame_size;
        Ok(Self {
            bytes: match &info {
                InfoBytes::Own { .. } => code.to_vec(),
                InfoBytes::Oat { .. } => Vec::new(),
            },
            code: start..start.saturating_add(code.len() as u64),
            owner,
            rows: FrameRows::of(code, frame_size),
            info,
            calls: RefCell::default(),
            near: RefCell::default(),
        })
    }

    /// Bytes that are kept of it alone.
    pub(super) fn size(&self) -> usize {
        let info = match &self.info {
            InfoBytes::Own { bytes, .. } => bytes.len(),
            InfoBytes::Oat { .. } => 0,
        };
        let bytes = self.bytes.len().saturating_add(info);
        bytes.saturating_add(self.rows.size())
    }

    /// The dex file that a method is in that is inlined here; `outer`: that of the method whose code it is.
    pub(super) fn inlined_from(
        &self,
        dex_file: InlinedDexFile,
        outer: &Rc<CodeImage>,
        space: &AddressSpace,
    ) -> Option<Rc<CodeImage>> {
        match &self.info {
            InfoBytes::Own { .. } => None,
            InfoBytes::Oat { dex_files, .. } => dex_files.inlined(dex_file, outer, space),
        }
    }

    fn offset(&self, address: Address) -> u32 {
        let offset = address.get().saturating_sub(self.code.start);
        u32::try_from(offset).unwrap_or(u32::MAX)
    }

    /// How the frame of the instruction at an address is left.
    pub(super) fn rule(&self, address: Address) -> CodeRule {
        self.rows.rule(self.offset(address))
    }

    /// Where the frame that executes there has the method, in bytes from its stack pointer.
    pub(super) fn method_at(&self, frame: FrameAddress) -> Option<u32> {
        self.rows.method_at(self.offset(frame.lookup()))
    }

    /// The bytecode of the call that a frame has made; None: it is none that the compiler noted down.
    pub(super) fn call(&self, return_address: Address) -> Option<Rc<Call>> {
        let offset = self.offset(return_address);
        if let Some(call) = self.calls.borrow().get(&offset) {
            return call.clone();
        }
        let read = || -> Option<Rc<Call>> {
            let info = self.info.parse().ok()?;
            let map = info.stack_map_at(offset)?;
            let inlined = info
                .inlined(&map)
                .inspect_err(|error| tracing::debug!(%error, "inlined methods"))
                .ok()?;
            let dex_pc = map.dex_pc;
            Some(Rc::new(Call { dex_pc, inlined }))
        };
        let call = read();
        keep(&self.calls, offset, call.clone());
        call
    }

    /// The instruction of the method itself that the code at an address was compiled from, or one before it.
    pub(super) fn dex_pc_near(&self, address: Address) -> Option<CodeUnits> {
        let offset = self.offset(address);
        if let Some(near) = self.near.borrow().get(&offset) {
            return *near;
        }
        let read = || self.info.parse().ok()?.stack_map_before(offset)?.dex_pc;
        let near = read();
        keep(&self.near, offset, near);
        near
    }
}
