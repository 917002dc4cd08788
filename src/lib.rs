//! towebp
pub mod admin;
pub mod cli;
pub mod conversion;
pub mod dashboard;
pub mod fetch;
pub mod front;
pub mod http;
pub mod image;
pub mod store;
pub mod watermark;
pub mod webp;
