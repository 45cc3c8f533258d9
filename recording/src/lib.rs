//! varid-recording.
