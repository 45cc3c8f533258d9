//! Numbers the parts of a session's contexts. Each number is a place in one of the lists of [`Contexts`](super::Contexts).

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns the place in the list.
            #[must_use]
            pub fn index(self) -> usize {
                usize::try_from(self.0).unwrap_or(usize::MAX)
            }

            /// Returns the number of the part in this place. No list reaches beyond `u32`.
            pub(crate) fn at(index: usize) -> Self {
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }
        }
    )*};
}

numbers! {
    /// A counter, by its place in [`Contexts::counters`](super::Contexts::counters).
    CounterId;
    /// A method, by its place in [`Contexts::methods`](super::Contexts::methods).
    MethodId;
    /// A call site, by its place in [`Contexts::sites`](super::Contexts::sites).
    SiteId;
    /// A calling context, by its place in [`Contexts::nodes`](super::Contexts::nodes).
    NodeId;
}
