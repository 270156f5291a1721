//! The rows of a replica's sessions in the memory of its device, where its graphs read and write them. An observation copies none of them.
//!
//! An address there may be a handle, so each cache of each place has its own blocks, and a graph does what the host would do with pointers
//! (`bundle/onnx/copy_rows.rs`). The committed block has one row more than the window: staged rows that an inference has not written go
//! there. A parked place is copied whole.

use super::finite_check::FiniteCheck;
use super::layout::{Cache, Layout, ParkedFrames, Write};
use crate::bundle::manifest::Role;
use crate::bundle::onnx::copy_rows::{self, Names};
use crate::core::dtype::Dtype;
use crate::core::memory::Block;
use crate::core::sync::lock;
use crate::ort::device_memory::DeviceBlock;
use crate::ort::home::Home;
use crate::ort::program::Program;
use crate::ort::value::{Value, transfer};
use std::ffi::{CString, c_void};
use std::sync::{Arc, Mutex};

/// Bytes of an integer; rows are moved as integers.
const WORD: usize = 4;
/// Rows of one cache; WebGPU counts them in 32 bits.
const ROWS_MAX: usize = i32::MAX as usize;

/// The rows of all places of a replica.
pub struct DeviceRows {
    layout: Arc<Layout>,
    home: Home,
    state: Mutex<State>,
}

/// The programs are dropped before the memory that they are bound to.
struct State {
    program: Program,
    finite_check: FiniteCheck,
    places: Vec<PlaceMemory>,
    offered: usize,
    /// The target rows of each block that an inference can write.
    writes: Vec<(Write, Vec<(CString, Value)>)>,
    _numbers: Vec<DeviceBlock>,
}

struct PlaceMemory {
    binding: usize,
    finite_check: usize,
    /// No committed row was written since the place was zeroed.
    is_clean: bool,
    caches: Vec<PlaceCache>,
}

struct PlaceCache {
    committed: DeviceBlock,
    staged: DeviceBlock,
    committed_words: Value,
    staged_words: Value,
}

impl DeviceRows {
    /// Tries one place, whose rows are zero afterwards. `open` makes a session of a graph on the device. The error is a sentence: the rows
    /// must lie elsewhere.
    pub(super) fn new(
        layout: Arc<Layout>,
        home: Home,
        open: impl Fn(&[u8]) -> Result<Program, String>,
    ) -> Result<DeviceRows, String> {
        for cache in &layout.caches {
            if !cache.lead_len(1).is_multiple_of(WORD) {
                return Err(format!("a row of {} is no whole number of 32-bit words", cache.name));
            }
            if cache.leads * layout.window_tokens() >= ROWS_MAX {
                return Err(format!("{} has more rows than a device can number", cache.name));
            }
        }
        let (program, finite_check) = (open(&copy_model(&layout))?, FiniteCheck::new(&layout, home, &open)?);
        let state =
            State { program, finite_check, places: Vec::new(), offered: 1, writes: Vec::new(), _numbers: Vec::new() };
        let rows = DeviceRows { layout, home, state: Mutex::new(state) };
        rows.number()?;
        rows.add()?;
        rows.prove()?;
        Ok(rows)
    }

    pub fn places(&self) -> usize {
        lock(&self.state).offered
    }

    /// Offers places to the graphs. They were made and are bound to all graphs.
    pub fn offer(&self, places: usize) {
        let mut state = lock(&self.state);
        assert!(places <= state.places.len(), "what is offered was made");
        state.offered = places;
    }

    /// The address of the committed or staged rows of a cache of a place, for a binding.
    pub fn address(&self, cache: usize, role: Role, place: usize) -> *mut c_void {
        let state = lock(&self.state);
        let PlaceCache { committed, staged, .. } = &state.places[place].caches[cache];
        if role == Role::Memory { committed.address() } else { staged.address() }
    }

    /// A value over words of the device's memory, or the host's.
    fn words(&self, home: Home, start: *mut c_void, shape: &[usize]) -> Result<Value, String> {
        // SAFETY: callers give memory of this number of words, which they keep as long as the value.
        unsafe { Value::over(home, self.home.turns, start, Dtype::I32, shape) }
    }

