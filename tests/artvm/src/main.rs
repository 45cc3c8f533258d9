//! artvm: the dex VM of the tests.
fn main() {}
