//! Binds the ports of one variant of a graph, each in the memory where its device wants it.

use super::{BoundPort, Graph};
use crate::bundle::manifest::{Extent, Port, Role};
use crate::ort::device_memory::DeviceBlock;
use crate::ort::environment::{check, element};
use crate::ort::home::{Home, Info, Reach};
use crate::ort::mirrors::{Feed, Input, Mirrors, Origin, Pair, Shadow, Transfer};
use crate::ort::session::GraphSession;
use crate::ort::tensor::port_len;
use ort::AsPointer;
use ort::sys::{OrtIoBinding, OrtValue};
use std::collections::HashSet;
use std::ffi::{CString, c_void};
use std::ptr::null_mut;

/// The memories that the ports of a session may lie in.
pub(super) struct PortMemory {
    host: Info,
    device: Info,
    home: Option<Home>,
    /// Inputs and outputs that the session has on the CPU, although it runs on a device.
    beside: [HashSet<String>; 2],
}

impl PortMemory {
    pub(super) fn of(session: &GraphSession, reach: Reach) -> Result<PortMemory, String> {
        let home = if let Reach::Copied(home) = reach { Some(home) } else { None };
        let beside = |is_input| home.map_or(Ok(HashSet::new()), |home| home.elsewhere(session.get(), is_input));
        let device = reach.home().unwrap_or(Home::HOST).info()?;
        Ok(PortMemory { host: Home::HOST.info()?, device, home, beside: [beside(true)?, beside(false)?] })
    }
}

/// One variant of a graph, while its ports are bound.
pub(super) struct VariantBinding<'a> {
    graph: &'a mut Graph,
    mirrors: &'a mut Mirrors,
    memory: &'a PortMemory,
    binding: *mut OrtIoBinding,
    variant: usize,
    extent: Extent,
    most: Extent,
    feed: Feed,
}

impl<'a> VariantBinding<'a> {
    pub(super) fn new(
        graph: &'a mut Graph,
        mirrors: &'a mut Mirrors,
        memory: &'a PortMemory,
        (variant, extent, most): (usize, Extent, Extent),
    ) -> Result<VariantBinding<'a>, String> {
        let _turn = graph.reach.turns().wait();
        let mut binding = null_mut();
        // SAFETY: a live session and an out pointer; the graph releases it.
        check(unsafe { (ort::api().CreateIoBinding)(graph.session.get().ptr().cast_mut(), &mut binding) })?;
        graph.bindings.push(binding);
        Ok(VariantBinding { graph, mirrors, memory, binding, variant, extent, most, feed: Feed::default() })
    }

    pub(super) fn feed(mut self) -> Feed {
        self.feed.reserve();
        self.feed
    }

    /// Binds one input (`is_input`) or output.
    ///
    /// # Safety
    /// The contract is that of `Graph::bind`.
    pub(super) unsafe fn bind(&mut self, bound: &BoundPort, is_input: bool) -> Result<(), String> {
        let BoundPort { port, address, on_device } = bound;
        let reach = self.graph.reach;
        let bytes = port_len(port, self.extent)? * port.dtype.bytes();
        let name = CString::new(port.name.as_str()).map_err(|_| "a tensor name contains a zero byte".to_string())?;
        let mut start = address(self.variant);
        let shadow = match reach {
            // SAFETY: the caller's.
            Reach::Played(_) if is_input && !on_device => Some(unsafe { Shadow::new(start.cast(), bytes) }?),
            _ => None,
        };
        if let Some(shadow) = &shadow {
            start = shadow.address();
        }
        // SAFETY: the caller's.
        let host =
            unsafe { self.value(port, if *on_device { &self.memory.device } else { &self.memory.host }, start) }?;
        let beside = &self.memory.beside[usize::from(!is_input)];
        let home = self.memory.home.filter(|_| !on_device && !beside.contains(&port.name));
        let pair = match home {
            Some(home) if self.mirrors.refused().is_none() => {
                let result = !is_input && matches!(port.role, Role::Latent | Role::VideoLatent);
                let origin = Origin { address: address(0), is_result: result };
                let room = port_len(port, self.most)? * port.dtype.bytes();
                let session = self.graph.session.clone();
                let made = self
                    .mirrors
                    .of(origin, is_input && port.is_fixed(), || DeviceBlock::new(session.get(), home, room));
                let (mirror, start) = made?;
                // SAFETY: memory of the device, for the largest run.
                let device = unsafe { self.value(port, &self.memory.device, start) }?;
                let _turn = reach.turns().wait();
                let pair = Pair { mirror, host, device, start: address(self.variant), bytes };
                self.mirrors.try_once(&pair).then_some(pair)
            }
            _ => None,
        };
        let _turn = reach.turns().wait();
        let (api, value) = (ort::api(), pair.map_or(host, |pair| pair.device));
        let put = if is_input { api.BindInput } else { api.BindOutput };
        // SAFETY: live binding, name and value.
        check(unsafe { put(self.binding, name.as_ptr(), value) }).map_err(|error| format!("{name:?}: {error}"))?;
        let elsewhere = home.is_some() || shadow.is_some();
        let steps = port.steps();
        match (is_input, pair, shadow) {
            (true, Some(pair), _) => self.feed.inputs.push(Input { steps, bytes, transfer: Transfer::Written(pair) }),
            (true, None, Some(shadow)) => {
                self.feed.inputs.push(Input { steps, bytes, transfer: Transfer::Played(shadow) })
            }
            (true, None, None) if elsewhere => {
                self.feed.inputs.push(Input { steps, bytes, transfer: Transfer::Bound(name, value) });
            }
            (false, Some(pair), _) => self.feed.outputs.push(pair),
            (false, None, _) if reach != Reach::InPlace && !on_device => self.feed.returned += bytes,
            _ => {}
        }
        Ok(())
    }

    /// A value over memory.
    ///
    /// # Safety
    /// The memory holds the port's values and outlives the graph.
    unsafe fn value(&mut self, port: &Port, place: &Info, start: *mut c_void) -> Result<*mut OrtValue, String> {
        let _turn = self.graph.reach.turns().wait();
        let shape: Vec<i64> = port.shape.iter().map(|dim| dim.size(self.extent) as i64).collect();
        let (bytes, mut value) = (port_len(port, self.extent)? * port.dtype.bytes(), null_mut());
        // SAFETY: live objects and an out pointer; the graph releases the value. The memory is the caller's.
        check(unsafe {
            (ort::api().CreateTensorWithDataAsOrtValue)(
                place.pointer(),
                start,
                bytes,
                shape.as_ptr(),
                shape.len(),
                element(port.dtype),
                &mut value,
            )
        })?;
        self.graph.values.push(value);
        Ok(value)
    }
}
