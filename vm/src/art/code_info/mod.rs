//! What did ART's compiler note down of a method's code? The size of its frame, and for each call which instructions of bytecode it is:
//! the method's own, and those of the methods that are inlined there.
//!
//! Source: runtime/stack_map.h of ART 11 and 14. The locations of dex registers, which come last, are not read.

mod bit_table;
#[cfg(test)]
mod tests;

use super::code_format::CodeFormat;
use super::method_header::MAX_SIZE;
use bit_table::{BitReader, BitTable};
use varid_model::{CodeUnits, Machine};

/// What a frame's size is a multiple of, in bytes.
const STACK_ALIGNMENT: u32 = 16;
/// Tables of a CodeInfo: a bit for each says that it is there, another that it is elsewhere.
const TABLES: u32 = 8;
/// The compiler inlines no more methods into each other: their instructions are at most 1024 (kMaximumNumberOfTotalInstructions).
const MAX_INLINED: usize = 1024;

/// What keeps a CodeInfo from being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CodeInfoError {
    /// The buffer ends before it does.
    #[error("a CodeInfo of ART needs {needed} bytes of its buffer or more, and there are less")]
    CutShort {
        /// Bytes from the buffer's start that are needed, or more: what is behind them may say so.
        needed: u64,
    },
    /// It breaks its format.
    #[error("a CodeInfo of ART is broken at bit {position} of its buffer: {problem}")]
    Broken {
        /// Bits from the buffer's start.
        position: u64,
        /// What is wrong.
        problem: &'static str,
    },
}

/// What the compiler noted down of a method's code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CodeInfo<'a> {
    /// Bytes of the code; None: the header before the code says it.
    pub(crate) code_size: Option<u32>,
    /// Bytes of a frame, with the return address; 0 of a method that has none of its own.
    ///
    /// The stub of a @CriticalNative method says 0, too, and saves no register, not even the return address: it keeps no method on
    /// the stack, and how much it has pushed is not told.
    pub(crate) frame_size: u32,
    /// Registers that the frame saves, a bit each, by the numbers of ART, which are those of the machine's instructions.
    #[cfg(test)]
    pub(crate) core_spill_mask: u32,
    /// The same of floating-point registers.
    #[cfg(test)]
    pub(crate) fp_spill_mask: u32,
    /// Registers of the method's bytecode.
    #[cfg(test)]
    pub(crate) dex_registers: u32,
    /// Bytes of the buffer from its start to the end of what was read of it.
    pub(crate) size: u64,
    /// Bytes that native pcs are multiples of.
    pc_unit: u32,
    stack_maps: BitTable<'a, 8>,
    inline_infos: BitTable<'a, 6>,
    /// Index of each inlined method that is named so.
    method_infos: MethodInfos<'a>,
}

/// What comes first in a CodeInfo.
struct Header {
    code_size: Option<u32>,
    packed_frame_size: u32,
    #[cfg(test)]
    core_spill_mask: u32,
    #[cfg(test)]
    fp_spill_mask: u32,
    #[cfg(test)]
    dex_registers: u32,
    /// A bit for each table that is there, another for each that is elsewhere.
    tables: u32,
}

impl Header {
    fn read(format: CodeFormat, reader: &mut BitReader<'_>) -> Result<Self, CodeInfoError> {
        #[cfg_attr(not(test), allow(unused_variables))]
        let (code_size, [flags, packed_frame_size, core, fp, dex_registers, tables]) = match format
        {
            CodeFormat::Android11 => (None, reader.header()?),
            CodeFormat::Android14 => {
                let [
                    flags,
                    code_size,
                    frame_size,
                    core,
                    fp,
                    dex_registers,
                    tables,
                ] = reader.header()?;
                let rest = [flags, frame_size, core, fp, dex_registers, tables];
                (Some(code_size), rest)
            }
        };
        let broken = |problem| CodeInfoError::Broken {
            position: reader.position(),
            problem,
        };
        if flags & !format.flags() != 0 {
            return Err(broken("flags that its release of ART does not know"));
        }
        if code_size.is_some_and(|size| size == 0 || size > MAX_SIZE) {
            return Err(broken("no code, or more than a code cache has"));
        }
        Ok(Self {
            code_size,
            packed_frame_size,
            #[cfg(test)]
            core_spill_mask: core,
            #[cfg(test)]
            fp_spill_mask: fp,
            #[cfg(test)]
            dex_registers,
            tables,
        })
    }
}

/// Bytes of the code whose CodeInfo starts at an offset of a buffer; None: the header before the code says it.
///
/// # Errors
/// [`CodeInfoError`]
pub(super) fn code_size(
    format: CodeFormat,
    buffer: &[u8],
    offset: u32,
) -> Result<Option<u32>, CodeInfoError> {
    let mut reader = BitReader::new(buffer, u64::from(offset) << 3);
    Ok(Header::read(format, &mut reader)?.code_size)
}

