//! How does a release of ART note down what it has compiled?
//!
//! Sources: runtime/oat_quick_method_header.h, runtime/stack_map.h and runtime/jit/jit_code_cache.h of each release.

use varid_tunnel::abi::{RULE_CODE_INFO, RULE_SIZED, Rule};

/// Whose notes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeFormat {
    /// The header before the code has the size of the code.
    Android11,
    /// The CodeInfo has the size of the code.
    Android14,
}

impl CodeFormat {
    /// That of compiled frames that follow a rule; None: it is of other frames.
    pub(crate) fn of(rule: &Rule) -> Option<Self> {
        match rule.kind {
            RULE_SIZED => Some(Self::Android11),
            RULE_CODE_INFO => Some(Self::Android14),
            _ => None,
        }
    }

    /// The flags that a CodeInfo may have: it has inlined methods; it is of JIT's first tier; 14: it is of a debuggable app.
    pub(super) const fn flags(self) -> u32 {
        match self {
            Self::Android11 => 0b11,
            Self::Android14 => 0b111,
        }
    }

    /// In a code cache, from the byte that tells whether code is collected: the numbers of compilations, whose sum counts.
    pub(super) const fn compiled_counts(self) -> &'static [u64] {
        match self {
            // Of all; that of those for on-stack replacement, which follows, has a part of them.
            Self::Android11 => &[24],
            // Of the first tier, optimised, for on-stack replacement.
            Self::Android14 => &[24, 32, 40],
        }
    }

    /// The same of the number of collections.
    pub(super) const fn collected_count(self) -> u64 {
        match self {
            Self::Android11 => 40,
            Self::Android14 => 48,
        }
    }
}
