//! Lists the files in a ZIP archive (APK, JAR, AAR) with their position and compression.
//!
//! The central directory is trusted, as VMs do, except where it contradicts itself. The encryption flag of entries is ignored, as VMs do:
//! some packers set it on plain entries to mislead readers.

use super::input::Input;
use super::{Compression, ContainerEntry};
use crate::Result;
use object::ReadRef;
use rawzip::{
    CompressionMethod, MAX_CENTRAL_DIRECTORY_RECORD_SIZE, ReaderAt, ZipArchive,
    ZipFileHeaderRecord, ZipLocator,
};
use std::io;

/// The most entries of an archive that are read.
const MAX_ENTRIES: usize = 1 << 16;

/// The reader that rawzip uses.
struct At<R>(R);

impl<'d, R: ReadRef<'d>> ReaderAt for At<R> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = self.0.len().unwrap_or(0).saturating_sub(offset);
        let len = left.min(buffer.len() as u64);
        let bytes = self
            .0
            .read_bytes_at(offset, len)
            .map_err(|()| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        buffer
            .iter_mut()
            .zip(bytes)
            .for_each(|(to, from)| *to = *from);
        Ok(bytes.len())
    }
}

/// The entries of an archive whose names `accept` accepts, in the order of the central directory.
///
/// # Errors
/// [`crate::Error::Container`] if there is no central directory. An entry that contradicts the file, or overlaps an earlier one, is an
/// error in its place. Entries after a record that cannot be read, or after 65,536 entries, are lost.
pub fn entries<'d, R: ReadRef<'d>>(
    file: &str,
    data: R,
    accept: impl Fn(&str) -> bool,
) -> Result<Vec<Result<ContainerEntry>>> {
    let input = Input { file, data };
    let mut buffer = vec![0; MAX_CENTRAL_DIRECTORY_RECORD_SIZE];
    let archive = ZipLocator::new()
        .locate_in_reader(At(data), &mut buffer, input.len())
        .map_err(|(_, error)| {
            let offset = error.eocd_offset().unwrap_or(input.len());
            input.bad("end of central directory", offset, error.to_string())
        })?;
    let mut found = Vec::new();
    let mut records = archive.entries(&mut buffer);
    loop {
        let record = match records.next_entry() {
            Ok(Some(record)) => record,
            Ok(None) => break,
            Err(error) => {
                let directory = archive.directory_offset();
                found.push(Err(input.bad(
                    "central directory",
                    directory,
                    error.to_string(),
                )));
                break;
            }
        };
        let name = String::from_utf8_lossy(record.file_path().as_bytes()).into_owned();
        if record.is_dir() || !accept(&name) {
            continue;
        }
        if found.len() >= MAX_ENTRIES {
            let problem = format!("more than {MAX_ENTRIES} entries are not read");
            let offset = record.central_directory_offset();
            found.push(Err(input.bad("central directory", offset, problem)));
            break;
        }
        found.push(entry(&input, &archive, &record, name));
    }
    Ok(super::refuse_overlaps(&input, found))
}

/// The entry of a record of the central directory.
fn entry<'d, R: ReadRef<'d>>(
    input: &Input<'_, R>,
    archive: &ZipArchive<At<R>>,
    record: &ZipFileHeaderRecord<'_>,
    name: String,
) -> Result<ContainerEntry> {
    let bad = |field, problem: String| {
        let problem = format!("entry '{name}': {problem}");
        Err(input.bad(field, record.central_directory_offset(), problem))
    };
    let (start, end) = match archive.get_entry(record.wayfinder()) {
        Ok(entry) => entry.compressed_data_range(),
        Err(error) => return bad("local header offset", error.to_string()),
    };
    let len = record.compressed_size_hint();
    let size = record.uncompressed_size_hint();
    if end > input.len() {
        let problem = format!("{len} bytes reach beyond the end of the file");
        return bad("compressed size", problem);
    }
    match record.compression_method() {
        method if method == CompressionMethod::DEFLATE || len == size => Ok(ContainerEntry {
            is_archive: super::is_archive(&name),
            name,
            offset: start,
            len,
            own_len: len,
            // Android treats every method but deflate as stored: some packers write another one to mislead readers.
            compression: (method == CompressionMethod::DEFLATE).then_some(Compression {
                size,
                crc32: record.crc32(),
            }),
        }),
        CompressionMethod::STORE => bad(
            "uncompressed size",
            format!("{size} bytes, though {len} are stored as they are"),
        ),
        other => bad(
            "compression method",
            format!("{} is neither stored nor deflated", other.as_u16()),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive of empty stored files, all called `a.dex`.
    fn archive(count: usize) -> Vec<u8> {
        const NAME: &[u8] = b"a.dex";
        // After the signature come version, method, time and sizes, all zero: the entry is empty.
        let name_len = [NAME.len() as u8, 0];
        let local = [b"PK\x03\x04".as_slice(), &[0; 22], &name_len, &[0; 2], NAME].concat();
        let mut bytes = local.repeat(count);
        let directory = bytes.len() as u32;
        for index in 0..count {
            let at = (index * local.len()) as u32;
            bytes.extend([b"PK\x01\x02".as_slice(), &[0; 24], &name_len, &[0; 12]].concat());
            bytes.extend([at.to_le_bytes().as_slice(), NAME].concat());
        }
        let size = bytes.len() as u32 - directory;
        let count = (count as u16).to_le_bytes();
        bytes.extend([b"PK\x05\x06".as_slice(), &[0; 4], &count, &count].concat());
        bytes.extend([size.to_le_bytes(), directory.to_le_bytes()].concat());
        bytes.extend([0; 2]);
        bytes
    }

    #[test]
    fn an_unknown_method_is_stored_if_the_sizes_say_so() {
        let mut bytes = archive(1);
        let directory = bytes.len() - 22 - 51;
        // The method, then the uncompressed size.
        bytes[directory + 10..directory + 12].copy_from_slice(&1443u16.to_le_bytes());
        let found = entries("a.apk", bytes.as_slice(), |_| true).unwrap();
        assert!(found[0].as_ref().unwrap().compression.is_none());
        bytes[directory + 24] = 1;
        let found = entries("a.apk", bytes.as_slice(), |_| true).unwrap();
        let error = found[0].as_ref().unwrap_err().to_string();
        assert!(
            error.contains("1443 is neither stored nor deflated"),
            "{error}"
        );
    }

    /// The directory has 51 bytes for an entry. The result takes more memory than that.
    #[test]
    fn an_archive_of_endless_entries_is_not_read_to_its_end() {
        let few = entries("few.zip", archive(3).as_slice(), |_| true).unwrap();
        assert_eq!(few.iter().flatten().count(), 3, "{few:?}");
        let many = archive(MAX_ENTRIES + 10);
        let found = entries("many.zip", many.as_slice(), |_| true).unwrap();
        assert_eq!(found.len(), MAX_ENTRIES + 1);
        assert!(found.last().unwrap().is_err());
        let none = entries("many.zip", many.as_slice(), |_| false).unwrap();
        assert!(none.is_empty());
    }
}
