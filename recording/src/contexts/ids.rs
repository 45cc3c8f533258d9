//! Ids of the parts of a session's contexts. Each id is an index into one of the lists of
//! [`Contexts`](super::Contexts).

varid_model::index_types! {
    /// The index of a counter in [`Contexts::counters`](super::Contexts::counters).
    CounterId;
    /// The index of a method in [`Contexts::methods`](super::Contexts::methods).
    MethodId;
    /// The index of a call site in [`Contexts::sites`](super::Contexts::sites).
    SiteId;
    /// The index of a calling context in [`Contexts::nodes`](super::Contexts::nodes).
    NodeId;
}
