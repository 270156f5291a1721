//! JPEG files that cost a decoder the most for their bytes. Each is refused or decoded in bounded time.
//!
//! `cargo test --release --test worst_jpeg -- --nocapture` prints what each costs, in processor time of its thread.

use std::path::Path;
use tendon::bundle::manifest::{Filter, Image, Resize};
use tendon::core::layout::JPEG_BYTES_MAX;
use tendon::core::memory::Block;
use tendon::image::frame::{FrameSpec, Worker};
use tendon::image::jpeg::{Decoder, Library, inspect};

/// Bits as a scan's entropy-coded data.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    last: u8,
    bits: u32,
}

impl Bits {
    fn put(&mut self, value: u32, count: u32) {
        for place in (0..count).rev() {
            self.last = self.last << 1 | (value >> place & 1) as u8;
            self.bits += 1;
            if self.bits == 8 {
                self.bytes.push(self.last);
                if self.last == 0xFF {
                    self.bytes.push(0);
                }
                (self.last, self.bits) = (0, 0);
            }
        }
    }

    fn done(mut self) -> Vec<u8> {
        while self.bits != 0 {
            self.put(1, 1);
        }
        self.bytes
    }
}

/// A picture of one colour in blocks of 8 × 8, no subsampling.
#[derive(Clone, Copy)]
struct Picture {
    edge: u16,
    components: u8,
}

impl Picture {
    fn blocks(self) -> u32 {
        u32::from(self.edge).div_ceil(8).pow(2)
    }

    /// One quantisation table, one table of each class with a single code, `0`: no change of DC, and `ac`.
    fn start(self, frame: u8, ac: u8) -> Vec<u8> {
        let mut file = vec![0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0];
        file.extend([1; 64]);
        file.extend([0xFF, frame, 0, 8 + 3 * self.components, 8]);
        file.extend(self.edge.to_be_bytes().repeat(2));
        file.push(self.components);
        (1..=self.components).for_each(|id| file.extend([id, 0x11, 0]));
        for (class, symbol) in [(0x00, 0), (0x10, ac)] {
            file.extend([0xFF, 0xC4, 0, 20, class, 1]);
            file.extend([0; 15]);
            file.push(symbol);
        }
        file
    }

    fn scan(self, file: &mut Vec<u8>, components: std::ops::RangeInclusive<u8>, spectrum: [u8; 3], data: Vec<u8>) {
        let count = components.clone().count() as u8;
        file.extend([0xFF, 0xDA, 0, 6 + 2 * count, count]);
        components.for_each(|id| file.extend([id, 0]));
        file.extend(spectrum);
        file.extend(data);
    }

    /// `bits` bits, all 0, for each block of each component.
    fn zeroes(self, components: u8, bits: u32) -> Vec<u8> {
        let mut data = Bits::default();
        (0..self.blocks() * u32::from(components)).for_each(|_| data.put(0, bits));
        data.done()
    }

    /// All blocks of a component end at once: runs of 32,767 blocks, as symbol 0xE0 has them.
    fn ends(self) -> Vec<u8> {
        let mut data = Bits::default();
        let mut left = self.blocks();
        while left > 0 {
            // Each run is as long as can be; the last one may be longer than the picture.
            data.put(0, 1);
            data.put(0x3FFF, 14);
            left = left.saturating_sub(32_767);
        }
        data.done()
    }

    fn baseline(self) -> Vec<u8> {
        let mut file = self.start(0xC0, 0);
        self.scan(&mut file, 1..=self.components, [0, 63, 0], self.zeroes(self.components, 2));
        ended(file)
    }

    /// DC, then `scans` scans of AC over the components: in each the first, then refinements.
    fn progressive(self, scans: u32) -> Vec<u8> {
        let mut file = self.start(0xC2, 0xE0);
        self.scan(&mut file, 1..=self.components, [0, 0, 0], self.zeroes(self.components, 1));
        let mut left = scans;
        for component in 1..=self.components {
            for low in (0..=13u8).rev().take(left as usize) {
                let high = if low == 13 { 0 } else { low + 1 };
                self.scan(&mut file, component..=component, [1, 63, high << 4 | low], self.ends());
                left -= 1;
            }
        }
        ended(file)
    }

