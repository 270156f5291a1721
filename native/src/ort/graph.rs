//! A graph bound to fixed memory. Tensors are made and bound once for each variant; a run is one call.
//!
//! `ort`'s binding copies a tensor made from borrowed memory, so this module uses the raw API.

mod binding;

use self::binding::{PortMemory, VariantBinding};
use crate::bundle::manifest::{Extent, Port, Role};
use crate::core::rehearsal::Playing;
use crate::gpu::stream::Laps;
use crate::ort::environment::check;
use crate::ort::home::Reach;
use crate::ort::mirrors::{Changed, Feed, Mirrors};
use crate::ort::session::GraphSession;
use crate::ort::tensor::Tensor;
use crate::ort::terminator::Terminator;
use crate::ort::turn::Turns;
use ort::AsPointer;
use ort::sys::{OrtIoBinding, OrtValue};
use std::ffi::{CString, c_void};
use std::sync::Arc;

/// A port and the memory that it is bound to.
pub struct BoundPort {
    /// Name, type and shape in the graph.
    pub port: Port,
    /// The address of its first value, for each variant.
    pub address: Box<dyn Fn(usize) -> *mut c_void>,
    pub on_device: bool,
}

impl BoundPort {
    pub fn fixed(port: &Port, address: *mut c_void, on_device: bool) -> BoundPort {
        BoundPort { port: port.clone(), address: Box::new(move |_| address), on_device }
    }

    fn is_apart(&self) -> bool {
        self.on_device && matches!(self.port.role, Role::Memory | Role::Block)
    }
}

/// Bytes between the host and its device.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Copies {
    pub to_device: usize,
    pub from_device: usize,
}

impl std::ops::AddAssign for Copies {
    fn add_assign(&mut self, more: Copies) {
        self.to_device += more.to_device;
        self.from_device += more.from_device;
    }
}

/// A session with one binding per variant.
pub struct Graph {
    bindings: Vec<*mut OrtIoBinding>,
    values: Vec<*mut OrtValue>,
    reach: Reach,
    /// The copies of each variant's runs; empty where they read and write in place.
    feeds: Vec<Feed>,
    /// The name of each variant's captured kernels; empty if kernels are launched one by one.
    captures: Vec<CString>,
    /// For each variant the first one with its kernels, and whether it has run.
    firsts: Vec<usize>,
    has_run: Vec<bool>,
    /// The device's clock, if it has one.
    laps: Option<Laps>,
    /// Its outputs are read in the stream of its runs. The host reads them only after a wait for the stream.
    followed: bool,
    options: Arc<Terminator>,
    ports: [Vec<BoundPort>; 2],
    most: Extent,
    /// Replicas on a CPU share the session.
    session: Arc<GraphSession>,
}

pub struct Binding<'a> {
    pub reach: Reach,
    pub options: &'a Arc<Terminator>,
    pub variants: &'a [Extent],
    pub mirrors: &'a mut Mirrors,
}

// SAFETY: the raw objects belong to the session and have no tie to a thread. `&mut self` keeps runs of a binding apart, and ONNX
// Runtime allows runs of one session at the same time.
unsafe impl Send for Graph {}

impl Graph {
    /// Binds `inputs` and `outputs` for every variant: variants differ in their sizes, or in the session slot.
    ///
    /// # Safety
    /// Each address has memory for the port's type and the variant's shape, on the device if the port's is. The memory and the mirrors
    /// outlive the graph. No thread may access the memory during `run` of that variant; after `follow`, not before the work that the run
    /// has put into its stream is done.
    pub unsafe fn bind(
        session: Arc<GraphSession>,
        with: Binding<'_>,
        inputs: Vec<BoundPort>,
        outputs: Vec<BoundPort>,
    ) -> Result<Graph, String> {
        let Binding { reach, options, variants, mirrors } = with;
        let most = *variants.last().ok_or("it has no variant")?;
        let (bindings, values, feeds, captures, has_run) = Default::default();
        // Variants of one shape are places of a memory. They have the same addresses on a device that their rows are copied to.
        let first = |extent| variants.iter().position(|other| other == extent).unwrap_or(0);
        let (options, ports) = (options.clone(), [inputs, outputs]);
        let mut graph = Graph {
            bindings,
            values,
            reach,
            feeds,
            captures,
            firsts: variants.iter().map(first).collect(),
            has_run,
            laps: None,
            followed: false,
            options,
            ports,
            most,
            session,
        };
        for &extent in variants {
            // SAFETY: the caller's.
            unsafe { graph.add_variant(extent, mirrors) }?;
        }
        if graph.session.is_captured() || matches!(reach, Reach::Played(Playing { captures: true, .. })) {
            if let Some(why) = mirrors.refused() {
                return Err(format!(
                    "cuda_graph is set, but its inputs cannot be written into the device's memory: {why}"
                ));
            }
            graph.captures = graph.firsts.iter().copied().map(number).collect();
        }
        Ok(graph)
    }

