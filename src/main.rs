//! The program: everything is in the library.

use std::process::ExitCode;
#[cfg(target_env = "musl")]
use towebp_memory::block_cache::BlockCache;

#[cfg(target_env = "musl")]
#[global_allocator]
static BLOCKS: BlockCache = BlockCache::empty();

fn main() -> ExitCode {
    towebp::cli::run()
}