/// What inlined methods are named by.
#[derive(Debug, Clone, Copy)]
enum MethodInfos<'a> {
    /// Of ART 11: the index.
    Index(BitTable<'a, 1>),
    /// Of ART 14: the index, and which dex file.
    WithDexFile(BitTable<'a, 3>),
}

impl MethodInfos<'_> {
    /// The index in a row, and in which dex file it is one.
    fn index(&self, row: u32) -> Option<(InlinedDexFile, u32)> {
        /// The kind of a dex file that is the boot class path's.
        const BOOT_CLASS_PATH: u32 = 0;
        match self {
            Self::Index(table) => Some((InlinedDexFile::Outer, table.get(row, 0)?)),
            Self::WithDexFile(table) => {
                let dex_file = match (table.get(row, 1), table.get(row, 2)) {
                    (None, None) => InlinedDexFile::Outer,
                    (None, Some(number)) => InlinedDexFile::OatFile(number),
                    (Some(BOOT_CLASS_PATH), Some(number)) => InlinedDexFile::BootClassPath(number),
                    (Some(_), _) => return None,
                };
                Some((dex_file, table.get(row, 0)?))
            }
        }
    }
}

/// What a stack map is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StackMapKind {
    /// A call, or an instruction that may fault or throw.
    Default,
    /// Where an exception is caught.
    Catch,
    /// Where an interpreter may enter a loop; a call, too.
    Osr,
    /// What `--native-debuggable` notes down for a debugger.
    Debug,
    /// None that ART knows.
    Unknown,
}

/// Which bytecode a place in the code is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StackMap {
    /// What it is for.
    pub(crate) kind: StackMapKind,
    /// Bytes from the start of the code: of a call, the return address.
    pub(crate) pc_offset: u32,
    /// The instruction of the method whose code it is; with inlined methods, the outermost call. None: of no instruction.
    pub(crate) dex_pc: Option<CodeUnits>,
    /// Row of the outermost inlined method.
    inline_info: Option<u32>,
}

/// A method whose code is inlined at a place in another method's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InlinedMethod {
    /// Which.
    pub(crate) method: InlinedId,
    /// Its instruction. None: of no instruction.
    pub(crate) dex_pc: Option<CodeUnits>,
}

/// How an inlined method is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InlinedId {
    /// Address of its ArtMethod, in code that was compiled in the process.
    Pointer(u64),
    /// Index in a dex file, in code of an oat file.
    Index(InlinedDexFile, u32),
    /// String.charAt, by its index in the dex file that defines java.lang.String. It has no instruction.
    CharAt(u32),
}

/// The dex file that an inlined method is in.
///
/// ART 11's dex2oat notes down calls of no method that it has inlined from another dex file but String.charAt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InlinedDexFile {
    /// That of the method whose code it is.
    Outer,
    /// By its number in the oat file.
    OatFile(u32),
    /// By its number in the boot class path.
    BootClassPath(u32),
}

impl<'a> CodeInfo<'a> {
    /// Reads what starts at a buffer's first byte, as in the code cache of a JIT.
    ///
    /// # Errors
    /// [`CodeInfoError::CutShort`] if the buffer is too short, with what it takes or more: one who copies it from a process may
    /// begin with the header's three bytes. What it takes is up to the process: a sane limit is the reader's.
    pub(crate) fn parse(
        format: CodeFormat,
        machine: Machine,
        bytes: &'a [u8],
    ) -> Result<Self, CodeInfoError> {
        Self::parse_at(format, machine, bytes, 0)
    }

    /// Reads what starts at an offset of a buffer: in an oat file a table may be an earlier CodeInfo's.
    ///
    /// # Errors
    /// [`CodeInfoError`]; of one that is cut short the size counts from the buffer's start.
    pub(crate) fn parse_at(
        format: CodeFormat,
        machine: Machine,
        buffer: &'a [u8],
        offset: u32,
    ) -> Result<Self, CodeInfoError> {
        let mut reader = BitReader::new(buffer, u64::from(offset) << 3);
        let header = Header::read(format, &mut reader)?;
        let broken = |problem| CodeInfoError::Broken {
            position: reader.position(),
            problem,
        };
        let tables = header.tables;
        let frame_size = header
            .packed_frame_size
            .checked_mul(STACK_ALIGNMENT)
            .ok_or(broken("a frame of more than 4 GB"))?;
        let stack_maps = table(&mut reader, tables, 0)?.of_numbers()?;
        let _register_masks: BitTable<'_, 2> = table(&mut reader, tables, 1)?;
        let _stack_masks: BitTable<'_, 1> = table(&mut reader, tables, 2)?;
        let inline_infos = table(&mut reader, tables, 3)?.of_numbers()?;
        let method_infos = match format {
            CodeFormat::Android11 => {
                MethodInfos::Index(table(&mut reader, tables, 4)?.of_numbers()?)
            }
            CodeFormat::Android14 => {
                MethodInfos::WithDexFile(table(&mut reader, tables, 4)?.of_numbers()?)
            }
        };
        Ok(Self {
            code_size: header.code_size,
            frame_size,
            #[cfg(test)]
            core_spill_mask: header.core_spill_mask,
            #[cfg(test)]
            fp_spill_mask: header.fp_spill_mask,
            #[cfg(test)]
            dex_registers: header.dex_registers,
            size: reader.position().div_ceil(8),
            pc_unit: match machine {
                Machine::X86_64 | Machine::X86 => 1,
                Machine::Arm => 2,
                Machine::Aarch64 => 4,
            },
            stack_maps,
            inline_infos,
            method_infos,
        })
    }

