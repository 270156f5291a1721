"""What a model of the golden vectors is given: frames, the prompt's tokens, state and rows that are held, as its manifest says.

Pictures are brought to size by Pillow, text is cut and encoded by the tokenizer's own library.
"""

import json
import math
import re

import numpy as np
from PIL import Image, ImageDraw
from rows import normal_state, normalise
from tokenizers import Tokenizer

INSTRUCTION = "  pick up the red\tcube and put it in the blue bowl, bitte schön "
SEED = 2**32 + 7
STEP = 3
STATES = {
    "joint": [0.31, 1.2, 0.9, -0.25, 0.1, -0.6, 0.8, -0.42, 1.75, 1.3, 0.33, -0.2, 0.55, 0.15],
    # Left xyz, rotation6d, gripper; right the same.
    "cartesian": [0.35, 0.12, 0.2, 0.6, 0.8, 0, -0.8, 0.6, 0, 6.25, 0.3, -0.2, 0.31, 1, 0, 0, 0, 0.28, 0.96, 1.125],
}
FRAME_SIZE = (160, 120)
CENTERING = {"centre": (0.5, 0.5), "bottom_right": (1, 1)}

# Characters with Unicode's White_Space property; Python's own split() also cuts at U+001C to U+001F.
WHITE_SPACE = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")


def read_bundle(bundle):
    facts = json.loads((bundle / "manifest.json").read_text())
    norm = json.loads((bundle / facts["norm"]).read_text())
    return facts, norm, Tokenizer.from_file(str(bundle / facts["tokenizer"]))


def draw_frames(folder, cameras, moment=0):
    """One small JPEG per camera: a table, blocks and two arms, different in each view and at each moment."""
    names = []
    for number, camera in enumerate(cameras):
        width, height = FRAME_SIZE
        yy, xx = np.mgrid[0:height, 0:width]
        wood = 40 * np.sin(xx / (7 + 3 * number) + np.sin(yy / 11)) + 8 * np.cos(yy / (3 + number))
        picture = np.stack([150 + wood, 110 + 0.8 * wood + 0.3 * yy, 70 + 0.6 * wood + 20 * number], axis=-1)
        image = Image.fromarray(picture.clip(0, 255).astype(np.uint8))
        pen = ImageDraw.Draw(image)
        pen.rectangle([30 + 25 * number, 50, 52 + 25 * number, 72], fill=(200, 30, 40), outline=(90, 0, 0))
        ball = [95 - 20 * number - 9 * moment, 60 + 5 * number, 130 - 20 * number - 9 * moment, 90 + 5 * number + 2 * moment]
        pen.ellipse(ball, fill=(40 + 30 * moment, 70, 200))
        pen.line([0, 119, 45, 80 - 10 * number, 60, 40], fill=(235, 235, 235), width=7)
        pen.line([159, 119, 120, 70 + 8 * number, 100, 45], fill=(30, 30, 30), width=7)
        name = f"{camera}.jpg" if moment == 0 else f"{camera}-{moment}.jpg"
        image.save(folder / name, quality=92, subsampling=["4:2:0", "4:2:2", "4:4:4"][number], progressive=number == 1)
        names.append(name)
    return names


def load_image(path, facts):
    """[3, height, width]: brought to size with Pillow's antialiased bilinear, scaled to 0..1, normalised per channel."""
    spec = facts["image"]
    size, bilinear = (spec["width"], spec["height"]), Image.Resampling.BILINEAR
    with Image.open(path) as picture:
        rgb = picture.convert("RGB")
    if spec["resize"] == "pad":
        # openpi's resize_with_pad cuts the size off, where ImageOps.pad rounds it.
        ratio = max(rgb.width / size[0], rgb.height / size[1])
        full = rgb.resize((int(rgb.width / ratio), int(rgb.height / ratio)), bilinear)
        across, down = CENTERING[spec.get("place", "centre")]
        resized = Image.new("RGB", size)
        resized.paste(full, (int((size[0] - full.width) * across), int((size[1] - full.height) * down)))
    elif spec["resize"] == "crop":
        # Filled, then cut: the picture's edges are resized as those of the whole picture.
        ratio = min(rgb.width / size[0], rgb.height / size[1])
        full = rgb.resize((max(round(rgb.width / ratio), size[0]), max(round(rgb.height / ratio), size[1])), bilinear)
        left, top = (full.width - size[0]) // 2, (full.height - size[1]) // 2
        resized = full.crop((left, top, left + size[0], top + size[1]))
    else:
        resized = rgb.resize(size, bilinear)
    pixels = np.asarray(resized, dtype=np.float64) / 255.0
    return np.stack([(pixels[:, :, c] - spec["mean"][c]) / spec["std"][c] for c in range(3)])


def prompt_tokens(tokenizer, instruction, state, facts, norm):
    """The valid token ids, without padding."""
    ids = []
    for part in facts["prompt"]["parts"]:
        if part["kind"] == "token":
            ids.append(part["id"])
        elif part["kind"] == "instruction":
            text = " ".join(word for word in WHITE_SPACE.split(instruction) if word)
            ids.extend(tokenizer.encode(text, add_special_tokens=False).ids)
        elif part["kind"] == "template":
            text = " ".join(word for word in WHITE_SPACE.split(instruction.replace("_", " ")) if word)
            edges = np.linspace(-1, 1, part["bins"] + 1)[:-1]
            bins = np.digitize(normal_state(state, facts, norm), bins=edges) - 1
            whole = part["text"].replace("{instruction}", text).replace("{state}", " ".join(map(str, bins)))
            ids.extend(tokenizer.encode(whole, add_special_tokens=False).ids)
        else:
            for x in normal_state(state, facts, norm):
                level = (min(max(x, -1.0), 1.0) + 1) / 2 * (part["bins"] - 1)
                ids.append(part["base"] + round(level))  # Python rounds ties to even
    assert len(ids) < facts["prompt"]["tokens_max"], "this vector should have padding"
    return ids


def state_of(facts):
    return STATES[facts["state"]["kind"]][: len(facts["state"]["columns"])]


def padded_state(state, facts, norm):
    values = normal_state(state, facts, norm)
    return np.array(values + [0.0] * (facts["state"]["width"] - len(values)))


def held_latent(prefix, state, facts, norm):
    """Rows in robot units as the model has them [rows, width], zeros as their padding."""
    latent = np.zeros((len(prefix), facts["action"]["width"]))
    for row, values in enumerate(prefix):
        for column, spec in enumerate(facts["action"]["columns"]):
            base = 0 if spec["relative_to"] is None else np.float32(state[spec["relative_to"]])
            latent[row, column] = normalise(np.float32(values[column]) - base, spec, norm["action"], column)
    return latent


def views_of(facts, inputs):
    """The policy's views in its order, each as the place of its camera among the model's, or None."""
    cameras = facts["cameras"]
    return [cameras.index(view) if view in cameras else None for view in inputs.get("views", cameras)]


def told_time(t, inputs):
    """The time that the graph is told: float32, or the lower end of its bucket."""
    buckets = inputs.get("time_buckets")
    return math.floor(t * buckets) / buckets if buckets else float(np.float32(t))


def flow_times(flow):
    """Times 0 to steps, as the graph is told them and without float32's rounding."""
    shift = flow["shift"]
    equal = [flow["t_start"] + i * (flow["t_end"] - flow["t_start"]) / flow["steps"] for i in range(flow["steps"] + 1)]
    return [shift * t / (1 + (shift - 1) * t) for t in equal]
