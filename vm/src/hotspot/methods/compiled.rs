//! What is a compiled method: its code, its frames, its debug information?

use super::debug_info::DebugInfo;
use super::error::{MethodError, Result};
use super::frames::{CompiledScope, CompiledScopes, Precision};
use super::ids::{Bci, CodeKey, CompileId, MethodPointer};
use super::structure::Structure;
use crate::hotspot::jvm::Jvm;
use crate::hotspot::layout::{BlobCode, DeoptHandlers, EntryPoints, NmethodData};
use crate::hotspot::member::Member;
use std::collections::BTreeSet;
use std::ops::Range;
use varid_model::{Address, FrameAddress};
use varid_tunnel::Memory;

/// The most bytes of a compiled method's debug information. C2 gives up long before.
const MAX_DATA: u64 = 1 << 23;
/// The most bytes of a code blob.
const MAX_BLOB: u64 = 1 << 27;

/// A compiled method, `nmethod`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompiledMethod {
    /// The address of its code blob.
    pub blob: Address,
    /// The number of its compilation.
    pub compile_id: CompileId,
    /// The method that was compiled.
    pub method: MethodPointer,
    /// `_comp_level`: 1 to 3 C1, 4 C2, 0 a wrapper of a native method.
    pub level: u8,
    /// Where it is entered.
    pub entry: CompiledEntry,
    /// Its instructions.
    pub code: Range<Address>,
    /// Its frames.
    pub frame: CompiledFrameLayout,
    /// What its code addresses execute.
    debug_info: DebugInfo,
}

/// Where a compiled method is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompiledEntry {
    /// At its first instruction.
    Invocation,
    /// At a loop, from an interpreter frame (on-stack replacement).
    Loop(Bci),
}

/// What is known of the frames of a compiled method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompiledFrameLayout {
    /// Its size in words, with the return address. None if it has none.
    pub words: Option<u32>,
    /// Where it is entered without a check of the receiver's class. The code before makes no frame.
    pub entered: Address,
    /// The first instruction with a complete frame: those before it belong to the compiled method itself. None if that is not known.
    pub complete: Option<Address>,
    /// Bytes from the stack pointer to the return address that deoptimisation has replaced by a handler.
    pub original_pc: u32,
    /// The handler of usual calls: the return address of a frame that is deoptimised. None if there is none.
    pub deopt_call: Option<Address>,
    /// The same of calls through method handles.
    pub deopt_method_handle: Option<Address>,
}

impl CompiledFrameLayout {
    /// Returns true if a frame with this return address is deoptimised: the original one is in the frame.
    pub fn is_deoptimised(&self, returns: Address) -> bool {
        [self.deopt_call, self.deopt_method_handle].contains(&Some(returns))
    }
}

impl CompiledMethod {
    /// Reads a compiled method in two or three reads. Only if [`Self::check_current`] says so afterwards, it has not been replaced meanwhile.
    pub(super) fn read(jvm: &Jvm, key: CodeKey, memory: &dyn Memory) -> Result<Self> {
        let CodeKey { blob, compile_id } = key;
        let header = Header::read(jvm, blob, memory)?;
        if header.compile_id()? != compile_id {
            let expected = compile_id;
            return Err(MethodError::Replaced { blob, expected });
        }
        match header.is_installed()? {
            true => header.compiled(memory),
            false => Err(MethodError::NotInstalled(key)),
        }
    }

    /// Checks that its blob still has it. The VM frees the code, and writes that of another method there.
    pub(super) fn check_current(&self, jvm: &Jvm, memory: &dyn Memory) -> Result<()> {
        let header = Header::read(jvm, self.blob, memory)?;
        let is_same = header.compile_id()? == self.compile_id
            && header.copy.pointer(jvm.layout.nmethod.method)? == self.method.0
            && header.code()? == self.code;
        match is_same {
            true => Ok(()),
            false => Err(MethodError::Replaced {
                blob: self.blob,
                expected: self.compile_id,
            }),
        }
    }

