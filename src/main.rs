//! towebp
fn main() {}
