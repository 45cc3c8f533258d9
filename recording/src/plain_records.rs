//! Splits bytes of perf.data into records.

use varid_model::perf::Header;

/// Iterates over whole records, up to one that is cut or smaller than its header.
pub fn whole_records(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let header = Header::from_bytes(*bytes.first_chunk()?);
        let size = usize::from(header.size);
        let (record, rest) = bytes.split_at_checked(size.max(size_of::<u64>()))?;
        bytes = rest;
        Some(record)
    })
}

/// Calls a function with each record of bytes that are whole records.
///
/// # Errors
///
/// That of the function, or of `cut` if the bytes end within a record.
pub fn each_record<E>(
    bytes: &[u8],
    cut: impl FnOnce() -> E,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut taken = 0usize;
    for record in whole_records(bytes) {
        each(record)?;
        taken = taken.saturating_add(record.len());
    }
    match taken == bytes.len() {
        true => Ok(()),
        false => Err(cut()),
    }
}

/// What is wrong with compressed bytes that are not whole records.
pub const CUT: &str = "a compressed record that ends within one of its records";

/// Returns the kind of a whole record.
pub fn kind_of(record: &[u8]) -> u32 {
    let header = record.first_chunk();
    header.map_or(0, |header| Header::from_bytes(*header).kind)
}
