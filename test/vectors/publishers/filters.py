"""Resized pictures as each library gives them: `python filters.py FOLDER` writes `filters.safetensors` and `filters.json`.

Tensors of case N: `N.source` u8 [h, w, 3]; `N.pillow_bilinear` and `N.pillow_bicubic` u8, Pillow's antialiased ones; `N.torch_bicubic` u8,
torchvision's antialiased one (GR00T N1.7); `N.torch_bilinear` f32, two taps without antialias on values of 0 to 1, clamped, not rounded
(LeRobot's resize_with_pad_torch before its padding); `N.torch_bilinear_u8` u8, the same on 0 to 255, rounded (MolmoAct2); `N.area` u8,
OpenCV's INTER_AREA.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import cv2
import numpy as np
import torch
import torchvision
from drawn import draw_picture
from PIL import Image
from safetensors.torch import save_file
from torchvision.transforms import InterpolationMode

SIZES = [
    ((97, 61), (42, 26)), ((61, 97), (26, 42)), ((33, 47), (29, 41)), ((21, 17), (42, 34)), ((40, 30), (80, 60)), ((80, 60), (40, 30)),
    ((90, 60), (30, 20)), ((13, 50), (42, 11)), ((64, 1), (32, 1)), ((1, 5), (7, 3)), ((31, 23), (31, 46)), ((150, 113), (10, 7)),
]
"""(width, height) before and after: odd ones, up, down, one axis each way, by whole factors, one pixel."""


def resized(source, size):
    width, height = size
    picture, planes = Image.fromarray(source), torch.from_numpy(source.copy()).permute(2, 0, 1)
    floats = torch.nn.functional.interpolate(planes[None].to(torch.float32) / 255, size=(height, width), mode="bilinear", align_corners=False)
    bilinear = torchvision.transforms.Resize([height, width], InterpolationMode.BILINEAR, antialias=False)(planes)
    bicubic = torchvision.transforms.functional.resize(planes, [height, width], interpolation=InterpolationMode.BICUBIC, antialias=True)
    return {
        "source": source,
        "pillow_bilinear": np.asarray(picture.resize(size, Image.Resampling.BILINEAR)),
        "pillow_bicubic": np.asarray(picture.resize(size, Image.Resampling.BICUBIC)),
        "torch_bicubic": bicubic.permute(1, 2, 0).numpy(),
        "torch_bilinear": floats[0].clamp(0, 1).permute(1, 2, 0).numpy(),
        "torch_bilinear_u8": torch.clip(bilinear, 0, 255).permute(1, 2, 0).numpy(),
        "area": cv2.resize(source, size, interpolation=cv2.INTER_AREA),
    }


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for number, (before, after) in enumerate(SIZES):
        source = np.asarray(draw_picture(*before, seed=1000 + number)) if min(before) > 1 else noise(before)
        made = resized(source, after)
        tensors |= {f"{number}.{name}": torch.from_numpy(value.copy()) for name, value in made.items()}
    save_file(tensors, str(folder / "filters.safetensors"))
    packages = {name: version(name) for name in ("torch", "torchvision", "pillow", "opencv-python-headless", "numpy")}
    facts = {"provenance": packages, "cases": [{"from": before, "to": after} for before, after in SIZES]}
    (folder / "filters.json").write_text(json.dumps(facts, indent=1) + "\n")


def noise(size):
    return np.random.default_rng(5).integers(0, 256, (size[1], size[0], 3)).astype(np.uint8)


if __name__ == "__main__":
    main()
