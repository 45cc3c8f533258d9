//! Which values of a map that is bounded in bytes are kept? Those that were used last.

use std::hash::Hash;
use varid_model::ById;

/// A map of values that are recomputed when they are needed after they were dropped. Its keys are addresses and numbers of a VM.
///
/// It has two generations. A value that is used is in the newer one. When that has half of the bytes, the older one is dropped.
#[derive(Debug)]
pub(in crate::hotspot) struct BoundedMap<K, V> {
    newer: ById<K, Entry<V>>,
    older: ById<K, Entry<V>>,
    /// Bytes of the newer generation.
    bytes: usize,
    /// The most bytes of a generation.
    most: usize,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    bytes: usize,
}

/// What a map takes for an entry beside the value, in bytes.
const OVERHEAD: usize = 64;

impl<K: Eq + Hash + Clone, V: Clone> BoundedMap<K, V> {
    /// An empty map of values of at most `most` bytes in total.
    pub(in crate::hotspot) fn new(most: usize) -> Self {
        Self {
            newer: ById::default(),
            older: ById::default(),
            bytes: 0,
            most: most / 2,
        }
    }

    /// Returns a value.
    pub(in crate::hotspot) fn get(&mut self, key: &K) -> Option<V> {
        if let Some(found) = self.newer.get(key) {
            return Some(found.value.clone());
        }
        let found = self.older.remove(key)?;
        let value = found.value.clone();
        self.put(key.clone(), found);
        Some(value)
    }

    /// Returns a value without counting that as a use.
    pub(in crate::hotspot) fn peek(&self, key: &K) -> Option<&V> {
        let found = self.newer.get(key).or_else(|| self.older.get(key));
        found.map(|entry| &entry.value)
    }

    /// Returns true if it has a value.
    pub(in crate::hotspot) fn contains(&self, key: &K) -> bool {
        self.peek(key).is_some()
    }

    /// Adds a value of so many bytes. A value that is larger than a generation is not kept.
    pub(in crate::hotspot) fn insert(&mut self, key: K, value: V, bytes: usize) {
        let bytes = bytes.saturating_add(OVERHEAD);
        self.remove(&key);
        if bytes <= self.most {
            self.put(key, Entry { value, bytes });
        }
    }

    fn put(&mut self, key: K, value: Entry<V>) {
        let bytes = value.bytes;
        if self.bytes.saturating_add(bytes) > self.most {
            self.older = std::mem::take(&mut self.newer);
            self.bytes = 0;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.newer.insert(key, value);
    }

    /// Removes a value.
    pub(in crate::hotspot) fn remove(&mut self, key: &K) {
        if let Some(removed) = self.newer.remove(key) {
            self.bytes = self.bytes.saturating_sub(removed.bytes);
        }
        self.older.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_used_stay_and_the_size_is_bounded() {
        let mut map = BoundedMap::new(20 * (OVERHEAD + 100));
        for key in 0..1000 {
            map.insert(key, key, 100);
            assert_eq!(map.get(&0), Some(0));
            assert!(map.newer.len() <= 10 && map.older.len() <= 10);
        }
        assert_eq!(map.get(&999), Some(999));
        assert_eq!(map.get(&500), None);
        map.remove(&999);
        assert_eq!(map.get(&999), None);
    }

    #[test]
    fn a_value_that_is_too_large_is_not_kept() {
        let mut map = BoundedMap::new(1000);
        map.insert(1, 1, 100);
        map.insert(2, 2, 600);
        assert_eq!((map.get(&1), map.get(&2)), (Some(1), None));
        // It replaces the value that it had.
        map.insert(1, 2, 600);
        assert_eq!(map.get(&1), None);
    }
}
