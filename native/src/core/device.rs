//! The devices that a model may run on, and their names in the configuration.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    Cpu,
    Cuda(i32),
    TensorRt(i32),
    WebGpu(i32),
}

impl Device {
    /// The devices to try, in order, for a name in the configuration; None for an unknown name.
    pub fn candidates(word: &str) -> Option<Vec<Device>> {
        let numbered = |prefix: &str| word.strip_prefix(prefix)?.parse::<u8>().ok().map(i32::from);
        Some(match word {
            "auto" => vec![Device::TensorRt(0), Device::Cuda(0), Device::WebGpu(0), Device::Cpu],
            "cpu" => vec![Device::Cpu],
            _ => vec![
                None.or_else(|| numbered("cuda:").map(Device::Cuda))
                    .or_else(|| numbered("tensorrt:").map(Device::TensorRt))
                    .or_else(|| numbered("webgpu:").map(Device::WebGpu))?,
            ],
        })
    }

    /// Whether both compute in the same memory: CUDA and TensorRT of one GPU do.
    pub fn shares_memory_with(self, other: Device) -> bool {
        self == other || self.nvidia_index().is_some_and(|index| other.nvidia_index() == Some(index))
    }

    /// The number of an NVIDIA GPU; None for another device.
    pub fn nvidia_index(self) -> Option<i32> {
        if let Device::Cuda(index) | Device::TensorRt(index) = self { Some(index) } else { None }
    }

    pub fn name(self) -> String {
        match self {
            Device::Cpu => "cpu".into(),
            Device::Cuda(id) => format!("cuda:{id}"),
            Device::TensorRt(id) => format!("tensorrt:{id}"),
            Device::WebGpu(id) => format!("webgpu:{id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_word_names_what_is_tried() {
        assert_eq!(Device::candidates("cpu"), Some(vec![Device::Cpu]));
        assert_eq!(Device::candidates("cuda:1"), Some(vec![Device::Cuda(1)]));
        assert_eq!(Device::candidates("auto").map(|devices| devices.len()), Some(4));
        for word in ["", "gpu", "cuda", "cuda:", "cuda:-1", "cuda:999", "webgpu:x"] {
            assert_eq!(Device::candidates(word), None, "{word}");
        }
    }
}
