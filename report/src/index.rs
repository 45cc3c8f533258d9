//! Indices of the entries of a table.

/// Defines types of indices.
macro_rules! index_types {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// Index in the table.
            #[must_use]
            pub fn index(self) -> usize {
                usize::try_from(self.0).unwrap_or(usize::MAX)
            }

            /// Returns the id of the entry with this index. Each table has fewer entries than the recording has bytes.
            pub(crate) fn at(index: usize) -> Self {
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }
        }
    )*};
}

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

pub(crate) use {compact_index_types, index_types};
