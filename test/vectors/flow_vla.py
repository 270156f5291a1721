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

The models in test/vectors/flow-vla/ are small ones whose graphs are given their inputs as published policies want them.

A bundle of int8 weights (`bundle build … --weights int8`) has its own vectors, `parity/int8.json`; for its first build copy chunk.json
there. Its weights are taken as they are kept, rounded; activations are not rounded here, so the difference from a device is what that
device's rounding of activations changes. With --exact DIR the rows are compared with those of the float32 bundle in DIR, on the noise of
the first, and nothing is written: what the rounding of the weights changes. bf16 weights have `parity/bf16.json` in the same way; on a CPU
nothing but them is rounded. A build for GPUs (`--compute f16`) has `parity/compute-f16.json`: its weights as they are kept, all else exact.
Where rows have a rotation of six columns, the seed of such vectors is the first one whose axes are long enough (AXIS_MIN): random weights
also give short or nearly parallel vectors, on which Gram-Schmidt makes any rounding as large as it likes.

What a model is given stands in observed.py, its weights in weights.py, the model in transformer.py and flow.py, mistakes that must show in
mutants.py, the files in vector_file.py.

Python 3.11; numpy 2.4.6, pillow 13.0.0, onnx 1.23.2, tokenizers 0.23.3.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from flow import compute_chunk, compute_latent, shortest_axis
from mutants import mutants
from observed import SEED, STEP, draw_frames, read_bundle, state_of
from vector_file import provenance, vectors_of, write_episode

# The shortest axis of a rotation, before it is made of length one.
AXIS_MIN = 0.3


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
    arch, state = model["architecture"], state_of(model)
    if given.draw:
        parity.mkdir(exist_ok=True)
        frames = draw_frames(parity, model["cameras"])
        rows = [[0.0] * len(model["action"]["columns"])] * model["action"]["rows"]
        write_episode(parity / "chunk.json", [(frames, state, STEP, rows, False)], "frames only; run flow_vla.py on a built bundle")
        return 0
    if given.bundle is None:
        parser.error("the built bundle is missing")

    vectors = parity / vectors_of(given.bundle)
    episode = json.loads(vectors.read_text())
    stored, seed = episode["observations"][0], episode["seed"]
    facts, frames = read_bundle(given.bundle)[0], [parity / name for name in stored["frames"]]
    if not (given.check or given.mutants or given.exact):
        seed = SEED
        while vectors.name != "chunk.json" and shortest_axis(compute_latent(given.bundle, frames, arch, seed=seed), facts) < AXIS_MIN:
            seed += 1
    rows, clamped = compute_chunk(given.bundle, frames, arch, seed=seed)
    # A model whose chunks continue rows has a second observation: the next chunk, which continues as many as it may of the first one's.
    most = model["action"].get("prefix", 0)
    prefix = rows[1 : 1 + most].round(9).tolist()
    later = compute_chunk(given.bundle, frames, arch, prefix=prefix, step=STEP + 1, seed=seed)[0] if most else None
    print(f"{rows.shape[0]} x {rows.shape[1]} rows, {clamped} of {rows.size} values clamped, spread per column", rows.std(axis=0).round(3))
    if given.mutants:
        tolerance = json.loads((given.bundle / "manifest.json").read_text())["parity"]["tolerance"]
        return mutants(given.bundle, frames, arch, rows if later is None else later, tolerance, prefix, seed)
    if given.exact:
        exact = compute_chunk(given.exact, frames, arch, facts["export_id"], seed=seed)[0]
        print(f"largest difference from float32 weights: {np.abs(exact - rows).max():.2e}, mean {np.abs(exact - rows).mean():.2e}")
        return 0
    if given.check:
        difference = np.abs(np.array(stored["actions"]) - rows).max()
        if most:
            second = json.loads(vectors.read_text())["observations"][1]
            difference = max(difference, np.abs(np.array(second["actions"]) - later).max())
        print(f"largest difference from {vectors}: {difference:.2e}")
        return 0 if difference < 1e-6 else 1
    episode = [(stored["frames"], state, STEP, rows.tolist(), False)]
    if most:
        episode.append((stored["frames"], state, STEP + 1, later.tolist(), False, prefix))
    write_episode(vectors, episode, provenance("flow_vla.py"), seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
