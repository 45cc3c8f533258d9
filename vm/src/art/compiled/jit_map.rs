//! Which method did the VM's JIT compile the code at an address from?
//!
//! The JIT's code cache keeps a map from the start of the code to the method, a tree of libstdc++'s `std::map`. It is read while the
//! VM changes it: whoever finds a method here checks it against the header of its code.

use varid_tunnel::abi::Rule;
use varid_tunnel::{Memory, TunnelError};

/// Nodes from the root to a leaf of a red-black tree with 2^32 nodes.
const MAX_DEPTH: usize = 64;
/// In a map: pointer to the root.
const ROOT: u64 = 16;
/// Words of a node: colour, parent, left, right, key, value.
const NODE: usize = 48;

/// Code in the JIT's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JitMethod {
    /// Address of its first instruction.
    pub(super) start: u64,
    /// The VM's method pointer.
    pub(super) method: u64,
}

/// The code that starts last at or before an address, if there is any.
pub(super) fn method_before(
    memory: &dyn Memory,
    rule: &Rule,
    address: u64,
) -> Result<Option<JitMethod>, TunnelError> {
    let pointer = |at: u64, offset: u16| memory.read_word(at.wrapping_add(offset.into()), 8);
    if rule.code_cache == 0 {
        return Ok(None);
    }
    let runtime = pointer(rule.special_methods, 0)?;
    if runtime == 0 {
        return Ok(None);
    }
    let cache = pointer(runtime, rule.code_cache)?;
    if cache == 0 {
        return Ok(None);
    }
    let map = cache.wrapping_add(rule.code_cache_map.into());
    let mut next = memory.read_word(map.wrapping_add(ROOT), 8)?;
    let mut found = None;
    for _ in 0..MAX_DEPTH {
        if next == 0 {
            break;
        }
        let mut node = [0; NODE];
        memory.read(next, &mut node)?;
        let [_, _, left, right, start, method] = words(&node);
        if start <= address {
            found = Some(JitMethod { start, method });
            next = right;
        } else {
            next = left;
        }
    }
    Ok(found)
}

fn words(node: &[u8; NODE]) -> [u64; 6] {
    let mut words = [0; 6];
    for (word, bytes) in words.iter_mut().zip(node.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Words of memory.
    struct Words(BTreeMap<u64, u64>);

    impl Memory for Words {
        fn read(&self, address: u64, out: &mut [u8]) -> Result<(), TunnelError> {
            for (at, bytes) in (address..).step_by(8).zip(out.as_chunks_mut().0) {
                let word = self.0.get(&at).ok_or(TunnelError::Read {
                    address,
                    len: 8,
                    reason: "nothing is there".to_owned(),
                })?;
                *bytes = word.to_le_bytes();
            }
            Ok(())
        }
    }

    const RULE: Rule = Rule {
        kind: varid_tunnel::abi::RULE_SIZED,
        special_methods: 0x100,
        code_cache: 0x18,
        code_cache_map: 0x40,
        ..EMPTY
    };
    const EMPTY: Rule = Rule {
        kind: 0,
        reg_pc: 0,
        reg_frame: 0,
        special_count: 0,
        frame_bias: 0,
        frame_link: 0,
        frame_method: 0,
        frame_pc: 0,
        frame_insns: 0,
        frame_index: 0,
        frame_caller_pc: 0,
        cfa_word: 0,
        cfa_bias: 0,
        saved_pc: 0,
        saved_frame: 0,
        saved_return: 0,
        method_flags: 0,
        native_size: 0,
        native_flag: 0,
        special_sizes: [0; varid_tunnel::abi::SPECIAL_METHODS],
        special_methods: 0,
        code_start: 0,
        code_end: 0,
        method_entry: 0,
        code_cache: 0,
        code_cache_map: 0,
        reserved: 0,
    };

    /// A map with these nodes: left, right, code; the address of a node is 0x1000 times its place, counted from 1.
    fn map(nodes: &[[u64; 3]]) -> Words {
        let mut words = BTreeMap::from([(0x100, 0x200), (0x218, 0x300), (0x350, 0x1000)]);
        for (at, [left, right, start]) in (0x1000..).step_by(0x1000).zip(nodes) {
            let node = [0, 0, *left, *right, *start, start + 1];
            words.extend((at..).step_by(8).zip(node));
        }
        Words(words)
    }

    #[test]
    fn the_code_that_starts_last_before_an_address_is_found() {
        let memory = map(&[
            [0x2000, 0x3000, 0x50_0000],
            [0, 0, 0x40_0000],
            [0x4000, 0, 0x70_0000],
            [0, 0, 0x60_0000],
        ]);
        let start = |address| {
            let found = method_before(&memory, &RULE, address).unwrap();
            found.map(|found| {
                assert_eq!(found.method, found.start + 1);
                found.start
            })
        };
        assert_eq!(start(0x3f_ffff), None);
        assert_eq!(start(0x40_0000), Some(0x40_0000));
        assert_eq!(start(0x4f_ffff), Some(0x40_0000));
        assert_eq!(start(0x50_0000), Some(0x50_0000));
        assert_eq!(start(0x6f_0000), Some(0x60_0000));
        assert_eq!(start(u64::MAX), Some(0x70_0000));
    }

    #[test]
    fn a_tree_without_an_end_is_left() {
        let memory = map(&[[0x1000, 0x1000, 0x50_0000]]);
        let found = method_before(&memory, &RULE, 0x50_0010).unwrap();
        assert_eq!(found.map(|found| found.start), Some(0x50_0000));
    }

    #[test]
    fn without_a_cache_there_is_no_code() {
        let found = method_before(&Words(BTreeMap::new()), &EMPTY, 0x1000);
        assert_eq!(found, Ok(None));
        let found = method_before(&Words(BTreeMap::from([(0x100, 0)])), &RULE, 0x1000);
        assert_eq!(found, Ok(None));
        let found = method_before(&Words(BTreeMap::new()), &RULE, 0x1000);
        assert!(found.is_err());
    }
}
