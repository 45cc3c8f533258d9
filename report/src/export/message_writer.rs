//! Writes a protobuf message in parts without keeping it in memory. Readers merge the concatenated parts.

use std::io::{self, Write};

use prost::Message;

/// Number of bytes that are buffered before a write.
const CHUNK: usize = 1 << 16;

/// Writes concatenated parts.
#[derive(Debug)]
pub struct MessageWriter<W> {
    buffer: Vec<u8>,
    out: W,
}

impl<W: Write> MessageWriter<W> {
    pub fn new(out: W) -> Self {
        Self {
            buffer: Vec::with_capacity(CHUNK),
            out,
        }
    }

    pub fn part(&mut self, part: &impl Message) -> io::Result<()> {
        part.encode(&mut self.buffer).map_err(io::Error::other)?;
        if self.buffer.len() < CHUNK {
            return Ok(());
        }
        self.flush()
    }

    /// Flushes the buffer.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        Ok(self.out)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}
