//! Writes the fields of binary files.

/// Consecutive little-endian fields.
#[derive(Default)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    pub fn put<const N: usize>(mut self, bytes: [u8; N]) -> Self {
        self.0.extend(bytes);
        self
    }
    pub fn u16s<const N: usize>(self, values: [u16; N]) -> Self {
        values
            .into_iter()
            .fold(self, |bytes, value| bytes.put(value.to_le_bytes()))
    }
    pub fn u32s<const N: usize>(self, values: [u32; N]) -> Self {
        values
            .into_iter()
            .fold(self, |bytes, value| bytes.put(value.to_le_bytes()))
    }
    pub fn u64s<const N: usize>(self, values: [u64; N]) -> Self {
        values
            .into_iter()
            .fold(self, |bytes, value| bytes.put(value.to_le_bytes()))
    }
    pub fn pad(mut self, len: usize) -> Self {
        self.0.resize(len, 0);
        self
    }
}
