//! Compresses the fonts that are compiled in: 475 kB in place of 986.

use std::path::Path;
use std::{env, fs};

/// The strongest of zlib's levels that `miniz_oxide` has.
const COMPRESSION: u8 = 10;

fn main() {
    println!("cargo::rerun-if-changed=fonts");
    let folder = env::var_os("OUT_DIR").expect("cargo sets it");
    for name in ["DejaVuSans", "NotoSansDevanagari-Regular"] {
        let file = format!("fonts/{name}.ttf");
        let font = fs::read(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
        let compressed = miniz_oxide::deflate::compress_to_vec_zlib(&font, COMPRESSION);
        let path = Path::new(&folder).join(format!("{name}.zlib"));
        fs::write(path, compressed).expect("cargo made the folder");
    }
}
