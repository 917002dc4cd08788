//! Text and pictures drawn onto an image.
//!
//! A watermark becomes a stamp in its final size, already rotated, which is then blended once or as
//! tiles. A watermark that is larger than the image less its margins is scaled down to fit, so that
//! a stamp never has more pixels than the image.

mod blend;
mod color;
mod length;
mod overlay;
mod picture;
mod placed;
mod placement;
mod position;
mod rotation;
mod scale;
mod stamp;
mod text;

pub use color::Color;
pub use length::Length;
pub use overlay::Overlay;
pub use picture::draw_picture;
pub use placed::PlacedMark;
pub use placement::Placement;
pub use position::Position;
pub use text::{FontError, Fonts, Outline, TextError, TextSize, TextWatermark, draw_text};
