//! Encodes pictures and animations as WebP: lossy ([RFC 6386]) and lossless, with alpha, metadata
//! and the container ([RFC 9649]). It has no unsafe code, does no I/O, and keeps no global state.
//!
//! ```
//! use towebp_encoder::{ColorType, Encoder, Picture};
//!
//! // An orange square: red, green and blue of each pixel.
//! let pixels = [255, 128, 0].repeat(100 * 100);
//! let picture = Picture::new(100, 100, ColorType::Rgb8, &pixels)?;
//! let encoded = Encoder::lossy(80).encode(&picture)?;
//! assert_eq!(&encoded.file[8..12], b"WEBP");
//! # Ok::<(), towebp_encoder::EncodeError>(())
//! ```
//!
//! # Where to begin
//! - [`Encoder`] is the list of options: [`Encoder::lossy`], [`Encoder::lossless`] or
//!   [`Encoder::auto`], which takes whichever is smaller. [`Encoder::encode`] gives the file,
//!   [`Encoder::write`] writes it.
//! - [`Picture`] is a view of pixels: gray, gray with alpha, RGB or RGBA, 8 bits a sample, with any
//!   distance between rows. [`Planes`] are `Y'CbCr`, for pictures that come as such, and
//!   [`PlanesBuilder`] makes them of RGB that comes row by row.
//! - [`Prepared`] is a picture that is encoded several times, at other qualities.
//! - [`AnimationEncoder`] takes canvases one after the other.
//! - [`Cancel`] stops work from another thread; [`CpuBudget`] shares cores between encoders, and by
//!   [`Workers`] with earlier stages, such as decoders.
//!
//! # The same bytes everywhere
//! A file depends on the pixels and the options only: it is the same bytes on every machine, with
//! and without vector instructions, and with any number of threads.
//!
//! # Features
//! None is on by default.
//! - `image` makes an `image::ImageEncoder` of the encoder: `image_encoder::WebPEncoder`.
//! - `testing` is for this project's own tests and fuzz targets: a decoder of others to compare to.
//!   It is not part of the interface.
//!
//! [RFC 6386]: https://www.rfc-editor.org/rfc/rfc6386
//! [RFC 9649]: https://www.rfc-editor.org/rfc/rfc9649

#![forbid(unsafe_code)]

#[cfg(all(test, not(feature = "testing")))]
compile_error!(
    "the tests need the feature `testing`: cargo test -p towebp-encoder --features testing"
);

mod alpha;
mod animation;
mod auto_mode;
mod bitstream;
mod cancel;
mod checks;
mod color_change;
mod container;
mod cpu;
mod encoder;
mod error;
mod few_colors;
mod fixed_point;
#[cfg(feature = "image")]
pub mod image_encoder;
mod lossless_estimate;
mod lossy_estimate;
mod memory;
mod options;
mod picture;
mod pixel_source;
mod prepared;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod reference;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
mod threads;
mod transparent_fill;
#[cfg_attr(
    not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_feature = "simd128"
    )),
    allow(dead_code, reason = "there are no vectors to compute with")
)]
mod vector_ops;
mod vp8;
mod vp8l;
mod ycbcr;

#[cfg(feature = "testing")]
#[doc(hidden)]
pub use animation::player;
pub use animation::{AnimationEncoder, Damage, IncrementalAnimation, Rect};
pub use cancel::{Cancel, Cancelled};
#[doc(hidden)]
pub use cpu::Simd;
pub use encoder::{Encoded, Encoder};
pub use error::EncodeError;
pub use lossless_estimate::LosslessEstimate;
pub use options::{Coding, Effort, Mode};
pub use picture::{ColorType, MAX_SIDE, Picture};
pub use prepared::Prepared;
pub use threads::{CpuBudget, Helper, OccupiedCore, Workers};
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use vp8::Constants;
pub use ycbcr::{Activity, Planes, PlanesBuilder};
