//! A sample as the shim hands it over, decoded.

use crate::abi::{MAX_FRAMES, RawRecord, flags, frame_flags};
use crate::regs::{ADDRESS_MASK, Machine, Regs};
use thiserror::Error;

/// `PERF_CONTEXT_MAX`: from here on an entry of a callchain is a mark, not an address.
pub const CONTEXT_MAX: u64 = 0u64.wrapping_sub(4095);

/// A frame of the VM at the instant of the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManagedFrame {
    /// Where the frame lies; its native caller's frame encloses it. 0: nowhere.
    pub addr: u64,
    /// The VM's method pointer of a quick or a relative frame; 0: the pc says it all.
    pub method: u64,
    /// Absolute bytecode pc, or relative to the method (see `flags`).
    pub pc: u64,
    /// [`frame_flags`].
    pub flags: u64,
}

impl ManagedFrame {
    /// A compiled or native method.
    #[inline]
    pub fn is_quick(&self) -> bool {
        self.flags & frame_flags::QUICK != 0
    }
    /// The last of its fragment: native code called it.
    #[inline]
    pub fn is_outermost(&self) -> bool {
        self.flags & frame_flags::OUTERMOST != 0
    }
    /// The pc counts from the method's first instruction.
    #[inline]
    pub fn is_relative(&self) -> bool {
        self.flags & frame_flags::RELATIVE != 0
    }
}

/// A sample: what the shim saw at the interrupt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub time: u64,
    /// Process id in the initial namespace.
    pub pid: u32,
    /// Thread id in the initial namespace.
    pub tid: u32,
    /// The CPU.
    pub cpu: u32,
    /// [`crate::flags`].
    pub flags: u32,
    /// Event counts since the last sample.
    pub period: u64,
    /// The interrupted instruction, the kernel's or the user's.
    pub ip: u64,
    /// User registers.
    pub regs: Regs,
    /// Managed frames, innermost first.
    pub frames: Vec<ManagedFrame>,
    /// Kernel callchain, leaf first.
    pub kernel: Vec<u64>,
    /// Address of `stack`'s first byte.
    pub stack_addr: u64,
    /// A slice of the user stack.
    pub stack: Vec<u8>,
}

/// A record that contradicts itself.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("shim record of {len} bytes is too short for {what}")]
pub struct DecodeError {
    len: usize,
    what: &'static str,
}

impl Record {
    /// Decodes the bytes that the shim wrote; trailing bytes are the ring's padding.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut record = Self::default();
        record.decode_into(bytes)?;
        Ok(record)
    }

    /// The same in the place of a record that is done with, whose memory is used again. After an
    /// error it holds nothing that means anything.
    pub fn decode_into(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        let mut reader = Reader {
            rest: bytes,
            len: bytes.len(),
        };
        let head = reader.raw_record()?;
        let machine = match head.flags & flags::COMPAT {
            0 => Machine::NATIVE,
            _ => Machine::Arm,
        };
        let (mut frames, mut kernel, mut stack) = (
            std::mem::take(&mut self.frames),
            std::mem::take(&mut self.kernel),
            std::mem::take(&mut self.stack),
        );
        frames.clear();
        frames.reserve(usize::from(head.frames).min(MAX_FRAMES));
        let entries = usize::from(head.frames).saturating_mul(size_of::<[u64; 2]>());
        let (words, _) = reader.take(entries, "its frames")?.as_chunks();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        while let Some((word, what)) = words.next().zip(words.next()) {
            let mut frame = ManagedFrame {
                addr: word & ADDRESS_MASK,
                method: 0,
                pc: what,
                flags: word >> frame_flags::SHIFT,
            };
            if frame.is_quick() {
                (frame.method, frame.pc) = (what, 0);
            } else if frame.is_relative() {
                // One of two entries.
                let (_, pc) = words.next().zip(words.next()).ok_or(DecodeError {
                    len: bytes.len(),
                    what: "the pc of its last frame",
                })?;
                (frame.method, frame.pc) = (what, pc);
            }
            frames.push(frame);
        }
        kernel.clear();
        kernel.reserve(usize::from(head.kernel).min(bytes.len() / 8));
        for _ in 0..head.kernel {
            let address = reader.u64("its kernel callchain")?;
            // Where the event records callchains itself, the kernel puts its marks among them.
            if address < CONTEXT_MAX {
                kernel.push(address);
            }
        }
        stack.clear();
        stack.extend_from_slice(reader.take(head.stack_len as usize, "its stack")?);
        *self = Self {
            time: head.time,
            pid: head.pid,
            tid: head.tid,
            cpu: head.cpu,
            flags: head.flags,
            period: head.period,
            ip: head.ip,
            regs: Regs::from_record(machine, &head.regs),
            frames,
            kernel,
            stack_addr: head.stack_addr,
            stack,
        };
        Ok(())
    }

    /// Bytes of the stack, if the slice holds them all.
    pub fn stack_at(&self, address: u64, len: usize) -> Option<&[u8]> {
        let start = usize::try_from(address.checked_sub(self.stack_addr)?).ok()?;
        self.stack.get(start..start.checked_add(len)?)
    }

    /// Whether all of `flags` are set.
    #[inline]
    pub fn has(&self, flags: u32) -> bool {
        self.flags & flags == flags
    }
}

