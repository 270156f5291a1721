//! The picture that a frame becomes.

use super::{Image, Manifest, Picture, Resize, Role};
use serde::Deserialize;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Alignment {
    /// Bars on both sides; the odd pixel is right or below (openpi's `resize_with_pad`).
    #[default]
    Centre,
    /// Bars left or above (`resize_with_pad` of LeRobot's SmolVLA).
    BottomRight,
}

/// How a picture is brought to size; each is bit-equal to its library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filter {
    #[default]
    PillowBilinear,
    PillowBicubic,
    /// Unrounded: its pictures are f32.
    TorchBilinear,
    TorchBilinearU8,
    /// OpenCV's INTER_AREA.
    Area,
}

impl Manifest {
    /// The views of the prefix, with those that the model has no camera for.
    pub fn prefix_views(&self) -> usize {
        let images = self.graphs.prefill.inputs.iter().filter(|port| port.role == Role::Images);
        images.map(|port| port.views(&self.cameras).len()).sum()
    }

    /// Refuses pictures that the engine cannot make.
    pub(super) fn check_picture(&self) -> Result<(), String> {
        let Image { width, height, resize, place, filter, tokens, .. } = self.image;
        for (what, edge) in [("width", width), ("height", height)] {
            if !(1..=EDGE_MAX).contains(&edge) {
                return Err(format!("image {what} is {edge}, expected 1 to {EDGE_MAX}"));
            }
        }
        if !(1..=TOKENS_MAX).contains(&tokens) {
            return Err(format!("a picture becomes {tokens} tokens, expected 1 to {TOKENS_MAX}"));
        }
        if place.is_some() && resize != Resize::Pad {
            return Err("a place of the picture is given, but only a padded picture has one".into());
        }
        if filter == Filter::TorchBilinear && self.picture() != Picture::Normalised {
            return Err("the filter torch-bilinear gives unrounded values, which u8 images cannot hold".into());
        }
        Ok(())
    }
}

/// Pixels.
const EDGE_MAX: usize = 4096;
const TOKENS_MAX: usize = 1 << 16;

impl Image {
    /// Values of one frame's tensor, `[3, height, width]`.
    pub fn values(&self) -> usize {
        3 * self.width * self.height
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn manifest(change: &Value) -> Manifest {
        let mut manifest: Value = serde_json::from_str(include_str!("../../../tests/manifest.json")).expect("JSON");
        let image = &mut manifest["image"];
        (image["resize"], image["place"]) = (json!("pad"), json!("bottom_right"));
        image.as_object_mut().expect("an object").extend(change.as_object().expect("a change").clone());
        serde_json::from_value(manifest).expect("a manifest")
    }

    #[test]
    fn a_picture_that_cannot_be_made_is_refused() {
        let refused = |change: Value, expected: &str| {
            assert!(manifest(&change).check().is_err_and(|text| text.contains(expected)), "{expected}");
        };
        assert_eq!(manifest(&json!({})).check(), Ok(()));
        refused(json!({ "width": 0 }), "image width is 0");
        refused(json!({ "height": 5000 }), "image height is 5000");
        refused(json!({ "tokens": 0 }), "a picture becomes 0 tokens");
        refused(json!({ "resize": "crop", "place": "centre" }), "only a padded picture has one");
        let mut pixels = manifest(&json!({ "filter": "torch-bilinear" }));
        assert_eq!(pixels.check(), Ok(()));
        let images = json!({ "name": "images", "role": "images", "dtype": "u8", "shape": ["batch", 1, 3, 8, 8] });
        pixels.graphs.prefill.inputs.push(serde_json::from_value(images).expect("an input"));
        assert!(pixels.check().is_err_and(|text| text.contains("which u8 images cannot hold")));
    }
}
