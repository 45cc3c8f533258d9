//! Decodes the shim's record of a sample.

use crate::abi::{RED_ZONE, RawFrameLink, RawJavaFrame, RawRecord, flags};
use crate::frames::{ManagedFrames, PackedFrame};
use crate::java::SampledCode;
use thiserror::Error;
use varid_model::perf::PERF_CONTEXT_MAX;
use varid_model::{
    Address, BeyondCopy, FrameLink, Holes, Machine, MonotonicNs, Period, Pid, Regs, Tid,
};

/// A sample: the state that the shim captured at the interrupt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapturedSample {
    /// When it was taken.
    pub time: MonotonicNs,
    /// Process id in the initial namespace.
    pub pid: Pid,
    /// Thread id in the initial namespace.
    pub tid: Tid,
    /// The CPU.
    pub cpu: u32,
    /// [`crate::flags`].
    pub flags: u32,
    /// Event counts since the last sample.
    pub period: Period,
    /// The interrupted instruction, in the kernel or in user code.
    pub ip: Address,
    /// User registers.
    pub regs: Regs,
    /// Managed frames, innermost first.
    pub frames: ManagedFrames,
    /// Kernel callchain, leaf first.
    pub kernel: Vec<Address>,
    /// Address of `stack`'s first byte.
    pub stack_addr: Address,
    /// A slice of the user stack.
    pub stack: Vec<u8>,
    /// The pages of it that were not in memory.
    pub holes: Holes,
    /// If a signal handler runs on an alternate stack: a slice of the interrupted stack, from the interrupted stack pointer on. Else
    /// empty.
    pub interrupted: StackCopy,
    /// The frame links outside of these copies, and the words of HotSpot's frames.
    pub beyond: BeyondCopy,
    /// The code of HotSpot's frames.
    pub code: SampledCode,
    /// Where HotSpot allocates an object: the object's class, a `Klass`.
    pub allocated: Option<Address>,
}

/// A copy of a part of a thread's stack.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StackCopy {
    /// Address of the first byte.
    pub start: Address,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The pages of them that were not in memory.
    pub holes: Holes,
}

impl StackCopy {
    /// Returns the bytes from an address on.
    fn from(&self, address: Address) -> Option<&[u8]> {
        self.holes.bytes_from(self.start, &self.bytes, address)
    }
}

/// A record that is inconsistent.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{len} bytes of a shim's record are too few for {what}")]
pub struct DecodeError {
    len: usize,
    what: &'static str,
}

/// The parts of a record that follow its head.
struct Parts<'b> {
    frames: &'b [u8],
    java: &'b [u8],
    kernel: &'b [u8],
    stack: &'b [u8],
    interrupted: &'b [u8],
    links: &'b [u8],
    beyond: &'b [u8],
}

impl<'b> Parts<'b> {
    /// Splits what follows a head. The error is the first part for which there are too few bytes.
    #[inline]
    fn split(mut rest: &'b [u8], head: &RawRecord) -> Result<Self, &'static str> {
        let mut take = |len: usize, what: &'static str| -> Result<&'b [u8], &'static str> {
            let (part, after) = rest.split_at_checked(len).ok_or(what)?;
            rest = after;
            Ok(part)
        };
        let frames = usize::from(head.frames).saturating_mul(size_of::<PackedFrame>());
        let addresses = usize::from(head.kernel).saturating_mul(size_of::<u64>());
        let links = size_of::<RawFrameLink>().saturating_mul(head.links as usize);
        let java = size_of::<RawJavaFrame>().saturating_mul(head.java as usize);
        Ok(Self {
            frames: take(frames, "its frames")?,
            java: take(java, "its Java frames")?,
            kernel: take(addresses, "its kernel callchain")?,
            stack: take(head.stack_len as usize, "its stack")?,
            interrupted: take(
                head.interrupted_len as usize,
                "the stack that a signal interrupted",
            )?,
            links: take(links, "its frame links")?,
            beyond: take(head.beyond as usize, "the stack behind its first link")?,
        })
    }
}

