//! The formats in which releases of ART record their compiled code.
//!
//! Sources: runtime/oat_quick_method_header.h, runtime/stack_map.h, runtime/jit/jit_code_cache.h and runtime/oat.h of each release.

use crate::art::layout::{OAT_VERSION, OAT_VERSION_14};
use varid_tunnel::abi::{
    CODE_INFO_COUNTS, CodeCounts, RULE_CODE_INFO, RULE_SIZED, Rule, SIZED_COUNTS,
};

/// The release that defines the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeFormat {
    /// The header before the code has the size of the code.
    Android11,
    /// The CodeInfo has the size of the code.
    Android14,
}

impl CodeFormat {
    /// Returns the format of compiled frames that follow a rule. None if the rule is for other frames.
    pub(crate) fn of(rule: &Rule) -> Option<Self> {
        match rule.kind {
            RULE_SIZED => Some(Self::Android11),
            RULE_CODE_INFO => Some(Self::Android14),
            _ => None,
        }
    }

    /// Returns the format of an oat file's version. None if no known release writes it.
    pub(super) fn of_oat_file(version: [u8; 4]) -> Option<Self> {
        match version.strip_suffix(b"\0")? {
            version if version == OAT_VERSION => Some(Self::Android11),
            version if version == OAT_VERSION_14 => Some(Self::Android14),
            _ => None,
        }
    }

    /// The flags that a CodeInfo may have: it has inlined methods; it is of the JIT's first tier; 14: it is of a debuggable app.
    pub(super) const fn flags(self) -> u32 {
        match self {
            Self::Android11 => 0b11,
            Self::Android14 => 0b111,
        }
    }

    /// Where a code cache has its counters.
    pub(super) const fn counts(self) -> CodeCounts {
        match self {
            Self::Android11 => SIZED_COUNTS,
            Self::Android14 => CODE_INFO_COUNTS,
        }
    }
}
