//! How many parts a session's contexts may have: more than any session has, and no more than memory holds.

/// The most counters.
pub const COUNTERS: usize = 64;
/// The most processes.
pub const PROCESSES: usize = 1 << 20;
/// The most methods.
pub const METHODS: usize = 1 << 22;
/// The most call sites.
pub const SITES: usize = 1 << 24;
/// The most nodes.
pub const NODES: usize = 1 << 24;
/// The most thread switches.
pub const SWITCHES: usize = 1 << 25;
/// The most parts of traces.
pub const TRACES: usize = 1 << 20;
/// The most values of counters.
pub const CELLS: usize = 1 << 26;
