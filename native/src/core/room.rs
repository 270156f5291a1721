//! The memory for sessions, measured where they live: on this machine or its cgroup, or on a GPU.
//!
//! It is measured after the weights are loaded and a first inference was made, so that their memory does not count as free. Promised bytes
//! are used only when sessions come. They are kept here until then, so that two models do not count on the same bytes.

use crate::core::sync::lock;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The bytes for the sessions of one model where memory cannot be measured.
const UNKNOWN_BYTES: u64 = 1 << 30;
/// The part of a machine's memory, one in four, that stays free for requests, the store and other programs.
const HOST_RESERVE: u64 = 4;
/// The part of a machine's available memory, one in eight, for parked sessions if the configuration names no limit.
const PARKED: u64 = 8;

/// Bytes that are promised to sessions and not used yet. Used bytes are measured as no longer free.
pub struct Promises(Mutex<usize>);

pub static PROMISED: Promises = Promises::new();

impl Promises {
    /// None.
    pub const fn new() -> Promises {
        Promises(Mutex::new(0))
    }

    pub fn bytes(&self) -> usize {
        *lock(&self.0)
    }

    /// Changes the kept bytes of one model from `before` to `now`.
    pub fn change(&self, before: usize, now: usize) {
        let mut bytes = lock(&self.0);
        *bytes = *bytes - before + now;
    }
}

#[derive(Serialize, Clone, Debug, PartialEq)]
pub struct Room {
    pub of: &'static str,
    /// Bytes that were free.
    pub free: u64,
    /// Bytes of them that sessions do not get.
    pub reserve: u64,
}

impl Room {
    pub fn unknown() -> Room {
        Room { of: "unknown", free: UNKNOWN_BYTES, reserve: 0 }
    }

    pub fn bytes(&self) -> u64 {
        self.free.saturating_sub(self.reserve)
    }
}

/// The memory of this machine, or of the cgroup of this process if that allows less; less what is kept for sessions.
pub fn host() -> Room {
    let mut room = host_at(Path::new("/")).unwrap_or_else(Room::unknown);
    room.free = room.free.saturating_sub(PROMISED.bytes() as u64);
    room
}

/// How many sessions of `slot_bytes` fit into `bytes`, from 1 to `most`.
pub fn fit(bytes: u64, slot_bytes: usize, most: usize) -> usize {
    usize::try_from(bytes / slot_bytes.max(1) as u64).unwrap_or(usize::MAX).clamp(1, most)
}

pub fn parked() -> u64 {
    host().free / PARKED
}

fn host_at(root: &Path) -> Option<Room> {
    let meminfo = std::fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let kib = |name: &str| field(&meminfo, name).map(|kib| kib << 10);
    let (total, free) = (kib("MemTotal:")?, kib("MemAvailable:")?);
    let machine = Room { of: "machine", free, reserve: total / HOST_RESERVE };
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let bounded = groups.lines().filter_map(|line| Group::of(root, line)?.room());
    bounded.chain([machine]).min_by_key(Room::bytes)
}

/// A cgroup, and the names of its files in its version.
struct Group {
    /// The folders above it, up to `top`, bound it too.
    folder: PathBuf,
    top: PathBuf,
    most: &'static str,
    usage: &'static str,
    /// The field for pages of files, which the system takes back when memory is short.
    files: &'static str,
}

impl Group {
    fn of(root: &Path, line: &str) -> Option<Group> {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?.trim_start_matches('/'));
        let (top, most, usage, files) = if controllers.is_empty() {
            (root.join("sys/fs/cgroup"), "memory.max", "memory.current", "inactive_file")
        } else if controllers.split(',').any(|one| one == "memory") {
            let top = root.join("sys/fs/cgroup/memory");
            (top, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        } else {
            return None;
        };
        Some(Group { folder: top.join(path), top, most, usage, files })
    }

    /// The narrowest bound of the group and those above it; None without a bound. In a container the path may be that of the machine
    /// outside: then only the top exists.
    fn room(&self) -> Option<Room> {
        let above = self.folder.ancestors().take_while(|folder| folder.starts_with(&self.top));
        above.filter_map(|folder| self.room_in(folder)).min_by_key(Room::bytes)
    }

    fn room_in(&self, folder: &Path) -> Option<Room> {
        let number = |file: &str| std::fs::read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
        let (most, used) = (number(self.most)?, number(self.usage)?);
        let stat = std::fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let free = most.saturating_sub(used) + field(&stat, self.files).unwrap_or(0).min(used);
        Some(Room { of: "cgroup", free, reserve: most / HOST_RESERVE })
    }
}

/// The number behind a name at the begin of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let values = text.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        (fields.next() == Some(name)).then(|| fields.next()?.parse().ok())?
    });
    { values }.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn root(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("tendon-room-{name}-{}", std::process::id()));
        let meminfo = ("proc/meminfo", "MemTotal:       33554432 kB\nMemFree: 1 kB\nMemAvailable:   20971520 kB\n");
        for (path, text) in files.iter().chain([&meminfo]) {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
        root
    }

    fn measured(name: &str, files: &[(&str, &str)]) -> Option<Room> {
        let root = root(name, files);
        let room = host_at(&root);
        std::fs::remove_dir_all(root).expect("its end");
        room
    }

    #[test]
    fn a_machine_keeps_a_quarter_of_its_memory() {
        let room = measured("machine", &[]).expect("a room");
        assert_eq!(room, Room { of: "machine", free: 20 * GIB, reserve: 8 * GIB });
        assert_eq!(room.bytes(), 12 * GIB);
        let unbounded = [("proc/self/cgroup", "0::/a\n"), ("sys/fs/cgroup/a/memory.max", "max\n")];
        assert_eq!(measured("unbounded", &unbounded), Some(room));
        assert_eq!(host_at(Path::new("/nonexistent")), None);
    }

    #[test]
    fn the_narrowest_cgroup_counts_and_pages_of_files_in_it_are_free() {
        let files = [
            ("proc/self/cgroup", "0::/pod/box\n"),
            ("sys/fs/cgroup/pod/memory.max", "8589934592"),
            ("sys/fs/cgroup/pod/memory.current", "6442450944"),
            ("sys/fs/cgroup/pod/memory.stat", "anon 5\ninactive_file 1073741824\n"),
            ("sys/fs/cgroup/pod/box/memory.max", "max"),
            ("sys/fs/cgroup/pod/box/memory.current", "1"),
        ];
        assert_eq!(measured("v2", &files), Some(Room { of: "cgroup", free: 3 * GIB, reserve: 2 * GIB }));
    }

    #[test]
    fn a_container_sees_its_own_bound_at_the_top() {
        let files = [
            ("proc/self/cgroup", "12:cpu:/x\n4:memory:/docker/0123\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "4294967296"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "1073741824"),
            ("sys/fs/cgroup/memory/memory.stat", "total_inactive_file 0\n"),
        ];
        assert_eq!(measured("v1", &files), Some(Room { of: "cgroup", free: 3 * GIB, reserve: GIB }));
    }

    #[test]
    fn this_machine_has_memory_and_what_is_promised_is_not_promised_again() {
        let before = host();
        assert!(before.of != "unknown" && before.free > 0, "{before:?}");
        // More than a machine has: what other tests allocate meanwhile does not matter.
        PROMISED.change(0, 1 << 50);
        assert_eq!(host().free, 0);
        PROMISED.change(1 << 50, 0);
    }
}
