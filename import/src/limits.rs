//! The limits for names of a source.
//!
//! A session's manifest has names of a source, and readers reject a manifest above 64 MB. A byte of a name takes at most six in JSON.

/// The most bytes of a path, of a command line and of a function's name.
pub(crate) const MAX_NAME: usize = 4_096;
/// The most bytes of the name of an event, a thread or a machine, as in a session's records.
pub(crate) const MAX_SHORT_NAME: usize = 256;
/// The most bytes of the names in a list of the manifest.
const MAX_LIST: usize = 2 << 20;

/// Returns the beginning of a text, at most `most` bytes.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let ends = (0..=most.min(text.len())).rev();
    // A character has at most four bytes.
    ends.take(4)
        .find_map(|end| text.get(..end))
        .unwrap_or_default()
}

/// The remaining room in a list of names in the manifest.
#[derive(Debug)]
pub(crate) struct ListRoom {
    entries: usize,
    bytes: usize,
}

impl ListRoom {
    /// Makes room for this many names.
    pub(crate) const fn new(entries: usize) -> Self {
        Self {
            entries,
            bytes: MAX_LIST,
        }
    }

    /// Returns true if a name of this many bytes fits.
    pub(crate) const fn fits(&self, bytes: usize) -> bool {
        self.entries > 0 && bytes <= self.bytes
    }

    /// Takes the room for a name of this many bytes. Returns false if it does not fit.
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
