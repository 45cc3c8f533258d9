//! Which managed frames do not lie on their thread's stack?
//!
//! A VM that leaves a method's compiled code in the middle makes frames for it and for the methods inlined into it, elsewhere in memory, and
//! interprets them one after the other. Where they belong among native frames their addresses do not tell.

use varid_model::Address;
use varid_shim::ManagedFrame;

/// Where managed frames lie on a stack.
#[derive(Debug, Default)]
pub(crate) struct StackPositions {
    /// By frame, innermost first: whether it lies elsewhere, and the address on the stack below which it belongs. Empty: all lie on the
    /// stack.
    frames: Vec<(bool, Address)>,
}

impl StackPositions {
    /// Those of frames, innermost first, of a thread whose stack pointer is `sp`. Frames on a stack follow one another upwards. `switched`:
    /// the thread has left another stack, as for a signal's handler.
    pub(crate) fn of(frames: &[ManagedFrame], sp: Address, switched: bool) -> Self {
        let ascends = frames.is_sorted_by_key(ManagedFrame::address);
        let lowest = frames.first().map(ManagedFrame::address);
        if ascends && lowest.is_none_or(|lowest| lowest >= sp) {
            return Self::default();
        }
        let mut inside = Address::new(u64::MAX);
        let mut positions: Vec<(bool, Address)> = frames
            .iter()
            .rev()
            .map(|frame| {
                let is_detached = frame.address() < sp || frame.address() > inside;
                if !is_detached {
                    inside = frame.address();
                }
                (is_detached, inside)
            })
            .collect();
        if switched && positions.iter().all(|(is_detached, _)| *is_detached) {
            return Self::default();
        }
        positions.reverse();
        Self { frames: positions }
    }

    /// Whether a frame lies elsewhere.
    pub(crate) fn is_detached(&self, frame: usize) -> bool {
        self.frames
            .get(frame)
            .is_some_and(|(is_detached, _)| *is_detached)
    }

    /// Where a frame on the stack at an address is among these, innermost first, or belongs: further in than those that lie elsewhere and
    /// belong below the next one.
    pub(crate) fn place(&self, frames: &[ManagedFrame], address: Address) -> usize {
        if self.frames.is_empty() {
            return frames.partition_point(|frame| frame.address() < address);
        }
        let below = self.frames.partition_point(|(_, at)| *at < address);
        let here = self.frames.iter().skip(below);
        let elsewhere = here.take_while(|(is_detached, at)| *is_detached && *at == address);
        below.saturating_add(elsewhere.count())
    }

    /// The address on the stack at which a frame lies, or below which it belongs.
    pub(crate) fn address(&self, at: usize, frame: &ManagedFrame) -> Address {
        let position = self.frames.get(at);
        position.map_or(frame.address(), |(_, address)| *address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_shim::FramePc;

    const SP: u64 = 0x7000;

    fn frames(addresses: &[u64]) -> Vec<ManagedFrame> {
        let frame = |at: &u64| {
            let pc = FramePc::Absolute(Address::new(8));
            ManagedFrame::new(Address::new(*at), pc, false)
        };
        addresses.iter().map(frame).collect()
    }

    fn positions(addresses: &[u64], switched: bool) -> Vec<(bool, u64)> {
        let frames = frames(addresses);
        let positions = StackPositions::of(&frames, Address::new(SP), switched);
        let position = |(at, frame)| {
            let address = positions.address(at, frame).get();
            (positions.is_detached(at), address)
        };
        frames.iter().enumerate().map(position).collect()
    }

    #[test]
    fn frames_on_the_stack_lie_at_their_addresses() {
        let found = positions(&[0x7000, 0x7100, 0x7200], false);
        assert_eq!(found, [(false, 0x7000), (false, 0x7100), (false, 0x7200)]);
        assert_eq!(positions(&[], false), []);
    }

    #[test]
    fn frames_elsewhere_belong_below_the_next_one_on_the_stack() {
        let found = positions(&[0x7000, 0x500, 0x400, 0x7200], false);
        let expected = [
            (false, 0x7000),
            (true, 0x7200),
            (true, 0x7200),
            (false, 0x7200),
        ];
        assert_eq!(found, expected);
        // Memory above the stack.
        let found = positions(&[0x7000, 0x9000, 0x7200], false);
        assert_eq!(found, [(false, 0x7000), (true, 0x7200), (false, 0x7200)]);
        let found = positions(&[0x100, 0x200], false);
        assert_eq!(found, [(true, u64::MAX), (true, u64::MAX)]);
    }

    #[test]
    fn a_frame_is_inserted_before_detached_ones() {
        for (at, expected) in [
            (0x6fff, 0),
            (0x7000, 0),
            (0x7100, 1),
            (0x7200, 3),
            (0x7300, 4),
        ] {
            let frames = frames(&[0x7000, 0x500, 0x400, 0x7200]);
            let positions = StackPositions::of(&frames, Address::new(SP), false);
            let place = positions.place(&frames, Address::new(at));
            assert_eq!(place, expected, "{at:#x}");
        }
        let frames = frames(&[0x7000, 0x7200]);
        let positions = StackPositions::of(&frames, Address::new(SP), false);
        let place = |at| positions.place(&frames, Address::new(at));
        assert_eq!([0x7000, 0x7100, 0x7200, 0x7300].map(place), [0, 1, 1, 2]);
    }

    #[test]
    fn frames_of_another_stack_are_left_in_their_order() {
        let found = positions(&[0x100, 0x200], true);
        assert_eq!(found, [(false, 0x100), (false, 0x200)]);
    }
}
