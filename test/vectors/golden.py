"""Golden values of every stage of a flow-vla bundle, in NumPy and float64, as `tendon bundle import` takes them from a publisher's code.

    bun src/main.ts bundle build test/vectors/golden --out /tmp/golden
    python3 test/vectors/golden.py test/vectors/golden /tmp/golden --draw    # draws the frames before the first build
    python3 test/vectors/golden.py test/vectors/golden /tmp/golden           # writes golden.json and golden.safetensors beside model.json

Two cases; the second has pictures of odd sizes and another text. The noise is drawn here, so that the values do not depend on the bundle's
export id. The model is that of flow.py and transformer.py, whose head says what it is independent of.
"""

import json
import struct
import sys
from pathlib import Path

import numpy as np
from flow import velocity
from observed import draw_frames, flow_times, load_image, normal_state, prompt_tokens, read_bundle, told_time, views_of
from PIL import Image
from rows import unnormalise
from transformer import prefix_cache, see
from vector_file import provenance, write_episode
from weights import Weights, columns_of

CASES = [
    ("  pick up the red_cube and put it in the blue bowl, bitte schön ", [0.31, -1.2, 0.9, 0.15]),
    ("stack the blocks", [-0.7, 0.41, -0.33, 0.9]),
]


def case_of(number, folder, bundle, arch):
    """The values of one case by their names in golden.safetensors."""
    facts, norm, tokenizer = read_bundle(bundle)
    inputs, action = arch.get("inputs", {}), facts["action"]
    instruction, state = CASES[number]
    state = state[: len(facts["state"]["columns"])]
    ids = prompt_tokens(tokenizer, instruction, state, facts, norm)
    prefill, denoise = (Weights(bundle / facts["graphs"][graph]["file"], columns_of(arch)) for graph in ("prefill", "denoise"))
    values = {"tokens": np.array(ids, dtype=np.int64), "state": np.array(normal_state(state, facts, norm))}
    images = []
    for view, camera in enumerate(views_of(facts, inputs)):
        if camera is not None:
            images.append(load_image(folder / frame_of(facts["cameras"][camera], number), facts))
            values |= {f"images.{view}": images[-1], f"image_tokens.{view}": see(prefill, images[-1], arch)}
    cache = prefix_cache(prefill, images, ids, arch)
    for layer, (keys, own) in enumerate(cache):
        values |= {f"past_k.{layer}": np.stack(keys), f"past_v.{layer}": np.stack(own)}
    x = np.random.default_rng(number).standard_normal((action["rows"], action["width"])).astype(np.float32).astype(np.float64)
    values["noise"] = x
    times = flow_times(facts["flow"])
    for step, (t, after) in enumerate(zip(times, times[1:])):
        values[f"velocity.{step}"] = velocity(denoise, x, told_time(t, inputs), cache, arch)
        x = x + (after - t) * values[f"velocity.{step}"]
    values["actions"] = x
    rows = np.empty((action["rows"], len(action["columns"])))
    for column, spec in enumerate(action["columns"]):
        base = 0 if spec["relative_to"] is None else np.float32(state[spec["relative_to"]])
        for row in range(len(rows)):
            rows[row, column] = unnormalise(x[row, column], spec, norm["action"], column, row) + base
    return {f"{number}.{name}": value for name, value in (values | {"rows": rows}).items()}


def frame_of(camera, number):
    return f"{camera}.jpg" if number == 0 else f"{camera}-{number}.jpg"


def save(path, tensors):
    header, data = {}, b""
    for name, value in tensors.items():
        dtype, stored = ("I64", value) if value.dtype == np.int64 else ("F32", value.astype(np.float32))
        header[name] = {"dtype": dtype, "shape": list(value.shape), "data_offsets": [len(data), len(data) + stored.nbytes]}
        data += np.ascontiguousarray(stored).tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def draw(folder, facts):
    """The frames, and parity vectors without rows: nobody serves this bundle."""
    (folder / "parity").mkdir(exist_ok=True)
    first = draw_frames(folder, facts["cameras"])
    for number, name in enumerate(draw_frames(folder, facts["cameras"], 1)):
        Image.open(folder / name).crop((number, 0, 97 + 30 * number, 93)).save(folder / name, quality=95)
    draw_frames(folder / "parity", facts["cameras"])
    rows = [[0.0] * len(facts["action"]["columns"])] * facts["action"]["rows"]
    write_episode(folder / "parity/chunk.json", [(first, CASES[0][1][: len(facts["state"]["columns"])], 0, rows, False)], "no rows")


def main():
    folder, bundle = Path(sys.argv[1]), Path(sys.argv[2])
    facts = json.loads((folder / "model.json").read_text())
    if "--draw" in sys.argv:
        return draw(folder, facts)
    tensors = {}
    for number in range(len(CASES)):
        tensors |= case_of(number, folder, bundle, facts["architecture"])
    views = facts["architecture"].get("inputs", {}).get("views", facts["cameras"])
    cases = [
        {
            "instruction": instruction,
            "state": state[: len(facts["state"]["columns"])],
            "frames": {view: frame_of(view, number) if view in facts["cameras"] else None for view in views},
        }
        for number, (instruction, state) in enumerate(CASES)
    ]
    (folder / "golden.json").write_text(json.dumps({"provenance": provenance("golden.py"), "cases": cases}, indent=2) + "\n")
    save(folder / "golden.safetensors", tensors)


if __name__ == "__main__":
    main()
