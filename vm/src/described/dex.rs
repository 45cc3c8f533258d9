//! Finds the method of a mapped dex file that a VM refers to. The VM and the dex file must agree.

use super::Description;
use crate::seam::Method;
use std::rc::Rc;
use varid_process::reader::{ForeignMemory, Link, MemoryRange, Prefetched};
use varid_process::{AddressSpace, CodeImage, Process, ProcessImage, ProcessMapping};
use varid_tunnel::TunnelError;
use varid_tunnel::abi::{Call, NO_INDEX};
use varid_tunnel::method::{CodeItem, MethodId, NamedMethod, resolve_method};

/// Size of a code item's header in bytes. The instructions follow it.
const HEADER: u64 = 16;
/// The same in a compact dex file.
const COMPACT_HEADER: u64 = 4;

/// Returns what a method pointer stands for, in a VM whose methods have an index in their dex file.
pub(crate) fn resolve(
    description: &Description,
    process: &mut Process,
    pointer: u64,
) -> Result<Method, TunnelError> {
    /// Bytes of a method that are read at once.
    const METHOD: u32 = 40;
    let memory = ForeignMemory::new(process.pid);
    let layout = &description.layout;
    let object = MemoryRange {
        address: pointer,
        len: METHOD,
    };
    // The path from a method to its dex file.
    let links = [
        (layout.method_class, layout.reference),
        (layout.class_dex_cache, layout.reference),
        (layout.dex_cache_dex_file, layout.word),
        (layout.dex_file_begin, layout.word),
    ];
    let links = links.map(|(offset, size)| Link { offset, size });
    let memory = Prefetched::object(&memory, object, links);
    let id = resolve_method(layout, &memory, pointer)?;
    Ok(id.map_or(Method::Runtime, |id| place(process, &id)))
}

/// Returns the method that an entry of a VM's call counts describes, if it describes one.
pub(crate) fn counted(process: &mut Process, call: &Call) -> Option<Method> {
    let begin = match process.space.at(call.insns) {
        Some(ProcessMapping {
            image: ProcessImage::Code(_),
            start,
            ..
        }) if call.insns != 0 => *start,
        _ => call.dex,
    };
    let code = match call.insns {
        0 => CodeItem::None,
        insns => CodeItem::Address {
            start: insns.checked_sub(HEADER)?,
            is_compact: false,
        },
    };
    if begin == 0 || (call.insns == 0 && call.index == NO_INDEX) {
        return None;
    }
    let id = MethodId {
        dex_begin: begin,
        // The code identifies the method, so any valid index will do.
        method_index: if call.index == NO_INDEX {
            0
        } else {
            call.index
        },
        code,
    };
    Some(place(process, &id)).filter(|method| matches!(method, Method::Known { .. }))
}

/// Returns the dex file that starts at an address.
fn dex_from(process: &mut Process, begin: u64) -> Option<Rc<CodeImage>> {
    if !process.has_bytecode_at(begin) {
        return None;
    }
    match process.space.at(begin) {
        Some(ProcessMapping {
            image: ProcessImage::Code(dex),
            start,
            pgoff: 0,
            ..
        }) if *start == begin => Some(dex.clone()),
        _ => None,
    }
}

/// Returns the method of a mapped dex file for a VM's method without an index, if the two agree.
pub(crate) fn place_named(process: &mut Process, named: &NamedMethod) -> Method {
    let Some(dex) = dex_from(process, named.dex_begin) else {
        return Method::Unknown;
    };
    let within = |address: u64| address.checked_sub(named.dex_begin);
    let by_names = || {
        let offset = |address| u32::try_from(within(address)?).ok();
        let (class, name) = offset(named.descriptor).zip(offset(named.name))?;
        dex.bytecode.method_by_names(class, name, named.proto)
    };
    let code = within(named.insns).and_then(|offset| {
        let offset = u32::try_from(offset).ok()?;
        let method = dex.bytecode.method_at(offset)?;
        (method.code.start == offset).then_some(method)
    });
    let index = match code {
        Some(method) if method.others == 0 => Some(method.index),
        _ => by_names(),
    };
    let address = |offset: u32| named.dex_begin.wrapping_add(u64::from(offset));
    let code = code.map(|method| address(method.code.start)..address(method.code.end));
    index.map_or(Method::Unknown, |index| Method::Known {
        image: dex.clone(),
        index,
        code,
    })
}

/// Returns the offset of a code item's instructions. The offset of the item counts from the start of the dex file, or from the data section
/// of a compact one.
fn instructions_of(dex: &[u8], code_item: u32) -> Option<u32> {
    const COMPACT: &[u8] = b"cdex";
    const DATA_SECTION: std::ops::Range<usize> = 108..112;
    let (base, header) = match dex.starts_with(COMPACT) {
        true => {
            let base = dex.get(DATA_SECTION)?.first_chunk()?;
            (u32::from_le_bytes(*base), COMPACT_HEADER)
        }
        false => (0, HEADER),
    };
    let header = u32::try_from(header).ok()?;
    base.checked_add(code_item)?.checked_add(header)
}

/// Returns a method by its index in a mapped dex file.
pub(crate) fn method_of(space: &AddressSpace, image: &Rc<CodeImage>, index: u32) -> Method {
    let is_image = |mapped: &&ProcessMapping| {
        mapped.pgoff == 0
            && matches!(&mapped.image, ProcessImage::Code(other) if Rc::ptr_eq(other, image))
    };
    let Some(begin) = space.iter().find(is_image).map(|mapped| mapped.start) else {
        return Method::Unknown;
    };
    let address = |offset: u32| begin.wrapping_add(u64::from(offset));
    Method::Known {
        code: image
            .code_of(index)
            .map(|code| address(code.start)..address(code.end)),
        image: image.clone(),
        index,
    }
}

/// Returns the method in a mapped dex file, if the two agree.
pub(crate) fn place(process: &mut Process, id: &MethodId) -> Method {
    let Some(dex) = dex_from(process, id.dex_begin) else {
        return Method::Unknown;
    };
    if id.method_index >= dex.bytecode.method_count() {
        return Method::Unknown;
    }
    let first = match id.code {
        CodeItem::None => {
            return Method::Known {
                image: dex,
                index: id.method_index,
                code: None,
            };
        }
        CodeItem::Offset(offset) => instructions_of(dex.bytecode.bytes(), offset),
        CodeItem::Address { start, is_compact } => {
            let header = if is_compact { COMPACT_HEADER } else { HEADER };
            let offset = start.wrapping_add(header).checked_sub(id.dex_begin);
            offset.and_then(|offset| u32::try_from(offset).ok())
        }
    };
    let Some(offset) = first else {
        return Method::Unknown;
    };
    match dex.bytecode.method_at(offset) {
        Some(method) if method.code.start == offset => {
            let address = |offset: u32| id.dex_begin.wrapping_add(u64::from(offset));
            let code = address(method.code.start)..address(method.code.end);
            Method::Known {
                image: dex,
                index: id.method_index,
                code: Some(code),
            }
        }
        _ => Method::Unknown,
    }
}
