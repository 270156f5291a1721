"""Golden vectors of the flow-vla family: one whole chunk in NumPy, float64, from a built bundle's own weights.

Independent of src/bundle and of the graphs' structure: only initialisers are read from the ONNX files, by name. Written from the
family's description (pi0.5: openpi; SigLIP; Gemma): token by token masks, one head at a time, so that a wrong mask, position, head
order or normalisation in the graphs shows as a difference.

    bun src/main.ts bundle build models/molmoact2-yam --out dist/models/molmoact2-yam
    python3 test/vectors/flow_vla.py models/molmoact2-yam dist/models/molmoact2-yam            # writes models/…/parity/chunk.json
    python3 test/vectors/flow_vla.py models/molmoact2-yam dist/models/molmoact2-yam --check    # compares, writes nothing
    python3 test/vectors/flow_vla.py models/molmoact2-yam dist/models/molmoact2-yam --mutants  # each mistake must show
    bun src/main.ts bundle build models/molmoact2-yam --out dist/models/molmoact2-yam          # takes the new vectors in

A new model has no parity folder yet: `flow_vla.py MODEL_DIR --draw` draws its frames and writes a chunk without rows, so that the
first build works. The export id, which keys the noise, does not depend on parity/.

A bundle of int8 weights (`bundle build … --weights int8`) has vectors of its own, `parity/int8.json`; for its first build copy chunk.json
there. Its weights are taken as they are kept, rounded; activations are not rounded here, so the difference from a device is what that
device's rounding of activations changes. With --exact DIR the rows are compared with those of the float32 bundle in DIR, on the noise of
the first, and nothing is written: what the rounding of the weights changes. bf16 weights have `parity/bf16.json` in the same way; on a CPU
nothing but them is rounded.

Python 3.11; numpy 2.4.6, pillow 13.0.0, onnx 1.23.2, tokenizers 0.23.3.
"""

import argparse
import json
import math
import re
import sys
from pathlib import Path

import numpy as np
import onnx
import PIL
from noise import noise
from onnx import numpy_helper
from PIL import Image, ImageDraw, ImageOps
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

# Characters with Unicode's White_Space property; Python's own split() also cuts at U+001C to U+001F.
WHITE_SPACE = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")


# --- inputs ---------------------------------------------------------------------------------------------------------------------


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
        resized = ImageOps.pad(rgb, size, method=bilinear, color=(0, 0, 0))
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


def normalise(value, kind, stats, column):
    if kind == "quantile":
        low, high = stats["q01"][column], stats["q99"][column]
        return (value - low) / (high - low + 1e-6) * 2 - 1
    if kind == "mean_std":
        return (value - stats["mean"][column]) / (stats["std"][column] + 1e-6)
    return value


def unnormalise(value, kind, stats, column):
    if kind == "quantile":
        low, high = stats["q01"][column], stats["q99"][column]
        return (value + 1) / 2 * (high - low + 1e-6) + low
    if kind == "mean_std":
        return value * (stats["std"][column] + 1e-6) + stats["mean"][column]
    return value


def normal_state(state, facts, norm):
    return [normalise(state[i], spec["norm"], norm["state"], i) for i, spec in enumerate(facts["state"]["columns"])]


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


# --- the model ------------------------------------------------------------------------------------------------------------------


class Weights:
    """Initialisers of one graph as float64, by name; int8 ones times the scales of their columns. Those in a weight file are mapped: each
    is widened when it is asked for, so that a model of gigabytes fits. `sizes` are the columns of matrices that may stand side by side."""

    def __init__(self, path, sizes=None):
        self.sizes = sizes or {}
        self.tensors = {t.name: (t, path.parent) for t in onnx.load(path, load_external_data=False).graph.initializer}

    def __contains__(self, name):
        return name in self.tensors

    def __getitem__(self, name):
        if name not in self.tensors:
            return self.part(name)
        values = stored(*self.tensors[name])
        return values * self[f"{name}.scale"] if f"{name}.scale" in self else values

    def part(self, name):
        """The columns of `query` in `query+key+value.weight`."""
        scope, matrix, kind = name.rsplit(".", 2)
        whole = next(n for n in self.tensors if n.startswith(f"{scope}.") and matrix in n.rsplit(".", 2)[1].split("+") and n.endswith(kind))
        parts = whole.rsplit(".", 2)[1].split("+")
        sizes = [self.sizes[scope.split(".")[0]][part] for part in parts]
        at = parts.index(matrix)
        return stored(*self.tensors[whole], slice(sum(sizes[:at]), sum(sizes[: at + 1])))

    def dense(self, name, x):
        y = x @ self[f"{name}.weight"]
        return y + self[f"{name}.bias"] if f"{name}.bias" in self else y


