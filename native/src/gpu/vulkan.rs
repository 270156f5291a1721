//! The kinds of adapters that Vulkan has on this machine. A software rasteriser computes right, but more slowly than the CPU provider.
//!
//! WebGPU takes the fastest adapter itself. Here `auto` only asks whether that could be a GPU.

use crate::gpu::calls::loader_error;
use libloading::Library;
use std::ffi::{c_char, c_void};
use std::mem::ManuallyDrop;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

/// The best adapter of a machine.
#[derive(Debug, PartialEq, Eq)]
pub enum Adapters {
    /// At least one is a GPU: its name.
    Gpu(String),
    Software(String),
    /// Vulkan has none, or is not installed: a sentence.
    None(String),
}

const INSTANCE_CREATE_INFO: i32 = 1;
const TYPE_CPU: u32 = 4;
/// Adapters at most, more than a machine has; others are ignored.
const ADAPTERS_MAX: usize = 32;
/// Bytes of a name, its end included: VK_MAX_PHYSICAL_DEVICE_NAME_SIZE.
const NAME_BYTES: usize = 256;

#[repr(C)]
struct InstanceCreateInfo {
    kind: i32,
    next: *const c_void,
    flags: u32,
    application: *const c_void,
    layer_count: u32,
    layers: *const *const c_char,
    extension_count: u32,
    extensions: *const *const c_char,
}

/// The head of VkPhysicalDeviceProperties. What follows, limits and sparse properties, takes 544 bytes.
#[repr(C, align(8))]
struct Properties {
    api_version: u32,
    driver_version: u32,
    vendor: u32,
    device: u32,
    kind: u32,
    name: [u8; NAME_BYTES],
    rest: [u8; 1024],
}

type CreateInstance = unsafe extern "system" fn(*const InstanceCreateInfo, *const c_void, *mut *mut c_void) -> i32;
type EnumerateDevices = unsafe extern "system" fn(*mut c_void, *mut u32, *mut *mut c_void) -> i32;
type GetProperties = unsafe extern "system" fn(*mut c_void, *mut Properties);
type DestroyInstance = unsafe extern "system" fn(*mut c_void, *const c_void);

impl Adapters {
    /// Opens every Vulkan driver of this machine once, at the first call, for some tens of milliseconds.
    pub fn probe() -> &'static Adapters {
        static PROBED: OnceLock<Adapters> = OnceLock::new();
        PROBED.get_or_init(|| found().map_or_else(Adapters::None, Adapters::of))
    }

    fn of(all: Vec<(u32, String)>) -> Adapters {
        let gpu = all.iter().position(|&(kind, _)| kind != TYPE_CPU);
        match (gpu, all) {
            (Some(at), mut all) => Adapters::Gpu(all.swap_remove(at).1),
            (None, all) => match all.into_iter().next() {
                Some((_, name)) => Adapters::Software(name),
                None => Adapters::None("Vulkan has no adapter".into()),
            },
        }
    }
}

/// Type and name of each adapter.
fn found() -> Result<Vec<(u32, String)>, String> {
    // SAFETY: the system's Vulkan loader; it and its drivers run their initialisers, as they will when WebGPU opens them.
    let library = unsafe { Library::new("libvulkan.so.1") }
        .map_err(|error| format!("Vulkan is missing: {}", loader_error(&error)))?;
    // Never closed: drivers leave threads and thread-local state behind.
    let library = ManuallyDrop::new(library);
    // SAFETY: the names and types are those of Vulkan 1.0.
    let (create, enumerate, properties, destroy) = unsafe {
        let missing =
            |error: libloading::Error| format!("libvulkan.so.1 is no Vulkan loader: {}", loader_error(&error));
        (
            *library.get::<CreateInstance>(b"vkCreateInstance\0").map_err(missing)?,
            *library.get::<EnumerateDevices>(b"vkEnumeratePhysicalDevices\0").map_err(missing)?,
            *library.get::<GetProperties>(b"vkGetPhysicalDeviceProperties\0").map_err(missing)?,
            *library.get::<DestroyInstance>(b"vkDestroyInstance\0").map_err(missing)?,
        )
    };
    let info = InstanceCreateInfo {
        kind: INSTANCE_CREATE_INFO,
        next: null(),
        flags: 0,
        application: null(),
        layer_count: 0,
        layers: null(),
        extension_count: 0,
        extensions: null(),
    };
    let mut instance = null_mut();
    // SAFETY: a whole structure and an out pointer.
    let status = unsafe { create(&info, null(), &mut instance) };
    if status != 0 {
        return Err(format!("Vulkan has no driver that starts (VkResult {status})"));
    }
    let (mut devices, mut count) = ([null_mut(); ADAPTERS_MAX], ADAPTERS_MAX as u32);
    // SAFETY: a live instance; as many places as `count` says. VK_INCOMPLETE is positive: those beyond are left out.
    let status = unsafe { enumerate(instance, &mut count, devices.as_mut_ptr()) };
    let adapters = devices[..if status < 0 { 0 } else { count as usize }].iter().map(|&device| {
        // SAFETY: zeroes are valid for integers.
        let mut about: Properties = unsafe { std::mem::zeroed() };
        // SAFETY: a device of the live instance; the structure is larger than VkPhysicalDeviceProperties.
        unsafe { properties(device, &mut about) };
        let end = about.name.iter().position(|&byte| byte == 0).unwrap_or(NAME_BYTES);
        (about.kind, String::from_utf8_lossy(&about.name[..end]).into_owned())
    });
    let adapters = adapters.collect();
    // SAFETY: made above, destroyed once; none of its devices is used any more.
    unsafe { destroy(instance, null()) };
    Ok(adapters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_beside_a_rasteriser_is_what_counts() {
        let named = |kind: u32, name: &str| (kind, name.to_string());
        let (software, discrete) = (named(TYPE_CPU, "llvmpipe"), named(2, "RTX"));
        assert_eq!(Adapters::of(vec![software.clone(), discrete]), Adapters::Gpu("RTX".into()));
        assert_eq!(Adapters::of(vec![software]), Adapters::Software("llvmpipe".into()));
        assert!(matches!(Adapters::of(Vec::new()), Adapters::None(_)));
    }

    #[test]
    fn a_machine_can_be_asked_whatever_it_has() {
        let (Adapters::Gpu(text) | Adapters::Software(text) | Adapters::None(text)) = Adapters::probe();
        assert!(!text.is_empty());
    }
}
