//! towebp: PNG, JPEG, GIF and BMP to WebP by one HTTP call.
//!
//! # Modules
//!
//! ```text
//! argv -> cli -> config
//!                  |
//! socket -> front -> http -> conversion -> image -> watermark -> towebp_encoder -> socket
//!                     |
//!                     +-- fetch        the picture behind a watermark's URL
//!                     +-- admission    what accounts and addresses share: memory, turns, rates
//!                     +-- auth, store  from a token to an account; the usage entry
//!                     +-- dashboard    pages for people
//! ```
//!
//! Data flows along the arrows, and each module imports only modules to its right or below it.
//! [`http`] alone knows status codes. [`towebp_pipeline`] (`conversion`, `image`, `watermark`)
//! opens no file and no socket: it is a crate of its own so that the compiler keeps it pure.
//! [`towebp_encoder`] is a crate that knows nothing of the rest. [`process`] is what [`cli`] needs
//! of the system: signals, the service manager, the log. [`admin`] lets `towebp account`, `backup`
//! and `check` use the [`store`] beside a running server. `tests/layout.rs` checks the imports.
//!
//! # One request
//!
//! `POST /convert?quality=80&watermark=hello&watermark_image=https://example.org/logo.png`, with a
//! JPEG as its body:
//!
//! 1. [`front`] owns the public socket. Its event loop, a single thread, reads the head and rejects
//!    what is not strict HTTP/1.1 or exceeds a limit. Then [`http`] (`admitted`) decides by the
//!    head whether the client should send the body; steps 2 to 4 wait for no disk.
//! 2. `routes` finds the route by its path. A wrong method ends here (405).
//! 3. `convert` takes the token from the header or the query. [`store::Store::check_token`]
//!    verifies its checksum and its HMAC with [`auth`], and then the account's current generation
//!    of tokens (401).
//! 4. The query becomes [`conversion::Params`], and `Content-Type` becomes an [`image::Format`]
//!    (400). A conversion is also rejected if the account has used up its rate or quota (429), or
//!    if the disk takes no writes (503), since nothing is converted that could not be recorded.
//! 5. The event loop reads the body: at most so many bytes (413), at no less than the least rate
//!    (408).
//! 6. [`fetch`] gets the logo, if its host has no private address. The request waits for it in the
//!    event loop, and then for a worker, in the turn of its account.
//! 7. A worker thread takes the request as a job ([`front`]) and answers it in [`http`]. A panic
//!    from here on becomes a 500 of this request alone. `convert` checks the token once more, reads
//!    the header of the picture ([`image::open`]) and plans the conversion
//!    ([`conversion::Plan::new`]). If the memory that the plan needs is taken
//!    ([`admission::MemoryBudget`]), the request waits for it in the event loop, until the queue
//!    timeout (503); a small picture does not wait for large ones, and a plan that needs more than
//!    all memory is rejected at once (413).
//! 8. [`conversion::Plan::run`] does the work. [`image`] decodes the bytes, turns the pixels
//!    upright and converts them to sRGB; [`watermark`] draws the logo and the text;
//!    [`towebp_encoder`] encodes, on one core and on all others that are idle. It stops at the
//!    deadline (503) and measures the time of each stage.
//! 9. [`store::Store::record_usage_within`] adds an entry to the history, unless a quota is used up
//!    (429), and returns when it is on disk.
//! 10. The WebP goes back to the event loop with its headers, one line goes to the log, and the
//!     event loop sends the response as fast as the client reads.
//!
//! Each module has errors of its own, which know nothing of HTTP. `http/problem/` gives each of
//! them a status, a code and a sentence for the client.
//!
//! `towebp convert` does step 8 with the same parameters.
//!
//! [`conversion::Params`]: towebp_pipeline::conversion::Params
//! [`conversion::Plan::new`]: towebp_pipeline::conversion::Plan::new
//! [`conversion::Plan::run`]: towebp_pipeline::conversion::Plan::run
//! [`image::Format`]: towebp_pipeline::image::Format
//! [`image::open`]: towebp_pipeline::image::open
//! [`image`]: towebp_pipeline::image
//! [`watermark`]: towebp_pipeline::watermark

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "what a module's page says of its private parts is for those who read them, with --document-private-items"
)]

// The program: commands, settings, and what the system wants to know.
pub mod cli;
pub mod config;
pub mod process;

// Requests: the public socket, what is admitted, and the answers.
pub mod admission;
pub mod front;
pub mod http;

// Accounts: credentials, storage, and the pages and the socket to look after them.
pub mod admin;
pub mod auth;
pub mod dashboard;
pub mod store;

// Pictures for watermarks, from URLs.
pub mod fetch;

// What connects over TLS: `fetch`, and the store to a database.
pub mod tls;