def stored(tensor, folder, columns=None):
    """The values of a tensor, or some of its columns, as float64."""
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return numpy_helper.to_array(tensor).astype(np.float64)
    where = {entry.key: entry.value for entry in tensor.external_data}
    kind = np.uint16 if tensor.data_type == onnx.TensorProto.BFLOAT16 else np.float32
    shape = tuple(tensor.dims)
    assert int(where["length"]) == math.prod(shape) * np.dtype(kind).itemsize, tensor.name
    values = np.memmap(folder / where["location"], kind, "r", int(where["offset"]), shape)
    values = values if columns is None else values[:, columns]
    # A bfloat16 is the upper half of a float32.
    exact = values if kind is np.float32 else (values.astype(np.uint32) << 16).view(np.float32)
    return exact.astype(np.float64)


def columns_of(arch):
    """Columns of the matrices that may stand side by side, for each part of the model."""
    prefix = arch["language"]
    heads = {"query": prefix["heads"] * prefix["head_dim"]} | dict.fromkeys(("key", "value"), prefix["kv_heads"] * prefix["head_dim"])
    return {"vision": dict.fromkeys(("query", "key", "value"), arch["vision"]["width"]), "language": heads, "expert": heads}


def gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def swish(x):
    return x / (1 + np.exp(-x))


def layer_norm(w, name, x):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-6) * w[f"{name}.scale"] + w[f"{name}.bias"]


def rms(x):
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6)


def rope(vector, position):
    """Rotates pairs (i, i + D/2) of one head's vector by position · 10000^(-2i/D)."""
    half = len(vector) // 2
    out = np.empty_like(vector)
    for i in range(half):
        angle = position * 10000.0 ** (-2 * i / len(vector))
        out[i] = vector[i] * math.cos(angle) - vector[i + half] * math.sin(angle)
        out[i + half] = vector[i + half] * math.cos(angle) + vector[i] * math.sin(angle)
    return out


def softmax_mix(scores, values):
    weights = np.exp(scores - scores.max())
    return (weights / weights.sum()) @ values


def see(w, image, arch):
    """One image [3, H, W] to its prefix tokens [patches, language width]. No other image is looked at."""
    size, patch = arch["vision"], arch["vision"]["patch"]
    kernel, bias = w["vision.patch.weight"], w["vision.patch.bias"]
    tokens = []
    for top in range(0, image.shape[1], patch):
        for left in range(0, image.shape[2], patch):
            tokens.append((kernel * image[None, :, top : top + patch, left : left + patch]).sum(axis=(1, 2, 3)) + bias)
    x = np.array(tokens) + w["vision.positions"]
    head_dim = size["width"] // size["heads"]
    for layer in range(size["layers"]):
        name = f"vision.blocks.{layer}"
        normed = layer_norm(w, f"{name}.attention.norm", x)
        q, k, v = (w.dense(f"{name}.attention.{part}", normed) for part in ("query", "key", "value"))
        mixed = np.empty_like(q)
        for head in range(size["heads"]):
            span = slice(head * head_dim, (head + 1) * head_dim)
            for token in range(len(x)):
                mixed[token, span] = softmax_mix(k[:, span] @ q[token, span] / math.sqrt(head_dim), v[:, span])
        x = x + w.dense(f"{name}.attention.output", mixed)
        normed = layer_norm(w, f"{name}.mlp.norm", x)
        x = x + w.dense(f"{name}.mlp.down", gelu(w.dense(f"{name}.mlp.up", normed)))
    return w.dense("vision.projection", layer_norm(w, "vision.norm", x))


def heads_of(flat, count, head_dim):
    """[tokens, count · head_dim] to a list of [tokens, head_dim]."""
    return [flat[:, head * head_dim : (head + 1) * head_dim] for head in range(count)]


def turned(heads, positions):
    return [np.array([rope(vector, position) for vector, position in zip(head, positions)]) for head in heads]


def mlp(w, name, x):
    return w.dense(f"{name}.mlp.down", gelu(w.dense(f"{name}.mlp.gate", x)) * w.dense(f"{name}.mlp.up", x))


