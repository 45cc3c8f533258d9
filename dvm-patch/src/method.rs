//! Resolves a VM's method pointer to a dex method.

use crate::abi::{LAYOUT_CODE_ADDRESS, Layout, NO_FIELD};
use crate::{Memory, TunnelError};

/// The index of the runtime's own methods.
const RUNTIME_METHOD: u32 = u32::MAX;

/// A method's place in a dex file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MethodId {
    /// Address of the dex file's first byte, in the process.
    pub dex_begin: u64,
    /// Index in the dex file's `method_ids`.
    pub method_index: u32,
    /// Its code item.
    pub code: CodeItem,
}

/// The place of a method's code item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CodeItem {
    /// None: the method has no bytecode.
    None,
    /// An offset in the dex file.
    Offset(u32),
    /// An address in the process.
    Address {
        /// The first byte.
        start: u64,
        /// True for a code item of a compact dex file.
        is_compact: bool,
    },
}

/// Follows the layout's pointers from a method to its dex file. Returns None for one of the runtime's own methods, which have no
/// bytecode. Values that were read are not trusted: compare `dex_begin` with the mapped dex files.
pub fn resolve_method(
    layout: &Layout,
    memory: &dyn Memory,
    method: u64,
) -> Result<Option<MethodId>, TunnelError> {
    let field = |object: u64, what: &'static str, offset: u16| {
        if object == 0 || offset == NO_FIELD {
            return Err(TunnelError::Method { method, what });
        }
        Ok(object.wrapping_add(u64::from(offset)))
    };
    let reference = |at| memory.read_word(at, layout.reference);
    let pointer = |at| memory.read_word(at, layout.word);

    let method_index = memory.read_u32(field(method, "address", layout.method_index)?)?;
    if method_index == RUNTIME_METHOD {
        return Ok(None);
    }
    let code_at = field(method, "address", layout.method_code)?;
    let code = if layout.flags & LAYOUT_CODE_ADDRESS == 0 {
        match memory.read_u32(code_at)? {
            0 => CodeItem::None,
            offset => CodeItem::Offset(offset),
        }
    } else if is_native(layout, memory, method)? {
        CodeItem::None
    } else {
        code_item(pointer(code_at)?)
    };
    let class = reference(field(method, "address", layout.method_class)?)?;
    let dex_cache = reference(field(class, "class", layout.class_dex_cache)?)?;
    let dex_file = pointer(field(dex_cache, "dex cache", layout.dex_cache_dex_file)?)?;
    let dex_begin = pointer(field(dex_file, "dex file", layout.dex_file_begin)?)?;
    if dex_begin == 0 {
        return Err(TunnelError::Method {
            method,
            what: "dex file's start",
        });
    }
    Ok(Some(MethodId {
        dex_begin,
        method_index,
        code,
    }))
}

/// Returns true if the method's flags mark it as native.
fn is_native(layout: &Layout, memory: &dyn Memory, method: u64) -> Result<bool, TunnelError> {
    let Some(rule) = layout.rules.get(usize::from(layout.quick_rule)) else {
        return Ok(false);
    };
    let at = method.wrapping_add(u64::from(rule.method_flags));
    Ok(rule.native_flag != 0 && memory.read_u32(at)? & rule.native_flag != 0)
}

/// Returns the code item that a pointer leads to. The lowest bit marks compact ones.
fn code_item(pointer: u64) -> CodeItem {
    const IS_COMPACT: u64 = 1;
    match pointer & !IS_COMPACT {
        0 => CodeItem::None,
        start => CodeItem::Address {
            start,
            is_compact: pointer & IS_COMPACT != 0,
        },
    }
}

/// A method of a VM that does not store indices of methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NamedMethod {
    /// Address of the dex file's first byte, in the process.
    pub dex_begin: u64,
    /// Address of its first instruction. If it has no bytecode: another address, or 0.
    pub insns: u64,
    /// Address of its class's descriptor, in the dex file.
    pub descriptor: u64,
    /// Address of its name, in the dex file.
    pub name: u64,
    /// Index of its prototype in the dex file's `proto_ids`.
    pub proto: u32,
}

