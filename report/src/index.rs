//! Indices of the entries of a table that may be absent.

/// Defines types of indices of which an `Option` has the same size.
macro_rules! compact_index_types {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(
            /// The index plus 1.
            std::num::NonZeroU32,
        );

        impl $name {
            /// Returns the id of the entry with this index. None if there is no id left.
            pub(crate) fn at(index: usize) -> Option<Self> {
                let number = u32::try_from(index).ok()?;
                std::num::NonZeroU32::MIN.checked_add(number).map(Self)
            }

            /// Index in the table.
            #[must_use]
            pub fn index(self) -> usize {
                usize::try_from(self.number()).unwrap_or(usize::MAX)
            }

            /// The index as a small number.
            pub(crate) const fn number(self) -> u32 {
                self.0.get().saturating_sub(1)
            }
        }
    )*};
}

pub(crate) use compact_index_types;
