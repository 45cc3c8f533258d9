//! Indices of the entries of a table.

/// Defines types of indices into tables of fewer than 2^32 entries.
///
/// ```
/// varid_model::index_types! {
///     /// The index of a method.
///     MethodId;
/// }
///
/// assert_eq!(MethodId::at(7).index(), 7);
/// ```
#[macro_export]
macro_rules! index_types {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns the index.
            #[must_use]
            pub fn index(self) -> usize {
                usize::try_from(self.0).unwrap_or(usize::MAX)
            }

            /// Returns the id with this index. No table is longer than `u32` can count.
            pub(crate) fn at(index: usize) -> Self {
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }
        }
    )*};
}
