//! The type of a tensor's values.

use serde::Deserialize;

#[derive(Deserialize, Clone, Copy, PartialEq, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Dtype {
    F32,
    F16,
    /// The upper half of an F32.
    Bf16,
    I32,
    I64,
    U8,
    Bool,
}

impl Dtype {
    /// The name in a safetensors file.
    pub fn name(self) -> &'static str {
        match self {
            Dtype::F32 => "F32",
            Dtype::F16 => "F16",
            Dtype::Bf16 => "BF16",
            Dtype::I32 => "I32",
            Dtype::I64 => "I64",
            Dtype::U8 => "U8",
            Dtype::Bool => "BOOL",
        }
    }

    pub fn bytes(self) -> usize {
        match self {
            Dtype::F32 | Dtype::I32 => 4,
            Dtype::F16 | Dtype::Bf16 => 2,
            Dtype::I64 => 8,
            Dtype::U8 | Dtype::Bool => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dtype_has_its_name_in_a_manifest_and_its_bytes() {
        let named: Vec<Dtype> =
            serde_json::from_str(r#"["f32", "f16", "bf16", "i32", "i64", "u8", "bool"]"#).expect("dtypes");
        assert_eq!(named.iter().map(|dtype| dtype.bytes()).collect::<Vec<_>>(), [4, 2, 2, 4, 8, 1, 1]);
        assert!(serde_json::from_str::<Dtype>(r#""f64""#).is_err());
    }
}
