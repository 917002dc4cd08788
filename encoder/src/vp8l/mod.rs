//! Lossless coding: RFC 9649, section 3, one file per part.

mod argb;
mod bit_writer;
mod code_groups;
mod coding;
mod color_cache;
mod cost_model;
mod distance;
mod encoder;
mod entropy;
mod entropy_image;
mod estimate;
mod greedy_parse;
mod grouping;
mod hash_chain;
mod histogram;
mod huffman;
mod image_stream;
mod match_length;
mod near_lossless;
mod optimal_parse;
mod options;
mod parse_search;
mod prefix;
mod tiles;
mod token;
mod transform;

pub use argb::from_rgba;
pub use encoder::{encode, encode_headless, estimate};
pub use entropy::log2;
pub use near_lossless::{max_error, round};
pub use options::LosslessOptions;
pub use transform::MAX_COLORS;
