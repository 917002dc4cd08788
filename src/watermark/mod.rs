//! Text and pictures drawn onto an image.
//!
//! A watermark that is larger than the image less its margins is scaled down to fit. Only the watermark's own area is
//! allocated.

mod blend;
mod color;
mod picture;
mod position;
mod scale;
mod text;

pub use color::Color;
pub use picture::draw_picture;
pub use position::Position;
pub use text::{TextError, TextWatermark, draw_text};
