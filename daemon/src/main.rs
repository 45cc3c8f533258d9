//! varid: the program.
fn main() {}
