//! What the process has to do with the system that it runs on: signals, the service manager, the
//! allocator's settings, the limit of memory, and the log.
//!
//! Nothing here knows anything of pictures or HTTP, and nothing here is imported by the modules
//! that do the work: the command line and the settings alone use it.

pub mod allocator;
#[cfg(all(target_os = "linux", any(target_env = "musl", test)))]
pub mod block_cache;
pub mod interrupt;
pub mod logging;
#[cfg(all(target_arch = "x86_64", any(target_env = "musl", test)))]
mod memory_functions;
pub mod memory_limit;
pub mod signals;
#[cfg(all(target_os = "linux", any(target_env = "musl", test)))]
mod system_memory;
pub mod systemd;
