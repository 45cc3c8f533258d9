//! Finds how the frame of a compiled method is unwound, at each instruction of its code.
//!
//! After its prologue, a compiled method's frame has the size that its header states. In the prologue and in each epilogue the frame is
//! smaller. How much smaller follows from the code: it saves and restores registers, and moves the stack pointer by constants.

#[cfg(any(target_arch = "aarch64", test))]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64::rows;
use varid_model::Address;
use varid_unwind::{CodeRule, FixedFrame, UnwindInfo};
#[cfg(target_arch = "x86_64")]
use x86_64::rows;

/// The most rows. A real method has a few for its prologue and for each of its returns.
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64", test))]
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
    /// Computes the rows of code of this machine, with frames of `whole` bytes after the prologue.
    pub(super) fn of(code: &[u8], whole: u32) -> Self {
        rows(code, whole)
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

/// No rows: no table of builds has a rule for frames of this machine.
#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
fn rows(_: &[u8], _: u32) -> FrameRows {
    FrameRows::unknown()
}
