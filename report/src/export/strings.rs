//! The string table of a format.

use super::walk::plain;
use crate::fast_hash::FastMap;

/// Distinct strings without line breaks. The first one is empty.
#[derive(Debug)]
pub struct Strings {
    ids: FastMap<String, u32>,
    /// The strings that were added since the last [`take_new`](Self::take_new), in order of their indices.
    new: Vec<String>,
}

impl Strings {
    pub fn new() -> Self {
        let mut strings = Self {
            ids: FastMap::default(),
            new: Vec::new(),
        };
        strings.id("");
        strings
    }

    /// Returns the index of a string. Adds it if it is new.
    pub fn id(&mut self, text: &str) -> u32 {
        let text = plain(text);
        if let Some(id) = self.ids.get(text.as_ref()) {
            return *id;
        }
        let id = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        self.ids.insert(text.clone().into_owned(), id);
        self.new.push(text.into_owned());
        id
    }

    /// Returns the strings that have not been written.
    pub fn take_new(&mut self) -> Vec<String> {
        std::mem::take(&mut self.new)
    }
}
