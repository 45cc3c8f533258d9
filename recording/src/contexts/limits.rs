//! Limits on the parts of a session's contexts. They exceed the needs of any session, and bound the memory.

/// The maximum number of counters.
pub const COUNTERS: usize = 64;
/// The maximum number of processes.
pub const PROCESSES: usize = 1 << 20;
/// The maximum number of methods.
pub const METHODS: usize = 1 << 22;
/// The maximum number of call sites.
pub const SITES: usize = 1 << 24;
/// The maximum number of nodes.
pub const NODES: usize = 1 << 24;
/// The maximum number of thread switches.
pub const SWITCHES: usize = 1 << 25;
/// The maximum number of parts of traces.
pub const TRACES: usize = 1 << 20;
/// The maximum number of counter values.
pub const CELLS: usize = 1 << 26;
