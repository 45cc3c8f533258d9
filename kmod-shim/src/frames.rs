//! Managed frames: packed in a record, and unpacked.

use crate::abi::frame_flags;
use std::cell::{Cell, OnceCell};
use std::fmt;
use std::ops::{Deref, DerefMut};
use varid_model::{ADDRESS_MASK, Address, CodeUnits};

/// Bytes in a code unit of [`FramePc::Relative`].
const UNIT: u64 = 2;

/// The position of a managed frame in its method's bytecode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FramePc {
    /// The instruction at this address: for the leaf the executed one, for a caller its invoke.
    Absolute(Address),
    /// An offset from the first instruction of the method, in code units: 16 bits of dex, bytes of Java bytecode.
    Relative {
        /// The VM's method pointer.
        method: Address,
        /// Offset from its first instruction.
        offset: CodeUnits,
    },
    /// The pc that the method exported last. It may be of another call, or of an earlier frame in the same place: the address is
    /// valid only if it is one of the method's.
    Exported {
        /// The VM's method pointer.
        method: Address,
        /// The dex pc that the method last exported, or 0.
        pc: Address,
    },
    /// The return address of a call in a method's compiled code.
    Compiled {
        /// The VM's method pointer.
        method: Address,
        /// The return address. 0: the frame is an interpreter's, and its callers are not known.
        returns: Address,
    },
    /// No bytecode position: a compiled or native method, of which this is the native frame.
    Native {
        /// The VM's method pointer.
        method: Address,
    },
}

/// A managed frame of the VM at the time of the sample.
///
/// ```
/// use varid_model::Address;
/// use varid_shim::{FramePc, ManagedFrame};
///
/// let native = FramePc::Native { method: Address::new(0x5000) };
/// let mut frame = ManagedFrame::new(Address::new(0x7ffd_1000), native, true);
/// assert!(frame.is_quick() && frame.is_outermost());
/// // A more exact pc replaces it.
/// frame.set_pc(FramePc::Absolute(Address::new(0x9010)));
/// assert_eq!(frame.absolute_pc(), Some(Address::new(0x9010)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ManagedFrame {
    pub(crate) addr: u64,
    /// 0 if the pc suffices.
    pub(crate) method: u64,
    pub(crate) pc: u64,
    /// [`frame_flags`]: at most one of QUICK, RELATIVE, EXPORTED and COMPILED.
    pub(crate) flags: u64,
}

impl ManagedFrame {
    /// Makes a frame at an address (0: none). `is_outermost`: the last of its stretch, called by native code.
    pub fn new(address: Address, pc: FramePc, is_outermost: bool) -> Self {
        let mut frame = Self {
            addr: address.get() & ADDRESS_MASK,
            method: 0,
            pc: 0,
            flags: if is_outermost {
                frame_flags::OUTERMOST
            } else {
                0
            },
        };
        frame.set_pc(pc);
        frame
    }

    /// The frame's address, which the frame of its native caller encloses. 0: none.
    #[inline]
    pub fn address(&self) -> Address {
        Address::new(self.addr)
    }

    /// The position in its method.
    #[inline]
    pub fn pc(&self) -> FramePc {
        let (method, pc) = (Address::new(self.method), Address::new(self.pc));
        match self.flags & (frame_flags::QUICK | frame_flags::PAIR) {
            0 => FramePc::Absolute(pc),
            frame_flags::RELATIVE => FramePc::Relative {
                method,
                // The walker counts in bytes, and a unit has two.
                offset: CodeUnits::new(u32::try_from(self.pc / UNIT).unwrap_or(u32::MAX)),
            },
            frame_flags::EXPORTED => FramePc::Exported { method, pc },
            frame_flags::COMPILED => FramePc::Compiled {
                method,
                returns: pc,
            },
            _ => FramePc::Native { method },
        }
    }

    /// Returns its pc if that is an address that can be resolved without the method.
    #[inline]
    pub fn absolute_pc(&self) -> Option<Address> {
        let needs_method = self.flags & (frame_flags::QUICK | frame_flags::PAIR) != 0;
        (!needs_method).then_some(Address::new(self.pc))
    }

