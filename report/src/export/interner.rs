//! Assigns consecutive indices to the entries of an export's table.

use std::hash::Hash;

use crate::fast_hash::FastMap;

/// A set of keys that are numbered in the order of first use.
#[derive(Debug)]
pub struct Interner<K> {
    ids: FastMap<K, u32>,
    keys: Vec<K>,
}

impl<K: Copy + Eq + Hash> Interner<K> {
    pub fn new() -> Self {
        Self {
            ids: FastMap::default(),
            keys: Vec::new(),
        }
    }

    /// Returns the index of a key. Adds it if it is new.
    pub fn id(&mut self, key: K) -> u32 {
        let next = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        let id = *self.ids.entry(key).or_insert(next);
        if id == next {
            self.keys.push(key);
        }
        id
    }

    /// Returns the index of a known key.
    pub fn get(&self, key: K) -> Option<u32> {
        self.ids.get(&key).copied()
    }

    /// Returns all keys in order of their indices.
    pub fn keys(&self) -> &[K] {
        &self.keys
    }
}
