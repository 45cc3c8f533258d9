//! Reads the VM's flags: which collector it has, and how it keeps code and class pointers.

use super::error::{JvmError, Result};
use super::fields::Fields;
use super::member::{Member, Width};
use super::memory::PagedMemory;
use super::version::VmVersion;
use std::collections::HashMap;
use std::fmt;
use varid_model::Address;

/// The most flags of a VM. JDK 17 has 1,500.
const MAX_FLAGS: u64 = 1 << 13;
/// The longest name of a flag in bytes.
const MAX_NAME: usize = 128;
/// The largest alignment of code in bytes.
const MAX_ALIGNMENT: u64 = 1 << 12;

/// The first version without a flag for ZGC's generations: it always has them.
const GENERATIONAL_Z: u32 = 24;

/// Flags of a VM, after it has parsed its command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags {
    /// Which collector it uses.
    pub collector: Collector,
    /// `UseCompressedClassPointers`: objects have class pointers of 32 bits.
    pub compressed_class_pointers: bool,
    /// `SegmentedCodeCache`: stubs, code with and code without profiling have heaps of their own.
    pub segmented_code_cache: bool,
    /// `CodeEntryAlignment`, in bytes: a power of two.
    pub code_entry_alignment: u64,
    /// `DebugNonSafepoints`: there is debug information of instructions between safepoints, too.
    pub debug_non_safepoints: bool,
}

/// A garbage collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collector {
    /// `UseSerialGC`.
    Serial,
    /// `UseParallelGC`.
    Parallel,
    /// `UseG1GC`.
    G1,
    /// `UseZGC`, without generations.
    Z,
    /// `UseZGC`, with generations.
    GenerationalZ,
    /// `UseShenandoahGC`.
    Shenandoah,
    /// `UseEpsilonGC`: none.
    Epsilon,
}

impl fmt::Display for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Serial => "Serial",
            Self::Parallel => "Parallel",
            Self::G1 => "G1",
            Self::Z => "ZGC",
            Self::GenerationalZ => "generational ZGC",
            Self::Shenandoah => "Shenandoah",
            Self::Epsilon => "Epsilon",
        })
    }
}

/// The collectors' flags.
const COLLECTORS: [(&str, Collector); 6] = [
    ("UseSerialGC", Collector::Serial),
    ("UseParallelGC", Collector::Parallel),
    ("UseG1GC", Collector::G1),
    ("UseZGC", Collector::Z),
    ("UseShenandoahGC", Collector::Shenandoah),
    ("UseEpsilonGC", Collector::Epsilon),
];
/// The flag for ZGC's generations, in versions that have one.
const Z_GENERATIONAL: &str = "ZGenerational";

/// Where the table of flags is.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlagTable {
    /// `JVMFlag::flags`: a pointer to the flags.
    flags: Address,
    /// `JVMFlag::numFlags`: their number. The last one has no name.
    count: Address,
    /// The size of a flag in bytes.
    size: u32,
    /// `JVMFlag::_name`: a string of C.
    name: Member,
    /// `JVMFlag::_addr`: the address of its value.
    value: Member,
}

impl FlagTable {
    /// Takes it from a VM's fields.
    pub(super) fn take(fields: &mut Fields<'_>) -> Self {
        Self {
            flags: fields.address("JVMFlag::flags"),
            count: fields.address("JVMFlag::numFlags"),
            size: fields.size("JVMFlag"),
            name: fields.member("JVMFlag::_name"),
            value: fields.member("JVMFlag::_addr"),
        }
    }

    /// Returns the addresses of the values of those flags that are known here.
    fn addresses(&self, memory: &PagedMemory<'_>) -> Result<HashMap<String, Address>> {
        const TABLE: &str = "JVMFlag::flags";
        let flags = memory.pointer(TABLE, self.flags)?;
        let count = memory.number("JVMFlag::numFlags", self.count, Width::Eight)?;
        if flags.get() == 0 || count == 0 {
            return Err(JvmError::NotStarted("it has no flags yet"));
        }
        if count > MAX_FLAGS {
            let why = "no VM has as many flags";
            return Err(JvmError::implausible("JVMFlag::numFlags", count, why));
        }
        let mut found = HashMap::new();
        for index in 0..count {
            let flag = flags.wrapping_add(index.wrapping_mul(self.size.into()));
            let name = memory.pointer_in(TABLE, flag, self.name)?;
            if name.get() == 0 {
                break;
            }
            let name = memory.string(TABLE, name, MAX_NAME)?;
            if is_known(&name) {
                found.insert(name, memory.pointer_in(TABLE, flag, self.value)?);
            }
        }
        Ok(found)
    }
}

/// The flags other than those of collectors that are read.
const OTHERS: [&str; 5] = [
    Z_GENERATIONAL,
    "UseCompressedClassPointers",
    "SegmentedCodeCache",
    "CodeEntryAlignment",
    "DebugNonSafepoints",
];

fn is_known(name: &str) -> bool {
    OTHERS.contains(&name) || COLLECTORS.iter().any(|(known, _)| *known == name)
}

impl Flags {
    /// Reads the flags of a VM of a version.
    pub(super) fn read(
        table: &FlagTable,
        version: &VmVersion,
        memory: &PagedMemory<'_>,
    ) -> Result<Self> {
        let addresses = table.addresses(memory)?;
        let address = |name: &str| {
            let known = addresses.get(name).copied();
            known.ok_or_else(|| JvmError::NotExported {
                vm: version.to_string(),
                missing: vec![format!("the flag {name}")],
            })
        };
        let is_set = |name: &str| {
            let value = memory.number("the value of a flag", address(name)?, Width::One)?;
            Ok::<bool, JvmError>(value != 0)
        };
        let mut collector = None;
        for (name, its) in COLLECTORS {
            // A build need not have all of them.
            if addresses.contains_key(name) && is_set(name)? {
                collector = Some(its);
                break;
            }
        }
        let has_generations = match addresses.contains_key(Z_GENERATIONAL) {
            true => is_set(Z_GENERATIONAL)?,
            false => version.major >= GENERATIONAL_Z,
        };
        let collector = match collector {
            None => return Err(JvmError::NotStarted("it has no collector yet")),
            Some(Collector::Z) if has_generations => Collector::GenerationalZ,
            Some(collector) => collector,
        };
        const ALIGNMENT: &str = "CodeEntryAlignment";
        let alignment = memory.number(ALIGNMENT, address(ALIGNMENT)?, Width::Eight)?;
        if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
            let why = "no code has this alignment";
            return Err(JvmError::implausible(ALIGNMENT, alignment, why));
        }
        Ok(Self {
            collector,
            compressed_class_pointers: is_set("UseCompressedClassPointers")?,
            segmented_code_cache: is_set("SegmentedCodeCache")?,
            code_entry_alignment: alignment,
            debug_non_safepoints: is_set("DebugNonSafepoints")?,
        })
    }
}
