//! The interfaces of the process to its system: signals, the service manager, the
//! allocator's settings, the limit of memory, and the log.
//!
//! Nothing here knows anything of pictures or HTTP, and nothing here is imported by the modules
//! that do the work: the command line and the settings alone use it.

pub mod allocator;
pub mod interrupt;
pub mod logging;
pub mod memory_limit;
pub mod signals;
pub mod systemd;
