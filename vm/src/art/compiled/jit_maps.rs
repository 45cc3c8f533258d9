//! Which code has the VM's JIT compiled before an address, and what from?
//!
//! The JIT's code cache keeps a map from the start of the code to the method, and another one of the stubs by which native methods are
//! called. Both are trees of libstdc++'s `std::map`. They are read while the VM changes them: whoever finds code here checks it against
//! its header.

use std::collections::BTreeSet;
use varid_tunnel::abi::Rule;
use varid_tunnel::{Memory, TunnelError};

/// Nodes from the root to a leaf of a red-black tree with 2^32 nodes.
const MAX_DEPTH: usize = 64;
/// Stubs that are looked at: there is one for each kind of native method, by its parameters.
const MAX_STUBS: usize = 1024;
/// In a map: pointer to the root.
const ROOT: u64 = 16;
/// Bytes of a map: that of the stubs lies right before that of the methods.
const MAP: u64 = 48;
/// Words of a node: colour, parent, left, right, key, value. The key of a stub has two words, the second of them flags; its value begins
/// with the pointer to its code.
const NODE: usize = 56;

/// The maps of a JIT's code cache.
pub(super) struct JitMaps<'a> {
    memory: &'a dyn Memory,
    /// Address of the map of methods; None: there is no JIT.
    methods: Option<u64>,
    /// Address of what the cache counts; None: it is not known.
    pub(super) counts: Option<u64>,
}

impl<'a> JitMaps<'a> {
    /// Those of a VM.
    pub(super) fn of(memory: &'a dyn Memory, rule: &Rule) -> Result<Self, TunnelError> {
        let pointer = |at: u64, offset: u16| memory.read_word(at.wrapping_add(offset.into()), 8);
        let cache = || {
            if rule.code_cache == 0 {
                return Ok(None);
            }
            let runtime = pointer(rule.special_methods, 0)?;
            if runtime == 0 {
                return Ok(None);
            }
            let cache = pointer(runtime, rule.code_cache)?;
            Ok(Some(cache).filter(|cache| *cache != 0))
        };
        let cache = cache()?;
        let at = |offset: u16| cache.map(|cache| cache.wrapping_add(offset.into()));
        Ok(Self {
            memory,
            methods: at(rule.code_cache_map),
            counts: at(rule.code_cache_counts).filter(|_| rule.code_cache_counts != 0),
        })
    }

    /// The start of the code that starts last at or before an address and the VM's pointer to its method, if there is any.
    pub(super) fn method_before(&self, address: u64) -> Result<Option<(u64, u64)>, TunnelError> {
        let Some(map) = self.methods else {
            return Ok(None);
        };
        let mut next = self.root(map)?;
        let mut found = None;
        for _ in 0..MAX_DEPTH {
            if next == 0 {
                break;
            }
            let [_, _, left, right, start, method, _] = self.node(next)?;
            if start <= address {
                found = Some((start, method));
                next = right;
            } else {
                next = left;
            }
        }
        Ok(found)
    }

    /// Where the native methods' stubs start. The map has them in the order of the methods' parameters.
    pub(super) fn stubs(&self) -> Result<BTreeSet<u64>, TunnelError> {
        let Some(map) = self.methods else {
            return Ok(BTreeSet::new());
        };
        let mut todo = vec![self.root(map.wrapping_sub(MAP))?];
        let mut seen = BTreeSet::new();
        let mut found = BTreeSet::new();
        while let Some(next) = todo.pop() {
            if next == 0 || seen.len() == MAX_STUBS || !seen.insert(next) {
                continue;
            }
            let [_, _, left, right, _, _, start] = self.node(next)?;
            // 0: it is not yet compiled.
            if start != 0 {
                found.insert(start);
            }
            todo.extend([left, right]);
        }
        Ok(found)
    }

    fn root(&self, map: u64) -> Result<u64, TunnelError> {
        self.memory.read_word(map.wrapping_add(ROOT), 8)
    }

    fn node(&self, at: u64) -> Result<[u64; 7], TunnelError> {
        let mut node = [0; NODE];
        self.memory.read(at, &mut node)?;
        Ok(words(&node))
    }
}