impl CapturedSample {
    /// Decodes the bytes that the shim wrote. Trailing bytes are the ring's padding.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut record = Self::default();
        record.read(bytes)?;
        match record.frames.are_torn() {
            false => Ok(record),
            true => Err(DecodeError {
                len: bytes.len(),
                what: "the pc of its last frame",
            }),
        }
    }

    /// Decodes into an existing record, whose buffers are reused. Half a frame at the end of the frames is not an error
    /// ([`ManagedFrames::are_torn`]). After an error the content is undefined.
    pub fn read(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        let too_short = |what| DecodeError {
            len: bytes.len(),
            what,
        };
        let (head, rest) = bytes
            .split_first_chunk::<{ size_of::<RawRecord>() }>()
            .ok_or(too_short("its head"))?;
        let (words, _) = head.as_chunks();
        let words = words.try_into().map_err(|_| too_short("its head"))?;
        let head = RawRecord::from_words(words);
        let machine = match head.flags & flags::COMPAT {
            0 => Machine::NATIVE,
            _ => Machine::NATIVE.compat().unwrap_or(Machine::NATIVE),
        };
        let parts = Parts::split(rest, &head).map_err(too_short)?;
        let (frames, _) = parts.frames.as_chunks();
        self.frames.set_packed(frames);
        self.kernel.clear();
        let (addresses, _) = parts.kernel.as_chunks();
        let addresses = addresses.iter().map(|word| u64::from_le_bytes(*word));
        // The kernel's callchain has PERF_CONTEXT_* markers between its addresses.
        self.kernel.extend(
            addresses
                .filter(|address| *address < PERF_CONTEXT_MAX)
                .map(Address::new),
        );
        self.stack.clear();
        self.stack.extend_from_slice(parts.stack);
        self.interrupted.bytes.clear();
        self.interrupted.bytes.extend_from_slice(parts.interrupted);
        self.beyond.clear();
        self.beyond.bytes.extend_from_slice(parts.beyond);
        let (words, _) = parts.links.as_chunks();
        let (links, _): (&[RawFrameLink], _) = words.as_chunks();
        self.beyond.links.extend(links.iter().map(|link| {
            let [at, caller_fp, return_address] = link.map(u64::from_le_bytes);
            FrameLink {
                at: Address::new(at),
                caller_fp,
                return_address,
            }
        }));
        self.interrupted.start = Address::new(head.interrupted_addr);
        self.interrupted.holes = Holes::of_bits(head.interrupted_holes);
        self.holes = Holes::of_bits(head.stack_holes);
        self.time = MonotonicNs::new(head.time);
        (self.pid, self.tid) = (Pid::new(head.pid), Tid::new(head.tid));
        (self.cpu, self.flags) = (head.cpu, head.flags);
        self.period = Period::new(head.period);
        self.allocated = Some(Address::new(head.allocated)).filter(|class| class.get() != 0);
        self.ip = Address::new(head.ip);
        self.stack_addr = Address::new(head.stack_addr);
        self.read_java(parts.java);
        self.regs = Regs::from_record(machine, &head.regs);
        Ok(())
    }

    /// Reads what there is of HotSpot's frames: their code, and the words of the stack that no copy has.
    fn read_java(&mut self, frames: &[u8]) {
        let (frames, _) = frames.as_chunks();
        if frames.is_empty() {
            self.code.set(&[]);
            return;
        }
        let frames: Vec<_> = frames.iter().map(RawJavaFrame::of).collect();
        self.code.set(&frames);
        let words = frames.iter().flat_map(|frame| frame.words(self.stack_addr));
        let words = words.filter(|word| self.stack_at(word.at.get(), size_of::<u64>()).is_none());
        let words: Vec<_> = words.collect();
        self.beyond.set_words(words);
        let resumptions = frames
            .iter()
            .filter_map(|frame| frame.resumption(self.stack_addr));
        self.beyond.resumptions.extend(resumptions);
    }

    /// Returns `len` bytes of the stack, if a slice contains all of them.
    pub fn stack_at(&self, address: u64, len: usize) -> Option<&[u8]> {
        self.stack_from(Address::new(address))?.get(..len)
    }

    /// Returns the bytes of a slice from an address on.
    #[inline]
    pub fn stack_from(&self, address: Address) -> Option<&[u8]> {
        self.holes
            .bytes_from(self.stack_addr, &self.stack, address)
            .or_else(|| self.interrupted.from(address))
    }

    /// Returns the stack pointer of the code on the thread's ordinary stack: the thread's own, or the interrupted one if a signal handler
    /// runs on an alternate stack.
    pub fn ordinary_sp(&self) -> Address {
        match self.has(flags::INTERRUPTED) {
            true => self.interrupted.start.wrapping_add(RED_ZONE),
            false => Address::new(self.regs.sp().unwrap_or(0)),
        }
    }

    /// Returns true if a frame at `address` is one of a signal handler on an alternate stack.
    pub fn is_on_alternate_stack(&self, address: Address) -> bool {
        self.has(flags::INTERRUPTED)
            && address
                .offset_from(self.stack_addr)
                .is_some_and(|at| at <= self.stack.len() as u64)
    }

    /// Returns the size of its stack copies in bytes.
    pub fn stack_bytes(&self) -> usize {
        self.stack
            .len()
            .saturating_add(self.interrupted.bytes.len())
    }

    /// Returns the capacity of its stack buffers in bytes.
    pub fn stack_capacity(&self) -> usize {
        let interrupted = self.interrupted.bytes.capacity();
        self.stack.capacity().saturating_add(interrupted)
    }

    /// Drops the stack copies and their buffers, for lack of space.
    pub fn drop_stacks(&mut self) {
        self.stack = Vec::new();
        self.beyond = BeyondCopy::default();
        self.interrupted.bytes = Vec::new();
        self.flags |= flags::STACK_TRUNCATED;
    }

    /// Returns true if all of `flags` are set.
    #[inline]
    pub fn has(&self, flags: u32) -> bool {
        self.flags & flags == flags
    }
}

