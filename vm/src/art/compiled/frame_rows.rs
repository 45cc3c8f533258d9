//! Finds how the frame of a compiled method is unwound, at each instruction of its code.
//!
//! After its prologue, a compiled method's frame has the size that its header states. In the prologue and in each epilogue the frame is
//! smaller. How much smaller follows from the code: it saves and restores registers, and moves the stack pointer by constants.

mod frame;
#[cfg(test)]
mod tests;

use frame::{Convention, Frame};
use varid_instructions::Flow;
use varid_model::{Address, Machine};
use varid_unwind::{CodeRule, FixedFrame, UnwindInfo};

/// The most rows. A real method has a few for its prologue and for each of its returns.
const MAX_ROWS: usize = 2048;

/// The frames of one compiled method.
#[derive(Debug)]
pub(super) struct FrameRows {
    /// By the offset of the first instruction that they are for.
    rows: Vec<FrameRow>,
    /// Offset of the instruction after the one that stores the method at the stack pointer. None: the code does not store it.
    stored: Option<u32>,
}

/// How a frame is unwound from an instruction on.
#[derive(Debug, Clone)]
struct FrameRow {
    /// Bytes from the start of the code.
    start: u32,
    frame: FixedFrame,
    /// Bytes by which the frame exceeds its whole size. None: it does not have that size yet, or any more. The stub of a native method
    /// makes room for arguments below its frame.
    excess: Option<u32>,
}

impl FrameRows {
    /// Returns how the frame is unwound at an instruction, given in bytes from the start of the code.
    pub(super) fn rule(&self, offset: u32) -> CodeRule {
        match self.row(offset) {
            Some(row) => row.frame.clone().rule(Address::default()),
            None => CodeRule::Unknown,
        }
    }

    /// Returns the location of the method in bytes from the stack pointer. None: the frame does not contain it.
    pub(super) fn method_at(&self, offset: u32) -> Option<u32> {
        self.stored.filter(|stored| offset >= *stored)?;
        self.row(offset)?.excess
    }

    fn row(&self, offset: u32) -> Option<&FrameRow> {
        let after = self.rows.partition_point(|row| row.start <= offset);
        self.rows.get(after.checked_sub(1)?)
    }
}

impl FrameRows {
    /// Computes the rows of code of a machine, with frames of `whole` bytes after the prologue.
    pub(super) fn of(machine: Machine, code: &[u8], whole: u32) -> Self {
        match Convention::of(machine) {
            Some(convention) => Self::follow(convention, code, whole),
            // No table of builds has a rule for frames of other machines.
            None => Self::unknown(),
        }
    }

    fn follow(convention: Convention, code: &[u8], whole: u32) -> Self {
        // For a method without a frame, the size does not include the return address either.
        let whole = i64::from(whole).max(convention.return_address);
        let mut frame = Frame::at_entry(convention);
        let mut rows = vec![frame.row(0, whole)];
        // The frame of the code that follows an epilogue.
        let mut body = (whole == frame.size).then(|| frame.clone());
        let mut method_stored = None;
        for (at, instruction) in convention.decoder.sweep(code, 0) {
            let next = at.saturating_add(instruction.size.into());
            let next = u32::try_from(next).unwrap_or(u32::MAX);
            let before = frame.shape();
            let stores = frame.execute(&instruction.effects);
            match &body {
                Some(body) if instruction.flow == Flow::Return => frame.clone_from(body),
                // What is stored after the prologue is no register of the caller.
                Some(_) => {}
                None => frame.save(&stores),
            }
            let is_whole = frame.size == whole;
            if body.is_none() && is_whole && frame.is_linked() {
                body = Some(frame.clone());
            }
            if is_whole && frame.is_method_at_sp(&stores) {
                method_stored.get_or_insert(next);
            }
            if before != frame.shape() {
                rows.push(frame.row(next, whole));
            }
            if rows.len() > MAX_ROWS {
                return Self::unknown();
            }
        }
        match body {
            Some(_) => Self {
                rows,
                stored: method_stored,
            },
            // An instruction that makes the frame was not understood. The rows after it would lead to a wrong caller.
            None => Self::unknown(),
        }
    }

    /// The bytes of memory that they take.
    pub(super) const fn size(&self) -> usize {
        /// Size of a row and of its rule on the heap, with some registers.
        const ROW: usize = 256;
        self.rows.len().saturating_mul(ROW)
    }

    /// For code that is not understood: the frames cannot be unwound.
    const fn unknown() -> Self {
        Self {
            rows: Vec::new(),
            stored: None,
        }
    }
}
