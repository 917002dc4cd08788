//! The conversions of towebp: a picture in, a WebP out. It opens no file and no socket.
//!
//! ```text
//! conversion -> image -> watermark -> towebp_encoder
//! ```
//!
//! [`conversion`] has the parameters, and the plan of a conversion and its run; [`mod@image`] reads
//! PNG, JPEG, GIF and BMP into pixels that are upright and sRGB; [`watermark`] draws texts and
//! pictures onto them. It is a crate of its own so that the compiler keeps it pure: the service
//! around it, with its files, sockets and threads, is out of reach, and the crate runs in browsers
//! too.

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "what a module's page says of its private parts is for those who read them, with --document-private-items"
)]

pub mod conversion;
pub mod image;
pub mod watermark;
