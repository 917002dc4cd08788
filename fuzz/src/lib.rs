//! The pictures, files and options that several fuzz targets have in common.

pub mod content;
pub mod still;
pub mod tiff;
