//! varid-shim.