    /// Sets the position in its method.
    pub fn set_pc(&mut self, pc: FramePc) {
        let (method, pc, flag) = match pc {
            FramePc::Absolute(pc) => (0, pc.get(), 0),
            FramePc::Relative { method, offset } => {
                let bytes = u64::from(offset.get()).saturating_mul(UNIT);
                (method.get(), bytes, frame_flags::RELATIVE)
            }
            FramePc::Exported { method, pc } => (method.get(), pc.get(), frame_flags::EXPORTED),
            FramePc::Compiled { method, returns } => {
                (method.get(), returns.get(), frame_flags::COMPILED)
            }
            FramePc::Native { method } => (method.get(), 0, frame_flags::QUICK),
        };
        (self.method, self.pc) = (method, pc);
        self.flags = self.flags & frame_flags::OUTERMOST | flag;
    }

    /// Returns the VM's method pointer, unless the pc suffices.
    #[inline]
    pub fn method(&self) -> Option<Address> {
        Some(Address::new(self.method)).filter(|_| self.absolute_pc().is_none())
    }

    /// Returns true for a compiled or native method.
    #[inline]
    pub fn is_quick(&self) -> bool {
        self.flags & frame_flags::QUICK != 0
    }

    /// Returns true for the last frame of its stretch, which native code called.
    #[inline]
    pub fn is_outermost(&self) -> bool {
        self.flags & frame_flags::OUTERMOST != 0
    }

    /// Returns true if its pc is the last exported one.
    #[inline]
    pub fn is_exported(&self) -> bool {
        self.flags & frame_flags::EXPORTED != 0
    }

    /// Returns zero if both are equal. It has no branches, which makes comparisons of long lists fast.
    #[inline]
    pub fn difference(&self, other: &Self) -> u64 {
        (self.addr ^ other.addr)
            | (self.method ^ other.method)
            | (self.pc ^ other.pc)
            | (self.flags ^ other.flags)
    }

    /// The second word of an entry that was decoded as a frame's.
    fn second_word(&self) -> u64 {
        self.method | self.pc
    }
}

impl fmt::Debug for ManagedFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagedFrame")
            .field("address", &self.address())
            .field("pc", &self.pc())
            .field("is_outermost", &self.is_outermost())
            .finish()
    }
}

/// A frame as packed in a record: `struct varid_packed_frame`. Relative, exported and compiled ones have two of these.
pub type PackedFrame = [u8; 16];

/// The managed frames of a record, innermost first. They are kept in packed form, and unpacked at the first access.
#[derive(Default)]
pub struct ManagedFrames {
    packed: Vec<PackedFrame>,
    unpacked: OnceCell<Unpacked>,
    /// Buffer of earlier frames, for reuse.
    spare: Cell<Vec<ManagedFrame>>,
}

#[derive(Debug, Clone)]
struct Unpacked {
    frames: Vec<ManagedFrame>,
    are_torn: bool,
}

impl ManagedFrames {
    /// Sets the entries of a record. Reuses the buffer of the previous frames.
    pub fn set_packed(&mut self, entries: &[PackedFrame]) {
        if let Some(Unpacked { frames, .. }) = self.unpacked.take() {
            self.spare.set(frames);
        }
        self.packed.clear();
        self.packed.extend_from_slice(entries);
    }

    /// The packed entries of the record.
    #[inline]
    pub fn packed(&self) -> &[PackedFrame] {
        &self.packed
    }

    /// Returns true if the last frame lacks its second half. That frame is left out.
    pub fn are_torn(&self) -> bool {
        self.unpacked().are_torn
    }

    /// Returns the innermost frame, as decoded from its first entry alone. Nothing is unpacked.
    #[inline]
    pub fn innermost(&self) -> Option<ManagedFrame> {
        self.packed.first().map(first_half)
    }

    fn unpacked(&self) -> &Unpacked {
        self.unpacked.get_or_init(|| {
            let mut frames = self.spare.take();
            frames.clear();
            frames.extend(self.packed.iter().map(first_half));
            let flags = frames.iter().fold(0, |all, frame| all | frame.flags);
            let are_torn = flags & frame_flags::PAIR != 0 && join_pairs(&mut frames).is_none();
            Unpacked { frames, are_torn }
        })
    }
}

impl Deref for ManagedFrames {
    type Target = [ManagedFrame];

    fn deref(&self) -> &[ManagedFrame] {
        &self.unpacked().frames
    }
}

impl DerefMut for ManagedFrames {
    fn deref_mut(&mut self) -> &mut [ManagedFrame] {
        self.unpacked();
        match self.unpacked.get_mut() {
            Some(unpacked) => &mut unpacked.frames,
            None => &mut [],
        }
    }
}

