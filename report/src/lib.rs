//! varid-report.
