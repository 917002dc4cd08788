//! towebp: PNG, JPEG, GIF and BMP to WebP by one HTTP call.
//!
//! # Map
//!
//! ```text
//!             argv
//!              |
//!   main -> cli -> config
//!              |
//!              v
//!            front --(whole requests)--> http --(everything for people)--> dashboard
//!                                   |                                    |
//!                     token, usage  |------------> store <---------------+---- admin <- cli
//!                     watermark URL |------------> fetch
//!                                   v
//!                              conversion: image -> watermark -> towebp_encoder
//! ```
//!
//! Data flows along the arrows, and so do imports: nothing points back. [`http`] alone knows status codes,
//! [`conversion`] and what is below it open no file and no socket, and [`towebp_encoder`] is a crate that knows nothing of the rest.
//! `tests/layout.rs` holds the rooms to that.
//!
//! # One request
//!
//! `POST /convert?quality=80&watermark=hello&watermark_image=https://example.org/logo.png`, a JPEG as its body:
//!
//! 1. [`front`] owns the address. Its one thread reads the head, holds it to the limits, and refuses what is no strict
//!    HTTP/1.1. Then it asks the `desk` of [`http`] whether the request is worth its body.
//! 2. `router` finds who would answer: `convert`. Another method ends here with a 405.
//! 3. `convert` asks [`store`] whose token it is: [`store::Store::check_token`] checks its checksum and its HMAC, then
//!    the account's present generation, all in memory: that thread waits for no disk. A 401 ends here.
//! 4. The query becomes [`conversion::Params`], capped and checked; `Content-Type` becomes an [`image::Format`]. A 400
//!    ends here; so does a 503 while the disk takes no writes, since nothing is converted that cannot be recorded.
//! 5. Only now the body is taken in, up to the limit (413), at no less than the least rate (408).
//! 6. [`fetch`] gets the logo, through a resolver that lets no hop reach a private address. The request waits for it in the
//!    event loop, with its `ticket`, and then for a thread, in the turn of its account.
//! 7. A thread of [`http`] takes the whole request from `tiny_http` (`exchange`), inside a boundary that turns a panic
//!    into a 500. `convert` looks at the token once more, reads the body, and waits for memory and a worker
//!    ([`admission::MemoryBudget`]): until the queue timeout (503), or not at all for what is larger than all memory (413).
//! 8. [`conversion::run`] does the work: [`mod@image`] sniffs and decodes the bytes, turns them upright and into sRGB;
//!    [`watermark`] draws the logo, then the text; [`towebp_encoder`] encodes, on a core of its own and all those that are idle
//!    ([`conversion::Cores`]), and stops at the deadline (503). Its time is told by stages.
//! 9. [`store::Store::record_usage`] adds the entry to the history, and returns once it is on disk.
//! 10. The WebP goes back to the door with its headers (`response`), and one line to the log. The door sends it on as
//!     fast as the client reads.
//!
//! Whatever fails on the way is an error of its own room, which knows nothing of HTTP; the one table in `http/error.rs`
//! gives it a status, a code and a sentence for the caller.
//!
//! `towebp convert` enters at step 8 with the same parameters. `towebp account`, `backup` and `check` reach the store
//! through [`admin`], beside a running server too.

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "what a module's page says of its private parts is for those who read them, with --document-private-items"
)]

// The program: commands and their settings.
pub mod cli;
pub mod config;
pub mod process;

// A request comes in.
pub mod admission;
pub mod front;
pub mod http;

// Whose it is, and the ways to look after accounts.
pub mod admin;
pub mod auth;
pub mod dashboard;
pub mod store;

// The watermark's picture.
pub mod fetch;

// The work: pixels in, pixels drawn over, WebP out.
pub mod conversion;
pub mod image;
pub mod watermark;
