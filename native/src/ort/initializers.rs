//! Weights for a session: ONNX Runtime gets values over memory that stays in place.

use crate::bundle::weights::External;
use crate::ort::environment::check;
use crate::ort::home::Home;
use crate::ort::value::Value;
use crate::ort::weight_store::DeviceWeights;
use ort::sys::{ONNXTensorElementDataType as Type, OrtSessionOptions};
use std::ffi::CString;
use std::path::Path;

/// Tensors over mapped memory or a device's, by their names in one graph, and that memory. They live as long as their session: ONNX Runtime
/// keeps the addresses of both.
pub struct Initializers {
    tensors: Vec<(CString, Value, usize)>,
    are_f32: bool,
    _weights: DeviceWeights,
}

impl DeviceWeights {
    /// The tensors of the graph at `path` that lie in the files.
    pub fn of_graph(&self, path: &Path) -> Result<Initializers, String> {
        let host = Home::HOST.info()?;
        let value = |tensor: &External| {
            let name =
                CString::new(tensor.name.as_str()).map_err(|_| "a tensor name contains a zero byte".to_string())?;
            let (file, values) = self.weights.values(tensor)?;
            let shared = self.store.as_ref().and_then(|store| store.find_tensor(file, tensor));
            let (info, start) = shared.unwrap_or((&host, values.as_ptr().cast_mut().cast()));
            let External { kind, dims, bytes, .. } = tensor;
            // SAFETY: that number of bytes lies there, aligned, as `externals` and `values` have checked; what is made here keeps both.
            // ONNX Runtime only reads initializers.
            Ok((name, unsafe { Value::at(info, start, *bytes, (dims, *kind)) }?, *bytes))
        };
        let in_file = |error: String| format!("{}: {error}", path.display());
        let tensors = self.weights.of_graph(path)?;
        let are_f32 = tensors.iter().all(|tensor| tensor.kind == Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
        let tensors = tensors.iter().map(value).collect::<Result<_, _>>().map_err(in_file)?;
        Ok(Initializers { tensors, are_f32, _weights: self.clone() })
    }
}

impl Initializers {
    /// Has a session use these tensors in place. Tensors that ONNX Runtime folds into others are read from the file once more.
    ///
    /// # Safety
    /// `options` are live, and every session that is made with them is closed before this is dropped.
    pub unsafe fn add_to(&self, options: *mut OrtSessionOptions) -> Result<(), String> {
        let add = |name: &CString, value: &Value| {
            // SAFETY: live options, as demanded; ONNX Runtime copies the name and keeps the value's address.
            check(unsafe { (ort::api().AddInitializer)(options, name.as_ptr(), value.pointer()) })
        };
        self.tensors.iter().try_for_each(|(name, value, _)| add(name, value))
    }

    /// Whether all are used as they are: others are widened first.
    pub fn are_f32(&self) -> bool {
        self.are_f32
    }

    /// Bytes of all tensors, or of those in `names`.
    pub fn bytes(&self, names: Option<&[String]>) -> usize {
        let counts =
            |name: &CString| names.is_none_or(|names| names.iter().any(|other| other.as_bytes() == name.as_bytes()));
        self.tensors.iter().filter(|(name, ..)| counts(name)).map(|(.., bytes)| bytes).sum()
    }
}
