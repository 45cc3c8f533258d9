//! ART's CodeInfo: what the compiler recorded about a method's code. It has the size of the frame, and for each call the bytecode
//! instructions that the call belongs to: the method's own, and those of the methods that are inlined there.
//!
//! Source: runtime/stack_map.h of ART 11 and 14. The locations of dex registers, which come last, are not read.

mod bit_table;
#[cfg(test)]
mod tests;

use super::code_format::CodeFormat;
use super::method_header::MAX_SIZE;
use bit_table::{BitReader, BitTable};
use varid_model::{CodeUnits, Machine};

/// Frame sizes are multiples of this number of bytes.
const STACK_ALIGNMENT: u32 = 16;
/// Tables of a CodeInfo. For each, one bit says that it is present, and another that it is stored elsewhere.
const TABLES: u32 = 8;
/// The most methods that the compiler inlines into each other: their instructions are at most 1024 (kMaximumNumberOfTotalInstructions).
const MAX_INLINED: usize = 1024;

/// Why a CodeInfo cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CodeInfoError {
    /// The buffer ends before the CodeInfo does.
    #[error("a CodeInfo of ART needs {needed} bytes of its buffer or more, and there are less")]
    CutShort {
        /// The bytes that are needed from the buffer's start, at least: the missing ones may call for more.
        needed: u64,
    },
    /// It violates its format.
    #[error("a CodeInfo of ART is broken at bit {position} of its buffer: {problem}")]
    Broken {
        /// Position in bits from the buffer's start.
        position: u64,
        /// What is wrong.
        problem: &'static str,
    },
}

/// What the compiler recorded about a method's code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CodeInfo<'a> {
    /// Size of the code in bytes. None: the header before the code has it.
    pub(crate) code_size: Option<u32>,
    /// Size of a frame in bytes, with the return address. 0 if the method has no frame of its own.
    ///
    /// The stub of a @CriticalNative method has 0, too. It saves no register, not even the return address, and keeps no method on the
    /// stack. How much it has pushed is not recorded.
    pub(crate) frame_size: u32,
    /// Bit mask of the registers that the frame saves, by ART's numbers, which are those in the machine's instructions.
    #[cfg(test)]
    pub(crate) core_spill_mask: u32,
    /// The same for floating-point registers.
    #[cfg(test)]
    pub(crate) fp_spill_mask: u32,
    /// Number of registers of the method's bytecode.
    #[cfg(test)]
    pub(crate) dex_registers: u32,
    /// Bytes from the start of the buffer to the end of what was read.
    pub(crate) size: u64,
    /// Native pcs are multiples of this number of bytes.
    pc_unit: u32,
    stack_maps: BitTable<'a, 8>,
    inline_infos: BitTable<'a, 6>,
    /// The indices of inlined methods that are identified by index.
    method_infos: MethodInfos<'a>,
}

/// The beginning of a CodeInfo.
struct Header {
    code_size: Option<u32>,
    packed_frame_size: u32,
    #[cfg(test)]
    core_spill_mask: u32,
    #[cfg(test)]
    fp_spill_mask: u32,
    #[cfg(test)]
    dex_registers: u32,
    /// One bit for each table that is present, another for each that is stored elsewhere.
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

/// Returns the size in bytes of the code whose CodeInfo starts at an offset of a buffer. None: the header before the code has it.
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

/// How inlined methods are identified.
#[derive(Debug, Clone, Copy)]
enum MethodInfos<'a> {
    /// ART 11: by index.
    Index(BitTable<'a, 1>),
    /// ART 14: by index and dex file.
    WithDexFile(BitTable<'a, 3>),
}

impl MethodInfos<'_> {
    /// Returns the index in a row, and the dex file that it refers to.
    fn index(&self, row: u32) -> Option<(InlinedDexFile, u32)> {
        /// The kind of dex file that is in the boot class path.
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

/// The purpose of a stack map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StackMapKind {
    /// A call, or an instruction that may fault or throw.
    Default,
    /// A place where an exception is caught.
    Catch,
    /// A place where an interpreter may enter a loop (on-stack replacement). It is a call, too.
    Osr,
    /// Recorded for a debugger, by `--native-debuggable`.
    Debug,
    /// A kind that ART does not define.
    Unknown,
}

/// The bytecode that a place in the code belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StackMap {
    /// Its purpose.
    pub(crate) kind: StackMapKind,
    /// Bytes from the start of the code. For a call, this is the return address.
    pub(crate) pc_offset: u32,
    /// The instruction of the method that owns the code. With inlined methods, it is the outermost call. None: no instruction.
    pub(crate) dex_pc: Option<CodeUnits>,
    /// Row of the outermost inlined method.
    inline_info: Option<u32>,
}

/// A method whose code is inlined at a place in another method's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InlinedMethod {
    /// The method.
    pub(crate) method: InlinedId,
    /// Its instruction. None: no instruction.
    pub(crate) dex_pc: Option<CodeUnits>,
}

