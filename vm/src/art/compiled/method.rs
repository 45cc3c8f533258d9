//! One method's compiled code.

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

/// The method that owns the code.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Owner {
    /// The method with this pointer of the VM: the code was compiled in the process.
    Pointer(u64),
    /// Methods of dex files. An oat file has equal code only once.
    Dex(Vec<DexMethod>),
    /// Native methods with the same parameters. A frame of the JIT's stub shows which of them.
    Stub,
}

/// A method of a dex file that has code in an oat file.
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
    /// In a buffer of its own.
    Own {
        format: CodeFormat,
        bytes: Vec<u8>,
        /// Its distance before the code, in bytes.
        distance: u32,
    },
    /// At an offset in an oat file, where it may share bytes with others.
    Oat {
        format: CodeFormat,
        bytes: Rc<[u8]>,
        offset: u32,
        /// The dex files of the methods that it refers to.
        dex_files: Rc<OatDexFiles>,
    },
}

/// A method's compiled code.
#[derive(Debug)]
pub(super) struct CompiledMethod {
    /// Its instructions, unless an oat file contains them.
    bytes: Vec<u8>,
    /// Addresses of its instructions.
    pub(super) code: Range<u64>,
    /// The method that owns it.
    pub(super) owner: Owner,
    rows: FrameRows,
    info: InfoBytes,
    /// Calls that have been read from `info`, by the offset of the return address.
    calls: RefCell<BTreeMap<u32, Option<Rc<Call>>>>,
    /// The same for instructions that are not calls. Leaves are at few of them.
    near: RefCell<BTreeMap<u32, Option<CodeUnits>>>,
}

/// The most places in the code that are kept. Real methods have a few hundred.
const MAX_PLACES: usize = 4096;

/// Caches the result for a place in some code.
fn keep<T>(places: &RefCell<BTreeMap<u32, T>>, offset: u32, found: T) {
    let mut places = places.borrow_mut();
    if places.len() >= MAX_PLACES {
        places.clear();
    }
    places.insert(offset, found);
}

/// The bytecode of a call in compiled code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    /// The instruction of the method that owns the code. None: no instruction.
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
    /// Returns true if it is this code of this method.
    pub(super) fn is(&self, start: u64, code: &[u8], owner: &Owner, info: &InfoBytes) -> bool {
        self.code.start == start && self.bytes == code && self.owner == *owner && self.info == *info
    }

    /// Returns true if these are its bytes, its method, and its CodeInfo.
    pub(super) fn has(&self, code: &[u8], owner: &Owner, info: &[u8]) -> bool {
        let is_info =
            matches!(&self.info, InfoBytes::Own { bytes, .. } if bytes.as_slice() == info);
        is_info && self.bytes == code && self.owner == *owner
    }

    /// Returns the distance of its CodeInfo before the code and the size of the CodeInfo, in bytes, if it has its own.
    pub(super) fn own_info(&self) -> (u32, usize) {
        match &self.info {
            InfoBytes::Own {
                bytes, distance, ..
            } => (*distance, bytes.len()),
            InfoBytes::Oat { .. } => (0, 0),
        }
    }

    /// Makes the code that starts at an address, with its CodeInfo.
    ///
    /// # Errors
    ///
    /// The CodeInfo cannot be read.
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
            rows: FrameRows::of(Machine::NATIVE, code, frame_size),
            info,
            calls: RefCell::default(),
            near: RefCell::default(),
        })
    }

    /// The bytes of memory that it takes by itself.
    pub(super) fn size(&self) -> usize {
        let info = match &self.info {
            InfoBytes::Own { bytes, .. } => bytes.len(),
            InfoBytes::Oat { .. } => 0,
        };
        let bytes = self.bytes.len().saturating_add(info);
        bytes.saturating_add(self.rows.size())
    }

    /// Returns the dex file of an inlined method. `outer`: the dex file of the method that owns the code.
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

    /// Returns how the frame at an instruction is unwound.
    pub(super) fn rule(&self, address: Address) -> CodeRule {
        self.rows.rule(self.offset(address))
    }

    /// Returns the location of the method in a frame that executes there, in bytes from its stack pointer.
    pub(super) fn method_at(&self, frame: FrameAddress) -> Option<u32> {
        self.rows.method_at(self.offset(frame.lookup()))
    }

    /// Returns the bytecode of a frame's call. None if the compiler did not record the call.
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

    /// Returns the instruction of the method itself that the code at an address was compiled from, or one before it.
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
