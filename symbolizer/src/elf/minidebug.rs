//! Unpacks the symbols that a stripped library keeps in `.gnu_debugdata`.

use std::io::Read;

use super::reader::ElfReader;

/// The largest symbol table that is unpacked, in bytes.
const MAX_UNPACKED: u64 = 256 << 20;

/// The most memory that unpacking may need, in KiB: that of the largest preset of xz.
const MAX_MEMORY: u32 = 70 << 10;

/// Returns the compressed ELF file, with symbols only, that a stripped one contains, as in libraries of Fedora and Android.
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
