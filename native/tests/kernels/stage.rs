//! The kernels compiled as C++ and opened as the driver of an NVIDIA GPU; or the driver itself.

use libloading::Library;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tendon::gpu::device::{Device, FAT_BINARY, Module};

/// Why no test can run here.
pub struct Absent(pub String);

/// The indices of `Counts` in driver_host.h.
#[derive(Clone, Copy)]
pub enum Count {
    Contexts,
    Streams,
    Events,
    Registered,
    RegisteredBytes,
    RegisteredEver,
    Faults,
    ContextsSet,
    Records,
}

/// Device 0 and its module, and the library of the CPU.
pub struct Stage {
    pub path: PathBuf,
    /// The library that `device` was opened with.
    pub driver: PathBuf,
    pub library: Library,
    /// The device is a GPU.
    pub on_gpu: bool,
    pub device: Arc<Device>,
    pub module: Arc<Module>,
}

impl Stage {
    /// Compiles the kernels; a mistake in them is a panic. With the path of a fat binary the device is a GPU.
    pub fn build(gpu: Option<&str>) -> Result<Stage, Absent> {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libkernels-cpu.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("cuda/kernels.cu");
        // An overflow or a wrong address stops the test. Contraction off, as on the device.
        let flags = ["-std=c++17", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"];
        let traps = ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"];
        let run =
            Command::new("c++").args(flags).args(traps).args(["-x", "c++"]).arg(source).arg("-o").arg(&path).output();
        match run {
            Err(error) => return Err(Absent(format!("no C++ compiler (c++: {error}): apt-get install g++"))),
            Ok(output) if !output.status.success() => panic!("c++: {}", String::from_utf8_lossy(&output.stderr)),
            Ok(_) => {}
        }
        // SAFETY: compiled just now from this repository; its initialisers enter the kernels into a list.
        let library = unsafe { Library::new(&path) }.expect("the kernels on the CPU");
        let (driver, image) = match gpu {
            None => (path.clone(), FAT_BINARY.to_vec()),
            Some(file) => ("libcuda.so.1".into(), std::fs::read(file).expect("the device code")),
        };
        let device = Device::open(&driver, 0).expect("device 0");
        let module = Module::load(&device, &image).expect("its module");
        Ok(Stage { path, driver, library, on_gpu: gpu.is_some(), device, module })
    }

    /// Runs `test` with threads in order, then in reverse. A GPU has its own order.
    pub fn in_both_orders(&self, mut test: impl FnMut()) {
        if self.on_gpu {
            return test();
        }
        for backwards in [0, 1] {
            self.set("cpu_backwards", backwards);
            test();
        }
        self.set("cpu_backwards", 0);
    }

    /// One of the numbers of `Counts` in driver_host.h.
    pub fn count(&self, place: Count) -> u64 {
        // SAFETY: the signature of cpu_count.
        unsafe {
            (*self.library.get::<unsafe extern "C" fn(usize) -> u64>("cpu_count").expect("the counts"))(place as usize)
        }
    }

    /// Calls a setting of driver.h.
    pub fn set(&self, name: &str, value: usize) {
        // SAFETY: both settings take one integer, which is passed in the same register whatever its width.
        unsafe { (*self.library.get::<unsafe extern "C" fn(usize)>(name).expect("a setting"))(value) };
    }
}
