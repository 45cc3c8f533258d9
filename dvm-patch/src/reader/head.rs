//! The header of a tunnel, in each supported version.

use std::mem::size_of;

use crate::abi::{
    self, Layout, MAX_RULES, NO_RULE, RULE_LIST, RULE_SAVE_AREA, RULE_SHADOW, Rule, TunnelHeader,
};
use crate::bytes::Fields;

/// Size of the part that is the same in every version: magic, version, header size.
pub const COMMON_START: usize = 16;

/// Size of the layout of version 1.
const LAYOUT_1: usize = 64;

/// A supported version of the ABI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// One kind of frames per layout.
    One,
    /// Several rules, which can be mixed.
    Two,
}

impl Version {
    pub fn new(version: u32) -> Option<Self> {
        match version {
            1 => Some(Self::One),
            abi::VERSION => Some(Self::Two),
            _ => None,
        }
    }

    /// Size of the header. Versions differ only in the layout.
    pub fn header_size(self) -> usize {
        let now = size_of::<TunnelHeader>();
        match self {
            Self::One => now
                .saturating_sub(size_of::<Layout>())
                .saturating_add(LAYOUT_1),
            Self::Two => now,
        }
    }

    /// Returns the rule of a range. In version 1 the word was reserved, and there is only one rule.
    pub fn range_rule(self, word: u32) -> u32 {
        match self {
            Self::One => 0,
            Self::Two => word,
        }
    }

    /// Parses the header of this version. `version` and `header_size` keep their values.
    pub fn parse(self, bytes: &[u8]) -> TunnelHeader {
        let mut fields = Fields::new(bytes);
        TunnelHeader {
            magic: fields.take(),
            version: fields.u32(),
            header_size: fields.u32(),
            size: fields.u64(),
            time: fields.u64(),
            vm: fields.u32(),
            pid: fields.u32(),
            generation: fields.u32(),
            tactic: fields.u32(),
            layout: match self {
                Self::One => layout_1(&mut fields),
                Self::Two => layout(&mut fields),
            },
            ranges: fields.part(),
            codes: fields.part(),
            threads: fields.part(),
            traces: fields.part(),
            control: fields.file(),
            calls: fields.file(),
        }
    }
}

impl Layout {
    /// Parses a layout as stored in a tunnel of this version.
    pub fn from_bytes(bytes: &[u8; size_of::<Self>()]) -> Self {
        layout(&mut Fields::new(bytes))
    }
}

fn layout(fields: &mut Fields<'_>) -> Layout {
    Layout {
        machine: fields.u16(),
        word: fields.u8(),
        reference: fields.u8(),
        rule_count: fields.u8(),
        quick_rule: fields.u8(),
        thread_tid: fields.u16(),
        flags: fields.u32(),
        thread_fragment: fields.u16(),
        fragment_quick: fields.u16(),
        tls_offset: fields.i64(),
        fragment_link: fields.u16(),
        fragment_top: fields.u16(),
        method_class: fields.u16(),
        method_code: fields.u16(),
        method_index: fields.u16(),
        class_dex_cache: fields.u16(),
        dex_cache_dex_file: fields.u16(),
        dex_file_begin: fields.u16(),
        method_name: fields.u16(),
        method_proto: fields.u16(),
        class_descriptor: fields.u16(),
        reserved: fields.u16(),
        rules: [(); MAX_RULES].map(|()| rule(fields)),
    }
}

fn rule(fields: &mut Fields<'_>) -> Rule {
    Rule {
        kind: fields.u8(),
        reg_pc: fields.u8(),
        reg_frame: fields.u8(),
        special_count: fields.u8(),
        frame_bias: fields.i16(),
        frame_link: fields.u16(),
        frame_method: fields.u16(),
        frame_pc: fields.u16(),
        frame_insns: fields.u16(),
        frame_index: fields.u16(),
        frame_caller_pc: fields.u16(),
        cfa_word: fields.i16(),
        cfa_bias: fields.i16(),
        saved_pc: fields.u16(),
        saved_frame: fields.u16(),
        saved_return: fields.u16(),
        method_flags: fields.u16(),
        native_size: fields.u16(),
        native_flag: fields.u32(),
        special_sizes: [(); abi::SPECIAL_METHODS].map(|()| fields.u16()),
        special_methods: fields.u64(),
        code_start: fields.u64(),
        code_end: fields.u64(),
        method_entry: fields.u16(),
        code_cache: fields.u16(),
        code_cache_map: fields.u16(),
        code_cache_counts: fields.u16(),
    }
}

