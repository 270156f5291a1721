//! What decodes the frames of a model on an NVIDIA GPU: libjpeg-turbo, or nvJPEG where the operator asks for it, it is right, and, by
//! `auto`, it was faster here.

use super::Model;
use super::load::Host;
use super::place::Target;
use crate::core::device::Device;
use crate::core::memory::Block;
use crate::core::rehearsal;
use crate::gpu::context::Context;
use crate::gpu::nvjpeg;
use crate::image::frame::{Apart, FrameSpec, OnDevice, Times, Worker, apart, race};
use crate::image::jpeg::{self, Decoder};
use crate::model::parity::Vectors;
use crate::ort::driver_device;
use crate::ort::provider::Jpeg;
use crate::ort::runtime::Runtime;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Decoders of one model at most: each has memory of the device, and a frame is shorter than an observation.
const DECODERS_MAX: usize = 4;

/// What came of `jpeg`, for the placement.
#[derive(Serialize, Clone, Default, Debug, PartialEq)]
pub struct Decoding {
    /// nvJPEG decodes the frames.
    pub nvjpeg: bool,
    /// Why it does not.
    pub reason: Option<String>,
    /// Its version, where it was opened.
    pub version: Option<String>,
    /// Frames that it decodes at once.
    pub decoders: usize,
    /// What the frames of the first parity vector took.
    pub times: Option<Times>,
    /// How far its pixels are off in all frames of the parity vectors.
    pub apart: Option<Apart>,
}

/// nvJPEG, with which the parity vectors are still to be proved.
pub(super) struct Candidate {
    /// The decoders.
    pub(super) device: OnDevice,
    /// The vectors, with frames that these have decoded.
    pub(super) vectors: Arc<Vectors>,
}

impl Decoding {
    /// What the proof has come to: the differences of the rows with its frames, or why they are refused.
    pub(super) fn proved(&mut self, proof: Option<&Result<Vec<f32>, String>>) {
        if let Some(Err(reason)) = proof {
            let why = format!("the parity vectors fail with frames that nvJPEG decodes: {reason}");
            (self.nvjpeg, self.decoders, self.reason) = (false, 0, Some(why));
        }
    }
}

impl Model {
    /// Measures nvJPEG for the replicas on `devices`, which it serves from the first NVIDIA GPU among them. None where nobody asks for it.
    pub(super) fn decoding(
        &self,
        runtime: &Runtime,
        wanted: &Target<'_>,
        devices: &[Device],
        host: &Host,
    ) -> (Option<Decoding>, Option<Candidate>) {
        let gpu = devices.iter().find_map(|&device| Some((device, driver_device::driver_of(device)?)));
        let (Some((device, driver)), Some(vectors), true) = (gpu, &wanted.vectors, wanted.gpu.jpeg != Jpeg::Cpu) else {
            return (None, None);
        };
        let mut told = Decoding::default();
        let made = self.candidate(runtime, wanted, (device, &driver), (vectors, host), &mut told);
        let candidate = made.map_err(|reason| told.reason = Some(reason)).ok();
        told.nvjpeg = candidate.is_some();
        if !told.nvjpeg {
            told.decoders = 0;
        }
        (Some(told), candidate)
    }

    fn candidate(
        &self,
        runtime: &Runtime,
        wanted: &Target<'_>,
        (device, (index, driver)): (Device, &(i32, PathBuf)),
        (vectors, host): (&Vectors, &Host),
        told: &mut Decoding,
    ) -> Result<Candidate, String> {
        let context = Context::open(driver, *index).map_err(|error| error.to_string())?;
        let image = driver_device::image(device, &wanted.gpu)?;
        let specs = || FrameSpec::of(&self.manifest);
        let count = host.decode_threads.min(DECODERS_MAX);
        let on_device = OnDevice::new(&context, &places(device, runtime.folder()), &image, specs(), count)
            .map_err(|error| error.to_string())?;
        (told.version, told.decoders) = (Some(on_device.version().into()), on_device.count());
        let mut worker = Worker::new(Decoder::new(&host.jpeg)?)?;
        let refused = |reason: String| format!("nvJPEG does not decode the frames of the parity vectors: {reason}");
        told.apart = Some(apart(&on_device, &mut worker, vectors.files().map(|(_, jpeg)| jpeg)).map_err(refused)?);
        for (camera, jpeg) in vectors.files() {
            refuses_damage(&on_device, &mut worker, (camera, &specs()[camera]), jpeg)?;
        }
        let first: Vec<(usize, &[u8])> = vectors.files_of(0).collect();
        let slowed = rehearsal::of(&device.name()).and_then(|rehearsal| rehearsal.host_decode_us);
        let slowed = Duration::from_micros(slowed.unwrap_or(0));
        let times = race(&on_device, &host.jpeg, &specs(), &first, host.decode_threads, slowed).map_err(refused)?;
        told.times = Some(times);
        if wanted.gpu.jpeg == Jpeg::Auto && times.device_us >= times.host_us {
            return Err("libjpeg-turbo is as fast here, or faster".into());
        }
        let specs = specs();
        let decode = |camera: usize, jpeg: &[u8], tensor: &mut _| {
            let done = on_device.decode(camera, jpeg, jpeg::inspect(jpeg)?, tensor);
            match done.ok_or("its device is lost")? {
                Err(refusal) if refusal.is_by_rule() => worker.frame(&specs[camera], jpeg, tensor),
                done => done.map_err(|refusal| refusal.to_string()),
            }
        };
        let vectors = Arc::new(vectors.decoded_by(&specs, decode).map_err(refused)?);
        Ok(Candidate { device: on_device, vectors })
    }
}

/// Whether nvJPEG refuses damaged copies of a file that libjpeg-turbo refuses: what it made up instead would move an arm.
fn refuses_damage(
    on_device: &OnDevice,
    worker: &mut Worker,
    (camera, spec): (usize, &FrameSpec),
    jpeg: &[u8],
) -> Result<(), String> {
    const END: [u8; 2] = [0xFF, 0xD9];
    let mut tensor = Block::locked(spec.bytes())?;
    for part in [2, 3, 5] {
        // Its end is missing, or some bytes of its middle are others.
        let cut = [&jpeg[..jpeg.len() - jpeg.len() / part], &END[..]].concat();
        let mut changed = jpeg.to_vec();
        changed[jpeg.len() / part..].iter_mut().take(16).for_each(|byte| *byte = !*byte & 0x7F);
        for damaged in [cut, changed] {
            let (Ok(header), Err(_)) = (jpeg::inspect(&damaged), worker.frame(spec, &damaged, &mut tensor)) else {
                continue;
            };
            if let Some(Ok(())) = on_device.decode(camera, &damaged, header, &mut tensor) {
                return Err("it takes a damaged frame that libjpeg-turbo refuses".into());
            }
        }
    }
    Ok(())
}

/// Where nvJPEG is looked for: beside ONNX Runtime, then by the loader's path.
fn places(device: Device, folder: &Path) -> Vec<PathBuf> {
    if let Some(rehearsal) = rehearsal::of(&device.name()) {
        return vec![rehearsal.nvjpeg.unwrap_or_else(|| "no nvJPEG is played".into())];
    }
    let beside = nvjpeg::NAMES.map(|name| folder.join(name)).into_iter().filter(|path| path.exists());
    beside.chain(nvjpeg::NAMES.map(PathBuf::from)).collect()
}