    /// The stack map of a return address, by its distance from the start of the code: on Arm both are without the bit that stands
    /// for Thumb.
    ///
    /// Of several with the same pc it is the first that is a call's, as ART has it; those of caught exceptions and for debuggers are
    /// none.
    pub(crate) fn stack_map_at(&self, pc_offset: u32) -> Option<StackMap> {
        let first = self.first_not(|map| map.pc_offset < pc_offset);
        (first..self.stack_maps.rows())
            .map_while(|row| self.stack_map(row))
            .take_while(|map| map.pc_offset == pc_offset)
            .find(|map| matches!(map.kind, StackMapKind::Default | StackMapKind::Osr))
    }

    /// The last stack map that is not behind a pc, by its distance from the start of the code: of a leaf, the last call or check before
    /// it in the code, which need not be the last that was executed.
    pub(crate) fn stack_map_before(&self, pc_offset: u32) -> Option<StackMap> {
        let behind = self.first_not(|map| map.pc_offset <= pc_offset);
        self.stack_map(behind.checked_sub(1)?)
    }

    /// All stack maps: in the order of their pcs, then those of caught exceptions.
    pub(crate) fn stack_maps(&self) -> impl Iterator<Item = StackMap> {
        (0..self.stack_maps.rows()).map_while(|row| self.stack_map(row))
    }

    /// The methods that are inlined at a place in the code, from the outermost to the innermost.
    ///
    /// # Errors
    /// [`CodeInfoError::Broken`] if they have no end or one has no name.
    pub(crate) fn inlined(&self, map: &StackMap) -> Result<Vec<InlinedMethod>, CodeInfoError> {
        let mut methods = Vec::new();
        let mut next = map.inline_info;
        while let Some(row) = next {
            let method = self
                .inlined_method(row)
                .filter(|_| methods.len() < MAX_INLINED);
            methods.push(method.ok_or(CodeInfoError::Broken {
                position: self.inline_infos.position(),
                problem: "inlined methods without an end or without a name",
            })?);
            let has_more = self.inline_infos.get(row, 0) == Some(0);
            next = has_more.then(|| row.saturating_add(1));
        }
        Ok(methods)
    }

    fn inlined_method(&self, row: u32) -> Option<InlinedMethod> {
        let column = |column| self.inline_infos.get(row, column);
        let dex_pc = column(1).map(CodeUnits::new);
        let method = match (column(4), column(2)) {
            (Some(low), _) => {
                // The one number that cannot be told from none.
                let high = column(3).unwrap_or(u32::MAX);
                InlinedId::Pointer(u64::from(high) << 32 | u64::from(low))
            }
            (None, Some(name)) => {
                let (dex_file, index) = self.method_infos.index(name)?;
                match dex_pc {
                    Some(_) => InlinedId::Index(dex_file, index),
                    None => InlinedId::CharAt(index),
                }
            }
            (None, None) => return None,
        };
        Some(InlinedMethod { method, dex_pc })
    }

    /// The first row for which this is false: those of caught exceptions are behind all others, in any order.
    fn first_not(&self, is_before: impl Fn(&StackMap) -> bool) -> u32 {
        self.stack_maps.partition_point(|row| {
            let map = self.stack_map(row);
            map.is_some_and(|map| map.kind != StackMapKind::Catch && is_before(&map))
        })
    }

    /// None: no such row, or one without a pc.
    fn stack_map(&self, row: u32) -> Option<StackMap> {
        let column = |column| self.stack_maps.get(row, column);
        Some(StackMap {
            kind: match column(0) {
                None => StackMapKind::Default,
                Some(0) => StackMapKind::Catch,
                Some(1) => StackMapKind::Osr,
                Some(2) => StackMapKind::Debug,
                Some(_) => StackMapKind::Unknown,
            },
            pc_offset: column(1)?.checked_mul(self.pc_unit)?,
            dex_pc: column(2).map(CodeUnits::new),
            inline_info: column(5),
        })
    }
}

/// The next table of a CodeInfo, by its number: here, or elsewhere in the buffer, if there is one.
fn table<'a, const N: usize>(
    reader: &mut BitReader<'a>,
    tables: u32,
    number: u32,
) -> Result<BitTable<'a, N>, CodeInfoError> {
    let has = |bit: u32| tables.checked_shr(bit).is_some_and(|bits| bits & 1 != 0);
    if !has(number) {
        return Ok(BitTable::EMPTY);
    }
    if !has(TABLES.saturating_add(number)) {
        return BitTable::read(reader);
    }
    let position = reader.position();
    let [distance] = reader.header()?;
    let earlier = position.checked_sub(distance.into());
    let earlier = earlier.ok_or(CodeInfoError::Broken {
        position,
        problem: "a table before the buffer",
    })?;
    BitTable::read(&mut reader.at(earlier))
}