impl From<&[ManagedFrame]> for ManagedFrames {
    /// Packs frames as the shim does.
    fn from(frames: &[ManagedFrame]) -> Self {
        let entry = |first: u64, second: u64| {
            (u128::from(second) << u64::BITS | u128::from(first)).to_le_bytes()
        };
        let mut packed = Vec::new();
        for frame in frames {
            let first = frame.addr | frame.flags << frame_flags::SHIFT;
            match frame.pc() {
                FramePc::Absolute(pc) => packed.push(entry(first, pc.get())),
                FramePc::Native { method } => packed.push(entry(first, method.get())),
                FramePc::Relative { method, .. }
                | FramePc::Exported { method, .. }
                | FramePc::Compiled { method, .. } => {
                    packed.extend([entry(first, method.get()), entry(0, frame.pc)]);
                }
            }
        }
        Self {
            packed,
            ..Self::default()
        }
    }
}

impl fmt::Debug for ManagedFrames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Clone for ManagedFrames {
    fn clone(&self) -> Self {
        Self {
            packed: self.packed.clone(),
            unpacked: self.unpacked.clone(),
            spare: Cell::default(),
        }
    }
}

impl PartialEq for ManagedFrames {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl Eq for ManagedFrames {}

/// Decodes an entry as the first one of a frame.
fn first_half(entry: &PackedFrame) -> ManagedFrame {
    let (words, _) = entry.as_chunks();
    let word = |index: usize| words.get(index).copied().map_or(0, u64::from_le_bytes);
    let (word, what) = (word(0), word(1));
    let flags = word >> frame_flags::SHIFT;
    let is_method = flags & (frame_flags::QUICK | frame_flags::PAIR) != 0;
    // A mask without a branch, so that the compiler decodes several frames at once.
    let method = 0u64.wrapping_sub(u64::from(is_method));
    ManagedFrame {
        addr: word & ADDRESS_MASK,
        method: what & method,
        pc: what & !method,
        flags,
    }
}

/// Joins two-entry frames: the second entry of a pair is the pc of the first. None if the last pair is cut; that frame is dropped.
fn join_pairs(frames: &mut Vec<ManagedFrame>) -> Option<()> {
    let entries = std::mem::take(frames);
    let mut entries = entries.into_iter();
    while let Some(mut frame) = entries.next() {
        if frame.flags & frame_flags::PAIR != 0 {
            frame.pc = entries.next()?.second_word();
        }
        frames.push(frame);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_frame() -> impl Strategy<Value = ManagedFrame> {
        let address = || (0..=ADDRESS_MASK).prop_map(Address::new);
        let pc = prop_oneof![
            address().prop_map(FramePc::Absolute),
            (address(), any::<u32>()).prop_map(|(method, offset)| FramePc::Relative {
                method,
                offset: CodeUnits::new(offset),
            }),
            (address(), address()).prop_map(|(method, pc)| FramePc::Exported { method, pc }),
            (address(), address())
                .prop_map(|(method, returns)| FramePc::Compiled { method, returns }),
            address().prop_map(|method| FramePc::Native { method }),
        ];
        (address(), pc, any::<bool>()).prop_map(|(address, pc, outermost)| {
            let frame = ManagedFrame::new(address, pc, outermost);
            assert_eq!(frame.pc(), pc);
            assert_eq!(
                (frame.address(), frame.is_outermost()),
                (address, outermost)
            );
            frame
        })
    }

    proptest! {
        #[test]
        fn frames_are_what_they_were_packed_from(
            frames in prop::collection::vec(any_frame(), 0..8),
            others in prop::collection::vec(any_frame(), 0..8),
        ) {
            let mut packed = ManagedFrames::from(&frames[..]);
            prop_assert_eq!(&packed[..], &frames[..]);
            prop_assert!(!packed.are_torn());
            // Other frames in the same buffer.
            let entries = ManagedFrames::from(&others[..]).packed().to_vec();
            packed.set_packed(&entries);
            prop_assert_eq!(&packed[..], &others[..]);
            let innermost = packed.innermost().map(|frame| frame.address());
            prop_assert_eq!(innermost, others.first().map(ManagedFrame::address));
        }

        #[test]
        fn half_a_frame_is_left_out_and_said_to_be_missing(
            frames in prop::collection::vec(any_frame(), 0..8),
            last in any_frame().prop_filter("of two entries", |frame| frame.flags & frame_flags::PAIR != 0),
        ) {
            let all: Vec<_> = frames.iter().copied().chain([last]).collect();
            let whole = ManagedFrames::from(&all[..]);
            let mut torn = ManagedFrames::default();
            torn.set_packed(&whole.packed()[..whole.packed().len() - 1]);
            prop_assert_eq!(&torn[..], &frames[..]);
            prop_assert!(torn.are_torn());
        }
    }
}
