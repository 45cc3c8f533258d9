//! What belongs to a value that is compared by its place in memory, so that its content need not be hashed.

use std::collections::HashMap;
use std::rc::Rc;

/// The most values that are kept at once.
const MAX: usize = 1 << 14;

/// Something for each of the values that were seen last. A value is kept with it, so that nothing else has its place meanwhile.
#[derive(Debug)]
pub(crate) struct ByPlace<T, V>(HashMap<usize, (Rc<T>, V)>);

impl<T, V> Default for ByPlace<T, V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T, V: Copy> ByPlace<T, V> {
    /// Returns what was kept for a value.
    pub(crate) fn get(&self, value: &Rc<T>) -> Option<V> {
        let known = self.0.get(&Rc::as_ptr(value).addr());
        known.map(|(_, known)| *known)
    }

    /// Keeps something for a value. If there are too many, all others are dropped.
    pub(crate) fn insert(&mut self, value: &Rc<T>, known: V) {
        if self.0.len() >= MAX {
            self.0.clear();
        }
        let place = Rc::as_ptr(value).addr();
        self.0.insert(place, (Rc::clone(value), known));
    }
}
