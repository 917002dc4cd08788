//! Animations: the `ANIM` and `ANMF` chunks (RFC 9649, section 2.7.1.1).
//!
//! Frames come one by one, each as the whole canvas that a viewer is to see. Only what it changes
//! is coded: [`damage`] finds the rectangle, [`frame_pixels`] the pixels in it, [`mode_history`]
//! the coding. [`incremental`] puts these together; [`canvases`] keeps the canvas before, for
//! callers that do not know which pixels a frame changes.

mod canvases;
mod damage;
mod frame;
mod frame_pixels;
mod incremental;
mod mode_history;
#[cfg(feature = "testing")]
pub mod player;

pub use canvases::AnimationEncoder;
pub use damage::{Damage, Rect};
pub use incremental::IncrementalAnimation;

#[cfg(test)]
mod tests;
