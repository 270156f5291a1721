//! A caller of the C ABI: what it has received, and the completions that it awaits.

use crate::completions::{self, Wire};
use crate::plan::{FRAMES_MAX, SLOTS, plan};
use crate::request::request;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::path::Path;
use std::sync::OnceLock;
use tendon_fuzzed::abi::frames::*;
use tendon_fuzzed::abi::inferences::*;
use tendon_fuzzed::abi::rehearsals::tendon_memory;
use tendon_fuzzed::abi::*;
use tendon_fuzzed::core::layout::{ABI_VERSION, CONSTANTS, MODELS_MAX, OpenOptions, Stats};
use tendon_fuzzed::core::rehearsal;

const CHUNKS_MAX: u32 = 5;
const TEXT_BYTES: usize = 600;
const JPEG_LIBRARY: &str = "../../node_modules/@julusian/jpeg-turbo/prebuilds/jpeg-turbo-linux-x64/libturbojpeg.so.0";
/// A picture of one pixel.
const JPEG: &[u8] = include_bytes!("../../../test/vectors/jpeg/one-pixel.jpg");

pub struct Caller<'a> {
    input: &'a [u8],
    engine: *mut c_void,
    models: Vec<Wire>,
    /// With their models.
    frames: Vec<(Wire, Wire)>,
    runs: Vec<Wire>,
    /// Completions that must have come at the end, by the bits of their tickets.
    owed: BTreeMap<u64, usize>,
    /// Frames that have had, or will have, a completion.
    promised: BTreeSet<u64>,
}