    /// Binds another variant.
    ///
    /// # Safety
    /// The contract is that of `bind`.
    pub unsafe fn add_variant(&mut self, extent: Extent, mirrors: &mut Mirrors) -> Result<(), String> {
        let (ports, most, variant) = (std::mem::take(&mut self.ports), self.most, self.feeds.len());
        let mut bind = |graph: &mut Graph| {
            let memory = PortMemory::of(&graph.session, graph.reach)?;
            let mut binding = VariantBinding::new(graph, mirrors, &memory, (variant, extent, most))?;
            for (ports, is_input) in ports.iter().zip([true, false]) {
                // SAFETY: the caller's.
                ports.iter().try_for_each(|bound| unsafe { binding.bind(bound, is_input) })?;
            }
            Ok(binding.feed())
        };
        let feed: Result<Feed, String> = bind(self);
        self.ports = ports;
        self.feeds.push(feed?);
        self.has_run.push(false);
        if self.firsts.len() < self.feeds.len() {
            let apart = self.is_captured() && self.ports.iter().flatten().any(BoundPort::is_apart);
            self.firsts.push(if apart { variant } else { 0 });
        }
        if self.is_captured() {
            self.captures.push(number(self.firsts[variant]));
        }
        Ok(())
    }

    /// Runs one variant. `tensors` is borrowed, so that they are not read meanwhile. A run that fails may leave copies in the stream.
    pub fn run(
        &mut self,
        variant: usize,
        changed: Changed,
        mirrors: &mut Mirrors,
        _tensors: &mut [Tensor],
    ) -> Result<(), String> {
        if matches!(self.reach, Reach::Played(Playing { hangs: true, .. })) {
            loop {
                std::thread::park();
            }
        }
        let first = !self.has_run[self.firsts[variant]];
        let _turn = self.session.turns().run(first, self.is_captured());
        let binding = self.bindings[variant];
        if !matches!(self.reach, Reach::InPlace | Reach::Played(Playing { stale: true, .. })) {
            // SAFETY: values and memory live as `bind` demands, and this is their only user.
            unsafe { self.feeds[variant].send((self.session.turns(), binding), changed, mirrors) }?;
        }
        let api = ort::api();
        let session = self.session.get().ptr().cast_mut();
        if let Some(id) = self.captures.get(variant) {
            // SAFETY: live options, of which no other thread touches the entries; C strings that are copied.
            check(unsafe { (api.AddRunConfigEntry)(self.options.0, c"gpu_graph_id".as_ptr(), id.as_ptr()) })?;
        }
        // ONNX Runtime gives page-locked memory that kernels were launched with back at the end of a run that it waits for. Without the
        // wait it keeps all of that until the session is closed. Then it frees the memory in a callback of the stream, which CUDA
        // refuses, and the process is aborted. A replay launches no kernel by itself.
        let replays = mirrors.has_stream() && self.is_captured() && !first;
        if mirrors.has_stream() {
            self.options.leave_running(replays)?;
        }
        if let Some(laps) = &mut self.laps {
            if changed == Changed::All {
                laps.clear();
            }
            laps.begin();
        }
        // SAFETY: live session, options and binding; the memory lives as `bind` demands.
        check(unsafe { (api.RunWithBinding)(session, self.options.0, binding) })?;
        if let Some(laps) = &mut self.laps {
            laps.end();
        }
        self.has_run[self.firsts[variant]] = true;
        if self.reach != Reach::InPlace && !(self.followed && self.feeds[variant].returns_nothing()) {
            // SAFETY: as above.
            self.session.turns().settle(|| check(unsafe { (api.SynchronizeBoundOutputs)(binding) }))?;
            // SAFETY: as above.
            unsafe { self.feeds[variant].fetch(mirrors, replays) }?;
        }
        Ok(())
    }

    /// Has the run of a captured graph return when its work is in the stream, in order. Outputs that the host reads are waited for as
    /// before.
    pub fn follow(&mut self) {
        self.followed = true;
    }

    /// Has the device time its runs: one that begins with `Changed::All`, and more while there are laps. Copies of the host before and
    /// after a run are not timed.
    pub fn time(&mut self, laps: Option<Laps>) {
        self.laps = laps;
    }

    /// The device's milliseconds for its runs since the last one with `Changed::All`; None if they are not known. It is asked once for each
    /// of these.
    pub fn device_ms(&mut self) -> Option<f32> {
        self.laps.as_mut()?.take_ms()
    }

    pub fn turns(&self) -> Turns {
        self.session.turns()
    }

    pub fn is_captured(&self) -> bool {
        !self.captures.is_empty()
    }

    /// The bytes that a run of a variant copies between host and device.
    pub fn copies(&self, variant: usize, changed: Changed, mirrors: &mut Mirrors) -> Copies {
        let (to_device, from_device) = self.feeds[variant].bytes(changed, mirrors);
        Copies { to_device, from_device }
    }
}

/// A number as ONNX Runtime's configuration takes it.
fn number(value: usize) -> CString {
    CString::new(value.to_string()).expect("digits")
}

impl Drop for Graph {
    fn drop(&mut self) {
        let api = ort::api();
        // SAFETY: made in `bind`, released once, before the session.
        self.session.turns().release(|| unsafe {
            self.bindings.iter().for_each(|&binding| (api.ReleaseIoBinding)(binding));
            self.values.iter().for_each(|&value| (api.ReleaseValue)(value));
        });
    }
}
