//! How much memory this process may use: the limits of its control groups, or the memory of the
//! machine.

use std::fs;
use std::path::{Path, PathBuf};

/// The default of `--memory` in bytes: two thirds of the limit of the container, or of the memory
/// of the machine. The last third is for what counts against the same limit: the kernel, buffers of
/// sockets, the pages of the database in the system's cache, and other programs. On a machine of
/// 512 MB these take some 150 MB.
pub fn default_bytes() -> u64 {
    /// The memory that is assumed if the system does not report any.
    const UNKNOWN: u64 = 1 << 30;
    let limits = control_group(Path::new("/sys/fs/cgroup"), &read("/proc/self/cgroup"));
    let least = limits.into_iter().chain(machine()).min();
    least.unwrap_or(UNKNOWN) / 3 * 2
}

/// The memory of the machine in bytes: `MemTotal` of proc(5), which is in KiB.
fn machine() -> Option<u64> {
    let text = read("/proc/meminfo");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The limits in bytes of the groups in `own` (the text of `/proc/self/cgroup`, cgroups(7)) and of
/// all groups above them: `memory.max` in version 2, `memory.limit_in_bytes` in version 1. Inside a
/// container its own group often appears as the topmost one.
fn control_group(mounted: &Path, own: &str) -> Vec<u64> {
    let groups = own.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        match controllers {
            "" => Some((mounted.to_owned(), path, "memory.max")),
            _ if controllers.split(',').any(|name| name == "memory") => {
                Some((mounted.join("memory"), path, "memory.limit_in_bytes"))
            }
            _ => None,
        }
    });
    groups
        .flat_map(|(root, path, file)| files_upwards(&root, path, file))
        .filter_map(|file| read(file).trim().parse().ok())
        .collect()
}

/// The paths of `file` in the folder of a group and in all folders above it, up to the root.
fn files_upwards(root: &Path, path: &str, file: &str) -> Vec<PathBuf> {
    let own = root.join(path.trim_start_matches('/'));
    let folders = own
        .ancestors()
        .take_while(|folder| folder.starts_with(root));
    folders.map(|folder| folder.join(file)).collect()
}

/// The text of a file; empty if it cannot be read, since not all systems have these files.
fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_all_groups_above_count_in_both_versions() {
        let root = std::env::temp_dir().join(format!("towebp-cgroup-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let file = root.join(path);
            fs::create_dir_all(file.parent().expect("a folder")).expect("a new folder");
            fs::write(file, text).expect("a new file");
        };
        write("a/memory.max", "300\n");
        write("a/b/memory.max", "max\n");
        write("a/b/c/memory.max", "200\n");
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        write("memory/d/memory.limit_in_bytes", "100\n");

        assert_eq!(control_group(&root, "0::/a/b/c\n"), [200, 300]);
        assert_eq!(control_group(&root, "0::/\n"), Vec::<u64>::new());
        let hybrid = "5:cpu,cpuacct:/d\n4:memory:/d\n0::/a\n";
        assert_eq!(
            control_group(&root, hybrid),
            [100, 9_223_372_036_854_771_712, 300]
        );
        // The path of the group on the host, which does not exist inside the container.
        let inside = control_group(&root, "4:memory:/docker/0123\n");
        assert_eq!(inside, [9_223_372_036_854_771_712]);
        assert_eq!(control_group(&root, ""), Vec::<u64>::new());
        fs::remove_dir_all(root).expect("it is ours");
    }

    #[test]
    fn the_memory_of_this_machine_is_found() {
        assert!(default_bytes() > 64 << 20, "{}", default_bytes());
    }
}
