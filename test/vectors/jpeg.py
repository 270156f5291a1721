"""Golden vectors for the JPEG decoder and the resizer: small drawn pictures, what Pillow makes of them, and files that must be refused.

Made with Python 3 and these packages, and read by the Rust tests (native/tests) and by bun test:
    numpy 2.x, Pillow 13.0.0 (its wheel carries libjpeg-turbo 3.x; its version is written into index.json)
Run from the repository root:
    python3 test/vectors/jpeg.py            # writes test/vectors/jpeg/, prints one line per group
The output is deterministic for these versions: seeded noise, no dates. A change of any file is a change of Pillow, libjpeg-turbo or this script.

Not the purpose: to be a set of photographs. The pictures are gradients, edges and noise, because those find a wrong chroma upsampling,
a wrong rounding or a wrong filter support soonest.

Resize rules, all with Pillow's antialiased BILINEAR on 8-bit RGB (W, H target; w, h source; doubles throughout):
    stretch  resize to W x H.
    pad      openpi's resize_with_pad: ratio = max(w / W, h / H); n = int(w / ratio), m = int(h / ratio);
             pasted on black at (int((W - n) / 2), int((H - m) / 2)).
    crop     ratio = min(w / W, h / H); n = max(W, round(w / ratio)), m = max(H, round(h / ratio)), halves to even;
             cut W x H at ((n - W) // 2, (m - H) // 2).
"""

import hashlib
import io
import json
import shutil
from pathlib import Path

import numpy as np
import PIL
from PIL import Image, features

OUT = Path(__file__).parent / "jpeg"
SEED = 20260


