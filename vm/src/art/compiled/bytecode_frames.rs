//! Finds the methods and instructions that a frame of compiled code stands for.

use super::method::{Call, CompiledMethod, DexMethod, Owner};
use crate::art::code_info::InlinedId;
use crate::described::dex::method_of;
use crate::seam::Method;
use crate::seam::{FrameMethods, Methods};
use std::rc::Rc;
use varid_model::{Address, CodeUnits, FrameAddress, Precision, Reason};
use varid_shim::{FramePc, ManagedFrame};

/// Returns the methods that a frame executes. `at_sp`: the VM's pointer at its stack pointer `sp`, if the frame is complete.
pub(super) fn frames_of(
    code: &CompiledMethod,
    at_sp: Option<u64>,
    sp: Address,
    address: FrameAddress,
    process: &mut dyn Methods,
) -> Result<FrameMethods, Reason> {
    let (outer, pointer) = outer_method(code, at_sp, process)?;
    let at = |pc: FramePc| ManagedFrame::new(sp, pc, false);
    let noted = match address {
        FrameAddress::Return(address) => code.call(address),
        FrameAddress::Instruction(_) => None,
    };
    // The compiler does not record which inlined method a leaf is in, nor calls of VM code that never looks at the stack: read barriers and
    // mathematical functions.
    let precision = match (&noted, &outer) {
        (None, Method::Known { code: Some(_), .. }) => Precision::Approximate,
        _ => Precision::Exact,
    };
    let call = noted.unwrap_or_else(|| {
        Rc::new(Call {
            dex_pc: code.dex_pc_near(address.lookup()),
            inlined: Vec::new(),
        })
    });
    let mut frames = Vec::new();
    for inlined in call.inlined.iter().rev() {
        // A method without an instruction is an intrinsic of the compiler.
        let Some(dex_pc) = inlined.dex_pc else {
            continue;
        };
        let method = inlined_method(code, inlined.method, &outer, process);
        let unknown = match method {
            Method::Gone => Reason::VmGone,
            _ => Reason::UnknownMethod,
        };
        frames.push(at(instruction(&method, dex_pc, process).ok_or(unknown)?));
    }
    let pc = match &outer {
        Method::Known { code: Some(_), .. } => {
            // A leaf before the first call is at the beginning.
            let dex_pc = call.dex_pc.unwrap_or_default();
            instruction(&outer, dex_pc, process).ok_or(Reason::UnknownCompiledCode)?
        }
        Method::Known { code: None, .. } | Method::Runtime => FramePc::Native {
            method: Address::new(pointer.ok_or(Reason::UnknownCompiledCode)?),
        },
        Method::InMemory(_) | Method::Unknown => return Err(Reason::UnknownMethod),
        Method::Gone => return Err(Reason::VmGone),
    };
    frames.push(at(pc));
    Ok(FrameMethods { frames, precision })
}

/// Returns the method that owns a frame's code, and the VM's pointer to it, if known.
fn outer_method(
    code: &CompiledMethod,
    at_sp: Option<u64>,
    process: &mut dyn Methods,
) -> Result<(Method, Option<u64>), Reason> {
    let pointer = match &code.owner {
        Owner::Pointer(pointer) => match at_sp {
            // The place has another method's code by now.
            Some(other) if other != *pointer => return Err(Reason::UnknownCompiledCode),
            _ => *pointer,
        },
        Owner::Dex(methods) => {
            let by_pointer = at_sp.map(|pointer| process.method(pointer));
            return match (by_pointer, &methods[..]) {
                (Some(method @ Method::Known { .. }), _) => match is_among(&method, methods) {
                    true => Ok((method, at_sp)),
                    // The frame is not complete, or another file is mapped there.
                    false => Err(Reason::UnknownCompiledCode),
                },
                // One method needs no confirmation by the process.
                (_, [method]) => {
                    let space = &process.process().space;
                    Ok((method_of(space, &method.image, method.index), at_sp))
                }
                (Some(method), _) => Ok((method, at_sp)),
                // Several methods share the code, and the frame does not show which of them this is.
                (None, _) => Err(Reason::UnknownCompiledCode),
            };
        }
        Owner::Stub => {
            let pointer = at_sp.ok_or(Reason::UnknownCompiledCode)?;
            return match process.method(pointer) {
                // The frame is of other code, which was there before the stub.
                Method::Known { code: Some(_), .. } => Err(Reason::UnknownCompiledCode),
                method => Ok((method, Some(pointer))),
            };
        }
    };
    Ok((process.method(pointer), Some(pointer)))
}

/// Returns true if a method is one of those that share some code of an oat file. A dex file may be mapped twice.
fn is_among(method: &Method, methods: &[DexMethod]) -> bool {
    let Method::Known { image, index, .. } = method else {
        return false;
    };
    let same = |of: &DexMethod| of.index == *index && of.image.build_id == image.build_id;
    // Without its dex file, nothing is known about the code's other methods.
    methods.is_empty() || methods.iter().any(same)
}

/// Returns a method that is inlined in another method's code.
fn inlined_method(
    code: &CompiledMethod,
    id: InlinedId,
    outer: &Method,
    process: &mut dyn Methods,
) -> Method {
    match (id, outer) {
        (InlinedId::Pointer(pointer), _) => process.method(pointer),
        (InlinedId::Index(dex_file, index), Method::Known { image, .. }) => {
            let process = process.process();
            match code.inlined_from(dex_file, image, &process.space) {
                Some(image) => method_of(&process.space, &image, index),
                None if process.has_memory() => Method::Unknown,
                // Its dex file was not looked for before the process ended.
                None => Method::Gone,
            }
        }
        (InlinedId::Index(..), Method::Gone) => Method::Gone,
        (InlinedId::Index(..) | InlinedId::CharAt(_), _) => Method::Unknown,
    }
}

/// Returns an instruction of a method, at an address that it does not share with other methods.
fn instruction(method: &Method, dex_pc: CodeUnits, process: &mut dyn Methods) -> Option<FramePc> {
    let pc = method.instruction(dex_pc)?;
    let pc = method.own_address(pc, &mut process.process().space);
    Some(FramePc::Absolute(Address::new(pc)))
}

#[cfg(test)]
mod tests;
