//! How is a protobuf message written that need not be in memory as a whole? As parts, which readers take for one message.

use std::io::{self, Write};

use prost::Message;

/// Bytes that are collected before they are written.
const CHUNK: usize = 1 << 16;

/// Writes parts one behind the other.
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

    /// Writes what is left.
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
