//! The amount of work of the tests: for each change, or for `make test-long`.

/// The amount of work of scalable tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// For each change.
    Gate,
    /// Before a release: VARID_TEST_SCALE=long.
    Long,
}

/// Returns the scale of this run.
pub fn scale() -> Scale {
    match std::env::var_os("VARID_TEST_SCALE") {
        Some(scale) if scale == "long" => Scale::Long,
        _ => Scale::Gate,
    }
}
