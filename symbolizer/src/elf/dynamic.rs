//! Finds the parts of a file without section headers from its program headers.
//!
//! A program is loaded without section headers, so tools for small files and packers remove them or fill them with junk. The parts that the
//! dynamic linker needs are found in the same way as it finds them: symbols from `PT_DYNAMIC`, unwind information from `PT_GNU_EH_FRAME`.

use gimli::{BaseAddresses, EhFrameHdr, EndianSlice};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::{Endianness, elf, pod};

use super::data::Data;
use super::parts::{Encoding, Section, Segment};

/// The most bytes that are read of a dynamic table, and of an `.eh_frame_hdr`.
const MAX_TABLE: u64 = 1 << 16;
/// The most bytes that are read of the buckets of a hash table.
const MAX_BUCKETS: u64 = 1 << 26;
/// The most bytes that are read of the last chain of a hash table.
const MAX_CHAIN: u64 = 1 << 16;

/// Makes sections from the program headers. The first one is null. `before` is the number of sections that precede them.
pub(super) fn sections<Elf: FileHeader<Endian = Endianness>>(
    data: &Data<'_>,
    endian: Endianness,
    programs: &[Elf::ProgramHeader],
    segments: &[Segment],
    before: usize,
) -> Vec<Section> {
    let loaded = Loaded {
        data,
        segments,
        encoding: Encoding {
            endian,
            is_64: size_of::<Elf::Word>() == 8,
        },
    };
    let of_kind = |kind| {
        let mut programs = programs.iter();
        programs.find(move |program| program.p_type(endian) == kind)
    };
    let mut sections = vec![Section::default()];
    if let Some(program) = of_kind(elf::PT_DYNAMIC)
        && let Some(table) = loaded.dynamic_table::<Elf>(program)
    {
        let link = u32::try_from(before.saturating_add(2)).unwrap_or(u32::MAX);
        sections.extend(loaded.symbols(&table, size_of::<Elf::Sym>() as u64, link));
    }
    let unwinding = of_kind(elf::PT_GNU_EH_FRAME);
    sections.extend(unwinding.and_then(|program| {
        let header = program.p_vaddr(endian).into();
        loaded.unwind_information(header)
    }));
    let code = segments.iter().filter(|segment| segment.executable);
    sections.extend(code.map(|segment| Section {
        name: ".text".to_owned(),
        kind: elf::SHT_PROGBITS,
        flags: u64::from(elf::SHF_ALLOC | elf::SHF_EXECINSTR),
        address: segment.address,
        offset: segment.offset,
        size: segment.size,
        ..Section::default()
    }));
    sections
}

/// The loaded part of the file.
struct Loaded<'l> {
    data: &'l Data<'l>,
    segments: &'l [Segment],
    encoding: Encoding,
}

/// The entries of a dynamic table for symbols, as addresses.
#[derive(Default)]
struct DynamicTable {
    symbols: Option<u64>,
    names: Option<u64>,
    names_size: u64,
    hash: Option<u64>,
    gnu_hash: Option<u64>,
}

