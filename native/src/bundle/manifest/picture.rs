//! What the frames of each camera become: `image`, or a view of the camera's own.

use super::{Image, Manifest, Resize, Role};
use serde::Deserialize;

/// How the pictures of one camera differ from `image`.
#[derive(Deserialize)]
#[allow(missing_docs)]
pub struct View {
    pub camera: String,
    pub width: usize,
    pub height: usize,
    pub resize: Option<Resize>,
    pub place: Option<Place>,
    pub tokens: usize,
}

/// Where the whole image stands on black.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Bars on both sides; the odd pixel is right or below (openpi's `resize_with_pad`).
    #[default]
    Centre,
    /// Bars right or below.
    TopLeft,
    /// Bars left or above (`resize_with_pad` of LeRobot's SmolVLA).
    BottomRight,
}

impl Manifest {
    /// Of one camera, by its name. A view that the model has no camera for is as `image` says.
    pub fn image_of(&self, camera: &str) -> Image {
        let Some(view) = self.views.iter().find(|view| view.camera == camera) else { return self.image };
        let View { width, height, tokens, .. } = *view;
        // A place belongs to the way of resizing that stands beside it.
        let (resize, place) = match view.resize {
            Some(resize) => (resize, view.place),
            None => (self.image.resize, view.place.or(self.image.place)),
        };
        Image { width, height, resize, place, tokens, ..self.image }
    }

    /// Of each camera, in wire order.
    pub fn images(&self) -> impl Iterator<Item = Image> {
        self.cameras.iter().map(|camera| self.image_of(camera))
    }

    /// Prefix tokens of one frame of every camera.
    pub fn image_tokens(&self) -> usize {
        self.images().map(|picture| picture.tokens).sum()
    }

    /// The views of the prefix, in its order: tokens of one frame, and whether the model has a camera for it.
    pub fn prefix_views(&self) -> impl Iterator<Item = (usize, bool)> {
        let images = self.graphs.prefill.inputs.iter().filter(|port| port.role == Role::Images);
        let names = images.flat_map(|port| port.views(&self.cameras));
        names.map(|name| (self.image_of(name).tokens, self.cameras.contains(name)))
    }

    /// Refuses pictures that the engine cannot make.
    pub(super) fn check_pictures(&self) -> Result<(), String> {
        if let Some(view) = self.views.iter().find(|view| !self.cameras.contains(&view.camera)) {
            return Err(format!("there is a view of {}, which is no camera", view.camera));
        }
        for Image { width, height, resize, place, tokens, .. } in self.images().chain([self.image]) {
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

    fn manifest(views: Value) -> Manifest {
        let graph = json!({ "file": "g", "inputs": [], "outputs": [] });
        serde_json::from_value(json!({
            "export_id": "0", "cameras": ["top", "left"], "frames": { "first": 1, "later": 1 },
            "image": {
                "width": 8, "height": 6, "resize": "pad", "place": "top_left", "mean": [0, 0, 0], "std": [1, 1, 1], "tokens": 4,
            },
            "views": views,
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
    fn a_camera_has_the_picture_of_its_view_and_the_others_that_of_image() {
        let plain = manifest(json!([]));
        assert_eq!((plain.image_tokens(), plain.images().nth(1).expect("a camera").values()), (8, 144));
        let wide = manifest(json!([{ "camera": "left", "width": 16, "height": 6, "tokens": 8 }]));
        assert_eq!(
            (
                wide.image_tokens(),
                wide.images().next().expect("a camera").values(),
                wide.images().nth(1).expect("a camera").values()
            ),
            (12, 144, 288)
        );
        assert!(
            wide.images().nth(1).expect("a camera").resize == Resize::Pad
                && wide.images().nth(1).expect("a camera").place == Some(Place::TopLeft)
        );
        assert_eq!(wide.check(), Ok(()));
        // A place belongs to the way of resizing beside it.
        let crop = json!([{ "camera": "left", "width": 16, "height": 6, "resize": "crop", "tokens": 8 }]);
        assert!(manifest(crop).images().nth(1).expect("a camera").place.is_none());
    }

    #[test]
    fn a_view_of_no_camera_and_a_picture_that_cannot_be_made_are_refused() {
        let refused = |view: Value, expected: &str| {
            assert!(manifest(json!([view])).check().is_err_and(|text| text.contains(expected)), "{expected}");
        };
        refused(
            json!({ "camera": "right", "width": 8, "height": 8, "tokens": 4 }),
            "a view of right, which is no camera",
        );
        refused(json!({ "camera": "top", "width": 0, "height": 8, "tokens": 4 }), "image width is 0");
        refused(json!({ "camera": "top", "width": 8, "height": 5000, "tokens": 4 }), "image height is 5000");
        let place =
            json!({ "camera": "top", "width": 8, "height": 8, "resize": "crop", "place": "centre", "tokens": 4 });
        refused(place, "only a padded picture has one");
    }
}
