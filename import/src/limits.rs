//! How much is kept of what a source names?
//!
//! A session's manifest has names of a source, and a reader takes no manifest beyond 64 MB. A byte of a name takes six in JSON at most.

/// Most bytes of a path, of a command line and of a function's name.
pub(crate) const MAX_NAME: usize = 4_096;
/// Most bytes of the name of an event, a thread or a machine: as a session's records have them.
pub(crate) const MAX_SHORT_NAME: usize = 256;
/// Most bytes of the names in a list of the manifest.
const MAX_LIST: usize = 2 << 20;

/// The first bytes of a text, at most so many.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let ends = (0..=most.min(text.len())).rev();
    // A character has four bytes at most.
    ends.take(4)
        .find_map(|end| text.get(..end))
        .unwrap_or_default()
}

/// What a list of names in the manifest has room for.
#[derive(Debug)]
pub(crate) struct ListRoom {
    entries: usize,
    bytes: usize,
}

impl ListRoom {
    /// Room for so many names.
    pub(crate) const fn new(entries: usize) -> Self {
        Self {
            entries,
            bytes: MAX_LIST,
        }
    }

    /// Whether a name of so many bytes fits.
    pub(crate) const fn fits(&self, bytes: usize) -> bool {
        self.entries > 0 && bytes <= self.bytes
    }

    /// Takes the room of a name of so many bytes, if it fits.
    pub(crate) const fn take(&mut self, bytes: usize) -> bool {
        let fits = self.fits(bytes);
        if fits {
            self.entries = self.entries.saturating_sub(1);
            self.bytes = self.bytes.saturating_sub(bytes);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        for (most, expected) in [(0, ""), (1, "a"), (2, "a"), (4, "a"), (5, "a𝄞"), (9, "a𝄞b")]
        {
            assert_eq!(cut("a𝄞b", most), expected);
        }
    }

    #[test]
    fn a_list_is_full_by_its_names_or_their_bytes() {
        let mut room = ListRoom::new(2);
        assert!(room.take(1) && !room.take(MAX_LIST) && room.take(1) && !room.take(0));
    }
}