    /// Writes the target rows of each block into the device's memory.
    fn number(&self) -> Result<(), String> {
        let mut distinct: Vec<usize> = Vec::new();
        for cache in &self.layout.caches {
            if !distinct.contains(&cache.leads) {
                distinct.push(cache.leads);
            }
        }
        let state = &mut *lock(&self.state);
        for write in self.layout.writes() {
            let mut inputs = Vec::new();
            for &leads in &distinct {
                let numbers: Vec<i64> = self.targets(leads, write).map(|row| row as i64).collect();
                let (bytes, shape) = (numbers.len() * size_of::<i64>(), [numbers.len(), 1]);
                let block = state.program.block(self.home, bytes)?;
                // SAFETY: both are there until they are copied, the block as long as the value.
                let (host, device) = unsafe {
                    let over = |home, start| Value::over(home, self.home.turns, start, Dtype::I64, &shape);
                    (over(Home::HOST, numbers.as_ptr().cast_mut().cast())?, over(self.home, block.address())?)
                };
                // SAFETY: both are this function's.
                unsafe { transfer(self.home.turns, &[(&host, &device)]) }?;
                state._numbers.push(block);
                inputs.push((name(&copy_rows::to(leads)), device));
            }
            state.writes.push((write, inputs));
        }
        Ok(())
    }

    /// The committed row of each staged one, by lead and token.
    fn targets(&self, leads: usize, Write { from, frames }: Write) -> impl Iterator<Item = usize> {
        let (window, facts) = (self.layout.window_tokens(), self.layout.facts);
        let nowhere = leads * window;
        let (from, written) = (from * facts.tokens, frames * facts.tokens);
        let of_lead = move |lead: usize| {
            (0..facts.block_tokens()).map(
                move |token| {
                    if token < written { lead * window + from + token } else { nowhere }
                },
            )
        };
        (0..leads).flat_map(of_lead)
    }

    /// Makes another place of zeroes, which is not offered yet. Rows behind the kept ones are read, and must be numbers.
    pub fn add(&self) -> Result<(), String> {
        let state = &mut *lock(&self.state);
        let (mut caches, mut inputs, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
        for (index, cache) in self.layout.caches.iter().enumerate() {
            let (committed_bytes, staged_bytes) = self.layout.place_bytes(cache);
            let committed = state.program.block(self.home, committed_bytes + cache.lead_len(1))?;
            let staged = state.program.block(self.home, staged_bytes)?;
            let Names { committed: committed_name, staged: staged_name, kept, .. } =
                copy_rows::names(index, cache.leads);
            let row = cache.lead_len(1) / WORD;
            let rows = |bytes: usize| [bytes / WORD / row, row];
            let whole = self.words(self.home, committed.address(), &rows(committed_bytes + cache.lead_len(1)))?;
            let block = self.words(self.home, staged.address(), &rows(staged_bytes))?;
            let committed_words = self.words(self.home, committed.address(), &[committed_bytes / WORD])?;
            let staged_words = self.words(self.home, staged.address(), &[staged_bytes / WORD])?;
            inputs.push((name(&committed_name), whole));
            inputs.push((name(&staged_name), block));
            outputs.push((name(&kept), 2 * index));
            caches.push(PlaceCache { committed, staged, committed_words, staged_words });
        }
        // The target rows are bound for each inference.
        let outputs: Vec<(CString, &Value)> = outputs.into_iter().map(|(name, at)| (name, &inputs[at].1)).collect();
        let inputs: Vec<(CString, &Value)> = inputs.iter().map(|(name, value)| (name.clone(), value)).collect();
        // SAFETY: the place is kept as long as the program.
        let binding = unsafe { state.program.bind(&inputs, &outputs) }?;
        let staged: Vec<*mut c_void> = caches.iter().map(|cache| cache.staged.address()).collect();
        // SAFETY: as above.
        let finite_check = unsafe { state.finite_check.bind(&self.layout, &staged) }?;
        let place = PlaceMemory { binding, finite_check, is_clean: true, caches };
        self.clear(&place)?;
        state.places.push(place);
        Ok(())
    }

    /// Zeroes a place that another session had.
    pub(super) fn renew(&self, place: usize) -> Result<(), String> {
        let place = &mut lock(&self.state).places[place];
        if !place.is_clean {
            self.clear(place)?;
            place.is_clean = true;
        }
        Ok(())
    }

    /// Frees places that were made and not offered. No graph may be bound to them.
    pub fn give_up(&self) {
        let mut state = lock(&self.state);
        let offered = state.offered;
        state.places.truncate(offered);
    }

    /// Why the staged rows must not be kept: they are not finite. They are zeroed then, because the next inference may write fewer rows.
    /// Only the user of the place calls it.
    pub(super) fn unfit(&self, place: usize) -> Result<Option<String>, String> {
        let State { places, finite_check, .. } = &mut *lock(&self.state);
        let place = &places[place];
        // SAFETY: the inference that wrote the rows has ended, and the caller has the place alone.
        if unsafe { finite_check.is_finite(place.finite_check) }? {
            return Ok(None);
        }
        self.zero(place.caches.iter().map(|cache| &cache.staged_words))?;
        Ok(Some("the rows for its memory are not finite".into()))
    }

    fn clear(&self, place: &PlaceMemory) -> Result<(), String> {
        self.zero(place.caches.iter().flat_map(|cache| [&cache.committed_words, &cache.staged_words]))
    }

    fn zero<'a>(&self, words: impl Iterator<Item = &'a Value>) -> Result<(), String> {
        let most = self.layout.caches.iter().map(|cache| self.layout.place_bytes(cache)).map(|(one, two)| one.max(two));
        let zeroes = Block::lazy(most.max().unwrap_or(0))?;
        let mut all = Vec::new();
        for to in words {
            all.push((self.words(Home::HOST, zeroes.address().cast(), &[to.bytes() / WORD])?, to));
        }
        let pairs: Vec<(&Value, &Value)> = all.iter().map(|(from, to)| (from, *to)).collect();
        // SAFETY: the place is the caller's; the zeroes are only read.
        unsafe { transfer(self.home.turns, &pairs) }
    }

