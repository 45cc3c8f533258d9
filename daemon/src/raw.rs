//! `raw.data`: the kernel's own samples as it wrote them, for whoever doubts ours.
//!
//! A perf.data file with one event and no features; `perf script -F tid,time,ip,uregs` reads
//! it. A record has the time of the attributed sample in `perf.data` that shares its overflow.

use perf_event_open_sys::bindings::perf_event_attr;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

/// Bytes of the file's header (tools/perf/Documentation/perf.data-file-format.txt).
const HEADER: u64 = 104;

/// Bytes of the attribute (PERF_ATTR_SIZE_VER5): a perf that is older than our headers refuses
/// a longer one, and nothing beyond is used.
const ATTR: u32 = 112;

/// The file.
#[derive(Debug)]
pub struct RawFile {
    file: BufWriter<File>,
    data_start: u64,
    data_len: u64,
}

impl RawFile {
    /// Starts the file: header and attribute, no records.
    pub fn create(path: &Path, attr: &perf_event_attr) -> io::Result<Self> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        let attr = perf_event_attr { size: ATTR, ..*attr };
        // SAFETY: the attribute is plain data without padding, longer than the part that is
        // taken, and lives as long as the slice.
        let attr_bytes = unsafe { std::slice::from_raw_parts((&raw const attr).cast::<u8>(), ATTR as usize) };
        let entry = u64::from(ATTR) + 16; // the attribute, then where its ids are: nowhere
        let data_start = HEADER + entry;
        let mut head = b"PERFILE2".to_vec();
        for word in [HEADER, entry, HEADER, entry, data_start, 0, 0, 0, 0, 0, 0, 0] {
            head.extend(word.to_le_bytes());
        }
        head.extend(attr_bytes);
        head.extend([0; 16]);
        file.write_all(&head)?;
        Ok(Self { file, data_start, data_len: 0 })
    }

    /// Appends a record.
    pub fn push(&mut self, record: &[u8]) -> io::Result<()> {
        self.file.write_all(record)?;
        self.data_len += record.len() as u64;
        Ok(())
    }

    /// Brings whole records to the disk, then says so in the header.
    pub fn flush(&mut self) -> io::Result<()> {
        const DATA_SIZE_AT: u64 = 48;
        self.file.flush()?;
        let file = self.file.get_mut();
        file.seek(SeekFrom::Start(DATA_SIZE_AT))?;
        file.write_all(&self.data_len.to_le_bytes())?;
        file.seek(SeekFrom::Start(self.data_start + self.data_len))?;
        Ok(())
    }
}
