//! The `xc` program.
fn main() {}
