//! Which symbols has a stripped library kept in `.gnu_debugdata`?

use std::io::Read;

use super::reader::ElfReader;

/// The largest symbol table that is unpacked, in bytes.
const MAX_UNPACKED: u64 = 256 << 20;

/// The most memory that unpacking may need, in KiB: what the largest preset of xz does.
const MAX_MEMORY: u32 = 70 << 10;

/// The ELF file, with symbols only, that lies compressed in a stripped one: as Fedora's and
/// Android's libraries have it.
pub(super) fn unpack(image: &ElfReader<'_>) -> Option<ElfReader<'static>> {
    let packed = image.bytes_of(".gnu_debugdata").ok()?;
    if packed.is_empty() {
        return None;
    }
    let mut bytes = Vec::new();
    lzma_rust2::XzReader::new_mem_limit(&*packed, true, MAX_MEMORY)
        .take(MAX_UNPACKED)
        .read_to_end(&mut bytes)
        .ok()?;
    ElfReader::from_bytes(bytes, &image.name).ok()
}
