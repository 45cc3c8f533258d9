//! What has the JIT of a process made of a method?

use super::jit_maps::JitMaps;
use super::method::{CompiledMethod, InfoBytes, Owner};
use crate::art::code_info::{CodeInfo, CodeInfoError};
use crate::art::method_header::MethodHeader;
use std::rc::Rc;
use varid_model::Machine;
use varid_tunnel::Memory;
use varid_tunnel::abi::Rule;

/// Bytes of a method's code, and of what the compiler noted down of it, that are read.
const MAX_SIZE: u64 = 1 << 22;

/// What the JIT has compiled the code at an address from; `before`: what it was when the process was last asked.
pub(super) fn jit_method(
    memory: &dyn Memory,
    rule: &Rule,
    address: u64,
    before: Option<&Rc<CompiledMethod>>,
) -> Option<Rc<CompiledMethod>> {
    let read = JitMaps::of(memory, rule)
        .and_then(|maps| {
            let method = maps.method_before(address)?;
            let method = method.and_then(|(start, method)| {
                read_jit_method(memory, start, address, Owner::Pointer(method))
            });
            if method.is_some() {
                return Ok(method);
            }
            let stub = maps.stub_before(address)?;
            Ok(stub.and_then(|start| read_jit_method(memory, start, address, Owner::Stub)))
        })
        .inspect_err(|error| tracing::debug!(%error, "the JIT's maps"))
        .ok()??;
    let same = before.filter(|before| before.as_ref() == &read);
    same.cloned().or_else(|| Some(Rc::new(read)))
}

/// Copies the code that starts at an address and what the compiler noted down of it from the process; None: it does not reach as far as
/// `inside`.
fn read_jit_method(
    memory: &dyn Memory,
    start: u64,
    inside: u64,
    owner: Owner,
) -> Option<CompiledMethod> {
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
    CompiledMethod::new(start, &code, owner, InfoBytes::Own(info))
        .inspect_err(|error| tracing::debug!(%error, "compiled code"))
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
                wanted = needed;
            }
            Err(error) => {
                tracing::debug!(%error, address, "compiled code");
                return None;
            }
        }
    }
}