impl Loaded<'_> {
    fn dynamic_table<Elf: FileHeader<Endian = Endianness>>(
        &self,
        program: &Elf::ProgramHeader,
    ) -> Option<DynamicTable> {
        let endian = self.encoding.endian;
        let size: u64 = program.p_filesz(endian).into();
        let bytes = self
            .data
            .read(program.p_offset(endian).into(), size.min(MAX_TABLE))
            .ok()?;
        let count = bytes.len().checked_div(size_of::<Elf::Dyn>())?;
        let (entries, _) = pod::slice_from_bytes::<Elf::Dyn>(&bytes, count).ok()?;
        let mut table = DynamicTable::default();
        for entry in entries {
            let value: u64 = entry.d_val(endian).into();
            match entry.d_tag(endian).into() {
                elf::DT_NULL => break,
                elf::DT_SYMTAB => table.symbols = Some(value),
                elf::DT_STRTAB => table.names = Some(value),
                elf::DT_STRSZ => table.names_size = value,
                elf::DT_HASH => table.hash = Some(value),
                elf::DT_GNU_HASH => table.gnu_hash = Some(value),
                _ => {}
            }
        }
        Some(table)
    }

    /// Makes the sections of the symbols and of their names. The latter has index `link`.
    fn symbols(&self, table: &DynamicTable, entry_size: u64, link: u32) -> Vec<Section> {
        let found = || {
            let names = self.section(".dynstr", elf::SHT_STRTAB, table.names?, table.names_size)?;
            let count = match (table.hash, table.gnu_hash) {
                // The number of chains, which is the number of symbols.
                (Some(hash), _) => u64::from(self.word(hash.checked_add(4)?)?),
                (None, hash) => self.symbols_of_gnu_hash(hash?)?,
            };
            let size = count.checked_mul(entry_size)?;
            let symbols = self.section(".dynsym", elf::SHT_DYNSYM, table.symbols?, size)?;
            Some(vec![Section { link, ..symbols }, names])
        };
        found().unwrap_or_default()
    }

    /// Returns the number of symbols of a GNU hash table: the last symbol is the end of the chain of the last bucket.
    fn symbols_of_gnu_hash(&self, hash: u64) -> Option<u64> {
        let buckets = self.word(hash)?;
        let first = self.word(hash.checked_add(4)?)?;
        let bloom = u64::from(self.word(hash.checked_add(8)?)?);
        let word_size = u64::from(self.encoding.address_size());
        let at = hash
            .checked_add(16)?
            .checked_add(bloom.checked_mul(word_size)?)?;
        let size = u64::from(buckets).checked_mul(4)?;
        let words = self.words(at, Some(size).filter(|size| *size <= MAX_BUCKETS)?)?;
        let last = words.into_iter().max().filter(|last| *last >= first);
        let Some(last) = last else {
            return Some(first.into());
        };
        let chains = at.checked_add(size)?;
        let chain = u64::from(last.checked_sub(first)?).checked_mul(4)?;
        let at = chains.checked_add(chain)?;
        let left = self.locate(at)?.1.min(MAX_CHAIN) & !3;
        let more = self
            .words(at, left)?
            .into_iter()
            .position(|word| word & 1 != 0)?;
        u64::from(last).checked_add(more as u64)?.checked_add(1)
    }

    fn unwind_information(&self, header: u64) -> Option<Section> {
        let (offset, left) = self.locate(header)?;
        let bytes = self.data.read(offset, left.min(MAX_TABLE)).ok()?;
        let bases = BaseAddresses::default().set_eh_frame_hdr(header);
        let header = EhFrameHdr::from(EndianSlice::new(&bytes, self.encoding.endian()));
        let parsed = header.parse(&bases, self.encoding.address_size()).ok()?;
        let gimli::Pointer::Direct(address) = parsed.eh_frame_ptr() else {
            return None;
        };
        // Its end is marked by an entry with zero length.
        let (_, left) = self.locate(address)?;
        self.section(".eh_frame", elf::SHT_PROGBITS, address, left)
    }

    fn section(&self, name: &str, kind: u32, address: u64, size: u64) -> Option<Section> {
        let (offset, left) = self.locate(address)?;
        (size <= left).then(|| Section {
            name: name.to_owned(),
            kind,
            flags: elf::SHF_ALLOC.into(),
            address,
            offset,
            size,
            ..Section::default()
        })
    }

    fn word(&self, address: u64) -> Option<u32> {
        self.words(address, 4)?.first().copied()
    }

    fn words(&self, address: u64, size: u64) -> Option<Vec<u32>> {
        let (offset, left) = self.locate(address)?;
        let bytes = self
            .data
            .read(offset, Some(size).filter(|size| *size <= left)?)
            .ok()?;
        let words = bytes.chunks_exact(4);
        Some(
            words
                .filter_map(|word| self.encoding.u32(word, 0))
                .collect(),
        )
    }

    /// Returns the file offset of an address, and how many bytes of the file are loaded from there on.
    fn locate(&self, address: u64) -> Option<(u64, u64)> {
        self.segments.iter().find_map(|segment| {
            let within = address.checked_sub(segment.address)?;
            let left = segment.size.checked_sub(within).filter(|left| *left > 0)?;
            Some((segment.offset.checked_add(within)?, left))
        })
    }
}