/// The same for a layout with `RULE_SAVE_AREA`.
pub fn resolve_named(
    layout: &Layout,
    memory: &dyn Memory,
    method: u64,
) -> Result<NamedMethod, TunnelError> {
    let field = |object: u64, what: &'static str, offset: u16| {
        if object == 0 || offset == NO_FIELD {
            return Err(TunnelError::Method { method, what });
        }
        Ok(object.wrapping_add(u64::from(offset)))
    };
    let pointer = |at| memory.read_word(at, layout.word);
    let class = pointer(field(method, "address", layout.method_class)?)?;
    let dvm_dex = pointer(field(class, "class", layout.class_dex_cache)?)?;
    let dex_file = pointer(field(dvm_dex, "dex cache", layout.dex_cache_dex_file)?)?;
    Ok(NamedMethod {
        dex_begin: pointer(field(dex_file, "dex file", layout.dex_file_begin)?)?,
        insns: pointer(field(method, "address", layout.method_code)?)?,
        descriptor: pointer(field(class, "class", layout.class_descriptor)?)?,
        name: pointer(field(method, "address", layout.method_name)?)?,
        proto: memory.read_u32(field(method, "address", layout.method_proto)?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::ByteMemory;

    fn layout() -> Layout {
        Layout {
            word: 8,
            reference: 4,
            method_class: 0,
            method_code: 8,
            method_index: 12,
            class_dex_cache: 16,
            dex_cache_dex_file: 16,
            dex_file_begin: 8,
            ..Layout::default()
        }
    }

    /// A method at 0x1000, its class at 0x1020, dex cache at 0x1040, dex file at 0x1060.
    fn memory() -> Vec<u8> {
        let mut bytes = vec![0; 0x80];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0x00, &0x1020u32.to_le_bytes());
        put(0x08, &0x4444u32.to_le_bytes());
        put(0x0c, &7u32.to_le_bytes());
        put(0x20 + 16, &0x1040u32.to_le_bytes());
        put(0x40 + 16, &0x1060u64.to_le_bytes());
        put(0x60 + 8, &0x7f00_0000_0000u64.to_le_bytes());
        bytes
    }

    fn resolve(bytes: &[u8]) -> Result<Option<MethodId>, TunnelError> {
        let start = 0x1000;
        resolve_method(&layout(), &ByteMemory { start, bytes }, start)
    }

    #[test]
    fn a_chain_leads_to_the_dex_file() {
        assert_eq!(
            resolve(&memory()),
            Ok(Some(MethodId {
                dex_begin: 0x7f00_0000_0000,
                method_index: 7,
                code: CodeItem::Offset(0x4444)
            }))
        );
    }

    #[test]
    fn a_code_item_may_be_named_by_its_address() {
        let mut layout = Layout {
            flags: LAYOUT_CODE_ADDRESS,
            method_code: 0x10,
            quick_rule: 0,
            ..layout()
        };
        (layout.rules[0].native_flag, layout.rules[0].method_flags) = (0x100, 4);
        let code = |flags: u32, pointer: u64| {
            let mut bytes = memory();
            bytes[4..8].copy_from_slice(&flags.to_le_bytes());
            bytes[0x10..0x18].copy_from_slice(&pointer.to_le_bytes());
            let start = 0x1000;
            let bytes = &bytes;
            let method = resolve_method(&layout, &ByteMemory { start, bytes }, start);
            method.unwrap().unwrap().code
        };
        let address = |start, is_compact| CodeItem::Address { start, is_compact };
        assert_eq!(code(9, 0x7f00_0000_4444), address(0x7f00_0000_4444, false));
        assert_eq!(code(9, 0x7f00_0000_4445), address(0x7f00_0000_4444, true));
        // A native method has its native function in place of its code.
        assert_eq!(code(0x109, 0x7f00_0000_4444), CodeItem::None);
        assert_eq!(code(9, 0), CodeItem::None);
        assert_eq!(code(9, 1), CodeItem::None);
    }

    #[test]
    fn a_runtime_method_is_no_method() {
        let mut bytes = memory();
        bytes[0x0c..0x10].fill(0xff);
        assert_eq!(resolve(&bytes), Ok(None));
    }

    #[test]
    fn a_null_or_wild_link_is_an_error() {
        for at in [0, 0x20 + 16, 0x40 + 16] {
            let mut bytes = memory();
            bytes[at..at + 4].fill(0);
            assert!(
                matches!(resolve(&bytes), Err(TunnelError::Method { .. })),
                "{at:#x}"
            );
            bytes[at..at + 4].fill(0xff);
            assert!(
                matches!(resolve(&bytes), Err(TunnelError::Read { .. })),
                "{at:#x}"
            );
        }
    }

    #[test]
    fn a_layout_without_the_way_is_an_error() {
        let bytes = memory();
        let memory = ByteMemory {
            start: 0x1000,
            bytes: &bytes,
        };
        let layout = Layout {
            method_index: NO_FIELD,
            ..layout()
        };
        assert!(resolve_method(&layout, &memory, 0x1000).is_err());
    }

    #[test]
    fn a_method_without_an_index_says_how_it_is_called() {
        // Dalvik 4.4: a method at 0x1000, its class at 0x1040, DvmDex at 0x1080, DexFile at 0x1090.
        let layout = Layout {
            word: 4,
            reference: 4,
            method_class: 0,
            method_code: 32,
            method_name: 16,
            method_proto: 24,
            class_descriptor: 24,
            class_dex_cache: 40,
            dex_cache_dex_file: 0,
            dex_file_begin: 44,
            ..Layout::default()
        };
        let mut bytes = vec![0; 0x100];
        let mut put =
            |at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        put(0, 0x1040);
        put(16, 0x9123);
        put(24, 7);
        put(32, 0x9200);
        put(0x40 + 24, 0x9111);
        put(0x40 + 40, 0x1080);
        put(0x80, 0x1090);
        put(0x90 + 44, 0x9000);
        let start = 0x1000;
        let expected = NamedMethod {
            dex_begin: 0x9000,
            insns: 0x9200,
            descriptor: 0x9111,
            name: 0x9123,
            proto: 7,
        };
        let resolve = |bytes: &[u8]| resolve_named(&layout, &ByteMemory { start, bytes }, start);
        assert_eq!(resolve(&bytes), Ok(expected));
        for at in [0, 0x40 + 40, 0x80] {
            let mut bytes = bytes.clone();
            bytes[at..at + 4].fill(0);
            assert!(resolve(&bytes).is_err(), "{at:#x}");
        }
    }
}