impl RawRecord {
    /// The fixed part of a record.
    #[inline]
    fn from_words(words: &[[u8; 8]; size_of::<Self>() / 8]) -> Self {
        let [
            time,
            ids,
            place,
            period,
            ip,
            stack_addr,
            lengths,
            regs @ ..,
            allocated,
            interrupted_addr,
            interrupted_len,
            links,
            java,
        ] = words.map(u64::from_le_bytes);
        Self {
            time,
            pid: ids as u32,
            tid: (ids >> 32) as u32,
            cpu: place as u32,
            flags: (place >> 32) as u32,
            period,
            ip,
            stack_addr,
            stack_len: lengths as u32,
            frames: (lengths >> 32) as u16,
            kernel: (lengths >> 48) as u16,
            regs,
            allocated,
            interrupted_addr,
            interrupted_len: interrupted_len as u32,
            stack_holes: (interrupted_len >> 32) as u16,
            interrupted_holes: (interrupted_len >> 48) as u16,
            links: links as u32,
            beyond: (links >> 32) as u32,
            java: java as u32,
            reserved: (java >> 32) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ManagedFrame;

    /// Offset of the interrupted stack's address in a record.
    const INTERRUPTED: usize = size_of::<RawRecord>() - 32;
    /// Offset of the number of frame links.
    const LINKS: usize = size_of::<RawRecord>() - 16;
    /// Offset of the number of Java frames.
    const JAVA: usize = size_of::<RawRecord>() - 8;

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
            assert!(CapturedSample::decode(&bytes(frames, kernel, stack)).is_err());
        }
        for len in 0..size_of::<RawRecord>() {
            assert!(CapturedSample::decode(&bytes(0, 0, 0)[..len]).is_err());
        }
        let mut more = bytes(0, 0, 0);
        more[INTERRUPTED + 8] = 1;
        assert!(CapturedSample::decode(&more).is_err());
    }

    #[test]
    fn parts_follow_one_another() {
        let mut input = bytes(1, 2, 3);
        for value in [0x10u64 | 3 << 56, 0x20, 0xff, 0xee] {
            input.extend(value.to_le_bytes());
        }
        input.extend([7, 8, 9, 0, 0]);
        let record = CapturedSample::decode(&input).unwrap();
        assert_eq!(
            record.frames[..],
            [ManagedFrame {
                addr: 0x10,
                method: 0x20,
                pc: 0,
                flags: 3
            }]
        );
        assert!(record.frames[0].is_quick() && record.frames[0].is_outermost());
        assert_eq!(record.kernel, [0xff, 0xee].map(Address::new));
        assert_eq!(record.stack, [7, 8, 9]);
    }

    #[test]
    fn the_stack_that_a_signal_interrupted_follows_that_of_its_handler() {
        let mut input = bytes(0, 0, 3);
        input[40..48].copy_from_slice(&0x1000_u64.to_le_bytes());
        input[INTERRUPTED..INTERRUPTED + 8].copy_from_slice(&0x7000_u64.to_le_bytes());
        input[INTERRUPTED + 8] = 2;
        input.extend([7, 8, 9, 10, 11]);
        let record = CapturedSample::decode(&input).unwrap();
        assert_eq!(record.stack, [7, 8, 9]);
        assert_eq!(record.interrupted.bytes, [10, 11]);
        let found = [0x1001, 0x7001, 0x7003].map(|at| record.stack_at(at, 1));
        assert_eq!(found, [Some(&[8][..]), Some(&[11]), None]);
        // None of the pages was in memory.
        input[INTERRUPTED + 12] = 1;
        input[INTERRUPTED + 14] = 1;
        let record = CapturedSample::decode(&input).unwrap();
        assert_eq!([0x1001, 0x7001].map(|at| record.stack_at(at, 1)), [None; 2]);
    }

