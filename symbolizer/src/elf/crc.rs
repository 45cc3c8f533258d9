//! Which checksum does a debug file have?

use std::fs::File;
use std::io::Read;

/// The remainders of all bytes, of CRC-32 as in IEEE 802.3 and `.gnu_debuglink`.
const TABLE: [u32; 256] = {
    let mut table = [0u32; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 {
                (value >> 1) ^ 0xedb8_8320
            } else {
                value >> 1
            };
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table
};

/// The checksum of what is left to read of a file; none if it cannot be read.
pub(super) fn crc32(mut file: &File) -> Option<u32> {
    let mut buffer = vec![0; 1 << 16];
    let mut sum = u32::MAX;
    loop {
        let count = file.read(&mut buffer).ok()?;
        if count == 0 {
            return Some(!sum);
        }
        for &byte in buffer.get(..count)? {
            let index = (sum ^ u32::from(byte)) & 0xff;
            sum = (sum >> 8) ^ TABLE.get(index as usize)?;
        }
    }
}
