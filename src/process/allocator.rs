//! Memory that goes back to the system.
//!
//! glibc's allocator takes large blocks from the system and gives them back when they are freed. But each one that is
//! freed raises the size that counts as large, up to 32 MiB: after some large pictures most blocks stay with the
//! process (131 MB after four progressive JPEGs of 12 MP, where 17 MB are enough). A size that is set stays, and does
//! not slow conversions down. It can be set without unsafe code by the environment alone, which is read at the start
//! of a process.

/// Sets the size in this process's environment and starts it anew, under the same number, unless the environment has
/// settings for the allocator already. Where that cannot be done (without /proc, say), all stays as it is.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn return_large_blocks() {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    /// Both mallopt(3), since setting either ends the adjusting of both. 1 MiB: the planes of all but tiny pictures.
    const SETTING: &str = "glibc.malloc.mmap_threshold=1048576:glibc.malloc.trim_threshold=1048576";
    const OURS: &str = "GLIBC_TUNABLES";
    let others = ["MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"];
    if [OURS]
        .iter()
        .chain(&others)
        .any(|name| std::env::var_os(name).is_some())
    {
        return;
    }
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    // Returns only if it fails.
    let error = Command::new(program)
        .args(std::env::args_os().skip(1))
        .env(OURS, SETTING)
        .exec();
    log::debug!("the allocator keeps its defaults: {error}");
}

/// Other allocators give large blocks back by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn return_large_blocks() {}