fn words(node: &[u8; NODE]) -> [u64; 7] {
    let mut words = [0; 7];
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

    fn rule() -> Rule {
        Rule {
            kind: varid_tunnel::abi::RULE_SIZED,
            special_methods: 0x100,
            code_cache: 0x18,
            code_cache_map: 0x40,
            ..Rule::default()
        }
    }

    /// Maps with these nodes: left, right, code; the address of a node is 0x1000 times its place, counted from 1, and that of a stub's
    /// 0x100000 more.
    fn maps(methods: &[[u64; 3]], stubs: &[[u64; 3]]) -> Words {
        let mut words = BTreeMap::from([(0x100, 0x200), (0x218, 0x300), (0x350, 0x1000)]);
        words.insert(0x320, if stubs.is_empty() { 0 } else { 0x10_1000 });
        for (at, [left, right, start]) in (0x1000..).step_by(0x1000).zip(methods) {
            let node = [0, 0, *left, *right, *start, start + 1, 0];
            words.extend((at..).step_by(8).zip(node));
        }
        for (at, [left, right, start]) in (0x10_1000..).step_by(0x1000).zip(stubs) {
            let node = [0, 0, *left, *right, 7, 1, *start];
            words.extend((at..).step_by(8).zip(node));
        }
        Words(words)
    }

    fn method_before(
        memory: &Words,
        rule: &Rule,
        address: u64,
    ) -> Result<Option<u64>, TunnelError> {
        let found = JitMaps::of(memory, rule)?.method_before(address)?;
        Ok(found.map(|(start, method)| {
            assert_eq!(method, start + 1);
            start
        }))
    }

    #[test]
    fn the_code_that_starts_last_before_an_address_is_found() {
        let nodes = [
            [0x2000, 0x3000, 0x50_0000],
            [0, 0, 0x40_0000],
            [0x4000, 0, 0x70_0000],
            [0, 0, 0x60_0000],
        ];
        let memory = maps(&nodes, &[]);
        let start = |address| method_before(&memory, &rule(), address).unwrap();
        assert_eq!(start(0x3f_ffff), None);
        assert_eq!(start(0x40_0000), Some(0x40_0000));
        assert_eq!(start(0x4f_ffff), Some(0x40_0000));
        assert_eq!(start(0x50_0000), Some(0x50_0000));
        assert_eq!(start(0x6f_0000), Some(0x60_0000));
        assert_eq!(start(u64::MAX), Some(0x70_0000));
    }

    #[test]
    fn all_stubs_that_are_compiled_are_found() {
        let nodes = [
            [0x10_2000, 0x10_3000, 0x40_0000],
            [0, 0, 0x60_0000],
            [0x10_4000, 0, 0],
            [0, 0, 0x50_0000],
        ];
        let memory = maps(&[], &nodes);
        let stubs = JitMaps::of(&memory, &rule()).unwrap().stubs();
        assert_eq!(stubs, Ok([0x40_0000, 0x50_0000, 0x60_0000].into()));
    }

    #[test]
    fn a_tree_without_an_end_is_left() {
        let memory = maps(
            &[[0x1000, 0x1000, 0x50_0000]],
            &[[0x10_1000, 0x10_1000, 0x60_0000]],
        );
        let found = method_before(&memory, &rule(), 0x50_0010);
        assert_eq!(found, Ok(Some(0x50_0000)));
        let found = JitMaps::of(&memory, &rule()).unwrap().stubs();
        assert_eq!(found, Ok([0x60_0000].into()));
    }

    #[test]
    fn without_a_cache_there_is_no_code() {
        let found = method_before(&Words(BTreeMap::new()), &Rule::default(), 0x1000);
        assert_eq!(found, Ok(None));
        let found = method_before(&Words(BTreeMap::from([(0x100, 0)])), &rule(), 0x1000);
        assert_eq!(found, Ok(None));
        let found = method_before(&Words(BTreeMap::new()), &rule(), 0x1000);
        assert!(found.is_err());
    }
}