    /// Returns the methods that an address of its code executes.
    ///
    /// # Errors
    ///
    /// Its debug information contradicts itself.
    pub fn scopes_at(&self, address: FrameAddress) -> Result<CompiledScopes, MethodError> {
        if let FrameAddress::Instruction(pc) = address
            && self.code.contains(&pc)
            && self.frame.complete.is_some_and(|complete| pc < complete)
        {
            let method = self.method;
            return Ok(CompiledScopes {
                precision: Precision::Approximate,
                scopes: vec![CompiledScope { method, bci: None }],
            });
        }
        self.debug_info
            .scopes_at(address, self.code.start, self.method)
    }

    /// Returns the compiled method and those that are inlined into it.
    pub fn methods(&self) -> BTreeSet<MethodPointer> {
        let mut methods = self.debug_info.methods();
        methods.insert(self.method);
        methods
    }

    /// Returns the code addresses that have debug information: return addresses and safepoints.
    pub fn described_addresses(&self) -> impl Iterator<Item = Address> {
        let descs = self.debug_info.pc_descs.iter();
        let described = descs.filter(|desc| desc.scope != 0);
        described.map(|desc| self.code.start.wrapping_add(desc.pc_offset.into()))
    }

    /// Its size in memory, in bytes.
    pub(super) fn size(&self) -> usize {
        size_of::<Self>().saturating_add(self.debug_info.size())
    }
}

/// The header of a compiled method.
struct Header<'j> {
    jvm: &'j Jvm,
    copy: Structure,
}

/// Where the parts of the debug information are.
struct DataRanges {
    metadata: Range<Address>,
    scopes: Range<Address>,
    pc_descs: Range<Address>,
}

const NMETHOD: &str = "an nmethod";

/// Returns the members of a compiled method's header that are read.
pub(super) fn header_members(jvm: &Jvm) -> Vec<Member> {
    let (base, layout) = (&jvm.layout.code_blob, &jvm.layout.nmethod);
    let (begin, end) = match base.code {
        BlobCode::Pointers { begin, end } | BlobCode::Offsets { begin, end } => (begin, end),
    };
    let (call, method_handle) = match layout.deopt_handlers {
        DeoptHandlers::Pointers {
            call,
            method_handle,
        }
        | DeoptHandlers::Offsets {
            call,
            method_handle,
        } => (call, method_handle),
    };
    let verified = match layout.entries {
        EntryPoints::Pointers { verified, .. } | EntryPoints::Offsets { verified, .. } => verified,
    };
    let mut members = vec![base.name, base.size, base.frame_size, base.frame_complete];
    members.extend([begin, end, call, method_handle, verified]);
    members.extend([
        layout.method,
        layout.entry_bci,
        layout.state,
        layout.compile_id,
        layout.comp_level,
        layout.orig_pc_offset,
    ]);
    members.extend(data_members(&layout.data));
    members
}

impl<'j> Header<'j> {
    fn read(jvm: &'j Jvm, blob: Address, memory: &dyn Memory) -> Result<Self> {
        let copy = Structure::with_members(NMETHOD, blob, &header_members(jvm), memory)?;
        Ok(Self { jvm, copy })
    }

    fn compile_id(&self) -> Result<CompileId> {
        let id = self.copy.number(self.jvm.layout.nmethod.compile_id)?;
        Ok(CompileId(id as u32))
    }

    /// Returns false before the code is entered for the first time.
    fn is_installed(&self) -> Result<bool> {
        Ok(self.copy.signed(self.jvm.layout.nmethod.state)? >= 0)
    }

