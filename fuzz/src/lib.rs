//! What several fuzz targets share.

pub mod content;
pub mod still;
