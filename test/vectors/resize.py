"""Golden vectors for the resize filters: what the libraries, and the publishers' own functions around them, make of the JPEGs in jpeg/.

Made with Python 3.12, on a processor with AVX-512:
    torch 2.11.0, torchvision 0.26.0, lerobot 0.6.1, pillow 12.3.0, opencv-python-headless 4.13.0.92, numpy 2.2.6
Run from the repository root:
    python3 test/vectors/resize.py          # writes test/vectors/resize.json
PyTorch gives these bits with two threads or more on a processor with AVX2. With one thread, for a resized picture whose edges make 128
or less, and with ATEN_CPU_CAPABILITY=default it sums in another order or does not fuse, and the last place of the values differs.

Each case: `filter`, `resize`, `place`, `file`, `width`, `height`, and `sha256` of the picture, which is
    torch-bilinear   float32 [3, height, width], x * 2 - 1 (mean and std 0.5), little-endian
    all others       uint8 [height, width, 3]
"""

import hashlib
import json
from pathlib import Path

import cv2
import lerobot
import numpy as np
import PIL
import torch
import torch.nn.functional as F
import torchvision
from lerobot.policies.common.vla_utils import resize_with_pad, resize_with_pad_torch
from lerobot.policies.molmoact2.molmoact2_hf_model import image_processing_molmoact2 as molmoact2
from PIL import Image

HERE = Path(__file__).parent
# (file, width, height): up, down, one edge up and one down, one or both edges unchanged, whole numbers, one pixel, far apart.
SIZES = [
    ("420.jpg", 130, 100),
    ("420.jpg", 20, 90),
    ("420.jpg", 33, 32),
    ("420.jpg", 61, 20),
    ("420-mid.jpg", 80, 60),
    ("420-mid.jpg", 40, 40),
    ("420-mid.jpg", 160, 120),
    ("420-frame.jpg", 224, 224),
    ("420-frame.jpg", 100, 45),
    ("420-frame.jpg", 126, 224),
    ("one-pixel.jpg", 8, 8),
    ("one-pixel.jpg", 70, 70),
    ("one-column.jpg", 20, 20),
    ("one-column.jpg", 1, 16),
    ("one-column.jpg", 9, 140),
    ("edge-max.jpg", 100, 4),
    ("edge-max.jpg", 130, 3),
    ("edge-max.jpg", 90, 90),
]
# Beyond this PyTorch takes the way that the published sizes take.
TORCH_EDGES_MIN = 129


def decode(file: str) -> np.ndarray:
    with Image.open(HERE / "jpeg" / file) as picture:
        return np.asarray(picture.convert("RGB"))


def shares(rgb: np.ndarray) -> torch.Tensor:
    """As LeRobot's processors hand a frame to a policy: [1, 3, height, width], 0 to 1."""
    return torch.from_numpy(rgb.copy()).permute(2, 0, 1).contiguous().unsqueeze(0).type(torch.float32) / 255


def torch_stretch(rgb: np.ndarray, width: int, height: int) -> np.ndarray:
    return F.interpolate(shares(rgb), size=(height, width), mode="bilinear", align_corners=False)


def torch_centre(rgb: np.ndarray, width: int, height: int) -> np.ndarray:
    """PI05Policy._preprocess_images"""
    image = shares(rgb).permute(0, 2, 3, 1)
    if image.shape[1:3] != (height, width):
        image = resize_with_pad_torch(image, height, width)
    return image.permute(0, 3, 1, 2)


def torch_bottom_right(rgb: np.ndarray, width: int, height: int) -> np.ndarray:
    """SmolVLAPolicy.prepare_images"""
    return resize_with_pad(shares(rgb), height, width, pad_value=0)


def torch_u8(rgb: np.ndarray, width: int, height: int) -> np.ndarray:
    resized = molmoact2.resize_image(rgb, [height, width], torchvision.transforms.InterpolationMode.BILINEAR)
    return np.rint(resized * 255).astype(np.uint8)


def bicubic(rgb: np.ndarray, width: int, height: int) -> np.ndarray:
    return np.asarray(Image.fromarray(rgb).resize((width, height), Image.Resampling.BICUBIC))


def area(rgb: np.ndarray, width: int, height: int) -> np.ndarray:
    return cv2.resize(rgb, (width, height), interpolation=cv2.INTER_AREA)


def cropped(resize):
    """Fills the target, then cuts: the rule of jpeg.py."""

    def crop(rgb: np.ndarray, width: int, height: int) -> np.ndarray:
        ratio = min(rgb.shape[1] / width, rgb.shape[0] / height)
        n, m = max(width, round(rgb.shape[1] / ratio)), max(height, round(rgb.shape[0] / ratio))
        left, top = (n - width) // 2, (m - height) // 2
        return resize(rgb, n, m)[top : top + height, left : left + width]

    return crop


LEVELS = {"torch-bilinear-u8": torch_u8, "pillow-bicubic": bicubic, "area": area}


def digest(values: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()


def main() -> None:
    assert torch.get_num_threads() > 1
    cases = []

    def add(filter: str, file: str, width: int, height: int, values: np.ndarray, **how: str) -> None:
        assert values.size == 3 * width * height
        cases.append({"filter": filter, **how, "file": file, "width": width, "height": height, "sha256": digest(values)})

    for file, width, height in SIZES:
        rgb = decode(file)
        ratio = max(rgb.shape[1] / width, rgb.shape[0] / height)
        fits = min(int(rgb.shape[1] / ratio), int(rgb.shape[0] / ratio)) > 0
        inner = int(rgb.shape[1] / ratio) + int(rgb.shape[0] / ratio)
        wanted = [("stretch", {}, torch_stretch)] if width + height >= TORCH_EDGES_MIN else []
        # A picture so thin that none of it would be left has no padded form at the publisher's.
        if fits and inner >= TORCH_EDGES_MIN:
            wanted += [
                ("pad", {"place": "centre"}, torch_centre),
                ("pad", {"place": "bottom_right"}, torch_bottom_right),
            ]
        for resize, place, made in wanted:
            values = (made(rgb, width, height) * 2.0 - 1.0)[0].numpy()
            add("torch-bilinear", file, width, height, values, resize=resize, **place)
        for filter, resized in LEVELS.items():
            if filter == "torch-bilinear-u8" and width + height < TORCH_EDGES_MIN:
                continue
            add(filter, file, width, height, resized(rgb, width, height), resize="stretch")
            # A thin picture that fills its target becomes too large to be worth the time.
            if max(rgb.shape[:2]) < 32 * min(rgb.shape[:2]):
                add(filter, file, width, height, cropped(resized)(rgb, width, height), resize="crop")
    versions = {
        "torch": torch.__version__,
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "torchvision": torchvision.__version__,
        "lerobot": lerobot.__version__,
        "opencv": cv2.__version__,
        "pillow": PIL.__version__,
        "numpy": np.__version__,
    }
    rows = ",\n".join(f"    {json.dumps(case)}" for case in cases)
    (HERE / "resize.json").write_text(f'{{\n  "made_with": {json.dumps(versions)},\n  "cases": [\n{rows}\n  ]\n}}\n')
    print(len(cases), "cases", {case["filter"]: sum(c["filter"] == case["filter"] for c in cases) for case in cases})


main()