def key_head(head, size):
    """The key-value head that a query head reads: neighbours share one."""
    return head // (size["heads"] // size["kv_heads"])


def row_positions(prefix_length, rows):
    return range(prefix_length, prefix_length + rows)


def grouped_attention(queries, keys, values, size):
    """All keys given here are valid, and every query sees all of them."""
    out = []
    for head, rows in enumerate(queries):
        k, v = keys[key_head(head, size)], values[key_head(head, size)]
        out.append(np.array([softmax_mix(k @ row / math.sqrt(size["head_dim"]), v) for row in rows]))
    return np.concatenate(out, axis=1)


def prefix_cache(w, images, ids, arch):
    """Per layer (keys, values), each a list over key-value heads of [valid tokens, head_dim]. Padding never enters: only valid tokens
    are computed here, at positions 0, 1, 2 …"""
    size = arch["language"]
    x = np.concatenate([see(w, image, arch) for image in images] + [w["language.embedding"][ids]])
    positions = range(len(x))
    cache = []
    for layer in range(size["layers"]):
        name = f"language.blocks.{layer}"
        normed = rms(x) * w[f"{name}.norm1.scale"]
        keys = turned(heads_of(w.dense(f"{name}.key", normed), size["kv_heads"], size["head_dim"]), positions)
        values = heads_of(w.dense(f"{name}.value", normed), size["kv_heads"], size["head_dim"])
        cache.append((keys, values))
        if layer == size["layers"] - 1:
            break  # nobody reads the last layer's output
        queries = turned(heads_of(w.dense(f"{name}.query", normed), size["heads"], size["head_dim"]), positions)
        x = x + w.dense(f"{name}.output", grouped_attention(queries, keys, values, size))
        x = x + mlp(w, name, rms(x) * w[f"{name}.norm2.scale"])
    return cache


def time_condition(w, t, arch):
    half = arch["expert"]["time_width"] // 2
    periods = [4e-3 * (4.0 / 4e-3) ** (i / (half - 1)) for i in range(half)]
    angles = np.array([2 * math.pi * t / period for period in periods])
    embedded = np.concatenate([np.sin(angles), np.cos(angles)])
    return swish(w.dense("expert.time_out", swish(w.dense("expert.time_in", embedded))))


def velocity(w, x_t, t, cache, arch, state=None):
    """v(x_t, t) [rows, action width]: rows stand after the valid prefix and see all of it and each other. A state that the prompt does not
    hold stands before them as one more row."""
    size, width = arch["language"], arch["expert"]["width"]
    condition = time_condition(w, t, arch)
    x = w.dense("expert.action_in", x_t)
    if state is not None:
        x = np.concatenate([w.dense("expert.state_in", state)[None], x])
    positions = row_positions(len(cache[0][0][0]), len(x))
    for layer, (past_keys, past_values) in enumerate(cache):
        name = f"expert.blocks.{layer}"
        parts = w.dense(f"{name}.adaptive", condition).reshape(6, width)
        scale1, shift1, gate1, scale2, shift2, gate2 = parts
        normed = rms(x) * scale1 + shift1
        own_keys = turned(heads_of(w.dense(f"{name}.key", normed), size["kv_heads"], size["head_dim"]), positions)
        own_values = heads_of(w.dense(f"{name}.value", normed), size["kv_heads"], size["head_dim"])
        keys = [np.concatenate(pair) for pair in zip(past_keys, own_keys)]
        values = [np.concatenate(pair) for pair in zip(past_values, own_values)]
        queries = turned(heads_of(w.dense(f"{name}.query", normed), size["heads"], size["head_dim"]), positions)
        x = x + gate1 * w.dense(f"{name}.output", grouped_attention(queries, keys, values, size))
        x = x + gate2 * mlp(w, name, rms(x) * scale2 + shift2)
    scale, shift = w.dense("expert.final.adaptive", condition).reshape(2, width)
    return w.dense("expert.action_out", rms(x[-len(x_t) :]) * scale + shift)


def flow_times(flow):
    """Times 0 to steps, as the graph is told them and without float32's rounding."""
    shift = flow["shift"]
    equal = [flow["t_start"] + i * (flow["t_end"] - flow["t_start"]) / flow["steps"] for i in range(flow["steps"] + 1)]
    return [shift * t / (1 + (shift - 1) * t) for t in equal]


