//! The method cache of JOP: a policy of which methods are in a cache. Another policy is another implementation of [`MethodCache`].
//!
//! Source: M. Schoeberl, A Time Predictable Instruction Cache for a Java Processor (JTRES 2004), and CProf (PPPJ 2009), section 2.3. A cache
//! is divided into blocks of equal size. A method occupies consecutive blocks, and continues in the first block behind the last one. The
//! tag of a method is that of its first block. A method that is missing is loaded at the next block, in turn (FIFO); the tags of all blocks
//! that it occupies are cleared. It occupies as many blocks as fit into it, and one more.

/// The number of a method, or of a method of the target's runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodeId(pub u32);

/// The length of a method's code in words of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Words(pub u32);

/// Whether code was in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It was.
    Hit,
    /// It was loaded.
    Miss,
}

/// The size of a method cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// In bytes.
    pub size: u32,
    /// The number of blocks.
    pub blocks: u32,
    /// The bytes of a word.
    pub word: u32,
}

impl Geometry {
    /// The most blocks.
    pub const MAX_BLOCKS: u32 = 1 << 16;
    /// The largest size in bytes.
    pub const MAX_SIZE: u32 = 1 << 28;

    /// Returns the words of a block.
    #[must_use]
    pub fn block_words(&self) -> u32 {
        let bytes = self.size.checked_div(self.blocks).unwrap_or_default();
        bytes.checked_div(self.word).unwrap_or_default().max(1)
    }

    /// Returns the words of code of this length in bytes.
    #[must_use]
    pub fn words(&self, bytes: u32) -> Words {
        Words(bytes.div_ceil(self.word.max(1)))
    }
}

/// Which methods are in a cache.
pub trait MethodCache {
    /// Looks code up before it is executed, and loads it if it is missing.
    fn access(&mut self, code: CodeId, words: Words) -> Access;
}

/// The cache with blocks that JOP has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FifoVariableBlock {
    /// The method that starts in each block.
    tags: Vec<Option<CodeId>>,
    block_words: u32,
    /// Where the next method is loaded.
    next: usize,
}

impl FifoVariableBlock {
    /// Makes an empty cache.
    #[must_use]
    pub fn new(geometry: &Geometry) -> Self {
        let blocks = geometry.blocks.clamp(1, Geometry::MAX_BLOCKS);
        Self {
            tags: vec![None; usize::try_from(blocks).unwrap_or(1)],
            block_words: geometry.block_words(),
            next: 0,
        }
    }

    /// Returns the blocks that code of this length occupies.
    fn blocks_of(&self, words: Words) -> usize {
        let whole = words.0.checked_div(self.block_words).unwrap_or_default();
        usize::try_from(whole)
            .unwrap_or(usize::MAX)
            .saturating_add(1)
    }
}

impl MethodCache for FifoVariableBlock {
    fn access(&mut self, code: CodeId, words: Words) -> Access {
        if self.tags.contains(&Some(code)) {
            return Access::Hit;
        }
        let blocks = self.blocks_of(words);
        if blocks > self.tags.len() {
            // It has no place: each access loads it, over everything else.
            self.tags.fill(None);
            return Access::Miss;
        }
        let first = self.next;
        for _ in 0..blocks {
            if let Some(tag) = self.tags.get_mut(self.next) {
                *tag = None;
            }
            let next = self.next.saturating_add(1);
            self.next = if next < self.tags.len() { next } else { 0 };
        }
        if let Some(tag) = self.tags.get_mut(first) {
            *tag = Some(code);
        }
        Access::Miss
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four blocks of eight words, worked out by hand.
    #[test]
    fn methods_are_replaced_in_turn_with_all_blocks_that_they_occupied() {
        let geometry = Geometry {
            size: 128,
            blocks: 4,
            word: 4,
        };
        let mut cache = FifoVariableBlock::new(&geometry);
        let (a, b, c, d) = (CodeId(1), CodeId(2), CodeId(3), CodeId(4));
        let mut access = |code, words| cache.access(code, Words(words));
        // Blocks:             0  1  2  3   next
        let expected = [
            (a, 7, Access::Miss), // a  -  -  -   1
            (b, 8, Access::Miss), // a  b  b  -   3: eight words take two blocks
            (a, 7, Access::Hit),
            (c, 15, Access::Miss), // c2 b  b  c   1: it goes on in block 0, where a was
            (b, 8, Access::Hit),
            (a, 7, Access::Miss), // c2 a  -  c   2: the rest of b has no tag
            (c, 15, Access::Hit),
            (b, 8, Access::Miss),  // c2 a  b  b   0: over the start of c
            (c, 15, Access::Miss), // c  c  b  b   2: over a
            (a, 7, Access::Miss),  // c  c  a  -   3
            (d, 31, Access::Miss), // d in all blocks, from block 3 on
            (d, 31, Access::Hit),
            (c, 15, Access::Miss), // c2 -  -  c: over the start of d
            (d, 32, Access::Miss), // five blocks: no place
            (d, 32, Access::Miss),
            (c, 15, Access::Miss),
        ];
        for (step, (code, words, access_of)) in expected.into_iter().enumerate() {
            assert_eq!(access(code, words), access_of, "step {step}");
        }
    }

    #[test]
    fn words_are_rounded_up() {
        let geometry = Geometry {
            size: 1024,
            blocks: 16,
            word: 4,
        };
        assert_eq!(geometry.block_words(), 16);
        assert_eq!(
            [0, 1, 4, 5].map(|bytes| geometry.words(bytes).0),
            [0, 1, 1, 2]
        );
    }
}
