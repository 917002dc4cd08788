//! A disk in memory that remembers what was written, and what is left of it after a power loss.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};

use towebp_encoder::testing::Random;

/// What a disk writes whole or not at all, in bytes.
const SECTOR: usize = 512;

/// Something that was done with the disk.
#[derive(Clone)]
pub enum Event {
    /// Bytes were written from this offset on.
    Write(u64, Arc<[u8]>),
    /// The length of the file was set.
    SetLength(u64),
    /// All that came before is on the disk.
    Sync,
    /// The work before was answered: it may not be lost any more.
    Answered,
}

impl Event {
    pub fn is_sync(&self) -> bool {
        matches!(self, Event::Sync)
    }
}

/// The disk. A clone is the same disk.
#[derive(Clone, Default)]
pub struct Disk(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    events: Vec<Event>,
}

impl Disk {
    /// A disk on which a file with these bytes is safe.
    pub fn of(bytes: Vec<u8>) -> Disk {
        let events = Vec::new();
        Disk(Arc::new(Mutex::new(State { bytes, events })))
    }

    /// What is in the file now, synced or not.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().bytes.clone()
    }

    /// Notes that the work so far was answered.
    pub fn answer(&self) {
        self.0.lock().unwrap().events.push(Event::Answered);
    }

    /// All that was done so far.
    pub fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().events.clone()
    }
}

// The bytes are millions.
impl fmt::Debug for Disk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Disk")
    }
}

impl redb::StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let start = offset as usize;
        let state = self.0.lock().unwrap();
        let found = state.bytes.get(start..start + out.len());
        out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.bytes.resize(length as usize, 0);
        state.events.push(Event::SetLength(length));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.lock().unwrap().events.push(Event::Sync);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        let start = offset as usize;
        state.bytes[start..start + data.len()].copy_from_slice(data);
        state.events.push(Event::Write(offset, data.into()));
        Ok(())
    }
}

/// What the file held at its syncs.
pub struct Durable {
    bytes: Vec<u8>,
    /// The events up to the last sync that `bytes` has.
    done: usize,
}

impl Durable {
    /// A file with these bytes, before any event.
    pub fn of(bytes: Vec<u8>) -> Durable {
        Durable { bytes, done: 0 }
    }

    /// What the file holds if the power is lost after the first `count` events: what was synced by
    /// then, and of the rest what `loss` lets through. Later calls have the same or a greater
    /// `count`.
    pub fn after(&mut self, events: &[Event], count: usize, loss: &mut Loss) -> Vec<u8> {
        let synced = events[..count]
            .iter()
            .rposition(Event::is_sync)
            .unwrap_or(0);
        if synced > self.done {
            replay(&mut self.bytes, &events[self.done..synced], &mut Loss::None);
            self.done = synced;
        }
        let mut bytes = self.bytes.clone();
        replay(&mut bytes, &events[self.done..count], loss);
        bytes
    }
}

/// Which of the writes since the last sync reach the disk.
pub enum Loss {
    /// All of them.
    None,
    /// Each with this chance in 8, whole.
    Writes(u32, Random),
    /// Each sector of each with this chance in 8.
    Sectors(u32, Random),
    /// A sector in 16 of them is lost, or reaches the disk alone.
    Few(bool, Random),
}

impl Loss {
    /// One of the other kinds than [`Loss::None`].
    pub fn random(random: &mut Random) -> Loss {
        let (kind, chance) = (random.below(4), random.below(9));
        let random = Random::new(random.next_u64());
        match kind {
            0 | 1 => Loss::Sectors(chance, random),
            2 => Loss::Writes(chance, random),
            _ => Loss::Few(chance < 4, random),
        }
    }

    /// How many of this many changes of the length reach the disk; they keep their order.
    fn lengths(&mut self, count: usize) -> usize {
        match self {
            Loss::None => count,
            Loss::Writes(_, random) | Loss::Sectors(_, random) | Loss::Few(_, random) => {
                random.index(count + 1)
            }
        }
    }

    /// Whether the next write reaches the disk, at least in part.
    fn keeps_write(&mut self) -> bool {
        match self {
            Loss::Writes(chance, random) => random.below(8) < *chance,
            _ => true,
        }
    }

    /// Whether the next sector of a write reaches the disk.
    fn keeps_sector(&mut self) -> bool {
        match self {
            Loss::Sectors(chance, random) => random.below(8) < *chance,
            Loss::Few(are_lost, random) => (random.below(16) == 0) != *are_lost,
            Loss::None | Loss::Writes(..) => true,
        }
    }
}

/// Does again what the events did, as far as `loss` lets it through. What was written beyond the
/// length that reached the disk is lost; what was never written reads as zeros. A disk gets whole
/// sectors, with all that was written to them: once one write to a sector was lost, so are those
/// that follow it.
fn replay(bytes: &mut Vec<u8>, events: &[Event], loss: &mut Loss) {
    let is_length = |event: &&Event| matches!(event, Event::SetLength(_));
    let mut lengths = loss.lengths(events.iter().filter(is_length).count());
    let mut lost = HashSet::new();
    for event in events {
        match event {
            Event::SetLength(length) if lengths > 0 => {
                lengths -= 1;
                bytes.resize(*length as usize, 0);
            }
            Event::Write(offset, data) => {
                let is_kept = loss.keeps_write();
                let (start, mut from) = (*offset as usize, 0);
                while from < data.len() {
                    let sector = (start + from) / SECTOR;
                    let to = ((sector + 1) * SECTOR - start).min(data.len());
                    if !(is_kept && loss.keeps_sector()) {
                        lost.insert(sector);
                    }
                    if start + to <= bytes.len() && !lost.contains(&sector) {
                        bytes[start + from..start + to].copy_from_slice(&data[from..to]);
                    }
                    from = to;
                }
            }
            Event::SetLength(_) | Event::Sync | Event::Answered => {}
        }
    }
}
