//! The picture that a frame becomes.

use super::{Image, Manifest, Resize, Role};
use serde::Deserialize;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Alignment {
    /// Bars on both sides; the odd pixel is right or below (openpi's `resize_with_pad`).
    #[default]
    Centre,
    TopLeft,
    /// Bars left or above (`resize_with_pad` of LeRobot's SmolVLA).
    BottomRight,
}

impl Manifest {
    /// The views of the prefix, with those that the model has no camera for.
    pub fn prefix_views(&self) -> usize {
        let images = self.graphs.prefill.inputs.iter().filter(|port| port.role == Role::Images);
        images.map(|port| port.views(&self.cameras).len()).sum()
    }

    /// Refuses pictures that the engine cannot make.
    pub(super) fn check_picture(&self) -> Result<(), String> {
        let Image { width, height, resize, place, tokens, .. } = self.image;
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
        let graph = json!({ "file": "g", "inputs": [], "outputs": [] });
        let mut image = json!({
            "width": 8, "height": 6, "resize": "pad", "place": "top_left", "mean": [0, 0, 0], "std": [1, 1, 1], "tokens": 4,
        });
        image.as_object_mut().expect("an object").extend(change.as_object().expect("a change").clone());
        serde_json::from_value(json!({
            "export_id": "0", "cameras": ["top", "left"], "frames": { "first": 1, "later": 1 },
            "image": image,
            "state": { "columns": [{ "name": "s", "norm": "none" }], "width": 1 },
            "prompt": { "tokens_max": 8, "pad_id": 0, "parts": [] },
            "action": {
                "rows": 1, "width": 1, "columns": [{ "name": "a", "norm": "none", "relative_to": null, "min": 0, "max": 1 }],
                "rotation6d": [], "out_of_range": "clamp",
            },
            "flow": { "t_start": 1, "t_end": 0, "steps": 1, "shift": 1 },
            "guidance": null, "memory": null, "batch": 1,
            "graphs": { "prefill": graph, "denoise": graph },
            "tokenizer": "t", "norm": "n", "parity": { "file": "p", "tolerance": 1 },
        }))
        .expect("a manifest")
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
    }
}