    /// Copies a kept block to the end of the committed rows. Only the user of the place calls it.
    pub(super) fn apply_write(&self, place: usize, write: Write) -> Result<(), String> {
        let State { program, places, writes, .. } = &mut *lock(&self.state);
        let (_, inputs) =
            (writes.iter().find(|(one, _)| *one == write)).expect("every block that can be written has its rows");
        places[place].is_clean = false;
        // SAFETY: memory of this place, whose only user is the caller.
        unsafe { program.run(places[place].binding, inputs) }
    }

    /// Copies the rows of a place into a parked block. Only the user of both calls it.
    pub(super) fn park(&self, place: usize, kept: ParkedFrames, block: &Block) -> Result<(), String> {
        self.copy(place, kept, block, |host, device| (device, host))
    }

    /// Copies a parked block into a place. Only the user of both calls it.
    pub(super) fn bring_back(&self, place: usize, kept: ParkedFrames, block: &Block) -> Result<(), String> {
        lock(&self.state).places[place].is_clean = false;
        self.copy(place, kept, block, |host, device| (host, device))
    }

    fn copy(
        &self,
        place: usize,
        kept: ParkedFrames,
        block: &Block,
        direction: impl for<'a> Fn(&'a Value, &'a Value) -> (&'a Value, &'a Value),
    ) -> Result<(), String> {
        assert!(self.layout.slot_bytes() <= block.len(), "a parked block has room for a whole memory");
        let state = lock(&self.state);
        let mut at = 0;
        let mut all = Vec::new();
        for (cache, lie) in self.layout.caches.iter().zip(&state.places[place].caches) {
            let (committed, staged) = self.layout.place_bytes(cache);
            let parts = [(committed, &lie.committed_words, kept.committed), (staged, &lie.staged_words, kept.staged)];
            for (bytes, device, frames) in parts {
                if frames > 0 {
                    // SAFETY: inside the block, as was asserted.
                    let start = unsafe { block.address().add(at) };
                    all.push((self.words(Home::HOST, start.cast(), &[bytes / WORD])?, device));
                }
                at += bytes;
            }
        }
        let pairs: Vec<(&Value, &Value)> = all.iter().map(|(host, device)| direction(host, device)).collect();
        // SAFETY: the caller is the only user of place and block.
        unsafe { transfer(self.home.turns, &pairs) }
    }

    /// Bytes that a parked block takes.
    pub(super) fn parked_bytes(&self, kept: ParkedFrames) -> usize {
        let each = self.layout.caches.iter().map(|cache| self.layout.place_bytes(cache));
        let taken = |bytes: usize, frames: usize| if frames > 0 { bytes } else { 0 };
        each.map(|(committed, staged)| taken(committed, kept.committed) + taken(staged, kept.staged)).sum()
    }