def picture(width: int, height: int, seed: int) -> Image.Image:
    """Gradients, a disc, stripes down to single pixels, saturated edges, and noise. RGB."""
    rng = np.random.default_rng([SEED, seed, width, height])
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    u, v = x / max(1, width - 1), y / max(1, height - 1)
    rgb = np.stack([255 * u, 255 * v, 255 * (1 - u) * v + 40], axis=2)
    rgb[(x - 0.7 * width) ** 2 + (y - 0.4 * height) ** 2 < (0.2 * min(width, height)) ** 2] = (250, 20, 30)
    rgb[(x.astype(int) // 2) % 2 + (y > 0.8 * height) == 2] = (10, 240, 20)
    rgb[(x < 0.25 * width) & (y < 0.3 * height) & ((x + y).astype(int) % 2 == 0)] = (0, 0, 255)
    rgb += rng.normal(0, 9, rgb.shape)
    return Image.fromarray(np.clip(np.rint(rgb), 0, 255).astype(np.uint8), "RGB")


def encode(image: Image.Image, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, "JPEG", **options)
    return out.getvalue()


def decode(jpeg: bytes) -> Image.Image:
    """Pillow's pixels as RGB. The EXIF orientation is not applied."""
    return Image.open(io.BytesIO(jpeg)).convert("RGB")


def marker(jpeg: bytes, codes: tuple[int, ...]) -> int:
    """Offset of the first segment (of its 0xFF byte) whose marker is one of `codes`."""
    at = 2
    while at < len(jpeg):
        assert jpeg[at] == 0xFF, f"no marker at {at}"
        if jpeg[at + 1] in codes:
            return at
        at += 2 + int.from_bytes(jpeg[at + 2 : at + 4], "big")
    raise AssertionError("marker not found")


SOF, SOS, DQT, APP14 = (0xC0, 0xC1, 0xC2), (0xDA,), (0xDB,), (0xEE,)


def patched(jpeg: bytes, at: int, value: bytes) -> bytes:
    return jpeg[:at] + value + jpeg[at + len(value) :]


def sized(jpeg: bytes, width: int, height: int) -> bytes:
    """The same file, its frame header claiming another size."""
    return patched(jpeg, marker(jpeg, SOF) + 5, height.to_bytes(2, "big") + width.to_bytes(2, "big"))


def exif_rotated() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return exif.tobytes()


def decodable() -> dict[str, bytes]:
    small, mid = picture(61, 47, 1), picture(160, 120, 2)
    high = encode(small, quality=95, subsampling=0)
    return {
        "420.jpg": encode(small, quality=85, subsampling=2),
        "422.jpg": encode(small, quality=85, subsampling=1),
        "444.jpg": encode(small, quality=85, subsampling=0),
        "420-mid.jpg": encode(mid, quality=85, subsampling=2),
        "422-mid.jpg": encode(mid, quality=70, subsampling=1),
        "444-mid.jpg": encode(mid, quality=97, subsampling=0),
        "420-frame.jpg": encode(picture(640, 360, 3), quality=60, subsampling=2),
        "420-q20.jpg": encode(mid, quality=20, subsampling=2),
        "progressive-420.jpg": encode(small, quality=85, subsampling=2, progressive=True),
        "progressive-444-mid.jpg": encode(mid, quality=90, subsampling=0, progressive=True),
        "gray.jpg": encode(small.convert("L"), quality=85),
        "gray-progressive.jpg": encode(mid.convert("L"), quality=85, progressive=True),
        "restart.jpg": encode(mid, quality=85, subsampling=2, restart_marker_blocks=3),
        "restart-rows.jpg": encode(small, quality=85, subsampling=1, restart_marker_rows=1),
        "exif-rotated.jpg": encode(small, quality=85, subsampling=2, exif=exif_rotated()),
        "optimised.jpg": encode(mid, quality=85, subsampling=2, optimize=True),
        "adobe-rgb.jpg": encode(small, quality=85, keep_rgb=True),
        "trailing-bytes.jpg": high + b"\x00after the end of the image",
        "one-pixel.jpg": encode(picture(1, 1, 4), quality=85, subsampling=2),
        "one-column.jpg": encode(picture(1, 33, 5), quality=85, subsampling=2),
        "edge-max.jpg": encode(picture(4096, 8, 6), quality=30, subsampling=2),
    }


def refused() -> list[tuple[str, str, bytes]]:
    rng = np.random.default_rng([SEED, 99])
    good = encode(picture(61, 47, 1), quality=85, subsampling=2)
    progressive = encode(picture(61, 47, 1), quality=85, subsampling=2, progressive=True)
    cmyk = encode(picture(61, 47, 1).convert("CMYK"), quality=85)
    sof, sos, dqt = marker(good, SOF), marker(good, SOS), marker(good, DQT)
    scan = sos + 2 + int.from_bytes(good[sos + 2 : sos + 4], "big")
    noise = bytes(b if b != 0xFF else 0xFE for b in rng.integers(0, 256, 900, dtype=np.uint8))
    # Random bytes with an early marker among them: the decoder meets the end of the image in the middle of the scan.
    random_scan = noise[:300] + b"\xff\xd9"
    png = io.BytesIO()
    picture(16, 16, 7).save(png, "PNG")
    return [
        ("cmyk-adobe.jpg", "cmyk", cmyk),
        ("ycck-adobe.jpg", "cmyk", patched(cmyk, marker(cmyk, APP14) + 15, b"\x02")),
        ("twelve-bit.jpg", "twelve_bit", patched(good, sof + 4, b"\x0c")),
        # Extended sequential: the process in which 12 bits are legal.
        ("twelve-bit-extended.jpg", "twelve_bit", patched(patched(good, sof + 4, b"\x0c"), sof + 1, b"\xc1")),
        ("cut-soi.jpg", "truncated", good[:3]),
        ("cut-tables.jpg", "truncated", good[: dqt + 20]),
        ("cut-frame-header.jpg", "truncated", good[: sof + 6]),
        ("cut-before-scan.jpg", "truncated", good[:scan]),
        ("cut-scan-quarter.jpg", "truncated", good[: scan + (len(good) - scan) // 4]),
        ("cut-scan-half.jpg", "truncated", good[: scan + (len(good) - scan) // 2]),
        ("cut-scan-end.jpg", "truncated", good[:-12]),
        ("cut-progressive.jpg", "truncated", progressive[: len(progressive) * 2 // 3]),
        ("zero-height.jpg", "zero_size", sized(good, 61, 0)),
        ("zero-width.jpg", "zero_size", sized(good, 0, 47)),
        ("zero-both.jpg", "zero_size", sized(good, 0, 0)),
        ("bomb.jpg", "too_large", sized(good, 65000, 65000)),
        ("bomb-progressive.jpg", "too_large", sized(progressive, 65535, 65535)),
        ("too-wide.jpg", "too_large", encode(picture(4097, 8, 8), quality=30, subsampling=2)),
        ("too-high.jpg", "too_large", encode(picture(8, 4097, 8), quality=30, subsampling=2)),
        ("empty.jpg", "not_jpeg", b""),
        ("two-bytes.jpg", "not_jpeg", b"\xff\xd8"),
        ("png.jpg", "not_jpeg", png.getvalue()),
        ("text.jpg", "not_jpeg", b"this is not a picture\n" * 4),
        ("random.jpg", "not_jpeg", noise),
        ("empty-scan.jpg", "corrupt", good[:scan] + b"\xff\xd9"),
        ("no-image.jpg", "corrupt", good[:2] + b"\xff\xd9"),
        ("random-scan.jpg", "corrupt", good[:scan] + random_scan),
        ("no-tables.jpg", "corrupt", good[:2] + good[sof:]),
    ]


def stretch(image: Image.Image, width: int, height: int) -> Image.Image:
    return image.resize((width, height), Image.Resampling.BILINEAR)


def pad(image: Image.Image, width: int, height: int) -> Image.Image:
    ratio = max(image.width / width, image.height / height)
    inner = image.resize((int(image.width / ratio), int(image.height / ratio)), Image.Resampling.BILINEAR)
    out = Image.new("RGB", (width, height), 0)
    out.paste(inner, (int((width - inner.width) / 2), int((height - inner.height) / 2)))
    return out


def crop(image: Image.Image, width: int, height: int) -> Image.Image:
    ratio = min(image.width / width, image.height / height)
    n, m = max(width, round(image.width / ratio)), max(height, round(image.height / ratio))
    filled = image.resize((n, m), Image.Resampling.BILINEAR)
    left, top = (n - width) // 2, (m - height) // 2
    return filled.crop((left, top, left + width, top + height))


MODES = {"stretch": stretch, "pad": pad, "crop": crop}
# (source, width, height): down, up, and against the grain. 224 x 224 from one source only, to keep the folder small.
RESIZES = [
    ("420-mid.jpg", 112, 112),
    ("420-mid.jpg", 56, 40),
    ("420-mid.jpg", 224, 224),
    ("444.jpg", 112, 112),
    ("444.jpg", 56, 40),
    ("444.jpg", 40, 56),
]


def main() -> None:
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    index: dict[str, object] = {
        "made_with": {"pillow": PIL.__version__, "libjpeg_turbo": features.version("libjpeg_turbo"), "numpy": np.__version__}
    }
    files = decodable()
    rows = []
    for name, jpeg in files.items():
        (OUT / name).write_bytes(jpeg)
        rgb = decode(jpeg)
        digest = hashlib.sha256(rgb.tobytes()).hexdigest()
        rows.append({"file": name, "width": rgb.width, "height": rgb.height, "rgb_sha256": digest})
    index["decode"] = rows
    index["refuse"] = []
    for name, reason, data in refused():
        (OUT / f"bad-{name}").write_bytes(data)
        index["refuse"].append({"file": f"bad-{name}", "reason": reason})
    index["resize"] = []
    for source, width, height in RESIZES:
        image = decode(files[source])
        for mode, resize in MODES.items():
            rgb_file = f"{source.removesuffix('.jpg')}-{mode}-{width}x{height}.rgb"
            (OUT / rgb_file).write_bytes(resize(image, width, height).tobytes())
            index["resize"].append(
                {"file": source, "mode": mode, "width": width, "height": height, "rgb_file": rgb_file}
            )
    (OUT / "index.json").write_text(json.dumps(index, indent=2) + "\n")
    size = sum(file.stat().st_size for file in OUT.iterdir())
    print(f"decode {len(rows)}, refuse {len(index['refuse'])}, resize {len(index['resize'])}, {size} bytes")


if __name__ == "__main__":
    main()
