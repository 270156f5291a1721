//! The texts of ONNX Runtime's errors for a person.

/// A sentence of ONNX Runtime without the line of its source, its kind of error and the line break at its end.
pub(super) fn plain(text: &str) -> String {
    const MARK: &str = "[ONNXRuntimeError] : ";
    let said = text.rsplit(MARK).next().unwrap_or(text);
    // The number and the name of the kind end with a colon each.
    let said = if said.len() == text.len() { said } else { said.splitn(3, " : ").last().unwrap_or(said) };
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_of_onnx_runtime_is_told_without_the_line_of_its_source() {
        let said = "/src/provider_bridge_ort.cc:1988 onnxruntime::Provider& onnxruntime::ProviderLibrary::Get() \
                    [ONNXRuntimeError] : 1 : FAIL : Failed to load library /x/libonnxruntime_providers_cuda.so with error: \
                    libcuda.so.1: cannot open shared object file: No such file or directory\n";
        assert_eq!(
            plain(said),
            "Failed to load library /x/libonnxruntime_providers_cuda.so with error: libcuda.so.1: cannot open shared object \
             file: No such file or directory"
        );
        assert_eq!(
            plain("Failed to get a WebGPU adapter: No : adapters\n"),
            "Failed to get a WebGPU adapter: No : adapters"
        );
        assert_eq!(plain(""), "");
    }
}
