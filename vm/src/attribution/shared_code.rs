//! Which of the methods that share their instructions does a frame execute? Where only the instruction's address is known, that of
//! its caller tells.
//!
//! An interpreter's frame is recorded by the address of its instruction. The caller's instruction is an invoke, and names a method:
//! what it executes has this method's name and descriptor, and where the receiver does not decide, its class as well. If just one of
//! the methods that share the instructions can be meant, it is the frame's.

use std::rc::Rc;
use varid_model::{Address, FrameAddress};
use varid_process::{AddressSpace, CodeImage, ProcessImage};
use varid_symbolizer::bytecode::{BytecodeImage, Dispatch, Invoked, MethodCode};

/// Whether an address is one of instructions that several methods share.
pub(super) fn is_shared(space: &AddressSpace, address: Address) -> bool {
    bytecode_at(space, address)
        .filter(|(image, _)| !image.bytecode.copies().is_empty())
        .and_then(|(image, offset)| image.bytecode.method_at(offset))
        .is_some_and(|method| method.others > 0)
}

/// The address in the method's copy that stands for a frame whose instructions are shared; `callee` and `caller`: as a callchain has
/// the frame and the next one, with no frame between them. None: several methods can be meant.
pub(super) fn address_by_caller(
    callee: Address,
    caller: Address,
    space: &mut AddressSpace,
) -> Option<Address> {
    let (image, offset) = bytecode_at(space, callee)?;
    let (calling, call) = bytecode_at(space, FrameAddress::Return(caller).lookup())?;
    let calling = calling.bytecode.as_ref();
    let invoked = calling.invoked_method(calling.original(call))?;
    let method = image.bytecode.method_at(offset)?;
    let index = executed(image.bytecode.as_ref(), method, calling, invoked)?;
    let image = Rc::clone(image);
    let copy = space.copy_of(&image, index, callee.get());
    copy.map(Address::new)
}

/// The file of bytecode at an address, and where in it that is.
pub(super) fn bytecode_at(space: &AddressSpace, address: Address) -> Option<(&Rc<CodeImage>, u32)> {
    let mapped = space.at(address.get())?;
    let ProcessImage::Code(image) = &mapped.image else {
        return None;
    };
    let offset = u32::try_from(mapped.offset_of(address.get())).ok()?;
    Some((image, offset))
}

/// The only method among those that share the instructions of `shared` which an instruction of `calling` can have invoked.
fn executed(
    image: &dyn BytecodeImage,
    shared: &MethodCode,
    calling: &dyn BytecodeImage,
    invoked: Invoked,
) -> Option<u32> {
    let sharing = image.copies().sharing(shared.code.start);
    let sharing: Vec<u32> = sharing.map(|copy| copy.method.index).collect();
    // Those without a copy could be meant, too.
    (sharing.len() as u64 == u64::from(shared.others).saturating_add(1)).then_some(())?;
    let name = calling.simple_name(invoked.index)?;
    let descriptor = calling.descriptor(invoked.index)?;
    let is_named = |index: &u32| {
        image.simple_name(*index).as_ref() == Some(&name)
            && image.descriptor(*index).as_ref() == Some(&descriptor)
    };
    let named: Vec<u32> = sharing.into_iter().filter(is_named).collect();
    match (&named[..], invoked.dispatch) {
        ([only], _) => Some(*only),
        (_, Dispatch::Named) => {
            let class = calling.class_name(invoked.index)?;
            let is_its = |index: &u32| image.class_name(*index).as_ref() == Some(&class);
            named.into_iter().find(is_its)
        }
        (_, Dispatch::Receiver) => None,
    }
}
