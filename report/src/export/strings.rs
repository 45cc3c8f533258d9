//! Which number has a string in a format's table of strings?

use super::walk::plain;
use crate::fast_hash::FastMap;

/// Strings, each once, in one line each. The first one is empty.
#[derive(Debug)]
pub struct Strings {
    ids: FastMap<String, u32>,
    /// Those that have been asked for since the last [`take_new`](Self::take_new), in the order of their numbers.
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

    /// The number of a string.
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

    /// The strings that are to be written next.
    pub fn take_new(&mut self) -> Vec<String> {
        std::mem::take(&mut self.new)
    }
}