    fn compiled(&self, memory: &dyn Memory) -> Result<CompiledMethod> {
        let layout = &self.jvm.layout.nmethod;
        let method = self.copy.pointer(layout.method)?;
        if method.get() == 0 {
            let why = "it has no method";
            return Err(MethodError::implausible("nmethod::_method", 0, why));
        }
        let entry_bci = self.copy.signed(layout.entry_bci)?;
        let entry = match u16::try_from(entry_bci) {
            Ok(bci) => CompiledEntry::Loop(Bci::new(bci)),
            Err(_) => CompiledEntry::Invocation,
        };
        Ok(CompiledMethod {
            blob: self.copy.address,
            compile_id: self.compile_id()?,
            method: MethodPointer(method),
            level: self.copy.number(layout.comp_level)? as u8,
            entry,
            code: self.code()?,
            frame: self.frame()?,
            debug_info: self.debug_info(memory)?,
        })
    }

    /// Returns the memory of the blob.
    fn extent(&self) -> Result<Range<Address>> {
        let start = self.copy.address;
        let size = self.copy.number(self.jvm.layout.code_blob.size)?;
        match size <= MAX_BLOB {
            true => Ok(start..start.wrapping_add(size)),
            false => {
                let why = "no code blob has this size";
                Err(MethodError::implausible("CodeBlob::_size", size, why))
            }
        }
    }

    fn code(&self) -> Result<Range<Address>> {
        let behind_blob = |offset| self.behind_blob(offset);
        let code = match self.jvm.layout.code_blob.code {
            BlobCode::Pointers { begin, end } => {
                self.copy.pointer(begin)?..self.copy.pointer(end)?
            }
            BlobCode::Offsets { begin, end } => behind_blob(begin)?..behind_blob(end)?,
        };
        within(&self.extent()?, code, "the code of an nmethod")
    }

    fn frame(&self) -> Result<CompiledFrameLayout> {
        let layout = &self.jvm.layout;
        let (call, method_handle) = match layout.nmethod.deopt_handlers {
            DeoptHandlers::Pointers {
                call,
                method_handle,
            } => [call, method_handle].map(|it| self.copy.pointer(it)).into(),
            DeoptHandlers::Offsets {
                call,
                method_handle,
            } => [call, method_handle].map(|it| self.behind_blob(it)).into(),
        };
        let extent = self.extent()?;
        let inside = |handler: &Address| extent.contains(handler);
        let words = self.copy.signed(layout.code_blob.frame_size)?;
        let code = self.code()?;
        let entered = match layout.nmethod.entries {
            EntryPoints::Pointers { verified, .. } => self.copy.pointer(verified)?,
            EntryPoints::Offsets { verified, .. } => {
                code.start.wrapping_add(self.copy.number(verified)?)
            }
        };
        let complete = self.copy.signed(layout.code_blob.frame_complete)?;
        let complete = u64::try_from(complete).ok();
        let complete = complete.map(|offset| code.start.wrapping_add(offset));
        Ok(CompiledFrameLayout {
            words: u32::try_from(words).ok().filter(|words| *words > 0),
            entered: Some(entered)
                .filter(|entered| code.contains(entered))
                .unwrap_or(code.start),
            complete: complete.filter(|complete| code.contains(complete)),
            original_pc: self.copy.number(layout.nmethod.orig_pc_offset)? as u32,
            deopt_call: Some(call?).filter(inside),
            deopt_method_handle: Some(method_handle?).filter(inside),
        })
    }

