//! How much memory there is for this process.

use std::fs;
use std::path::{Path, PathBuf};

/// Bytes that the process should stay below, unless it is told: two thirds of what its container
/// may have, or else the machine. The last third is for what is counted there too: the kernel,
/// sockets' buffers, the database's pages in the system's cache, other programs. On a machine of
/// 512 MB these take some 150.
pub fn share() -> u64 {
    /// Where nothing tells.
    const UNKNOWN: u64 = 1 << 30;
    let limits = control_group(Path::new("/sys/fs/cgroup"), &read("/proc/self/cgroup"));
    let least = limits.into_iter().chain(machine()).min();
    least.unwrap_or(UNKNOWN) / 3 * 2
}

/// `MemTotal` of proc(5), which is in KiB.
fn machine() -> Option<u64> {
    let text = read("/proc/meminfo");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The limits of the groups that `own` (`/proc/self/cgroup`, cgroups(7)) names and of all above
/// them: `memory.max` of version 2, `memory.limit_in_bytes` of version 1. A container often sees
/// its own group as the topmost.
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
        .flat_map(|(root, path, file)| upwards(&root, path, file))
        .filter_map(|file| read(file).trim().parse().ok())
        .collect()
}

/// The file in the group's folder and in all folders above, up to the root.
fn upwards(root: &Path, path: &str, file: &str) -> Vec<PathBuf> {
    let own = root.join(path.trim_start_matches('/'));
    let folders = own
        .ancestors()
        .take_while(|folder| folder.starts_with(root));
    folders.map(|folder| folder.join(file)).collect()
}

/// Empty if it cannot be had: there are systems without.
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
        // A path of the host's, which is not to be seen inside.
        let inside = control_group(&root, "4:memory:/docker/0123\n");
        assert_eq!(inside, [9_223_372_036_854_771_712]);
        assert_eq!(control_group(&root, ""), Vec::<u64>::new());
        fs::remove_dir_all(root).expect("it is ours");
    }

    #[test]
    fn this_machine_has_some() {
        assert!(share() > 64 << 20, "{}", share());
    }
}
