//! Memory for programs with musl: an allocator in front of its own, and `memcpy` and its like in
//! place of its own on x86-64. A crate of its own, because each conversion spends time in it, and
//! the program around it is compiled for size.

#[cfg(all(target_os = "linux", any(target_env = "musl", test)))]
pub mod block_cache;
#[cfg(all(target_arch = "x86_64", any(target_env = "musl", test)))]
mod memory_functions;
#[cfg(all(target_os = "linux", any(target_env = "musl", test)))]
mod system_memory;
