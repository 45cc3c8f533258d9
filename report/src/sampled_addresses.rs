//! How many samples does each address of each file have?

use std::collections::HashMap;

use varid_model::{Address, FrameAddress, Pid};
use varid_recording::{Sample, remap};

use crate::{frames::ImageId, naming::Resolver, shares::SampleShare, weights::SampleWeight};

/// An address at which there are samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampledAddress {
    /// The file.
    pub image: ImageId,
    /// The offset in the file: of a leaf its instruction, of a caller the last byte of its call or, of bytecode, the call.
    pub offset: u64,
    /// Own: the instruction itself ran. Total: it, or what it had called.
    pub share: SampleShare,
    /// The part of the total in which the instruction is one near that which executed.
    pub approximate: SampleWeight,
}

/// Collects the sampled addresses of an event.
#[derive(Debug, Clone, Default)]
pub(crate) struct SampledAddresses {
    by_place: HashMap<(ImageId, u64), (SampleShare, SampleWeight)>,
    /// Those of the sample that is read.
    seen: Vec<(ImageId, u64)>,
}

impl SampledAddresses {
    /// A further sample. Addresses of the kernel, and those that are no code, take no part.
    pub fn add(&mut self, resolver: &Resolver, sample: &Sample<&[Address]>, weight: SampleWeight) {
        let pid = sample.pid;
        // Of several frames the innermost method's instruction may be known approximately.
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
            let (share, approximate) = self.by_place.entry(place).or_default();
            // What is in the kernel is not at the user's leaf.
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

    /// A further sample, of which only the leaf counts.
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
        let (share, _) = self.by_place.entry(place).or_default();
        share.own.add(weight);
        share.total.add(weight);
    }

    /// The addresses, by file and offset.
    pub fn finish(self) -> Vec<SampledAddress> {
        let row = |((image, offset), (share, approximate))| SampledAddress {
            image,
            offset,
            share,
            approximate,
        };
        let mut rows: Vec<_> = self.by_place.into_iter().map(row).collect();
        rows.sort_unstable_by_key(|row| (row.image, row.offset));
        rows
    }
}

/// The file and the offset in it of a frame.
fn place(resolver: &Resolver, pid: Pid, frame: FrameAddress) -> Option<(ImageId, u64)> {
    let address = remap::lookup(frame);
    if remap::contains(address) {
        return None;
    }
    let mapped = resolver.mapping(pid, address)?.value;
    Some((mapped.image, mapped.offset(address)))
}
