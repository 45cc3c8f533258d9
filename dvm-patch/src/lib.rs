//! varid-tunnel.
