//! Counts the samples of each instruction of compiled code, beside the bytecode at which they are recorded.

use std::collections::HashMap;

use varid_model::{Address, FrameAddress};
use varid_recording::{CodeAtTime, RecordedCode, RecordedCodeId, RecordedCodes, Sample, remap};

use crate::{
    frames::ImageOffset, naming::Resolver, sampled_addresses::place, weights::SampleWeight,
};

/// An instruction of compiled code with samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CompiledSamples {
    /// The bytecode at which they are recorded.
    pub place: ImageOffset,
    /// The code.
    pub code: RecordedCodeId,
    /// The sampled instruction.
    pub instruction: Address,
    /// Samples in which it was executing.
    pub own: SampleWeight,
}

/// The compiled code of a session while samples are read in order of time.
#[derive(Debug, Default)]
pub(crate) struct SessionCode {
    codes: RecordedCodes,
    now: CodeAtTime,
}

impl SessionCode {
    pub fn new(codes: RecordedCodes) -> Self {
        let now = CodeAtTime::default();
        Self { codes, now }
    }

    /// Returns the code, by its [`RecordedCodeId`].
    pub fn into_codes(self) -> Vec<RecordedCode> {
        self.codes.into_codes()
    }

    /// Returns the code that a sample has executed. None if its leaf is not in compiled code that is kept.
    fn of_leaf(&mut self, sample: &Sample<&[Address]>) -> Option<RecordedCodeId> {
        let Sample { pid, time, .. } = *sample;
        self.now.at(&self.codes, pid, time, sample.original_ip)
    }
}

/// Collects the samples of an event in compiled code.
#[derive(Debug, Clone, Default)]
pub(crate) struct CompiledCounts {
    own: HashMap<(ImageOffset, RecordedCodeId, Address), SampleWeight>,
}

impl CompiledCounts {
    /// Adds a sample, if its leaf is a method of a VM and was in compiled code.
    pub fn add(
        &mut self,
        resolver: &Resolver,
        code: &mut SessionCode,
        sample: &Sample<&[Address]>,
        weight: SampleWeight,
    ) {
        let leaf = sample.user_frames().next();
        let leaf = leaf.map(FrameAddress::recorded).filter(|leaf| {
            // The leaf of a sample in the kernel has no instruction of its own. Methods of HotSpot are in the remap range. Behind them is
            // code of the VM, which is not kept and may lie where kept code was.
            let is_method = remap::contains(*leaf) && leaf.get() < remap::VM_BASE;
            sample.kernel.is_empty() && is_method
        });
        let place =
            leaf.and_then(|leaf| place(resolver, sample.pid, FrameAddress::Instruction(leaf)));
        if let Some(place) = place
            && let Some(code) = code.of_leaf(sample)
        {
            let key = (place, code, sample.original_ip);
            self.own.entry(key).or_default().add(weight);
        }
    }

    /// Returns the instructions, in order of their bytecode.
    pub fn finish(self) -> Vec<CompiledSamples> {
        let rows = self.own.into_iter();
        let rows = rows.map(|((place, code, instruction), own)| CompiledSamples {
            place,
            code,
            instruction,
            own,
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_unstable_by_key(|row| {
            let ImageOffset { image, offset } = row.place;
            (image, offset, row.code, row.instruction)
        });
        rows
    }
}
