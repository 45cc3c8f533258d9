//! Decompresses the frames of a zstd file.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};

/// The largest window of a frame, in bytes.
const MAX_WINDOW: u64 = 128 << 20;

/// Returns true if content with this beginning is a zstd file.
pub(crate) const fn is_zstd(start: &[u8]) -> bool {
    matches!(
        start,
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]
    )
}

/// Decompresses all frames of a file in order, as zstd(1) does. Skippable frames are skipped.
pub(crate) struct ZstdFrames<R> {
    source: R,
    decoder: FrameDecoder,
}

impl<R: BufRead> ZstdFrames<R> {
    pub(crate) fn new(source: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_WINDOW);
        Self { source, decoder }
    }

    /// Begins the next frame. Returns false if there is none.
    fn begin(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.init(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    let mut content = Read::by_ref(&mut self.source).take(length);
                    if io::copy(&mut content, &mut io::sink())? < length {
                        return Err(invalid("it ends within a frame that is skipped"));
                    }
                }
                Err(error) => return Err(invalid(error)),
            }
        }
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(invalid)?;
            }
            if self.decoder.can_collect() > 0 {
                return self.decoder.read(buffer);
            }
            if !self.begin()? {
                return Ok(0);
            }
        }
    }
}

fn invalid(error: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    fn frame(content: &[u8]) -> Vec<u8> {
        compress_to_vec(content, CompressionLevel::Fastest)
    }

    fn skipped(content: &[u8]) -> Vec<u8> {
        let len = u32::try_from(content.len()).unwrap().to_le_bytes();
        [&[0x5f, 0x2a, 0x4d, 0x18][..], &len, content].concat()
    }

    fn read(file: &[u8]) -> io::Result<Vec<u8>> {
        assert!(is_zstd(file));
        let mut content = Vec::new();
        ZstdFrames::new(file).read_to_end(&mut content)?;
        Ok(content)
    }

    #[test]
    fn all_frames_are_read() {
        let long = [7; 300_000];
        let file = [
            skipped(b"an index"),
            frame(b"first"),
            frame(b""),
            skipped(b""),
            frame(&long),
            skipped(&long),
        ];
        let expected = [&b"first"[..], &long].concat();
        assert_eq!(read(&file.concat()).unwrap(), expected);
    }

    #[test]
    fn what_is_cut_or_no_frame_is_an_error() {
        let frames = [frame(b"first"), skipped(b"an index")].concat();
        let cut = frames.split_last().unwrap().1;
        let half = [frames.clone(), frame(b"second")[..6].to_vec()].concat();
        let other = [&frames[..], b"and more"].concat();
        for file in [cut, &half, &other] {
            assert_eq!(read(file).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }
}
