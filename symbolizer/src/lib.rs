//! varid-symbolizer.
