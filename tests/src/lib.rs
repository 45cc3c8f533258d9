//! varid-tests.