    #[test]
    fn what_frame_pointers_lead_to_comes_last() {
        let mut input = bytes(0, 0, 3);
        input[INTERRUPTED + 8] = 1;
        (input[LINKS], input[LINKS + 4]) = (2, 9);
        input.extend([7, 8, 9, 10]);
        let link = |at| FrameLink {
            at: Address::new(at),
            caller_fp: at + 1,
            return_address: at + 2,
        };
        for link in [link(0x1000), link(0x2000)] {
            let words = [link.at.get(), link.caller_fp, link.return_address];
            input.extend(words.map(u64::to_le_bytes).concat());
        }
        let links = input.len();
        input.extend([11; 9]);
        for len in [links - 1, links, input.len() - 1] {
            assert!(CapturedSample::decode(&input[..len]).is_err());
        }
        let record = CapturedSample::decode(&input).unwrap();
        assert_eq!(record.beyond.links, [link(0x1000), link(0x2000)]);
        let words = [
            0x0fff, 0x1000, 0x1001, 0x1002, 0x1008, 0x2000, 0x2008, 0x2010,
        ];
        let words = words.map(|at| record.beyond.word(Address::new(at)));
        let copied = Some(u64::from_le_bytes([11; 8]));
        let behind = [Some(0x1002), Some(0x2001), Some(0x2002), None];
        let expected = [&[None, copied, copied, None][..], &behind].concat();
        assert_eq!(words.to_vec(), expected);
        assert_eq!(
            (&record.stack[..], &record.interrupted.bytes[..]),
            (&[7, 8, 9][..], &[10][..])
        );
    }

    #[test]
    fn words_of_java_frames_are_those_that_no_copy_has() {
        let mut input = bytes(0, 0, 16);
        input[40..48].copy_from_slice(&0x7000_u64.to_le_bytes());
        input[JAVA] = 2;
        // One frame ends in the copy, the other one is beyond it.
        for (at, code) in [(8_u64, 0x1000_u64), (0x50, 0x2000)] {
            let words = [at, 0xf0, 0xf8, code, 0x100 << 32 | 5];
            input.extend(words.map(u64::to_le_bytes).concat());
        }
        assert!(
            CapturedSample::decode(&input).is_err(),
            "the copy is missing"
        );
        input.extend([0; 16]);
        let record = CapturedSample::decode(&input).unwrap();
        let word = |at| record.beyond.word(Address::new(at));
        let found = [0x7008, 0x7010, 0x7050, 0x7058, 0x7060].map(word);
        assert_eq!(found, [None, Some(0xf8), Some(0xf0), Some(0xf8), None]);
        let blob = |at| record.code.at(Address::new(at)).map(|blob| blob.compile_id);
        assert_eq!([0x1010, 0x20ff, 0x2100].map(blob), [Some(5), Some(5), None]);
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
        let record = CapturedSample::decode(&input).unwrap();
        assert_eq!(
            record.frames[..],
            [frame(0x10, 0, 0x9000, 0), frame(0x20, 0x5000, 14, 6)]
        );
        // A frame with an exported pc also has two entries.
        input[size_of::<RawRecord>() + 16 + 7] = 8;
        let exported = CapturedSample::decode(&input).unwrap().frames[1];
        assert_eq!(exported, frame(0x20, 0x5000, 14, 8));
        assert!(exported.is_exported());
        // The second entry would be the data after the frames.
        input[52] = 2;
        assert!(CapturedSample::decode(&input).is_err());
    }

    #[test]
    fn a_compat_record_has_the_registers_of_its_own_machine() {
        let Some(machine) = Machine::NATIVE.compat() else {
            println!("skipped: this kernel runs no other machine's processes");
            return;
        };
        let mut input = bytes(0, 0, 0);
        input[20..24].copy_from_slice(&flags::COMPAT.to_le_bytes());
        for (index, at) in (56..).step_by(8).take(11).enumerate() {
            input[at] = index as u8 + 1;
        }
        let record = CapturedSample::decode(&input).unwrap();
        assert_eq!(record.regs.machine(), machine);
        let count = machine.regs().len() as u64;
        let first = machine.regs()[0].dwarf;
        assert_eq!(record.regs.get(first), Some(1));
        let last = (Some(count - 1), Some(count));
        assert_eq!((record.regs.sp(), record.regs.ip()), last);
    }
}