/// The identity of an inlined method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InlinedId {
    /// Address of its ArtMethod, in code that was compiled in the process.
    Pointer(u64),
    /// Index in a dex file, in code of an oat file.
    Index(InlinedDexFile, u32),
    /// String.charAt, by its index in the dex file that defines java.lang.String. It has no instruction.
    CharAt(u32),
}

/// The dex file of an inlined method.
///
/// ART 11's dex2oat records no calls of methods that it has inlined from another dex file, except String.charAt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InlinedDexFile {
    /// That of the method that owns the code.
    Outer,
    /// By its number in the oat file.
    OatFile(u32),
    /// By its number in the boot class path.
    BootClassPath(u32),
}

impl<'a> CodeInfo<'a> {
    /// Parses the CodeInfo at a buffer's first byte, as in the code cache of a JIT.
    ///
    /// # Errors
    /// [`CodeInfoError::CutShort`] if the buffer is too short, with a lower bound of the size that is needed. A caller that copies the
    /// CodeInfo from a process may begin with the header's three bytes. The process determines the size, so the caller must limit it.
    pub(crate) fn parse(
        format: CodeFormat,
        machine: Machine,
        bytes: &'a [u8],
    ) -> Result<Self, CodeInfoError> {
        Self::parse_at(format, machine, bytes, 0)
    }

    /// Parses the CodeInfo at an offset of a buffer. In an oat file, a table may be stored in an earlier CodeInfo.
    ///
    /// # Errors
    /// [`CodeInfoError`]. The size in `CutShort` counts from the buffer's start.
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

    /// Returns the stack map of a return address, by its distance from the start of the code. On Arm, both are without the Thumb bit.
    ///
    /// If several stack maps have the same pc, the result is the first one of a call, as in ART. Those of caught exceptions and for
    /// debuggers are ignored.
    pub(crate) fn stack_map_at(&self, pc_offset: u32) -> Option<StackMap> {
        let first = self.first_not(|map| map.pc_offset < pc_offset);
        (first..self.stack_maps.rows())
            .map_while(|row| self.stack_map(row))
            .take_while(|map| map.pc_offset == pc_offset)
            .find(|map| matches!(map.kind, StackMapKind::Default | StackMapKind::Osr))
    }

    /// Returns the last stack map at or before a pc, by its distance from the start of the code. For a leaf, that is the last call or check
    /// before it in the code, which need not be the last one that was executed.
    pub(crate) fn stack_map_before(&self, pc_offset: u32) -> Option<StackMap> {
        let behind = self.first_not(|map| map.pc_offset <= pc_offset);
        self.stack_map(behind.checked_sub(1)?)
    }

    /// Returns all stack maps in the order of their pcs, then those of caught exceptions.
    pub(crate) fn stack_maps(&self) -> impl Iterator<Item = StackMap> {
        (0..self.stack_maps.rows()).map_while(|row| self.stack_map(row))
    }

    /// Returns the methods that are inlined at a place in the code, from the outermost to the innermost.
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
                // The only number that is stored like a missing one.
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

    /// Returns the first row for which `is_before` is false. Stack maps of caught exceptions come after all others, in any order.
    fn first_not(&self, is_before: impl Fn(&StackMap) -> bool) -> u32 {
        self.stack_maps.partition_point(|row| {
            let map = self.stack_map(row);
            map.is_some_and(|map| map.kind != StackMapKind::Catch && is_before(&map))
        })
    }

    /// Returns the stack map in a row. None if there is no such row, or it has no pc.
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

/// Reads the next table of a CodeInfo, by its number: at this position or elsewhere in the buffer. Empty if there is none.
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
