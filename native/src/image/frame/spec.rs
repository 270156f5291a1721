//! The picture that a model makes of a frame.

use crate::bundle::manifest::{Filter, Image, Manifest, Picture, Resize};
use crate::core::memory::Block;
use crate::image::jpeg::Header;
use crate::image::resize::{Mode, Resizer, Row};

pub struct FrameSpec {
    width: usize,
    height: usize,
    mode: Mode,
    filter: Filter,
    picture: Picture,
    /// Normalised value of each 8-bit value, per channel: (value / 255 − mean) / std.
    normal: [[f32; 256]; 3],
    /// Mean and deviation of each channel.
    scale: [(f32, f32); 3],
}

impl FrameSpec {
    pub fn of(manifest: &Manifest) -> FrameSpec {
        FrameSpec::new(&manifest.image).taken_as(manifest.picture())
    }

    pub fn new(image: &Image) -> FrameSpec {
        let mode = match image.resize {
            Resize::Pad => Mode::Pad(image.place.unwrap_or_default()),
            Resize::Stretch => Mode::Stretch,
            Resize::Crop => Mode::Crop,
            Resize::Exact => Mode::Exact,
        };
        let scale = std::array::from_fn(|channel| (image.mean[channel] as f32, image.std[channel] as f32));
        let table = |channel: usize| {
            std::array::from_fn(|value| match image.filter {
                Filter::TorchBilinear => share(value as f32 / 255.0, scale[channel]),
                _ => ((value as f64 / 255.0 - image.mean[channel]) / image.std[channel]) as f32,
            })
        };
        let normal = [table(0), table(1), table(2)];
        let Image { width, height, filter, .. } = *image;
        FrameSpec { width, height, mode, filter, picture: Picture::Normalised, normal, scale }
    }

    pub fn taken_as(self, picture: Picture) -> FrameSpec {
        FrameSpec { picture, ..self }
    }

    pub fn values(&self) -> usize {
        3 * self.width * self.height
    }

    pub fn bytes(&self) -> usize {
        self.values() * self.picture.dtype().bytes()
    }

    /// Writes pixels as the graphs take them, to the first `bytes()` of the tensor.
    pub(super) fn write(&self, resizer: &mut Resizer, rgb: &[u8], source: (usize, usize), tensor: &mut Block) {
        let (target, plane) = ((self.width, self.height), self.width * self.height);
        if self.picture == Picture::Normalised {
            self.fill(resizer, rgb, source, &mut tensor.floats_mut()[..self.values()]);
            return;
        }
        let tensor = &mut tensor[..self.bytes()];
        if matches!(self.mode, Mode::Pad(_)) {
            tensor.fill(0);
        }
        resizer.run((self.mode, self.filter), rgb, source, target, |x, y, row| {
            let Row::Levels(row) = row else { unreachable!("the manifest's check refuses unrounded pixels") };
            let (from, to) = (y * target.0 + x, y * target.0 + x + row.len() / 3);
            for (channel, values) in tensor.chunks_exact_mut(plane).enumerate() {
                let pixels = row.iter().skip(channel).step_by(3);
                values[from..to].iter_mut().zip(pixels).for_each(|(value, pixel)| *value = *pixel);
            }
        });
    }

    /// Pixels (`source` = width, height; with the resizer's slack) → resized, normalised `[3, height, width]`.
    fn fill(&self, resizer: &mut Resizer, rgb: &[u8], source: (usize, usize), tensor: &mut [f32]) {
        let target = (self.width, self.height);
        let plane = target.0 * target.1;
        if matches!(self.mode, Mode::Pad(_)) {
            // The bars are black; the image is written over its part.
            for (channel, normal) in tensor.chunks_exact_mut(plane).zip(&self.normal) {
                channel.fill(normal[0]);
            }
        }
        let (red, rest) = tensor.split_at_mut(plane);
        let (green, blue) = rest.split_at_mut(plane);
        resizer.run((self.mode, self.filter), rgb, source, target, |x, y, row| {
            let from = y * target.0 + x;
            let to = from + row.pixels();
            let planes = [&mut red[from..to], &mut green[from..to], &mut blue[from..to]];
            match row {
                Row::Levels(row) => spread(planes, row, |channel, level| self.normal[channel][usize::from(level)]),
                Row::Shares(row) => spread(planes, row, |channel, value| share(value, self.scale[channel])),
            }
        });
    }

    /// Why a frame of this size is not taken, as a sentence part.
    pub(super) fn refusal(&self, Header { width, height }: Header) -> Option<String> {
        let same = (width as usize, height as usize) == (self.width, self.height);
        (self.mode == Mode::Exact && !same).then(|| {
            format!("it has {width} x {height} pixels, and the model takes {} x {} alone", self.width, self.height)
        })
    }
}

/// Pixels to the planes of their channels, each value by `of(channel, value)`.
fn spread<T: Copy>([red, green, blue]: [&mut [f32]; 3], row: &[T], of: impl Fn(usize, T) -> f32) {
    for (((red, green), blue), pixel) in red.iter_mut().zip(green).zip(blue).zip(row.chunks_exact(3)) {
        *red = of(0, pixel[0]);
        *green = of(1, pixel[1]);
        *blue = of(2, pixel[2]);
    }
}

/// A share of the full level, normalised in f32, in which the publishers of unrounded pictures compute.
fn share(share: f32, (mean, deviation): (f32, f32)) -> f32 {
    (share - mean) / deviation
}