/// A layout of version 1 is one rule. The numbers of the kinds are unchanged.
fn layout_1(fields: &mut Fields<'_>) -> Layout {
    let (kind, flags) = (fields.u32(), fields.u32());
    let (machine, word, reference) = (fields.u16(), fields.u8(), fields.u8());
    let (reg_pc, reg_frame, frame_bias) = (fields.u8(), fields.u8(), fields.i16());
    let tls_offset = fields.i64();
    let (thread_tid, thread_fragment) = (fields.u16(), fields.u16());
    let [fragment_quick, fragment_link, fragment_top] = [(); 3].map(|()| fields.u16());
    let [frame_link, frame_method, frame_pc, frame_insns, frame_index] =
        [(); 5].map(|()| fields.u16());
    let [method_class, method_code, method_index, class_dex_cache] = [(); 4].map(|()| fields.u16());
    let [dex_cache_dex_file, dex_file_begin, frame_caller_pc] = [(); 3].map(|()| fields.u16());
    let [method_name, method_proto, class_descriptor] = [(); 3].map(|()| fields.u16());
    let rule = Rule {
        reg_pc,
        reg_frame,
        frame_bias,
        frame_link,
        frame_method,
        frame_pc,
        frame_insns,
        frame_index,
        frame_caller_pc,
        ..Rule::default()
    };
    let rule = rule_1(kind, rule);
    Layout {
        machine,
        word,
        reference,
        quick_rule: NO_RULE,
        thread_tid,
        flags,
        thread_fragment,
        fragment_quick,
        tls_offset,
        fragment_link,
        fragment_top,
        method_class,
        method_code,
        method_index,
        class_dex_cache,
        dex_cache_dex_file,
        dex_file_begin,
        method_name,
        method_proto,
        class_descriptor,
        ..Layout::with_rules(&[rule])
    }
}

/// Takes the fields of `read` that a rule of this kind of version 1 has.
fn rule_1(kind: u32, read: Rule) -> Rule {
    let registers = Rule {
        reg_pc: read.reg_pc,
        reg_frame: read.reg_frame,
        ..Rule::default()
    };
    let linked = Rule {
        frame_bias: read.frame_bias,
        frame_link: read.frame_link,
        frame_method: read.frame_method,
        frame_pc: read.frame_pc,
        ..registers
    };
    match u8::try_from(kind) {
        Ok(kind @ RULE_LIST) => Rule {
            kind,
            frame_insns: read.frame_insns,
            frame_index: read.frame_index,
            ..linked
        },
        Ok(kind @ RULE_SAVE_AREA) => Rule {
            kind,
            frame_caller_pc: read.frame_caller_pc,
            ..linked
        },
        Ok(kind @ RULE_SHADOW) => Rule { kind, ..registers },
        // Later kinds did not exist in version 1.
        _ => Rule {
            kind: 0,
            ..registers
        },
    }
}

#[cfg(test)]
mod tests {
    use crate::abi::{
        CODE_BOOT, LAYOUT_ON_NATIVE_STACK, Layout, NO_FIELD, NO_REG, RULE_LIST, RULE_SAVE_AREA,
        RULE_SHADOW, Rule, VM_ART, VM_DALVIK, VM_OTHER,
    };
    use crate::reader::read_tunnel;
    use crate::{ByteMemory, Description, TunnelError};

    const START: u64 = 0x7f00_0000_0000;

    fn read(bytes: &[u8]) -> Result<Description, TunnelError> {
        let memory = ByteMemory {
            start: START,
            bytes,
        };
        read_tunnel(
            &memory,
            START,
            bytes.len() as u64,
            varid_model::Pid::new(4321),
        )
    }

    /// The tunnels that were written by `tests/fixtures/tunnel-v1/make.sh`.
    const LIST: &[u8] = include_bytes!("../../tests/fixtures/tunnel-v1/list.bin");
    const SHADOW: &[u8] = include_bytes!("../../tests/fixtures/tunnel-v1/shadow.bin");
    const SAVE_AREAS: &[u8] = include_bytes!("../../tests/fixtures/tunnel-v1/save-areas.bin");

