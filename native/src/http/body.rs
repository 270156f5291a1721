//! Request bodies: JSON text that is scanned on its own threads, so that no event loop waits for it.
//!
//! A body is filled by its owner, scanned once, read and freed. Bodies up to `SMALL_BYTES_MAX` have their own thread, so that a large body
//! delays none of them. Accounts alternate on each thread.

pub mod base64;
mod number;
pub mod scan;
mod text;

use self::scan::{Fault, Rules, ScanResult, scan};
use crate::core::completion::count_panic;
use crate::core::layout::{BodyResult, BodyRules};
use crate::core::queue::Queue;
use crate::core::status::{Failure, Status};
use crate::core::sync::lock;
use crate::core::thread;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

/// Bodies at once; their owners bound the bytes.
const BODIES_MAX: usize = 8_192;
/// A body of three to twelve camera frames.
const SMALL_BYTES_MAX: usize = 1 << 20;
/// Bytes of memory that are kept of a freed body, and how many bodies are kept.
const KEPT_BYTES: usize = 512 << 10;
const KEPT_BODIES: usize = 16;

#[derive(Default)]
struct Body {
    bytes: Vec<u8>,
    found: ScanResult,
    scan_us: u32,
}

enum State {
    Filling(Body),
    /// A thread has it, or it waits for one.
    Scanning,
    Scanned(Body),
}

struct Work {
    id: u32,
    body: Body,
    rules: Rules,
}

struct Table {
    bodies: HashMap<u32, State>,
    kept: Vec<Body>,
    last: u32,
}

/// The bodies of one process and the threads that scan them.
pub struct Bodies {
    table: Arc<Mutex<Table>>,
    queues: [Arc<Queue<Work>>; 2],
    threads: Vec<JoinHandle<()>>,
}

/// A function that the threads call with the id of a body and a `Status`. The caller keeps it valid until the bodies are closed.
pub type OnScanned = extern "C" fn(body: u32, status: i32);

type Answer<T> = Result<T, Failure>;

fn misuse<T>(text: &str) -> Answer<T> {
    Err(Failure::new(Status::Misuse, text))
}

impl Bodies {
    /// Starts the threads, which call `done` with the id of each scanned body.
    pub fn open(done: OnScanned) -> Result<Bodies, String> {
        let bodies = HashMap::with_capacity(64);
        let table = Arc::new(Mutex::new(Table { bodies, kept: Vec::with_capacity(KEPT_BODIES), last: 0 }));
        let queues = [(); 2].map(|()| Arc::new(Queue::new(BODIES_MAX)));
        let [small, large] = queues.each_ref().map(|queue| {
            let (queue, table) = (queue.clone(), table.clone());
            move || run(&queue, &table, done)
        });
        // A robot waits for a small body, and the event loop does nothing meanwhile.
        let threads = vec![thread::spawn_prompt("tendon-body-0", small)?, thread::spawn("tendon-body-1", large)?];
        Ok(Bodies { table, queues, threads })
    }

    /// An empty body for `capacity` bytes.
    pub fn make(&self, capacity: usize) -> Answer<u32> {
        let mut table = lock(&self.table);
        if table.bodies.len() == BODIES_MAX {
            return Err(Failure::new(Status::Busy, "too many bodies are scanned"));
        }
        // Ids are positive and repeat after two thousand million others. Ids in use are skipped.
        loop {
            table.last = table.last % (i32::MAX as u32) + 1;
            if !table.bodies.contains_key(&table.last) {
                break;
            }
        }
        let id = table.last;
        let mut body = table.kept.pop().unwrap_or_default();
        body.bytes.reserve(capacity);
        table.bodies.insert(id, State::Filling(body));
        Ok(id)
    }

    /// Appends bytes to a body that is not scanned yet.
    pub fn write(&self, id: u32, bytes: &[u8]) -> Answer<()> {
        match lock(&self.table).bodies.get_mut(&id) {
            Some(State::Filling(body)) if body.bytes.len() + bytes.len() <= body.bytes.capacity() => {
                body.bytes.extend_from_slice(bytes);
                Ok(())
            }
            Some(State::Filling(_)) => misuse("the body is longer than was said"),
            _ => misuse("unknown body, or it is scanned already"),
        }
    }