    /// The lowest coefficients stay unknown, so that the decoder smooths; the others are refined again and again.
    fn smoothed(self, scans: u32) -> Vec<u8> {
        let mut file = self.start(0xC2, 0xE0);
        self.scan(&mut file, 1..=self.components, [0, 0, 0], self.zeroes(self.components, 1));
        let each = (1..=self.components).flat_map(|component| (0..=13u8).rev().map(move |low| (component, low)));
        for (component, low) in each.take(scans as usize) {
            let high = if low == 13 { 0 } else { low + 1 };
            self.scan(&mut file, component..=component, [10, 63, high << 4 | low], self.ends());
        }
        ended(file)
    }

    /// Sequential, a scan for each component, then again.
    fn sequential(self, scans: u8) -> Vec<u8> {
        let mut file = self.start(0xC0, 0);
        for at in 0..scans {
            let component = 1 + at % self.components;
            self.scan(&mut file, component..=component, [0, 63, 0], self.zeroes(1, 2));
        }
        ended(file)
    }

    /// Writes one coefficient a scan.
    fn coefficients(self, scans: u32) -> Vec<u8> {
        let mut file = self.start(0xC2, 0xE0);
        self.scan(&mut file, 1..=self.components, [0, 0, 0], self.zeroes(self.components, 1));
        for at in 0..scans as u8 {
            self.scan(&mut file, 1..=1, [1 + at, 1 + at, 0], self.ends());
        }
        ended(file)
    }
}

fn ended(mut file: Vec<u8>) -> Vec<u8> {
    file.extend([0xFF, 0xD9]);
    file
}

fn thread_ms() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a live struct.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

#[test]
fn the_dearest_files_are_refused_or_cost_little() {
    let packaged = "../node_modules/@julusian/jpeg-turbo/prebuilds/jpeg-turbo-linux-x64/libturbojpeg.so.0";
    let library = Library::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join(packaged)).expect("libturbojpeg");
    let mut worker = Worker::new(Decoder::new(&library).expect("a decoder")).expect("a worker");
    let image = Image {
        width: 224,
        height: 224,
        resize: Resize::Pad,
        place: None,
        filter: Filter::default(),
        mean: [0.5; 3],
        std: [0.5; 3],
        tokens: 256,
    };
    let spec = FrameSpec::new(&image);
    let mut tensor = Block::lazy(spec.bytes()).expect("memory");
    let colour = |edge| Picture { edge, components: 3 };
    let grey = |edge| Picture { edge, components: 1 };
    // The largest file of each kind that passes, and one beyond it.
    for (name, file, passes) in [
        ("one scan of three components, 4096 colour", colour(4096).baseline(), true),
        ("one scan, 4096 grey", grey(4096).baseline(), true),
        ("DC alone, 4096 colour", colour(4096).progressive(0), false),
        ("DC alone, 3450 colour", colour(3450).progressive(0), true),
        ("10 scans, 4096 colour", colour(4096).progressive(9), false),
        ("10 scans, 2880 colour", colour(2880).progressive(9), true),
        ("10 scans of one coefficient, 2880 colour", colour(2880).coefficients(9), true),
        ("10 scans and smoothing, 4096 colour", colour(4096).smoothed(9), false),
        ("10 scans and smoothing, 2880 colour", colour(2880).smoothed(9), true),
        ("43 scans, 2048 colour", colour(2048).progressive(42), false),
        ("43 scans, 1990 colour", colour(1990).progressive(42), true),
        ("43 scans and smoothing, 1990 colour", colour(1990).smoothed(42), true),
        ("64 scans of one coefficient, 1720 colour", colour(1720).coefficients(63), true),
        ("65 scans, 8 colour", colour(8).coefficients(64), false),
        ("3 scans, sequential, 4096 colour", colour(4096).sequential(3), false),
        ("15 scans, sequential, 2000 colour", colour(2000).sequential(15), true),
    ] {
        let bytes = file.len();
        assert!(bytes <= JPEG_BYTES_MAX, "{name} has {bytes} bytes");
        let before = thread_ms();
        let header = inspect(&file);
        let inspected = thread_ms();
        let decoded = worker.frame(&spec, &file, &mut tensor);
        let ms = thread_ms() - inspected;
        println!("{name}: {bytes} bytes, headers {:.2} ms, in all {ms:.1} ms, {decoded:?}", inspected - before);
        assert_eq!((header.is_ok(), decoded.is_ok()), (passes, passes), "{name}: {decoded:?}");
    }
}