def orthonormal(six):
    """Gram-Schmidt on the first two columns of a rotation matrix."""
    first, second = six[:3], six[3:]
    first = first / np.linalg.norm(first)
    second = second - first.dot(second) * first
    return np.concatenate([first, second / np.linalg.norm(second)])


def robot_rows(x, state, facts, norm):
    """Latent [rows, width] to rows in robot units, absolute, clamped to their ranges, and how many values were clamped."""
    columns = facts["action"]["columns"]
    rows = np.empty((len(x), len(columns)))
    for column, spec in enumerate(columns):
        rows[:, column] = [unnormalise(value, spec["norm"], norm["action"], column) for value in x[:, column]]
        if spec["relative_to"] is not None:
            rows[:, column] += np.float32(state[spec["relative_to"]])
    for start in facts["action"]["rotation6d"]:
        for row in rows:
            row[start : start + 6] = orthonormal(row[start : start + 6])
    clipped = rows.clip([spec["min"] for spec in columns], [spec["max"] for spec in columns])
    return clipped, int((clipped != rows).sum())


def read_bundle(bundle):
    facts = json.loads((bundle / "manifest.json").read_text())
    norm = json.loads((bundle / facts["norm"]).read_text())
    return facts, norm, Tokenizer.from_file(str(bundle / facts["tokenizer"]))


def padded_state(state, facts, norm):
    values = normal_state(state, facts, norm)
    return np.array(values + [0.0] * (facts["state"]["width"] - len(values)))


def compute_chunk(bundle, frames, arch, noise_of=None):
    """Rows in robot units [rows, columns], clamped to their ranges, and how many values were clamped."""
    facts, norm, tokenizer = read_bundle(bundle)
    state = STATES[facts["state"]["kind"]]
    ids = prompt_tokens(tokenizer, INSTRUCTION, state, facts, norm)
    images = [load_image(frame, facts) for frame in frames]
    prefill, denoise = (Weights(bundle / facts["graphs"][graph]["file"], columns_of(arch)) for graph in ("prefill", "denoise"))
    cache = prefix_cache(prefill, images, ids, arch)
    told = any(part["kind"] in ("state_tokens", "template") for part in facts["prompt"]["parts"])

    action = facts["action"]
    x = noise(noise_of or facts["export_id"], SEED, STEP, action["rows"], action["width"])
    times = flow_times(facts["flow"])
    for t, after in zip(times, times[1:]):
        # The graph's input is float32.
        x = x + (after - t) * velocity(denoise, x, float(np.float32(t)), cache, arch, None if told else padded_state(state, facts, norm))
    return robot_rows(x, state, facts, norm)


# --- what must not pass ---------------------------------------------------------------------------------------------------------


def padded(tokenizer, instruction, state, facts, norm, right=prompt_tokens):
    """The prompt with its padding taken for tokens."""
    ids = right(tokenizer, instruction, state, facts, norm)
    return ids + [facts["prompt"]["pad_id"]] * (facts["prompt"]["tokens_max"] - len(ids))


def causal(queries, keys, values, size):
    """Every token sees itself and what stands before it only."""
    behind = len(keys[0]) - len(queries[0])
    out = []
    for head, rows in enumerate(queries):
        k, v = keys[key_head(head, size)], values[key_head(head, size)]
        scale = math.sqrt(size["head_dim"])
        out.append(np.array([softmax_mix(k[: behind + i + 1] @ row / scale, v[: behind + i + 1]) for i, row in enumerate(rows)]))
    return np.concatenate(out, axis=1)


MUTANTS = {
    "padding is seen": {"prompt_tokens": padded},
    "attention is causal": {"grouped_attention": causal},
    "rows one position too high": {"row_positions": lambda prefix, rows: range(prefix + 1, prefix + 1 + rows)},
    "rows start at position 0": {"row_positions": lambda prefix, rows: range(rows)},
    "rows have one position": {"row_positions": lambda prefix, rows: [prefix] * rows},
    "rotation backwards": {"rope": lambda vector, position, rope=rope: rope(vector, -position)},
    "no rotation": {"rope": lambda vector, position: vector},
    "key heads dealt round": {"key_head": lambda head, size: head % size["kv_heads"]},
    "erf instead of tanh in GELU": {"gelu": np.vectorize(lambda x: x / 2 * (1 + math.erf(x / math.sqrt(2))))},
}


