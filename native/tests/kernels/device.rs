//! Failures on the way to the kernels are values that name the cause.

use super::stage::Stage;
use super::{Of, Test};
use std::path::Path;
use tendon::gpu::device::{Device, FAT_BINARY, Module};
use tendon::gpu::{CudaError, chunk, flow};

pub const TESTS: &[Test] = &[
    ("device::a_machine_without_the_driver_says_so", Of::Host, no_driver),
    ("device::a_library_that_is_no_driver_says_what_it_lacks", Of::Host, no_calls),
    ("device::a_device_that_is_not_there_is_named", Of::Host, no_device),
    ("device::memory_that_is_not_there_is_a_fault_with_its_size", Of::Host, no_memory),
    ("device::what_is_no_device_code_is_refused", Of::Host, no_module),
    ("device::a_kernel_that_is_not_there_is_named", Of::Host, no_kernel),
    ("device::every_kernel_is_in_the_module", Of::Kernels, every_kernel),
    ("device::memory_gives_back_what_was_copied_in", Of::Kernels, round_trip),
];

fn no_driver(_: &Stage) {
    match Device::open(Path::new("libcuda-nowhere.so.1"), 0) {
        Err(CudaError::NoDriver(reason)) => assert!(reason.contains("libcuda-nowhere.so.1"), "{reason}"),
        other => panic!("{:?}", other.err()),
    }
}

fn no_calls(_: &Stage) {
    match Device::open(Path::new("libm.so.6"), 0) {
        Err(CudaError::NoDriver(reason)) => assert!(reason.contains("cuInit"), "{reason}"),
        other => panic!("{:?}", other.err()),
    }
}

fn no_device(stage: &Stage) {
    assert_eq!(Device::open(&stage.path, 7).err(), Some(CudaError::NoDevice(7)));
    assert_eq!(CudaError::NoDevice(7).to_string(), "there is no CUDA device 7");
}

fn no_memory(stage: &Stage) {
    stage.set("cpu_memory_left", 1000);
    assert_eq!(stage.device.memory(1001).err(), Some(CudaError::OutOfMemory(1001)));
    assert_eq!(stage.device.memory(1000).err(), None);
    stage.set("cpu_memory_left", usize::MAX);
}

fn no_module(stage: &Stage) {
    for image in [&b""[..], b"\x7fELF", &FAT_BINARY[..3]] {
        let fault = Module::load(&stage.device, image).err();
        assert_eq!(fault, Some(CudaError::BadModule("it is no fat binary".into())));
    }
}

fn no_kernel(stage: &Stage) {
    for name in ["flow_nowhere", "flow\0update"] {
        assert_eq!(stage.module.function(name).err(), Some(CudaError::NoKernel(name.into())));
    }
}

fn every_kernel(stage: &Stage) {
    flow::Kernel::find(&stage.module).map(drop).expect("the flow update");
    chunk::Kernel::find(&stage.module).map(drop).expect("the chunk decode");
}

fn round_trip(stage: &Stage) {
    let values: Vec<u16> = (0..777).collect();
    let memory = stage.device.copy_of(&values).expect("memory");
    assert_eq!((memory.bytes(), memory.read::<u16>(777)), (1554, Ok(values)));
}