    /// Queues the scan of a body; bodies of different turns alternate.
    pub fn scan(&self, id: u32, turn: u32, rules: &BodyRules) -> Answer<()> {
        let rules = Rules {
            depth_max: rules.depth_max as usize,
            values_max: rules.values_max as usize,
            string_bytes_max: rules.string_bytes_max as usize,
            escaped_bytes_max: rules.escaped_bytes_max as usize,
            image_bytes_max: rules.image_bytes_max as usize,
            texts: rules.texts != 0,
        };
        let mut table = lock(&self.table);
        let Some(state) = table.bodies.get_mut(&id) else { return misuse("unknown body") };
        match std::mem::replace(state, State::Scanning) {
            State::Filling(body) => {
                let queue = usize::from(body.bytes.len() > SMALL_BYTES_MAX);
                drop(table);
                // Never full: it has room for every body.
                match self.queues[queue].push(turn, Work { id, body, rules }) {
                    Ok(()) => Ok(()),
                    Err(_) => Err(Failure::new(Status::Busy, "the scanner is closing")),
                }
            }
            other => {
                *state = other;
                misuse("the body is scanned already")
            }
        }
    }

    /// The result of a scan; its addresses are valid until the body is freed.
    pub fn result(&self, id: u32) -> Answer<BodyResult> {
        match lock(&self.table).bodies.get(&id) {
            Some(State::Scanned(body)) => {
                let Body { bytes, found, scan_us } = body;
                Ok(BodyResult {
                    bytes: bytes.as_ptr() as u64,
                    skeleton: found.skeleton.as_ptr() as u64,
                    table: found.table.as_ptr() as u64,
                    narrow: found.narrow.as_ptr() as u64,
                    wide: found.wide.as_ptr() as u64,
                    images: found.images.as_ptr() as u64,
                    bytes_len: bytes.len() as u32,
                    skeleton_len: found.skeleton.len() as u32,
                    table_len: found.table.len() as u32,
                    narrow_len: found.narrow.len() as u32,
                    wide_len: found.wide.len() as u32,
                    images_len: found.images.len() as u32,
                    keys: u32::from(found.keys),
                    scan_us: *scan_us,
                })
            }
            _ => misuse("unknown body, or it is not scanned"),
        }
    }

    /// Frees a body that no thread has.
    pub fn free(&self, id: u32) -> Answer<()> {
        let mut table = lock(&self.table);
        match table.bodies.remove(&id) {
            Some(State::Filling(body) | State::Scanned(body)) => {
                if table.kept.len() < KEPT_BODIES {
                    table.kept.push(emptied(body));
                    return Ok(());
                }
                drop(table);
                Ok(())
            }
            Some(State::Scanning) => {
                table.bodies.insert(id, State::Scanning);
                misuse("the body is being scanned")
            }
            None => misuse("unknown body"),
        }
    }

    /// Ends the threads after the scans of all queued bodies.
    pub fn close(self) {
        self.queues.iter().for_each(|queue| queue.close());
        for thread in self.threads {
            // Cannot fail: a scan's panic is caught.
            let _ = thread.join();
        }
    }
}

fn emptied(mut body: Body) -> Body {
    body.bytes.clear();
    body.bytes.shrink_to(KEPT_BYTES);
    body.found.clear(KEPT_BYTES / 8);
    body
}

fn run(queue: &Queue<Work>, table: &Mutex<Table>, done: OnScanned) {
    while let Some(Work { id, mut body, rules }) = queue.pop() {
        let Body { bytes, found, scan_us } = &mut body;
        let begin = Instant::now();
        let status = match catch_unwind(AssertUnwindSafe(|| scan(bytes, rules, found))) {
            Ok(Ok(())) => Status::Ok,
            Ok(Err(Fault::Syntax)) => Status::Syntax,
            Ok(Err(Fault::Depth)) => Status::Depth,
            Ok(Err(Fault::Values)) => Status::Values,
            Err(_) => {
                count_panic();
                Status::Panic
            }
        };
        *scan_us = begin.elapsed().as_micros() as u32;
        lock(table).bodies.insert(id, State::Scanned(body));
        done(id, status as i32);
    }
}