    /// Checks on the first place that the device copies every block to the right rows.
    fn prove(&self) -> Result<(), String> {
        let all = ParkedFrames { committed: self.layout.facts.window, staged: 1 };
        let mut values = Block::lazy(self.layout.slot_bytes())?;
        // The words have all kinds of bits, NaN too.
        for (at, word) in values.chunks_exact_mut(WORD).enumerate() {
            word.copy_from_slice(&(at as u32).wrapping_mul(0x9e37_79b9).to_le_bytes());
        }
        self.bring_back(0, all, &values)?;
        let writes = self.layout.writes();
        writes.iter().try_for_each(|&write| self.apply_write(0, write))?;
        let found = Block::lazy(self.layout.slot_bytes())?;
        self.park(0, all, &found)?;
        parked_leads(&self.layout, |cache, at, staged_at| {
            let len = |frames: usize| cache.lead_len(frames * self.layout.facts.tokens);
            for &Write { from, frames } in &writes {
                values.copy_within(staged_at..staged_at + len(frames), at + len(from));
            }
        });
        if values[..] != found[..] {
            return Err("it does not copy rows as it is told".into());
        }
        self.renew(0)?;
        self.prove_finite_check()
    }

    /// Checks that the device finds a value that is not finite, first or last in a cache, and finds none in finite rows.
    fn prove_finite_check(&self) -> Result<(), String> {
        let State { places, finite_check, .. } = &mut *lock(&self.state);
        let place = &places[0];
        // SAFETY: no run has the place.
        let mut is_finite = || unsafe { finite_check.is_finite(place.finite_check) };
        for (cache, lie) in self.layout.caches.iter().zip(&place.caches) {
            let mut values = Block::lazy(lie.staged_words.bytes())?;
            let host = self.words(Home::HOST, values.address().cast(), &[values.len() / WORD])?;
            let last = values.len() - cache.dtype.bytes();
            for (value, bits) in not_finite(cache.dtype).into_iter().flat_map(|bits| [(0, bits), (last, bits)]) {
                values[value..value + bits.len()].copy_from_slice(bits);
                // SAFETY: as above; the block stays until it is copied.
                unsafe { transfer(self.home.turns, &[(&host, &lie.staged_words)]) }?;
                if is_finite()? {
                    return Err("it does not tell that a row is not finite".into());
                }
                values[value..value + bits.len()].fill(0);
            }
            // SAFETY: as above.
            unsafe { transfer(self.home.turns, &[(&host, &lie.staged_words)]) }?;
        }
        if is_finite()? { Ok(()) } else { Err("it says that finite rows are not finite".into()) }
    }
}

/// Infinity and NaN of a type that has them.
fn not_finite(dtype: Dtype) -> Vec<&'static [u8]> {
    match dtype {
        Dtype::F32 => vec![&[0, 0, 0x80, 0x7f], &[0, 0, 0xc0, 0xff]],
        Dtype::F16 => vec![&[0, 0x7c], &[0, 0xfe]],
        Dtype::Bf16 => vec![&[0x80, 0x7f], &[0xc0, 0xff]],
        Dtype::I32 | Dtype::I64 | Dtype::U8 | Dtype::Bool => Vec::new(),
    }
}

/// The graph that copies rows, for caches of this layout.
fn copy_model(layout: &Layout) -> Vec<u8> {
    let leads: Vec<usize> = layout.caches.iter().map(|cache| cache.leads).collect();
    copy_rows::model(&leads)
}

/// The start of the committed and the staged rows of each lead in a block that `DeviceRows::park` has written.
pub(super) fn parked_leads(layout: &Layout, mut each: impl FnMut(&Cache, usize, usize)) {
    let mut at = 0;
    for cache in &layout.caches {
        let (committed, staged) = layout.place_bytes(cache);
        for lead in 0..cache.leads {
            let block = cache.lead_len(layout.facts.block_tokens());
            each(cache, at + lead * cache.lead_len(layout.window_tokens()), at + committed + lead * block);
        }
        at += committed + staged;
    }
}

pub(super) fn name(text: &str) -> CString {
    CString::new(text).expect("names of the engine's own have no zero byte")
}
