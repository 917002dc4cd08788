//! One reader per input format.

pub mod bmp;
pub mod gif;
pub mod jpeg;
pub mod png;
pub mod tiff;
pub mod webp;