def mutants(bundle, frames, arch, rows, tolerance):
    """Computes the chunk with one mistake at a time; 0 when each of them would be noticed."""
    missed = 0
    for name, changes in MUTANTS.items():
        kept = {function: globals()[function] for function in changes}
        globals().update(changes)
        difference = np.abs(compute_chunk(bundle, frames, arch)[0] - rows).max()
        globals().update(kept)
        missed += difference < 3 * tolerance
        print(f"{name:30} {difference:.2e}")
    return 1 if missed else 0


def main():
    parser = argparse.ArgumentParser(description="Golden vectors of a flow-vla bundle.")
    parser.add_argument("model", type=Path, help="models/<name>")
    parser.add_argument("bundle", type=Path, nargs="?", help="the built bundle; not needed with --draw")
    parser.add_argument("--check", action="store_true", help="compare with the stored chunk, write nothing")
    parser.add_argument("--mutants", action="store_true", help="show what wrong masks, positions and the like would change")
    parser.add_argument("--exact", type=Path, help="compare with the rows of this float32 bundle, write nothing")
    parser.add_argument("--draw", action="store_true", help="draw the frames and write a chunk without rows")
    given = parser.parse_args()
    parity = given.model / "parity"
    model = json.loads((given.model / "model.json").read_text())
    arch, state = model["architecture"], STATES[model["state"]["kind"]]
    if given.draw:
        parity.mkdir(exist_ok=True)
        frames = draw_frames(parity, model["cameras"])
        rows = [[0.0] * len(model["action"]["columns"])] * model["action"]["rows"]
        write_episode(parity / "chunk.json", [(frames, state, STEP, rows, False)], "frames only; run flow_vla.py on a built bundle")
        return 0
    if given.bundle is None:
        parser.error("the built bundle is missing")

    vectors = parity / vectors_of(given.bundle)
    stored = json.loads(vectors.read_text())["observations"][0]
    rows, clamped = compute_chunk(given.bundle, [parity / name for name in stored["frames"]], arch)
    print(f"{rows.shape[0]} x {rows.shape[1]} rows, {clamped} of {rows.size} values clamped, spread per column", rows.std(axis=0).round(3))
    if given.mutants:
        tolerance = json.loads((given.bundle / "manifest.json").read_text())["parity"]["tolerance"]
        return mutants(given.bundle, [parity / name for name in stored["frames"]], arch, rows, tolerance)
    if given.exact:
        facts = read_bundle(given.bundle)[0]
        exact = compute_chunk(given.exact, [parity / name for name in stored["frames"]], arch, facts["export_id"])[0]
        print(f"largest difference from float32 weights: {np.abs(exact - rows).max():.2e}, mean {np.abs(exact - rows).mean():.2e}")
        return 0
    if given.check:
        difference = np.abs(np.array(stored["actions"]) - rows).max()
        print(f"largest difference from {vectors}: {difference:.2e}")
        return 0 if difference < 1e-6 else 1
    write_episode(vectors, [(stored["frames"], state, STEP, rows.tolist(), False)], provenance("flow_vla.py"))
    return 0


def provenance(script):
    return f"test/vectors/{script}, float64, numpy {np.__version__}, pillow {PIL.__version__}, onnx {onnx.__version__}"


def vectors_of(bundle):
    """The file in the model's parity folder."""
    kept = json.loads((bundle / "manifest.json").read_text()).get("weights")
    return f"{kept}.json" if kept else "chunk.json"


def write_episode(file, observations, source):
    """`chunk.json`, `int8.json` or `bf16.json`: (frames, state, step, rows, cache_reset) of each observation, a row of numbers a line."""
    parts = []
    for frames, state, step, rows, reset in observations:
        facts = {"frames": frames, "state": state, "step": step, "cache_reset": reset}
        lines = ",\n".join("    " + json.dumps([round(value, 9) for value in row]) for row in rows)
        parts.append("  {" + json.dumps(facts)[1:-1] + ',\n   "actions": [\n' + lines + "\n   ]}")
    head = json.dumps({"instruction": INSTRUCTION, "seed": SEED, "provenance": source}, indent=1)
    file.write_text(head[:-2] + ',\n "observations": [\n' + ",\n".join(parts) + "\n ]\n}\n")


if __name__ == "__main__":
    sys.exit(main())
