//! What has the JIT of a process made of a method?

use super::jit_maps::JitMaps;
use super::method::{CompiledMethod, InfoBytes, Owner};
use crate::art::code_info::{CodeInfo, CodeInfoError};
use crate::art::method_header::MethodHeader;
use std::rc::Rc;
use varid_model::Machine;
use varid_tunnel::abi::Rule;
use varid_tunnel::{Memory, TunnelError};

/// Bytes of a method's code, and of what the compiler noted down of it, that are read.
const MAX_SIZE: u64 = 1 << 22;

/// What the JIT has compiled the code at an address from; `before`: what it was when the process was last asked.
///
/// # Errors
///
/// The process's memory cannot be read.
pub(super) fn jit_method(
    memory: &dyn Memory,
    rule: &Rule,
    address: u64,
    before: Option<&Rc<CompiledMethod>>,
) -> Result<Option<Rc<CompiledMethod>>, TunnelError> {
    let maps = JitMaps::of(memory, rule)?;
    let read = |start, owner| read_jit_method(memory, start, address, owner, before);
    if let Some((start, method)) = maps.method_before(address)?
        && let Some(method) = read(start, Owner::Pointer(method))
    {
        return Ok(Some(method));
    }
    let stub = maps.stub_before(address)?;
    Ok(stub.and_then(|start| read(start, Owner::Stub)))
}

/// Copies the code that starts at an address and what the compiler noted down of it from the process; None: it does not reach as far as
/// `inside`. `before`: what was there when the process was last asked.
fn read_jit_method(
    memory: &dyn Memory,
    start: u64,
    inside: u64,
    owner: Owner,
    before: Option<&Rc<CompiledMethod>>,
) -> Option<Rc<CompiledMethod>> {
    let mut header = [0; MethodHeader::SIZE as usize];
    let at = start.checked_sub(MethodHeader::SIZE.into())?;
    memory.read(at, &mut header).ok()?;
    let header = MethodHeader::parse(header).ok()?;
    let size = u64::from(header.code_size);
    if inside.checked_sub(start)? >= size || size > MAX_SIZE {
        return None;
    }
    let mut code = vec![0; usize::try_from(size).ok()?];
    memory.read(start, &mut code).ok()?;
    let info = start.checked_sub(header.code_info_distance.into())?;
    let info = read_code_info(memory, info)?;
    let info = InfoBytes::Own(info);
    if let Some(before) = before.filter(|before| before.is(start, &code, &owner, &info)) {
        return Some(before.clone());
    }
    CompiledMethod::new(start, &code, owner, info)
        .inspect_err(|error| tracing::debug!(%error, "compiled code"))
        .map(Rc::new)
        .ok()
}

/// Copies what the compiler noted down, which says how long it is as it is read.
fn read_code_info(memory: &dyn Memory, address: u64) -> Option<Vec<u8>> {
    const FIRST: u64 = 256;
    let mut wanted = FIRST;
    loop {
        let mut bytes = vec![0; usize::try_from(wanted).ok()?];
        memory.read(address, &mut bytes).ok()?;
        match CodeInfo::parse(Machine::NATIVE, &bytes) {
            Ok(info) => {
                let size = usize::try_from(info.size).ok()?;
                bytes.truncate(size);
                return Some(bytes);
            }
            Err(CodeInfoError::CutShort { needed }) if needed > wanted && needed <= MAX_SIZE => {
                // It may change as it is read: each time much more is.
                wanted = needed.max(wanted.saturating_mul(2));
            }
            Err(error) => {
                tracing::debug!(%error, address, "compiled code");
                return None;
            }
        }
    }
}
