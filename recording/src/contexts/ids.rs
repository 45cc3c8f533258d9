//! Ids of the parts of a session's contexts. Each id is an index into one of the lists of
//! [`Contexts`](super::Contexts).

macro_rules! numbers {
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

            /// Returns the id with this index. No list is longer than `u32` can count.
            pub(crate) fn at(index: usize) -> Self {
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }
        }
    )*};
}

numbers! {
    /// The index of a counter in [`Contexts::counters`](super::Contexts::counters).
    CounterId;
    /// The index of a method in [`Contexts::methods`](super::Contexts::methods).
    MethodId;
    /// The index of a call site in [`Contexts::sites`](super::Contexts::sites).
    SiteId;
    /// The index of a calling context in [`Contexts::nodes`](super::Contexts::nodes).
    NodeId;
}
