//! Memory that goes back to the system.
//!
//! glibc's allocator takes large blocks from the system and gives them back when they are freed.
//! But each one that is freed raises the size that counts as large, up to 32 MiB: after some large
//! pictures most blocks stay with the process (131 MB after four progressive JPEGs of 12 MP, where
//! 17 MB are enough). A size that is set stays, and does not slow conversions down.

/// Has glibc's allocator return every block of 1 MiB and more to the system when it is freed,
/// unless the environment has settings for the allocator. Must be called before a second thread is
/// started.
///
/// `mallopt` is in the dynamic and in the static glibc. The alternative without unsafe code,
/// restarting the process with `GLIBC_TUNABLES` in its environment, costs a second start-up and
/// needs /proc.
#[cfg(target_env = "gnu")]
pub fn return_large_blocks() {
    /// The planes of all but tiny pictures are larger.
    const LARGE_BYTES: i32 = 1 << 20;
    // malloc.h of glibc.
    const M_TRIM_THRESHOLD: i32 = -1;
    const M_MMAP_THRESHOLD: i32 = -3;
    let overrides = [
        "GLIBC_TUNABLES",
        "MALLOC_MMAP_THRESHOLD_",
        "MALLOC_TRIM_THRESHOLD_",
    ];
    if overrides
        .iter()
        .any(|name| std::env::var_os(name).is_some())
    {
        return;
    }
    // Setting either ends the adjusting of both.
    for parameter in [M_MMAP_THRESHOLD, M_TRIM_THRESHOLD] {
        set(parameter, LARGE_BYTES);
    }
}

#[cfg(target_env = "gnu")]
#[expect(
    unsafe_code,
    reason = "only an environment variable read at the start of a process could set these otherwise"
)]
fn set(parameter: i32, value: i32) {
    unsafe extern "C" {
        fn mallopt(parameter: i32, value: i32) -> i32;
    }
    // SAFETY: mallopt(3) takes any two numbers, and the process has one thread.
    let is_set = unsafe { mallopt(parameter, value) } == 1;
    if !is_set {
        log::debug!("the allocator keeps its default for parameter {parameter}");
    }
}

/// Other allocators give large blocks back by themselves.
#[cfg(not(target_env = "gnu"))]
pub fn return_large_blocks() {}