    /// Reads the debug information, which is in the blob or in up to two other places.
    fn debug_info(&self, memory: &dyn Memory) -> Result<DebugInfo> {
        let ranges = self.data_ranges()?;
        let first = ranges.metadata.start.min(ranges.scopes.start);
        let last = ranges.metadata.end.max(ranges.pc_descs.end);
        let read = |range: &Range<Address>| {
            let size = range.end.offset_from(range.start).unwrap_or(0);
            Structure::read(DATA, range.start, size, MAX_DATA, memory)
        };
        let is_one = matches!(self.jvm.layout.nmethod.data, NmethodData::InBlob { .. });
        let (metadata, scopes, pc_descs) = match is_one {
            true => {
                let all = read(&(first..last))?;
                let part = |range: &Range<Address>| all.range(range);
                (
                    part(&ranges.metadata)?,
                    part(&ranges.scopes)?,
                    part(&ranges.pc_descs)?,
                )
            }
            false => {
                // Both are attempted before an error ends it.
                let metadata = read(&ranges.metadata);
                let all = read(&(ranges.pc_descs.start..ranges.scopes.end))?;
                let part = |range: &Range<Address>| all.range(range);
                (metadata?, part(&ranges.scopes)?, part(&ranges.pc_descs)?)
            }
        };
        Ok(DebugInfo {
            pc_descs: DebugInfo::pc_descs(&pc_descs, &self.jvm.layout.pc_desc)?,
            scopes: scopes.bytes.into(),
            metadata: metadata.pointers(),
            encoding: self.jvm.unexported.numbers,
        })
    }

    fn data_ranges(&self) -> Result<DataRanges> {
        let copy = &self.copy;
        match self.jvm.layout.nmethod.data {
            NmethodData::InBlob {
                metadata,
                scopes_data,
                scopes_pcs,
                scopes_pcs_end,
            } => {
                let extent = self.extent()?;
                let scopes = copy.pointer(scopes_data)?;
                let pc_descs = self.behind_blob(scopes_pcs)?;
                let end = self.behind_blob(scopes_pcs_end)?;
                Ok(DataRanges {
                    metadata: within(&extent, self.behind_blob(metadata)?..scopes, DATA)?,
                    scopes: within(&extent, scopes..pc_descs, DATA)?,
                    pc_descs: within(&extent, pc_descs..end, DATA)?,
                })
            }
            NmethodData::Apart {
                immutable,
                immutable_size,
                scopes_pcs,
                scopes_data,
                mutable,
                mutable_size,
                relocation_size,
            } => {
                let start = copy.pointer(immutable)?;
                let fixed = start..start.wrapping_add(copy.number(immutable_size)?);
                let pc_descs = start.wrapping_add(copy.number(scopes_pcs)?);
                let scopes = start.wrapping_add(copy.number(scopes_data)?);
                let start = copy.pointer(mutable)?;
                let changed = start..start.wrapping_add(copy.number(mutable_size)?);
                let metadata = start.wrapping_add(copy.number(relocation_size)?);
                Ok(DataRanges {
                    metadata: within(&changed, metadata..changed.end, DATA)?,
                    scopes: within(&fixed, scopes..fixed.end, DATA)?,
                    pc_descs: within(&fixed, pc_descs..scopes, DATA)?,
                })
            }
        }
    }

    /// Returns the address that is so many bytes behind the blob's.
    fn behind_blob(&self, offset: Member) -> Result<Address> {
        let offset = self.copy.signed(offset)?;
        Ok(self.copy.address.wrapping_add_signed(offset))
    }
}

const DATA: &str = "the debug information of an nmethod";

fn data_members(data: &NmethodData) -> Vec<Member> {
    match *data {
        NmethodData::InBlob {
            metadata,
            scopes_data,
            scopes_pcs,
            scopes_pcs_end,
        } => vec![metadata, scopes_data, scopes_pcs, scopes_pcs_end],
        NmethodData::Apart {
            immutable,
            immutable_size,
            scopes_pcs,
            scopes_data,
            mutable,
            mutable_size,
            relocation_size,
        } => vec![
            immutable,
            immutable_size,
            scopes_pcs,
            scopes_data,
            mutable,
            mutable_size,
            relocation_size,
        ],
    }
}

/// Returns `range` if it is inside `all`.
fn within(
    all: &Range<Address>,
    range: Range<Address>,
    what: &'static str,
) -> Result<Range<Address>> {
    let is_inside = all.start <= range.start && range.start <= range.end && range.end <= all.end;
    match is_inside {
        true => Ok(range),
        false => {
            let why = "it is outside of its memory";
            Err(MethodError::implausible(what, range.start.get(), why))
        }
    }
}
