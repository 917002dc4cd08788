//! The built program: its server over real sockets, and its commands.

#[path = "../support/mod.rs"]
mod support;

mod accounts;
mod assets;
mod attack;
mod backup;
mod cli;
mod cors;
mod deploy;
mod disk;
mod docs;
mod examples;
mod fairness;
mod fonts;
mod framing;
mod history;
mod http;
mod kill;
mod load;
mod media;
mod metadata;
mod modes;
mod multipart;
mod openapi;
mod operations;
mod placeholder;
mod resize;
mod second_factor;
mod sessions;
mod systemd;
mod tokens;
mod watermark_host;
mod webp_input;

// These read /proc.
#[cfg(target_os = "linux")]
mod budget;
#[cfg(target_os = "linux")]
mod memory;
mod tiff_input;
