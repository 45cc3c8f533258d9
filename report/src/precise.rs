//! Corrects the callchain of another recorder's precise event if the sampled function returned before the interrupt.

use varid_model::{Address, FrameAddress, PrecisePlace};
use varid_recording::{CpuMode, Sample};

use crate::{frames::SymbolId, naming::Resolver};

/// Returns the callchain of the sample's mode if, according to symbols, the sampled function had returned before the
/// interrupt. The interrupted function is then its caller.
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

/// Returns the function at an address, ignoring inlined functions.
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
