//! Lossless pictures: RFC 9649, section 3. One file for each of its parts.

mod argb;
mod bit_writer;
mod color_cache;
mod distance;
mod encoder;
mod entropy;
mod entropy_image;
mod estimate;
mod hash_chain;
mod histogram;
mod huffman;
mod image_stream;
mod lz77;
mod near_lossless;
mod parse;
mod prefix;
mod token;
mod transform;

pub use argb::from_rgba;
pub use encoder::{Settings, encode, encode_headless, estimate};
pub use near_lossless::{max_error, round};
