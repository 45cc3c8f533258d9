//! How is stackvm recognised, and what does it answer?

use crate::image::Format;
use std::rc::Rc;
use varid_process::reader::ForeignMemory;
use varid_process::{AddressSpace, BytecodeFormat, Process, ProcessImage};
use varid_shim::{CapturedSample, Target, flags};
use varid_tunnel::abi::RULE_AT_SP;
use varid_tunnel::{Memory, TunnelError};
use varid_vm::Description;
use varid_vm::described::{DescribedKind, DescribedVm, refreshed};
use varid_vm::seam::{
    CodeKind, LeafMethod, ManagedStack, MergeOrder, Method, Methods, Refreshed, Unwound, Vm,
    VmChanges, VmFrames, VmMethods, VmTarget,
};

/// Where `struct method` of vm.h has its code and its name.
const METHOD_CODE: u64 = 0;
const METHOD_NAME: u64 = 32;
/// The longest name that is read.
const MAX_NAME: usize = 64;

/// The kind.
#[derive(Debug)]
pub struct StackVm;

impl DescribedKind for StackVm {
    fn recognise(&self, description: &Description) -> Option<Rc<dyn Vm>> {
        description.layout.has_rule(RULE_AT_SP).then(|| {
            let description = description.clone();
            Rc::new(Running { description }) as Rc<dyn Vm>
        })
    }

    fn bytecode(&self) -> Option<&'static dyn BytecodeFormat> {
        Some(&Format)
    }
}

/// A process's stackvm.
#[derive(Debug)]
struct Running {
    description: Description,
}

impl DescribedVm for Running {
    fn description(&self) -> &Description {
        &self.description
    }

    fn with_description(&self, description: &Description) -> Option<Rc<dyn Vm>> {
        StackVm.recognise(description)
    }
}

impl VmTarget for Running {
    fn target(&self, flags: u32, _space: &AddressSpace) -> Target {
        self.description.target(flags)
    }
}

impl VmChanges for Running {
    fn end_batch(&self, process: &Process) -> Refreshed {
        refreshed(self, process, None)
    }

    fn forked(&self) -> Rc<dyn Vm> {
        let description = self.description.clone();
        Rc::new(Self { description })
    }
}

impl VmFrames for Running {
    fn merge_order(&self) -> MergeOrder {
        MergeOrder::ByAddress
    }

    fn leaf_is_managed(&self, record: &CapturedSample, leaf: Option<CodeKind>) -> bool {
        leaf == Some(CodeKind::Bridge) || record.has(flags::IN_BODY)
    }

    /// The walk is exact, and says so where a frame is being made or left.
    fn frames<'r>(
        &self,
        sample: &Unwound<'r>,
        walked: ManagedStack<'r>,
        _process: &mut dyn Methods,
    ) -> ManagedStack<'r> {
        let leaf = match sample.leaf {
            Some(CodeKind::Interpreter) => LeafMethod::Transition,
            _ => LeafMethod::Known,
        };
        ManagedStack { leaf, ..walked }
    }

    /// What calls native methods is a part of the loop.
    fn native_caller(&self) -> CodeKind {
        CodeKind::Loop
    }
}

impl VmMethods for Running {
    fn method(&self, process: &mut Process, pointer: u64) -> Result<Method, TunnelError> {
        let memory = ForeignMemory::new(process.pid);
        let field = |offset: u64| memory.read_word(pointer.wrapping_add(offset), 8);
        let (code, name) = (field(METHOD_CODE)?, field(METHOD_NAME)?);
        let mut text = [0; MAX_NAME];
        // A name's end may be that of its page.
        let len = (1..=MAX_NAME).rev().find(|len| {
            let part = text.get_mut(..*len);
            part.is_some_and(|part| memory.read(name, part).is_ok())
        });
        let text = text.get(..len.unwrap_or(0)).unwrap_or_default();
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        let found = process.space.iter().find_map(|mapped| {
            let ProcessImage::Code(image) = &mapped.image else {
                return None;
            };
            let bytecode = &image.bytecode;
            let index = (0..bytecode.method_count()).find(|index| {
                let name = bytecode.method_name(*index);
                name.is_some_and(|name| name.as_bytes() == text)
            })?;
            let offset = code.checked_sub(mapped.start);
            let method = offset.and_then(|at| bytecode.method_at(u32::try_from(at).ok()?));
            Some(Method::Known {
                image: image.clone(),
                index,
                code: method.map(|method| code..code.wrapping_add(method.code.len() as u64)),
            })
        });
        Ok(found.unwrap_or(Method::Unknown))
    }
}
