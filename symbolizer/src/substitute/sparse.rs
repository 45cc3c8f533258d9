//! Writes files with long runs of zeros as sparse files.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};

use object::write::WritableBuffer;

/// The block size of most file systems in bytes, which is the granularity of holes.
const BLOCK: usize = 4096;

/// A file that is written from start to end, in which zeros become holes.
pub(super) struct Sparse<'f> {
    out: BufWriter<&'f File>,
    len: usize,
    skipped: u64,
    error: Option<io::Error>,
}

impl<'f> Sparse<'f> {
    pub(super) fn new(file: &'f File) -> Self {
        Self {
            out: BufWriter::with_capacity(1 << 18, file),
            len: 0,
            skipped: 0,
            error: None,
        }
    }

    /// Copies a whole file.
    pub(super) fn copy(from: &File, to: &'f File) -> io::Result<()> {
        let mut sparse = Self::new(to);
        let mut block = Vec::with_capacity(BLOCK);
        loop {
            block.clear();
            if from.take(BLOCK as u64).read_to_end(&mut block)? == 0 {
                break;
            }
            if block.iter().all(|&byte| byte == 0) {
                sparse.resize(sparse.len.saturating_add(block.len()));
            } else {
                sparse.write_bytes(&block);
            }
        }
        let length = sparse.len as u64;
        sparse.finish()?;
        // The file may end in zeros.
        to.set_len(length)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.skipped > 0 {
            let hole = i64::try_from(self.skipped).map_err(io::Error::other)?;
            self.out.seek(SeekFrom::Current(hole))?;
            self.skipped = 0;
        }
        self.out.write_all(bytes)
    }

    /// Flushes the buffer. Returns the first error of any write.
    pub(super) fn finish(mut self) -> io::Result<()> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }
}

impl WritableBuffer for Sparse<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn reserve(&mut self, _size: usize) -> Result<(), ()> {
        Ok(())
    }

    fn resize(&mut self, len: usize) {
        const ZEROS: [u8; 64] = [0; 64];
        let zeros = len.saturating_sub(self.len);
        match ZEROS.get(..zeros) {
            // Short runs of zeros are padding: a seek would flush the buffer.
            Some(padding) => self.write_bytes(padding),
            None => {
                self.len = len;
                self.skipped = self.skipped.saturating_add(zeros as u64);
            }
        }
    }

    fn write_bytes(&mut self, bytes: &[u8]) {
        self.len = self.len.saturating_add(bytes.len());
        if self.error.is_none() && !bytes.is_empty() {
            self.error = self.put(bytes).err();
        }
    }
}
