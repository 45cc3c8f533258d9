//! Counts the samples of each address in each file.

use varid_model::{Address, FrameAddress, Pid};
use varid_recording::{Sample, remap};

use crate::{
    fast_hash::FastMap,
    frames::{ImageId, ImageOffset},
    naming::Resolver,
    shares::SampleShare,
    weights::SampleWeight,
};

/// An address with samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampledAddress {
    /// The file.
    pub image: ImageId,
    /// Offset in the file: of the instruction for a leaf, of the last byte of the call for a caller, or of the call
    /// itself in bytecode.
    pub offset: u64,
    /// Own: the instruction was executing. Total: the instruction or its callees were executing.
    pub share: SampleShare,
    /// The part of the total with an approximate instruction.
    pub approximate: SampleWeight,
}

/// Collects the sampled addresses of an event.
#[derive(Debug, Clone, Default)]
pub(crate) struct SampledAddresses {
    by_place: FastMap<ImageOffset, AddressCounts>,
    /// Addresses of the current sample that have already been counted.
    seen: Vec<ImageOffset>,
}

#[derive(Debug, Clone, Copy, Default)]
struct AddressCounts {
    share: SampleShare,
    approximate: SampleWeight,
}

impl SampledAddresses {
    /// Adds a sample. Kernel addresses and addresses without code are ignored.
    pub fn add(&mut self, resolver: &Resolver, sample: &Sample<&[Address]>, weight: SampleWeight) {
        let pid = sample.pid;
        // The instruction of the innermost method may be approximate.
        let mut is_approximate = sample.precision.is_approximate();
        self.seen.clear();
        let leaf = FrameAddress::Instruction(sample.original_ip);
        let no_chain = sample.user.is_empty() && sample.kernel.is_empty();
        let alone = no_chain.then_some(leaf);
        for frame in sample.user_frames().chain(alone) {
            let Some(place) = place(resolver, pid, frame) else {
                continue;
            };
            let marked = is_approximate && resolver.is_in_method(pid, frame);
            is_approximate &= !marked;
            let AddressCounts { share, approximate } = self.by_place.entry(place).or_default();
            // In a kernel sample the user leaf is a caller.
            if frame.is_instruction() && sample.kernel.is_empty() {
                share.own.add(weight);
            }
            if !self.seen.contains(&place) {
                self.seen.push(place);
                share.total.add(weight);
            }
            if marked {
                approximate.add(weight);
            }
        }
    }

    /// Adds a sample, counting only its leaf.
    pub fn add_leaf(
        &mut self,
        resolver: &Resolver,
        sample: &Sample<&[Address]>,
        weight: SampleWeight,
    ) {
        let leaf = sample.user_frames().next();
        let leaf = leaf.filter(|leaf| leaf.is_instruction() && sample.kernel.is_empty());
        let Some(place) = leaf.and_then(|leaf| place(resolver, sample.pid, leaf)) else {
            return;
        };
        let is_approximate = sample.precision.is_approximate();
        let is_in_method = || leaf.is_some_and(|leaf| resolver.is_in_method(sample.pid, leaf));
        let counts = self.by_place.entry(place).or_default();
        counts.share.own.add(weight);
        counts.share.total.add(weight);
        if is_approximate && is_in_method() {
            counts.approximate.add(weight);
        }
    }

    /// Returns the addresses, sorted by file and offset.
    pub fn finish(self) -> Vec<SampledAddress> {
        let row = |(place, counts): (ImageOffset, AddressCounts)| SampledAddress {
            image: place.image,
            offset: place.offset,
            share: counts.share,
            approximate: counts.approximate,
        };
        let mut rows: Vec<_> = self.by_place.into_iter().map(row).collect();
        rows.sort_unstable_by_key(|row| (row.image, row.offset));
        rows
    }
}

/// Returns the file and the offset of a frame.
pub(crate) fn place(resolver: &Resolver, pid: Pid, frame: FrameAddress) -> Option<ImageOffset> {
    let address = remap::lookup(frame);
    if remap::marker_at(address).is_some() {
        return None;
    }
    let mapped = resolver.mapping(pid, address)?.value;
    Some(ImageOffset {
        image: mapped.image,
        offset: mapped.offset(address),
    })
}
