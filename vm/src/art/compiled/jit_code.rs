//! What has the JIT of a process made of a method?

use super::jit_map::{JitMethod, method_before};
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
    let found = method_before(memory, rule, address)
        .inspect_err(|error| tracing::debug!(%error, "the JIT's map"))
        .ok()??;
    let read = read_jit_method(memory, found)?;
    let same = before.filter(|before| before.as_ref() == &read);
    same.cloned()
        .or_else(|| Some(Rc::new(read)))
        .filter(|method| method.code.contains(&address))
}

/// Copies a method's code and what the compiler noted down of it from the process.
fn read_jit_method(memory: &dyn Memory, found: JitMethod) -> Option<CompiledMethod> {
    let mut header = [0; MethodHeader::SIZE as usize];
    let at = found.start.checked_sub(MethodHeader::SIZE.into())?;
    memory.read(at, &mut header).ok()?;
    let header = MethodHeader::parse(header)
        .ok()
        .filter(|header| u64::from(header.code_size) <= MAX_SIZE)?;
    let mut code = vec![0; usize::try_from(header.code_size).ok()?];
    memory.read(found.start, &mut code).ok()?;
    let info = found.start.checked_sub(header.code_info_distance.into())?;
    let info = read_code_info(memory, info)?;
    CompiledMethod::new(
        found.start,
        &code,
        Owner::Pointer(found.method),
        InfoBytes::Own(info),
    )
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
