//! Where are the members that only the naming of methods needs?

use super::super::fields::Fields;
use super::super::library::LoadedLibrary;
use super::super::memory::PagedMemory;
use super::super::process::library_in;
use super::super::tables::VmTables;
use crate::hotspot::error::{JvmError, Result};
use crate::hotspot::member::{Member, Offset};
use object::ReadCache;
use varid_process::Process;
use varid_process::reader::ForeignMemory;
use varid_tunnel::Memory;

/// Members of methods and of their constants, beside those of `MetadataLayout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamingLayout {
    /// `Method::_access_flags`: those of the class file in its lower 16 bits.
    pub access_flags: Offset,
    /// `ConstMethod::_constMethod_size`: in words, with the bytecode and the tables behind it.
    pub const_method_size: Member,
    /// `ConstantPool::_source_file_name_index`: of a symbol. 0 is none.
    pub source_file: Member,
}

impl NamingLayout {
    pub(in crate::hotspot) fn take(fields: &mut Fields<'_>) -> Self {
        Self {
            access_flags: fields.offset("Method::_access_flags"),
            const_method_size: fields.member("ConstMethod::_constMethod_size"),
            source_file: fields.member("ConstantPool::_source_file_name_index"),
        }
    }

    /// Reads the layout from the tables of a loaded library.
    pub(crate) fn read(library: &LoadedLibrary, memory: &dyn Memory) -> Result<Self> {
        let tables = VmTables::read(library, &PagedMemory::new(memory))?;
        let mut fields = Fields::of(&tables);
        let layout = Self::take(&mut fields);
        fields.finish("this HotSpot")?;
        Ok(layout)
    }

    /// Reads the layout of a process's HotSpot. None if it has loaded none.
    ///
    /// # Errors
    ///
    /// Something is missing or implausible.
    pub fn of_process(process: &Process) -> Option<std::result::Result<Self, JvmError>> {
        let (mapped, image) = library_in(process)?;
        let unreadable = |why: &str| JvmError::Library(why.to_owned());
        let module = image.contents()?.module.borrow();
        let size = mapped.end.wrapping_sub(mapped.start);
        let start = module.address_of_mapping(mapped.pgoff, size)?;
        let bias = mapped.start.wrapping_sub(start.get());
        let file = ReadCache::new(image.file()?);
        let elf = varid_symbolizer::parse_elf(&file);
        let library = elf
            .map_err(|error| unreadable(&error.to_string()))
            .and_then(|elf| LoadedLibrary::read(&elf, bias));
        let memory = ForeignMemory::new(process.pid);
        Some(library.and_then(|library| Self::read(&library, &memory)))
    }
}
