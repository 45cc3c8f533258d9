//! In which function was the sampled instruction of another recorder's precise event?

use varid_model::{Address, FrameAddress, PrecisePlace};
use varid_recording::{CpuMode, Sample};

use crate::{frames::SymbolId, naming::Resolver};

/// The callchain of a sample's mode if symbols tell that the interrupt came in another function than the sampled instruction's: that is
/// then its caller.
pub(crate) fn chain_of(
    resolver: &mut Resolver,
    sample: &Sample<&[Address]>,
) -> Option<Vec<Address>> {
    let interrupt = sample.interrupt?;
    let chain = match sample.mode {
        CpuMode::Kernel => sample.kernel,
        CpuMode::User => sample.user,
    };
    let (ip, callers) = chain.split_first()?;
    let place = PrecisePlace::of(*ip, Some(interrupt), callers, |address| {
        function(resolver, sample, address)
    });
    (place == PrecisePlace::Callee).then(|| {
        let mut chain = [&[interrupt], callers].concat();
        place.lead(*ip, &mut chain);
        chain
    })
}

/// The function at an address, not one that is inlined there.
fn function(
    resolver: &mut Resolver,
    sample: &Sample<&[Address]>,
    address: Address,
) -> Option<SymbolId> {
    let at = FrameAddress::Instruction(address);
    let frames = match sample.mode {
        CpuMode::Kernel => resolver.kernel_frames(at),
        CpuMode::User => resolver.user_frames(sample.pid, at),
    };
    let outermost = *frames.last()?;
    resolver.frame(outermost).map(|(_, frame)| frame.symbol)
}
