//! Builds the note that holds an ELF file's build-id.

use object::{Endian, Endianness, elf};

/// Returns the note for a build-id, in a file with the given byte order.
pub(crate) fn build_id_note(build_id: &[u8], endian: Endianness) -> Vec<u8> {
    let mut note = Vec::with_capacity(build_id.len().saturating_add(20));
    let size = u32::try_from(build_id.len()).unwrap_or_default();
    for number in [4, size, elf::NT_GNU_BUILD_ID] {
        note.extend(endian.write_u32(number));
    }
    note.extend(elf::ELF_NOTE_GNU);
    note.push(0);
    note.extend(build_id);
    note.resize(note.len().next_multiple_of(4), 0);
    note
}
