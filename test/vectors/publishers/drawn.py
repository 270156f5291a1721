"""What a small checkpoint is filled with: weights, statistics, states and pictures, all drawn from a seed."""

import json
import struct
import zlib

import numpy as np
import torch
from PIL import Image, ImageDraw
from seed import SEED, seeded

BINS = np.linspace(-1, 1, 257)[:-1]
"""The lower edges of the 256 bins of a digitised state."""

AWAY = 2e-6
"""How far a normalised state stays from every edge: nearer ones may fall to either side in float32."""


def draw_weights(module, kinds=()):
    """Draws every parameter and every floating-point buffer anew. Publishers' initial values (zeros and ones in norms, gates and biases)
    would hide an error. `kinds` is (part of a name, centre, spread) for values that must lie elsewhere; the first that fits counts.
    Matrices are bfloat16 numbers, whatever a file keeps them as: a bundle of bf16 weights then has the same ones, and the same golden values.
    """
    for name, value in weights_of(module):
        value.data.copy_(drawn(name, value, kinds))


def write_drawn(module, path, kinds=()):
    """The same values as a safetensors file, one tensor in memory at a time; the module's own need none ("meta")."""
    kept = sorted(weights_of(module), key=lambda one: (-one[1].element_size(), one[0]))
    header, end = {}, 0
    for name, value in kept:
        place = [end, end := end + value.numel() * value.element_size()]
        header[name] = {"dtype": {torch.float32: "F32", torch.bfloat16: "BF16"}[value.dtype], "shape": list(value.shape), "data_offsets": place}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, value in kept:
            drawn(name, value, kinds).view(torch.uint8).numpy().tofile(file)


def weights_of(module):
    tensors = dict(module.named_parameters())
    tensors |= {name: value for name, value in module.named_buffers() if value.is_floating_point() and name in module.state_dict()}
    return sorted(tensors.items())


def drawn(name, like, kinds):
    draw = torch.Generator().manual_seed(seeded(zlib.crc32(name.encode())))
    fan = like[0].numel() if like.dim() > 1 else 16
    centre, spread = next(((c, s) for part, c, s in kinds if part in name), (0.0, 1.0))
    fresh = torch.randn(like.shape, generator=draw).mul_(spread).mul_(fan**-0.5).add_(centre)
    if like.dim() == 2:
        fresh = fresh.to(torch.bfloat16)
    if "running_var" in name:
        fresh = 0.5 + fresh.abs()
    return fresh.to(like.dtype)


def draw_statistics(columns, seed, constant=()):
    """mean, std, min, max, q01, q10, q50, q90, q99 of each column as float32 arrays; a column of `constant` has the range zero."""
    draw = np.random.default_rng(seeded(seed))
    low = draw.uniform(-2, -0.5, columns)
    wide = draw.uniform(0.3, 3, columns)
    for column in constant:
        wide[column] = 0
    parts = {"min": 0, "q01": 0.05, "q10": 0.2, "q50": 0.52, "mean": 0.55, "q90": 0.8, "q99": 0.95, "max": 1}
    made = {name: (low + wide * part).astype(np.float32) for name, part in parts.items()}
    return made | {"std": (wide * 0.3).astype(np.float32), "count": np.array([1000])}


def draw_state(low, high, seed):
    """A raw state in robot units whose columns, normalised from `low`..`high` to -1..1, lie just below an edge, just above one, outside
    both ends, or anywhere. A column without a range lies one float32 above its only value.
    """
    draw = np.random.default_rng(seeded(seed))
    state = []
    for column, (a, b) in enumerate(zip(low.astype(float), high.astype(float), strict=True)):
        while True:
            near = BINS[draw.integers(0, 256)] + draw.choice([-1, 1]) * draw.uniform(2 * AWAY, 2e-4)
            x = [near, near, draw.uniform(-1, 1), draw.uniform(-1.4, -1.01), draw.uniform(1.01, 1.4)][(column + seed + SEED) % 5]
            raw = float(f"{a + (x + 1) / 2 * (b - a):.7g}") if b > a else float(np.nextafter(np.float32(a), np.float32(9)))
            seen = [2 * (np.float32(raw) - np.float32(a)) / max(np.float32(b - a), np.float32(1e-8)) - 1]
            seen += [(raw - a) / (b - a + 1e-6) * 2 - 1]
            if all(np.abs(BINS - value).min() > AWAY for value in seen):
                break
        state.append(raw)
    return state


def draw_size(size, seed, keep=None):
    """`size` for seed 0, else two odd edges. A missing picture stays missing, and one of the size `keep` keeps it."""
    if SEED == 0 or size is None or size == keep:
        return size
    return tuple((2 * np.random.default_rng(seeded(seed)).integers(8, 64, 2) + 1).tolist())


def noise(rows, width, number):
    """The noise of a case, [1, rows, width]."""
    return torch.randn((1, rows, width), generator=torch.Generator().manual_seed(seeded(number)))


def draw_picture(width, height, seed):
    """Noise, a gradient and shapes: neither a filter nor an edge can be mistaken for another."""
    draw = np.random.default_rng(seeded(seed))
    x, y = np.meshgrid(np.linspace(0, 1, width), np.linspace(0, 1, height))
    base = np.stack([x, y, 1 - x * y], -1) * 150 + draw.integers(0, 70, (height, width, 3))
    picture = Image.fromarray(base.astype(np.uint8))
    pen = ImageDraw.Draw(picture)
    for _ in range(4):
        corner = draw.integers(0, [width, height])
        size = draw.integers(3, [max(4, width // 2), max(4, height // 2)])
        shape = draw.choice([pen.rectangle, pen.ellipse])
        shape([*corner.tolist(), *(corner + size).tolist()], fill=tuple(draw.integers(0, 256, 3).tolist()))
    return picture
