//! A disk in memory that can break, fill up, become slow, and stand still.

use crate::store::redb::{Database, RedbEngine};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The disk. A clone is the same disk.
#[derive(Clone, Debug, Default)]
pub struct Disk(Arc<DiskState>);

#[derive(Debug, Default)]
struct DiskState {
    bytes: Mutex<Vec<u8>>,
    /// The number of operations until the disk breaks; `None` if it does not break.
    left: Mutex<Option<usize>>,
    is_full: AtomicBool,
    pause: Mutex<()>,
    syncs: AtomicUsize,
    read_time: Mutex<Duration>,
    read_pause: Mutex<()>,
    reads: AtomicUsize,
}

impl Disk {
    /// An engine on this disk.
    pub fn engine(&self) -> RedbEngine {
        self.engine_with_cache(1 << 30)
    }

    /// An engine that reads every page from the disk each time, as if the database were larger than
    /// the memory.
    pub fn engine_without_cache(&self) -> RedbEngine {
        self.engine_with_cache(0)
    }

    fn engine_with_cache(&self, bytes: usize) -> RedbEngine {
        let disk = self.clone();
        let opener = move || {
            redb::Database::builder()
                .set_cache_size(bytes)
                .create_with_backend(disk.clone())
        };
        let database = Database::open_by(Box::new(opener)).unwrap();
        database.ensure_format().unwrap();
        RedbEngine::on(database)
    }

    /// The number of syncs during `work`.
    pub fn syncs_of(&self, work: impl FnOnce()) -> usize {
        let before = self.syncs();
        work();
        self.syncs() - before
    }

    /// The number of syncs so far.
    pub fn syncs(&self) -> usize {
        self.0.syncs.load(Ordering::SeqCst)
    }

    /// Syncs wait until the guard is dropped.
    pub fn hold_up(&self) -> MutexGuard<'_, ()> {
        self.0.pause.lock().unwrap()
    }

    /// The number of reads so far.
    pub fn reads(&self) -> usize {
        self.0.reads.load(Ordering::SeqCst)
    }

    /// From now on each read takes this long.
    pub fn slow_down(&self, read_time: Duration) {
        *self.0.read_time.lock().unwrap() = read_time;
    }

    /// Reads wait until the guard is dropped.
    pub fn hold_up_reads(&self) -> MutexGuard<'_, ()> {
        self.0.read_pause.lock().unwrap()
    }

    /// From now on the file cannot grow.
    pub fn fill_up(&self) {
        self.0.is_full.store(true, Ordering::SeqCst);
    }

    /// From now on the file can grow again.
    pub fn free_space(&self) {
        self.0.is_full.store(false, Ordering::SeqCst);
    }

    /// After this many operations, every further one fails.
    pub fn break_after(&self, operations: usize) {
        *self.0.left.lock().unwrap() = Some(operations);
    }

    /// From now on operations succeed again.
    pub fn mend(&self) {
        *self.0.left.lock().unwrap() = None;
    }

    fn check(&self) -> io::Result<()> {
        match &mut *self.0.left.lock().unwrap() {
            None => Ok(()),
            Some(0) => Err(io::Error::new(
                io::ErrorKind::StorageFull,
                "the disk is full",
            )),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }
}

impl redb::StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        self.check()?;
        Ok(self.0.bytes.lock().unwrap().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.check()?;
        self.0.reads.fetch_add(1, Ordering::SeqCst);
        let read_time = *self.0.read_time.lock().unwrap();
        std::thread::sleep(read_time);
        // A test that fails while it holds the reads up must not make the reading threads panic.
        drop(
            self.0
                .read_pause
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        let start = offset as usize;
        out.copy_from_slice(&self.0.bytes.lock().unwrap()[start..start + out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check()?;
        let mut bytes = self.0.bytes.lock().unwrap();
        if len > bytes.len() as u64 && self.0.is_full.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        bytes.resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.check()?;
        drop(self.0.pause.lock().unwrap());
        self.0.syncs.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check()?;
        let start = offset as usize;
        self.0.bytes.lock().unwrap()[start..start + data.len()].copy_from_slice(data);
        Ok(())
    }
}