impl<'a> Caller<'a> {
    pub fn open(input: &'a [u8]) -> Caller<'a> {
        completions::forget();
        rehearsal::next_fault();
        let options = OpenOptions {
            abi_version: ABI_VERSION,
            decode_threads: 1,
            chunks_max: CHUNKS_MAX,
            frames_max: FRAMES_MAX as u32,
        };
        let jpeg = Path::new(env!("CARGO_MANIFEST_DIR")).join(JPEG_LIBRARY);
        let (runtime, jpeg) = ("/nonexistent", jpeg.to_str().expect("UTF-8"));
        let mut engine = std::ptr::null_mut();
        // SAFETY: texts and options live through the call.
        let opened = unsafe {
            tendon_open(
                &options,
                runtime.as_ptr(),
                runtime.len() as u32,
                jpeg.as_ptr(),
                jpeg.len() as u32,
                Some(completions::done),
                &mut engine,
            )
        };
        assert_eq!(opened, 0, "an engine");
        let caller = Caller {
            input,
            engine: engine.cast(),
            models: vec![],
            frames: vec![],
            runs: vec![],
            owed: BTreeMap::new(),
            promised: BTreeSet::new(),
        };
        // Memory that earlier inputs have leaked would show here.
        static FIRST: OnceLock<u64> = OnceLock::new();
        let stats = caller.stats();
        assert_eq!(stats.tensor_bytes, *FIRST.get_or_init(|| stats.tensor_bytes), "memory of a closed engine is free");
        caller
    }

    pub fn ended(&self) -> bool {
        self.input.is_empty()
    }

    pub fn byte(&mut self) -> usize {
        let Some((&first, rest)) = self.input.split_first() else { return 0 };
        self.input = rest;
        first as usize
    }

    fn bytes(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.input.split_at(most.min(self.input.len()));
        self.input = rest;
        taken
    }

    /// Mostly a known ticket, sometimes a stale one of another kind, sometimes a senseless one.
    fn ticket(&mut self, known: &[Wire]) -> Wire {
        match (self.byte(), known.len()) {
            (choice @ 0..=223, 1..) => known[choice % known.len()],
            (choice @ 224..=239, _) => {
                let all = self.owed.keys().copied().collect::<Vec<_>>();
                if all.is_empty() { Wire::MAX } else { Wire::from_bits(all[choice % all.len()]) }
            }
            _ => {
                let mut wire = [0; size_of::<Wire>()];
                let bytes = self.bytes(wire.len());
                wire[..bytes.len()].copy_from_slice(bytes);
                Wire::from_le_bytes(wire)
            }
        }
    }

    fn model(&mut self) -> Wire {
        let known = self.models.clone();
        self.ticket(&known)
    }

    fn run(&mut self) -> Wire {
        let known = self.runs.clone();
        self.ticket(&known)
    }

    fn frame(&mut self) -> (Wire, Wire) {
        let known = self.frames.clone();
        let tickets = known.iter().map(|(_, frame)| *frame).collect::<Vec<_>>();
        let frame = self.ticket(&tickets);
        let model = known.iter().find(|(_, other)| *other == frame).map(|(model, _)| *model);
        match (self.byte() % 8, model) {
            (1.., Some(model)) => (model, frame),
            _ => (self.model(), frame),
        }
    }

    /// One call, chosen by the input.
    pub fn call(&mut self) {
        match self.byte() % 18 {
            0 => self.load(),
            1..=3 => self.frame_put(),
            4 => {
                let (model, frame) = self.frame();
                let call = [tendon_frame_watch, tendon_frame_drop][self.byte() % 2];
                // SAFETY: an open engine.
                let status = unsafe {
                    tendon_frame_spent(self.engine.cast(), model, frame);
                    call(self.engine.cast(), model, frame)
                };
                self.promise(frame, status == 1);
            }
            5..=7 => self.observe(),
            8 => {
                let run = self.run();
                // SAFETY: an open engine.
                unsafe { tendon_cancel(self.engine.cast(), run) };
            }
            9 => {
                let run = self.run();
                // SAFETY: an open engine.
                unsafe { tendon_withdraw(self.engine.cast(), run) };
            }
            10 => {
                let run = self.run();
                // SAFETY: an open engine.
                if unsafe { tendon_commit(self.engine.cast(), run) } == 0 {
                    self.read(run);
                }
            }
            11 => {
                let run = self.run();
                // SAFETY: an open engine.
                unsafe { tendon_abort(self.engine.cast(), run) };
            }
            12 => {
                let run = self.run();
                // SAFETY: an open engine.
                unsafe { tendon_slot_free(self.engine.cast(), run) };
            }
            13 => self.unload(),
            14 => self.slot(),
            15 => self.texts(),
            _ => self.wait(),
        }
    }

    fn accepted(&mut self, ticket: Wire) {
        *self.owed.entry(ticket.to_bits()).or_default() += 1;
    }

    /// A frame has one completion, however often it is announced.
    fn promise(&mut self, frame: Wire, later: bool) {
        if later && self.promised.insert(frame.to_bits()) {
            self.accepted(frame);
        }
    }

    fn load(&mut self) {
        let (text, good) = match self.byte() % 8 {
            0 => (self.bytes(64).to_vec(), false),
            _ => {
                let (text, whole) = plan(|| self.byte());
                (text.into_bytes(), whole)
            }
        };
        // SAFETY: an open engine; the text lives through the call.
        let ticket = unsafe { tendon_load(self.engine.cast(), text.as_ptr(), text.len() as u32) };
        if ticket > 0.0 {
            self.accepted(ticket);
            self.models.push(ticket);
            // The next calls mostly need a loaded model.
            if !self.byte().is_multiple_of(8) {
                self.wait();
                // Otherwise all later calls are refused, and nothing is tested.
                assert!(
                    !good || completions::of(ticket) == [0],
                    "the plan as it stands loads: {:?}",
                    self.error(ticket)
                );
            }
        }
    }

    fn error(&self, ticket: Wire) -> String {
        let mut text = [0; TEXT_BYTES];
        // SAFETY: an open engine; the buffer is writable for its length.
        let length =
            unsafe { tendon_error_text(self.engine.cast(), ticket, ticket, text.as_mut_ptr(), text.len() as u32) };
        String::from_utf8_lossy(&text[..length as usize]).into_owned()
    }

    fn unload(&mut self) {
        let model = self.model();
        // SAFETY: an open engine.
        if unsafe { tendon_unload(self.engine.cast(), model) } == 0 {
            self.accepted(model);
        }
    }

    fn frame_put(&mut self) {
        let (model, turn) = (self.model(), self.byte() as u32 % 3);
        let jpeg = match self.byte() % 8 {
            0 => self.bytes(32),
            1 => &JPEG[..JPEG.len() / 2],
            _ => JPEG,
        };
        // SAFETY: an open engine; the bytes live through the call.
        let frame = unsafe { tendon_frame_put(self.engine.cast(), model, turn, jpeg.as_ptr(), jpeg.len() as u32) };
        if frame > 0.0 {
            self.frames.push((model, frame));
        }
    }

    fn observe(&mut self) {
        let model = self.model();
        let mut request = request(model, || self.byte());
        let own = self.frames.iter().filter(|(of, _)| *of == model).map(|(_, frame)| *frame).collect::<Vec<_>>();
        let count = self.byte() % 4;
        request.frames_len = if self.byte().is_multiple_of(16) { self.byte() as u32 } else { count as u32 };
        for (place, last) in request.frames.iter_mut().zip(own.iter().rev()).take(count) {
            *place = *last;
        }
        if self.byte().is_multiple_of(8) {
            request.frames[0] = self.frame().1;
        }
        if self.byte().is_multiple_of(2) {
            self.wait();
        }
        let text: &[u8] = match self.byte() % 8 {
            0 => self.bytes(16),
            1 => b"fold the towel fold the towel fold the towel",
            _ => b"fold the towel",
        };
        // SAFETY: an open engine; request and text live through the calls.
        unsafe {
            tendon_measure(self.engine.cast(), &request, text.as_ptr(), text.len() as u32);
            let run = tendon_observe(self.engine.cast(), &request, text.as_ptr(), text.len() as u32);
            if run > 0.0 {
                self.accepted(run);
                self.runs.push(run);
            }
        }
    }

    /// A committed inference has a whole result, which stays until its slot is freed.
    fn read(&self, run: Wire) {
        // SAFETY: an open engine; the slot of the run is not freed, so that the result is not written.
        let result = unsafe { tendon_result(self.engine.cast(), index(run)).as_ref() }.expect("the result of a run");
        let values = result.rows as usize * result.columns as usize;
        assert!(values > 0 && result.values[..values].iter().all(|value| value.is_finite()), "a whole chunk");
    }

    fn slot(&mut self) {
        let (model, slot, what) = (self.model(), self.byte() as u32 % 6, self.byte() % 3);
        // SAFETY: an open engine; what is written is plain numbers that live through the call.
        unsafe {
            if what == 0 {
                tendon_memory(self.engine.cast(), model, slot, &mut [0; 2]);
            } else {
                tendon_session_drop(self.engine.cast(), model, slot);
            }
        }
    }

    /// Texts of failures, cut at any length, are UTF-8 up to their cut.
    fn texts(&mut self) {
        let (model, most) = (self.model(), self.byte() * 3 % TEXT_BYTES);
        let ticket = match self.byte() % 3 {
            0 => self.run(),
            1 => self.frame().1,
            _ => model,
        };
        let mut text = [0; TEXT_BYTES];
        // SAFETY: an open engine; the buffers are writable for the lengths.
        let lengths = unsafe {
            let failed = tendon_error_text(self.engine.cast(), model, ticket, text.as_mut_ptr(), most as u32);
            let last = tendon_last_error(text.as_mut_ptr(), most as u32);
            tendon_placement(self.engine.cast(), model, text.as_mut_ptr(), most as u32);
            let none = tendon_result(self.engine.cast(), CHUNKS_MAX + self.byte() as u32);
            assert!(none.is_null(), "no result behind the last");
            [failed, last]
        };
        assert!(lengths.iter().all(|&length| length <= most as i32), "no text is longer than its buffer");
    }

    /// Waits until every awaited completion has come.
    pub fn wait(&mut self) {
        completions::wait(self.owed.values().sum());
    }

    fn stats(&self) -> Stats {
        // SAFETY: an open engine, and plain numbers that it writes.
        unsafe {
            let mut stats: Stats = std::mem::zeroed();
            assert_eq!(tendon_stats(self.engine.cast(), &mut stats), 0);
            stats
        }
    }

    /// Frees everything; then nothing is in use.
    pub fn tidy(&mut self) {
        self.wait();
        for (model, frame) in self.frames.clone() {
            // SAFETY: an open engine.
            let later = unsafe { tendon_frame_drop(self.engine.cast(), model, frame) } == 1;
            self.promise(frame, later);
        }
        self.wait();
        // SAFETY: an open engine, in all of these.
        unsafe {
            for &run in &self.runs {
                tendon_abort(self.engine.cast(), run);
                tendon_slot_free(self.engine.cast(), run);
            }
            let live = |model: Wire| {
                let placed = tendon_placement(self.engine.cast(), model, std::ptr::null_mut(), 0) > 0;
                if placed {
                    (0..2 * SLOTS as u32).for_each(|slot| {
                        tendon_session_drop(self.engine.cast(), model, slot);
                    });
                }
                placed
            };
            let mut models = self.models.clone();
            models.sort_unstable_by(Wire::total_cmp);
            models.dedup();
            let live = models.iter().filter(|&&model| live(model)).count();
            let stats = self.stats();
            assert!(live <= MODELS_MAX);
            assert_eq!(stats.chunks_free, CHUNKS_MAX as u64, "every result slot is free");
            assert_eq!(stats.frames_free as usize, live * FRAMES_MAX, "every frame slot of {live} models is free");
            assert_eq!((stats.slots_held, stats.memory_bytes_held), (0, 0), "no episode is remembered");
            for model in models {
                if tendon_unload(self.engine.cast(), model) == 0 {
                    self.accepted(model);
                }
            }
        }
        self.wait();
    }

    /// Everything in progress ends with it.
    pub fn close(self) {
        // SAFETY: an open engine, not used again.
        assert_eq!(unsafe { tendon_close(self.engine.cast()) }, 0);
        assert_eq!(completions::counted(), self.owed, "one completion for each accepted call");
    }
}

fn index(run: Wire) -> u32 {
    let (_, count) = CONSTANTS.iter().find(|(name, _)| *name == "TICKET_INDEX_COUNT").expect("a constant of the ABI");
    (run % *count as f64) as u32
}
