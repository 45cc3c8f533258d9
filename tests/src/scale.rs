//! How much is tried? As much as each change must pass, or as much as `make test-long` has time for.

/// The amount of work of tests that can do more or less of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// For each change.
    Gate,
    /// Before a release: VARID_TEST_SCALE=long.
    Long,
}

/// The scale of this run.
pub fn scale() -> Scale {
    match std::env::var_os("VARID_TEST_SCALE") {
        Some(scale) if scale == "long" => Scale::Long,
        _ => Scale::Gate,
    }
}
