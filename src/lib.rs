//! towebp: PNG, JPEG, GIF and BMP to WebP by one HTTP call.
//!
//! The modules in the order in which a request meets them: [`front`] owns the address, [`http`] reads the request and
//! checks the token with [`store`], [`fetch`] gets the watermark's picture, and [`conversion`] does the work without
//! touching a file or a socket: [`mod@image`] reads, [`watermark`] draws, [`webp`] writes. The pages for people are
//! [`dashboard`]'s. [`cli`] and [`config`] put it together, [`admin`] lets the command line reach a running server.

pub mod admin;
pub mod cli;
pub mod config;
pub mod conversion;
pub mod dashboard;
pub mod fetch;
pub mod front;
pub mod http;
pub mod image;
pub mod store;
pub mod watermark;
pub mod webp;
