//! The parts of a stack that frame pointers lead to, outside of the stack's copies.

use crate::Address;

/// The two words that a frame pointer points to, in code that maintains one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLink {
    /// The frame pointer: the address of the first word.
    pub at: Address,
    /// The caller's frame pointer.
    pub caller_fp: u64,
    /// The return address, in the next word. On arm64 it may be signed.
    pub return_address: u64,
}

impl FrameLink {
    /// The word at an address. None if it is neither of the two.
    fn word(&self, address: Address) -> Option<u64> {
        match address.offset_from(self.at)? {
            0 => Some(self.caller_fp),
            8 => Some(self.return_address),
            _ => None,
        }
    }
}

/// A word of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackWord {
    /// Its address.
    pub at: Address,
    /// Its value.
    pub word: u64,
}

/// Where a stack goes on behind native frames that may not be known: at the frame of generated code that has called them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resumption {
    /// The lowest stack pointer of the native frames.
    pub from: Address,
    /// The stack pointer of the frame that has called them.
    pub sp: Address,
    /// Its frame pointer.
    pub fp: u64,
    /// Where it goes on.
    pub returns: Address,
}

/// The parts of a stack that a sample has outside of its copies, for a machine with words of 8 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BeyondCopy {
    /// The links that frame pointers lead to, innermost first.
    pub links: Vec<FrameLink>,
    /// The bytes from the first link on, as many as could be read.
    pub bytes: Vec<u8>,
    /// Words of frames of generated code, by address.
    words: Vec<StackWord>,
    /// Where the stack goes on behind native frames, innermost first.
    pub resumptions: Vec<Resumption>,
}

impl BeyondCopy {
    /// The word at an address.
    #[must_use]
    pub fn word(&self, address: Address) -> Option<u64> {
        let first = self.links.first();
        let into = first.and_then(|link| address.offset_from(link.at));
        let into = into.and_then(|into| usize::try_from(into).ok());
        let copied = into.and_then(|into| self.bytes.get(into..)?.first_chunk());
        let copied = copied.map(|word| u64::from_le_bytes(*word));
        copied
            .or_else(|| self.links.iter().find_map(|link| link.word(address)))
            .or_else(|| {
                let at = self.words.binary_search_by_key(&address, |word| word.at);
                self.words.get(at.ok()?).map(|word| word.word)
            })
    }

    /// Sets the words of frames of generated code.
    pub fn set_words(&mut self, mut words: Vec<StackWord>) {
        words.sort_by_key(|word| word.at);
        self.words = words;
    }

    /// Returns true if there is nothing beyond the copies.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.links.is_empty() && self.words.is_empty() && self.resumptions.is_empty()
    }

    /// Returns true if a frame pointer leads to this address.
    #[must_use]
    pub fn has_link(&self, at: Address) -> bool {
        self.links.iter().any(|link| link.at == at)
    }

    /// Returns where the stack goes on behind the native frames of which one has this stack pointer.
    #[must_use]
    pub fn resumption(&self, sp: Address) -> Option<&Resumption> {
        let among = |resumption: &&Resumption| resumption.from <= sp && sp < resumption.sp;
        self.resumptions.iter().find(among)
    }

    /// Clears the contents and keeps the allocations.
    pub fn clear(&mut self) {
        self.links.clear();
        self.bytes.clear();
        self.words.clear();
        self.resumptions.clear();
    }
}