    #[test]
    fn a_tunnel_of_version_1_says_what_it_said() {
        for (bytes, vm) in [(LIST, VM_ART), (SHADOW, VM_OTHER), (SAVE_AREAS, VM_DALVIK)] {
            let found = read(bytes).unwrap();
            assert_eq!(
                (found.vm, found.pid.get(), found.time.get()),
                (vm, 4321, 123_456_789)
            );
            assert_eq!((found.tactic, found.inherited), (1, false));
            let ranges: Vec<_> = found
                .ranges
                .iter()
                .map(|r| (r.start, r.end, r.rule))
                .collect();
            assert_eq!(ranges, [(0x7000, 0x8000, 0), (0x9000, 0x9800, 0)]);
            let code = &found.codes[0];
            assert_eq!((code.start, code.size), (0x20000, 0x1000));
            assert_eq!((code.flags, &*code.location), (CODE_BOOT, "/boot.dex"));
            assert_eq!((found.threads[0].base, found.threads[0].tid), (0x30000, 77));
            assert_eq!(
                (found.traces[0].start, found.traces[0].pc),
                (0x9010, 0x20080)
            );
            assert_eq!(found.control.unwrap().fd, 9);
            assert_eq!(found.calls.unwrap().size, 8192);
        }
    }

    #[test]
    fn the_one_kind_of_a_layout_of_version_1_becomes_its_rule() {
        let list = Rule {
            kind: RULE_LIST,
            reg_pc: 12,
            reg_frame: 13,
            frame_bias: -64,
            frame_method: 8,
            frame_pc: 24,
            frame_insns: 32,
            frame_index: 52,
            ..Rule::default()
        };
        let expected = Layout {
            machine: 62,
            word: 8,
            reference: 4,
            flags: LAYOUT_ON_NATIVE_STACK,
            tls_offset: -8,
            thread_tid: 0x10,
            thread_fragment: 0xb8,
            fragment_link: 8,
            fragment_top: 16,
            method_code: 8,
            method_index: 12,
            class_dex_cache: 16,
            dex_cache_dex_file: 16,
            dex_file_begin: 8,
            ..Layout::with_rules(&[list])
        };
        assert_eq!(read(LIST).unwrap().layout, expected);

        let shadow = read(SHADOW).unwrap().layout;
        let rule = Rule {
            kind: RULE_SHADOW,
            reg_pc: NO_REG,
            reg_frame: NO_REG,
            ..Rule::default()
        };
        assert_eq!(shadow.rules(), [rule]);
        assert_eq!((shadow.tls_offset, shadow.fragment_top), (-16, NO_FIELD));

        let areas = read(SAVE_AREAS).unwrap().layout;
        let rule = Rule {
            kind: RULE_SAVE_AREA,
            reg_pc: 6,
            reg_frame: 7,
            frame_bias: -20,
            frame_method: 8,
            frame_pc: 12,
            frame_caller_pc: 4,
            ..Rule::default()
        };
        assert_eq!(areas.rules(), [rule]);
        assert_eq!((areas.method_proto, areas.class_descriptor), (24, 24));
    }

    #[test]
    fn a_kind_that_version_1_did_not_have_is_none_in_it() {
        for kind in [0u32, 4, 5, 256 + 1, u32::MAX] {
            let mut bytes = LIST.to_vec();
            bytes[48..52].copy_from_slice(&kind.to_le_bytes());
            assert!(
                matches!(read(&bytes), Err(TunnelError::Layout { .. })),
                "{kind}"
            );
        }
    }

    #[test]
    fn another_version_is_refused_with_what_to_use() {
        for version in [0u32, 3, u32::MAX] {
            let mut bytes = LIST.to_vec();
            bytes[8..12].copy_from_slice(&version.to_le_bytes());
            let error = read(&bytes).unwrap_err();
            assert!(matches!(error, TunnelError::Version { found, .. } if found == version));
            assert!(error.to_string().contains("build the VM's part"), "{error}");
        }
        // Each version has its own size.
        let mut bytes = LIST.to_vec();
        bytes[8..12].copy_from_slice(&2u32.to_le_bytes());
        assert!(matches!(read(&bytes), Err(TunnelError::Version { .. })));
    }
}