struct Reader<'a> {
    rest: &'a [u8],
    len: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(n).ok_or(DecodeError {
            len: self.len,
            what,
        })?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, what)?);
        Ok(array)
    }

    fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        self.array(what).map(u64::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array("its head").map(u32::from_le_bytes)
    }

    fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array("its head").map(u16::from_le_bytes)
    }

    fn raw_record(&mut self) -> Result<RawRecord, DecodeError> {
        let mut head = RawRecord {
            time: self.u64("its head")?,
            pid: self.u32()?,
            tid: self.u32()?,
            cpu: self.u32()?,
            flags: self.u32()?,
            period: self.u64("its head")?,
            ip: self.u64("its head")?,
            stack_addr: self.u64("its head")?,
            stack_len: self.u32()?,
            frames: self.u16()?,
            kernel: self.u16()?,
            regs: [0; 16],
        };
        for reg in &mut head.regs {
            *reg = self.u64("its registers")?;
        }
        Ok(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(frames: u16, kernel: u16, stack: u32) -> Vec<u8> {
        let mut bytes = vec![0; size_of::<RawRecord>()];
        bytes[48..52].copy_from_slice(&stack.to_le_bytes());
        bytes[52..54].copy_from_slice(&frames.to_le_bytes());
        bytes[54..56].copy_from_slice(&kernel.to_le_bytes());
        bytes
    }

    #[test]
    fn counts_that_lie_are_refused() {
        for (frames, kernel, stack) in [
            (1, 0, 0),
            (0, 1, 0),
            (0, 0, 1),
            (u16::MAX, u16::MAX, u32::MAX),
        ] {
            assert!(Record::decode(&bytes(frames, kernel, stack)).is_err());
        }
        for len in 0..size_of::<RawRecord>() {
            assert!(Record::decode(&bytes(0, 0, 0)[..len]).is_err());
        }
    }

    #[test]
    fn parts_follow_one_another() {
        let mut input = bytes(1, 2, 3);
        for value in [0x10u64 | 3 << 56, 0x20, 0xff, 0xee] {
            input.extend(value.to_le_bytes());
        }
        input.extend([7, 8, 9, 0, 0]);
        let record = Record::decode(&input).unwrap();
        assert_eq!(
            record.frames,
            [ManagedFrame {
                addr: 0x10,
                method: 0x20,
                pc: 0,
                flags: 3
            }]
        );
        assert!(record.frames[0].is_quick() && record.frames[0].is_outermost());
        assert_eq!(record.kernel, [0xff, 0xee]);
        assert_eq!(record.stack, [7, 8, 9]);
    }

    #[test]
    fn a_relative_frame_has_two_entries() {
        let mut input = bytes(3, 0, 0);
        for value in [0x10u64, 0x9000, 0x20 | 6 << 56, 0x5000, 0, 14] {
            input.extend(value.to_le_bytes());
        }
        let frame = |addr, method, pc, flags| ManagedFrame {
            addr,
            method,
            pc,
            flags,
        };
        let record = Record::decode(&input).unwrap();
        assert_eq!(
            record.frames,
            [frame(0x10, 0, 0x9000, 0), frame(0x20, 0x5000, 14, 6)]
        );
        // The second entry is what follows the frames.
        input[52] = 2;
        assert!(Record::decode(&input).is_err());
    }

    #[test]
    fn a_compat_record_has_the_registers_of_its_own_machine() {
        let mut input = bytes(0, 0, 0);
        input[20..24].copy_from_slice(&flags::COMPAT.to_le_bytes());
        for (index, at) in (56..).step_by(8).take(11).enumerate() {
            input[at] = index as u8 + 1;
        }
        let record = Record::decode(&input).unwrap();
        assert_eq!(record.regs.machine(), Machine::Arm);
        assert_eq!(record.regs.get(4), Some(1));
        assert_eq!((record.regs.sp(), record.regs.ip()), (Some(10), Some(11)));
    }
}
